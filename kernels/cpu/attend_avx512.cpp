// attend for AVX-512: its scores; the rest is in attend_tiles.hpp. Contract in kernels/attend.hpp,
// oracle in kernels/ref/attend.cpp.
// Decode is bound by memory: a tile of keys and values is read once for all heads of the group.
// Prefill is bound by arithmetic: up to kMaxRows (token, head) rows share each tile, six at a time.
// The keys of a tile are turned, so that a vector is one column of sixteen of them: a score is then
// the sum of its products in ascending order, in one lane, and nothing is left to add up across
// lanes. Turning costs as many instructions as the sums across lanes of one row would, and a batch
// does it once for all rows.
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

/// Sixteen bytes of each of sixteen rows as four vectors: four bytes of row j in lane j.
void turn(__m512i (&out)[4], const void* const* rows, int64_t at) {
  const auto load = [&](int row) {
    return _mm_loadu_si128(
        reinterpret_cast<const __m128i*>(static_cast<const char*>(rows[row]) + at));
  };
  __m512i part[4];  // rows i, i + 4, i + 8, i + 12
  for (int i = 0; i < 4; ++i) {
    part[i] = _mm512_castsi128_si512(load(i));
    part[i] = _mm512_mask_broadcast_i32x4(part[i], 0x00F0, load(i + 4));
    part[i] = _mm512_mask_broadcast_i32x4(part[i], 0x0F00, load(i + 8));
    part[i] = _mm512_mask_broadcast_i32x4(part[i], 0xF000, load(i + 12));
  }
  const __m512i low01 = _mm512_unpacklo_epi32(part[0], part[1]);
  const __m512i low23 = _mm512_unpacklo_epi32(part[2], part[3]);
  const __m512i high01 = _mm512_unpackhi_epi32(part[0], part[1]);
  const __m512i high23 = _mm512_unpackhi_epi32(part[2], part[3]);
  out[0] = _mm512_unpacklo_epi64(low01, low23);
  out[1] = _mm512_unpackhi_epi64(low01, low23);
  out[2] = _mm512_unpacklo_epi64(high01, high23);
  out[3] = _mm512_unpackhi_epi64(high01, high23);
}

/// Stores the elements of four bytes in every lane as vectors of floats, kAttendTile floats apart.
void store_columns(float* to, __m512i four, const float* /*element*/) {
  _mm512_store_ps(to, _mm512_castsi512_ps(four));
}
void store_columns(float* to, __m512i four, const uint16_t* /*element*/) {
  const __m512i upper = _mm512_set1_epi32(static_cast<int32_t>(0xFFFF0000U));
  _mm512_store_ps(to, _mm512_castsi512_ps(_mm512_slli_epi32(four, 16)));
  _mm512_store_ps(to + kAttendTile, _mm512_castsi512_ps(_mm512_and_si512(four, upper)));
}
void store_columns(float* to, __m512i four, const int8_t* /*element*/) {
  const auto store = [](float* at, __m512i top) {
    _mm512_store_ps(at, _mm512_cvtepi32_ps(_mm512_srai_epi32(top, 24)));
  };
  store(to, _mm512_slli_epi32(four, 24));
  store(to + kAttendTile, _mm512_slli_epi32(four, 16));
  store(to + 2 * kAttendTile, _mm512_slli_epi32(four, 8));
  store(to + 3 * kAttendTile, four);
}

/// Columns [column, column + n_columns) of sixteen keys into turned [column][kAttendTile]. Up to a
/// chunk of further columns is written as well.
template <class Element>
void turn_keys(float* turned, const Element* const* keys, int64_t column, int64_t n_columns) {
  constexpr int64_t kChunk = 16 / sizeof(Element);
  constexpr int64_t kPerLane = 4 / sizeof(Element);
  const auto turn_chunk = [&](const void* const* rows, int64_t at) {
    __m512i words[4];
    turn(words, rows, at);
    for (const __m512i& four : words) {
      store_columns(turned, four, keys[0]);
      turned += kPerLane * kAttendTile;
    }
  };
  const void* rows[kLanes];
  for (int64_t j = 0; j < kLanes; ++j) rows[j] = keys[j] + column;
  int64_t i = 0;
  for (; i + kChunk <= n_columns; i += kChunk) {
    turn_chunk(rows, i * static_cast<int64_t>(sizeof(Element)));
  }
  if (i == n_columns) return;
  Element rest[kLanes][kChunk] = {};
  for (int64_t j = 0; j < kLanes; ++j) {
    memcpy(rest[j], keys[j] + column + i, static_cast<size_t>(n_columns - i) * sizeof(Element));
    rows[j] = rest[j];
  }
  turn_chunk(rows, 0);
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
    if (piece.is_last) {
      for (int r = 0; r < kRows; ++r) {
        acc[r][v] = _mm512_mul_ps(acc[r][v], _mm512_set1_ps(piece.scale));
        if (piece.key_scales == nullptr) continue;
        acc[r][v] = _mm512_mul_ps(acc[r][v], _mm512_load_ps(piece.key_scales + at + v * kLanes));
      }
    }
    for (int r = 0; r < kRows; ++r) {
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

/// scores[r * kAttendTile + position - tile.start] = scale * q of row r times each key that the row
/// sees, and numbers of no meaning for some others. `turned` has room for a piece.
template <class Element>
void score_rows(float* scores, float* turned, const Row* rows, int64_t n_rows,
                const Tile<Element>& tile, int64_t head_dim, float scale) {
  const int64_t skipped = tile.begin - tile.start;
  const int64_t n_keys = tile.end - tile.begin;
  const Element* keys[kAttendTile];  // by position - tile.start; those outside are one inside
  for (int64_t j = 0; j < kAttendTile; ++j) {
    keys[j] = tile.key[min_of(max_of(j - skipped, 0), n_keys - 1)];
  }
  alignas(64) float key_scales[kAttendTile];
  read_scales(key_scales, keys, kAttendTile, head_dim);
  const Span all = vectors_of(tile, tile.begin, tile.end);
  for (int64_t column = 0; column < head_dim; column += kPieceDim) {
    const int64_t n_columns = min_of(kPieceDim, head_dim - column);
    for (int64_t v = all.begin; v < all.end; ++v) {
      if (column == 0) {
        const int64_t first = max_of(v * kLanes - skipped, 0);
        fetch(tile.value + first, min_of(kLanes, n_keys - first), head_dim);
      }
      turn_keys(turned + v * kLanes, keys + v * kLanes, column, n_columns);
    }
    const Piece piece = {turned,    column,
                         n_columns, column + n_columns == head_dim,
                         scale,     kHasScale<Element> ? key_scales : nullptr};
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
    score_rows(p, wide, rows, n_rows, tile, head_dim, scale);
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
