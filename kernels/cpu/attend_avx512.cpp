// attend for AVX-512: its scores; the rest is in attend_tiles.hpp. Contract in kernels/attend.hpp,
// oracle in kernels/ref/attend.cpp.
// Decode is bound by memory: a tile of keys and values is read once for all heads of the group.
// Prefill is bound by arithmetic: up to kMaxRows (token, head) rows share each tile, six at a time.
// The keys of a tile are turned, so that a vector is one column of sixteen of them: a score is then
// the sum of its products in ascending order, in one lane, and nothing is left to add up across
// lanes. A batch turns them once for all rows; few rows multiply them as they are turned.
// Built with -mavx512{f,bw,vl}: C headers and intrinsics only (a test finds no weak symbols here).
#include "kernels/cpu/attend_tiles.hpp"
#include "kernels/cpu/avx512.hpp"
#include "kernels/cpu/avx512_math.hpp"

namespace dovetail::kernels::avx512 {
namespace {

struct Isa : Vectors {
  static constexpr int kTileRows = 6;  // 24 sums, a value and 6 weights of the 32 registers
};
using Tiles = AttendTiles<Isa>;

constexpr int64_t kMaxRows = 96;
constexpr int kKeyVectors = kAttendTile / kLanes;
constexpr int64_t kPieceDim = 64;  // columns of keys that are turned at once: 16 KiB
static_assert(kPieceDim * kAttendTile <= Tiles::kWideFloats);

using Row = AttendRow;
template <class Element>
using Tile = AttendTile<Element>;

/// Turns sixteen rows of sixteen words of four bytes: word i of row j becomes word j of row i.
[[gnu::always_inline]] inline void turn(__m512i (&row)[kLanes]) {
  __m512i a[kLanes];
  for (int i = 0; i < kLanes; i += 2) {
    a[i] = _mm512_unpacklo_epi32(row[i], row[i + 1]);
    a[i + 1] = _mm512_unpackhi_epi32(row[i], row[i + 1]);
  }
  __m512i b[kLanes];  // part p of vector i + j: word 4 p + j of rows i to i + 3
  for (int i = 0; i < kLanes; i += 4) {
    b[i] = _mm512_unpacklo_epi64(a[i], a[i + 2]);
    b[i + 1] = _mm512_unpackhi_epi64(a[i], a[i + 2]);
    b[i + 2] = _mm512_unpacklo_epi64(a[i + 1], a[i + 3]);
    b[i + 3] = _mm512_unpackhi_epi64(a[i + 1], a[i + 3]);
  }
  constexpr int kEven = 0x88;  // parts 0 and 2 of both operands
  constexpr int kOdd = 0xDD;
  for (int j = 0; j < 4; ++j) {
    const __m512i even_low = _mm512_shuffle_i32x4(b[j], b[4 + j], kEven);
    const __m512i even_high = _mm512_shuffle_i32x4(b[8 + j], b[12 + j], kEven);
    const __m512i odd_low = _mm512_shuffle_i32x4(b[j], b[4 + j], kOdd);
    const __m512i odd_high = _mm512_shuffle_i32x4(b[8 + j], b[12 + j], kOdd);
    row[j] = _mm512_shuffle_i32x4(even_low, even_high, kEven);
    row[4 + j] = _mm512_shuffle_i32x4(odd_low, odd_high, kEven);
    row[8 + j] = _mm512_shuffle_i32x4(even_low, even_high, kOdd);
    row[12 + j] = _mm512_shuffle_i32x4(odd_low, odd_high, kOdd);
  }
}

/// Elements in a word, and element kAt of the word in every lane, as a float.
template <class Element>
constexpr int kPerWord = 4 / static_cast<int>(sizeof(Element));

template <int kAt, class Element>
__m512 element_of(__m512i word, const Element* /*of_type*/) {
  if constexpr (sizeof(Element) == 4) {
    return _mm512_castsi512_ps(word);
  } else if constexpr (sizeof(Element) == 2) {
    const __m512i upper = _mm512_set1_epi32(static_cast<int32_t>(0xFFFF0000U));
    return _mm512_castsi512_ps(kAt == 0 ? _mm512_slli_epi32(word, 16)
                                        : _mm512_and_si512(word, upper));
  } else {
    const __m512i top = kAt == 3 ? word : _mm512_slli_epi32(word, 24 - 8 * kAt);
    return _mm512_cvtepi32_ps(_mm512_srai_epi32(top, 24));
  }
}

/// Calls fn(i, column i) for the columns in sixteen words, in order.
template <class Element, class Fn>
[[gnu::always_inline]] inline void each_column(const __m512i (&word)[kLanes],
                                               const Element* of_type, const Fn& fn) {
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) {
    fn(i * kPerWord<Element>, element_of<0>(word[i], of_type));
    if constexpr (kPerWord<Element> >= 2) {
      fn(i * kPerWord<Element> + 1, element_of<1>(word[i], of_type));
    }
    if constexpr (kPerWord<Element> == 4) {
      fn(4 * i + 2, element_of<2>(word[i], of_type));
      fn(4 * i + 3, element_of<3>(word[i], of_type));
    }
  }
}

constexpr int64_t kTurnBytes = 64;  // of a row at once
template <class Element>
constexpr int64_t kTurnDim = kTurnBytes / static_cast<int64_t>(sizeof(Element));

/// Columns [column, column + n_columns) of sixteen keys into turned [column][kAttendTile]. Columns are
/// filled up to 64 bytes of them.
template <class Element>
void turn_keys(float* turned, const Element* const* keys, int64_t column, int64_t n_columns) {
  const int64_t n_bytes = n_columns * static_cast<int64_t>(sizeof(Element));
  for (int64_t at = 0; at < n_bytes; at += kTurnBytes) {
    const auto from = [&](int64_t j) {
      return reinterpret_cast<const char*>(keys[j] + column) + at;
    };
    __m512i word[kLanes];
    if (n_bytes - at >= kTurnBytes) {
      for (int64_t j = 0; j < kLanes; ++j) word[j] = _mm512_loadu_si512(from(j));
    } else {
      const __mmask64 mask = (uint64_t{1} << static_cast<uint64_t>(n_bytes - at)) - 1;
      for (int64_t j = 0; j < kLanes; ++j) word[j] = _mm512_maskz_loadu_epi8(mask, from(j));
    }
    turn(word);
    each_column(word, keys[0],
                [&](int i, __m512 values) { _mm512_store_ps(turned + i * kAttendTile, values); });
    turned += kTurnDim<Element> * kAttendTile;
  }
}

/// sums[r * kAttendTile + key] += q of row r times sixteen keys, over the columns from `column` on that
/// take kTurnBytes, ascending, without a detour through memory. At column 0 the sums start at zero.
template <int kRows, class Element>
void score_few(float* sums, const Row* rows, const Element* const* keys, int64_t column) {
  __m512 acc[kRows];
  const float* q[kRows];
  for (int r = 0; r < kRows; ++r) {
    acc[r] = column == 0 ? _mm512_setzero_ps() : _mm512_load_ps(sums + r * kAttendTile);
    q[r] = rows[r].q + column;
  }
  __m512i word[kLanes];
  for (int64_t j = 0; j < kLanes; ++j) word[j] = _mm512_loadu_si512(keys[j] + column);
  turn(word);
  each_column(word, keys[0], [&](int i, __m512 values) {
    for (int r = 0; r < kRows; ++r)
      acc[r] = _mm512_fmadd_ps(_mm512_set1_ps(q[r][i]), values, acc[r]);
  });
  for (int r = 0; r < kRows; ++r) _mm512_store_ps(sums + r * kAttendTile, acc[r]);
}

/// The scores of sixteen keys from their sums; key_scales is null where keys have none.
inline __m512 score_of(__m512 sums, float scale, const float* key_scales) {
  const __m512 scaled = _mm512_mul_ps(sums, _mm512_set1_ps(scale));
  return key_scales == nullptr ? scaled : _mm512_mul_ps(scaled, _mm512_load_ps(key_scales));
}

/// A piece of the columns of turned keys, and what the sums over all pieces are multiplied with.
struct Piece {
  const float* keys;  // turned: column i of a key at keys + i * kAttendTile
  int64_t column;
  int64_t n_columns;
  bool is_last;
  float scale;
  const float* key_scales;  // null where keys have none
};

/// sums[r * kAttendTile + key] += q of row r times kCount vectors of keys from `at` on, over the
/// columns of a piece, ascending. The first piece starts at zero, the last one makes the sums scores.
template <int kRows, int kCount>
void score_keys(float* sums, const Row* rows, const Piece& piece, int64_t at) {
  __m512 acc[kRows][kCount];
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kCount; ++v) {
      acc[r][v] = piece.column == 0 ? _mm512_setzero_ps()
                                    : _mm512_load_ps(sums + r * kAttendTile + v * kLanes);
    }
  }
  const float* q[kRows];
  for (int r = 0; r < kRows; ++r) q[r] = rows[r].q + piece.column;
  const float* keys = piece.keys + at;
#pragma GCC unroll 4
  for (int64_t i = 0; i < piece.n_columns; ++i, keys += kAttendTile) {
    __m512 key[kCount];
    for (int v = 0; v < kCount; ++v) key[v] = _mm512_load_ps(keys + v * kLanes);
    for (int r = 0; r < kRows; ++r) {
      const __m512 number = _mm512_set1_ps(q[r][i]);
      for (int v = 0; v < kCount; ++v) acc[r][v] = _mm512_fmadd_ps(number, key[v], acc[r][v]);
    }
  }
  for (int v = 0; v < kCount; ++v) {
    const int64_t key = at + v * kLanes;
    for (int r = 0; r < kRows; ++r) {
      if (piece.is_last) {
        acc[r][v] = score_of(acc[r][v], piece.scale,
                             piece.key_scales != nullptr ? piece.key_scales + key : nullptr);
      }
      _mm512_store_ps(sums + r * kAttendTile + v * kLanes, acc[r][v]);
    }
  }
}

/// Vectors of a tile, counted from its start.
struct Span {
  int64_t begin;
  int64_t end;
};

/// Those with the keys [begin, end).
template <class Element>
Span vectors_of(const Tile<Element>& tile, int64_t begin, int64_t end) {
  return {(max_of(begin, tile.begin) - tile.start) / kLanes,
          (min_of(end, tile.end) - tile.start + kLanes - 1) / kLanes};
}

/// The keys of a tile by position - tile.start; in the place of those outside it is one inside.
template <class Element>
class TileKeys {
 public:
  TileKeys(const Tile<Element>& tile, int64_t head_dim)
      : tile_(tile), head_dim_(head_dim), skipped_(tile.begin - tile.start) {
    for (int64_t j = 0; j < kAttendTile; ++j) {
      keys_[j] = tile.key[min_of(max_of(j - skipped_, 0), tile.end - tile.begin - 1)];
    }
    read_scales(scales_, keys_, kAttendTile, head_dim);
  }
  /// The vectors that have keys of the tile.
  Span vectors() const { return vectors_of(tile_, tile_.begin, tile_.end); }
  const Element* const* vector(int64_t v) const { return keys_ + v * kLanes; }
  /// Null where keys have none.
  const float* scales() const { return kHasScale<Element> ? scales_ : nullptr; }

  /// Starts to fetch the values that belong to a vector of keys.
  void fetch_values(int64_t v) const {
    const int64_t first = max_of(v * kLanes - skipped_, 0);
    fetch(tile_.value + first, min_of(kLanes, tile_.end - tile_.begin - first), head_dim_);
  }

 private:
  const Tile<Element>& tile_;
  int64_t head_dim_;
  int64_t skipped_;
  const Element* keys_[kAttendTile];
  alignas(64) float scales_[kAttendTile];
};

/// scores[r * kAttendTile + position - tile.start] = scale * q of row r times each key of the tile, for up
/// to kDirectRows rows; head_dim is a multiple of what kTurnBytes hold.
template <class Element>
void score_few_rows(float* scores, const Row* rows, int64_t n_rows, const TileKeys<Element>& keys,
                    int64_t head_dim, float scale) {
  const Span all = keys.vectors();
  with_count<Tiles::kDirectRows>(n_rows, [&](auto count) {
    for (int64_t column = 0; column < head_dim; column += kTurnDim<Element>) {
      for (int64_t v = all.begin; v < all.end; ++v) {
        if (column == 0) keys.fetch_values(v);
        score_few<count.value>(scores + v * kLanes, rows, keys.vector(v), column);
      }
    }
  });
  for (int64_t r = 0; r < n_rows; ++r) {
    for (int64_t at = all.begin * kLanes; at < all.end * kLanes; at += kLanes) {
      float* to = scores + r * kAttendTile + at;
      const float* scales = kHasScale<Element> ? keys.scales() + at : nullptr;
      _mm512_store_ps(to, score_of(_mm512_load_ps(to), scale, scales));
    }
  }
}

/// The same for any number of rows and any head_dim, of the keys that a row sees, and numbers of no
/// meaning for some others. `turned` has room for a piece.
template <class Element>
void score_rows(float* scores, float* turned, const Row* rows, int64_t n_rows,
                const Tile<Element>& tile, const TileKeys<Element>& keys, int64_t head_dim,
                float scale) {
  const Span all = keys.vectors();
  for (int64_t column = 0; column < head_dim; column += kPieceDim) {
    const int64_t n_columns = min_of(kPieceDim, head_dim - column);
    for (int64_t v = all.begin; v < all.end; ++v) {
      if (column == 0) keys.fetch_values(v);
      turn_keys(turned + v * kLanes, keys.vector(v), column, n_columns);
    }
    const bool is_last = column + n_columns == head_dim;
    const Piece piece = {turned, column, n_columns, is_last, scale, keys.scales()};
    Tiles::by_rows(n_rows, [&](auto count, int64_t r) {
      const Span seen = vectors_of(tile, rows[r].begin, rows[r + count.value - 1].end);
      const int64_t at = seen.begin * kLanes;
      with_count<kKeyVectors>(seen.end - seen.begin, [&](auto vectors) {
        score_keys<count.value, vectors.value>(scores + r * kAttendTile + at, rows + r, piece, at);
      });
    });
  }
}

/// As attend_rows.hpp wants it.
struct Avx512 {
  static constexpr int64_t kMaxRows = avx512::kMaxRows;

  template <class Element>
  static void tile(Row* rows, int64_t n_rows, const Tile<Element>& tile, const Tile<Element>* next,
                   int64_t head_dim, float scale) {
    alignas(64) float p[kMaxRows * kAttendTile];  // scores, then weights, by position - tile.start
    alignas(64) float wide[Tiles::kWideFloats];
    const TileKeys<Element> keys(tile, head_dim);
    if (n_rows <= Tiles::kDirectRows && head_dim % kTurnDim<Element> == 0) {
      score_few_rows(p, rows, n_rows, keys, head_dim, scale);
    } else {
      score_rows(p, wide, rows, n_rows, tile, keys, head_dim, scale);
    }
    Tiles::weigh_rows(p, rows, n_rows, tile, head_dim);
    if (n_rows > Tiles::kDirectRows && head_dim % kLanes == 0) {
      return Tiles::merge_wide_values(rows, n_rows, p, wide, tile, next, head_dim);
    }
    Tiles::by_rows<Tiles::kDirectRows>(n_rows, [&](auto count, int64_t r) {
      Tiles::merge_values<count.value>(rows + r, p + r * kAttendTile, tile, next, head_dim);
    });
  }
  static float exp(float x) { return Tiles::exp(x); }
};

}  // namespace

void attend_f32(const AttendTask& task, const KvLayout& layout, const float* k, const float* v,
                const uint32_t* page_table) {
  AttendWalk<Avx512, float>(task, layout, k, v, page_table).run();
}

void attend_bf16(const AttendTask& task, const KvLayout& layout, const uint16_t* k,
                 const uint16_t* v, const uint32_t* page_table) {
  AttendWalk<Avx512, uint16_t>(task, layout, k, v, page_table).run();
}

void attend_int8(const AttendTask& task, const KvLayout& layout, const int8_t* k, const int8_t* v,
                 const uint32_t* page_table) {
  AttendWalk<Avx512, int8_t>(task, layout, k, v, page_table).run();
}

void attend_merge(float* out, const float* parts, int64_t n_parts, int64_t part_stride,
                  int64_t head_dim) {
  merge_attend_parts<Avx512>(out, parts, n_parts, part_stride, head_dim);
}

}  // namespace dovetail::kernels::avx512
