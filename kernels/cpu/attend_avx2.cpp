// attend for AVX2 + FMA; contract in kernels/attend.hpp, oracle in kernels/ref/attend.cpp.
// Decode is bound by memory: a tile of keys and values is read once for all heads of the group.
// Prefill is bound by arithmetic: up to kMaxRows (token, head) rows share each tile, three at a
// time, as tiles of 3 rows x 4 keys for the scores and of 3 rows x 32 columns for the values; with
// more than three rows a piece of the tile that stays in L1 is widened once for all of them.
// A row's own arithmetic is the same whatever it is grouped with; the row of out is its running
// sum. Rows of int8 are read as whole numbers: their scales meet the scores and weights.
// Built with -mavx2 -mfma: C headers and intrinsics only (a test finds no weak symbols here).
#include <math.h>

#include <kernels/cached_rows.hpp>

#include "kernels/cpu/attend_rows.hpp"
#include "kernels/cpu/avx2.hpp"
#include "kernels/cpu/avx2_math.hpp"

namespace dovetail::kernels::avx2 {
namespace {

constexpr int kTileRows = 3;
constexpr int64_t kMaxRows = 96;
constexpr int kVectors = 4;  // of columns of values at once
constexpr int64_t kColumns = kVectors * kLanes;
constexpr int64_t kLine = 64;                          // bytes
constexpr int64_t kWideKeys = 16;                      // keys that are widened at once
constexpr int64_t kWideDim = 256;                      // longer rows are read as they are stored
constexpr int64_t kWideFloats = kWideKeys * kWideDim;  // of keys, or kColumns of a tile's values
static_assert(kColumns * kAttendTile <= kWideFloats);

int64_t min_of(int64_t a, int64_t b) {
  return a < b ? a : b;
}
int64_t max_of(int64_t a, int64_t b) {
  return a > b ? a : b;
}

/// A number that is known when this is compiled.
template <int kValue>
struct Count {
  static constexpr int value = kValue;
};

using Row = AttendRow;
template <class Element>
using Tile = AttendTile<Element>;

/// The scales of n rows, where rows have them.
template <class Element>
void read_scales(float* scales, const Element* const* rows, int64_t n, int64_t head_dim) {
  if constexpr (kHasScale<Element>) {
    for (int64_t j = 0; j < n; ++j) scales[j] = row_scale(rows[j], head_dim);
  }
}

/// Stores sums of four keys (or n_keys, when fewer), times scale and the keys' own scales, as a
/// row's scores.
template <class Element>
void store_scores(float* scores, const __m256* sums, int64_t n_keys, float scale,
                  const float* key_scales) {
  const __m128 sum = reduce4(sums[0], sums[1], sums[2], sums[3]);
  __m128 scaled = _mm_mul_ps(sum, _mm_set1_ps(scale));
  if constexpr (kHasScale<Element>) scaled = _mm_mul_ps(scaled, _mm_loadu_ps(key_scales));
  if (n_keys >= kTileKeys) return _mm_storeu_ps(scores, scaled);
  _mm_maskstore_ps(scores, _mm256_castsi256_si128(first_lanes(n_keys)), scaled);
}

/// scores[r * kAttendTile + 0..3] = scale * q of row r times four keys (or n_keys, when fewer). One
/// (row, key) pair adds in eight lanes over head_dim, as linear does.
template <int kRows, class Element>
void score_keys(float* scores, const Row* rows, const Element* const* keys, int64_t n_keys,
                int64_t head_dim, float scale) {
  float key_scales[kTileKeys];
  read_scales(key_scales, keys, kTileKeys, head_dim);
  __m256 acc[kRows][kTileKeys];
  for (int r = 0; r < kRows; ++r) {
    for (int j = 0; j < kTileKeys; ++j) acc[r][j] = _mm256_setzero_ps();
  }
  const auto step = [&](const auto& load_from) {
    __m256 q[kRows];
    for (int r = 0; r < kRows; ++r) q[r] = load_from(rows[r].q);
    for (int j = 0; j < kTileKeys; ++j) {
      const __m256 key = load_from(keys[j]);
      for (int r = 0; r < kRows; ++r) acc[r][j] = _mm256_fmadd_ps(q[r], key, acc[r][j]);
    }
  };
  int64_t i = 0;
  for (; i + kLanes <= head_dim; i += kLanes) step([&](const auto* p) { return load(p + i); });
  if (i < head_dim) step([&](const auto* p) { return load_first(p + i, head_dim - i); });
#pragma GCC unroll 3
  for (int r = 0; r < kRows; ++r) {
    store_scores<Element>(scores + r * kAttendTile, acc[r], n_keys, scale, key_scales);
  }
}

/// The same with keys that widen_keys has laid out, and the scales of four.
template <int kRows, class Element>
void score_wide_keys(float* scores, const Row* rows, const float* keys, const float* key_scales,
                     int64_t n_keys, int64_t head_dim, float scale) {
  __m256 acc[kRows][kTileKeys];
  for (int r = 0; r < kRows; ++r) {
    for (int j = 0; j < kTileKeys; ++j) acc[r][j] = _mm256_setzero_ps();
  }
#pragma GCC unroll 4
  for (int64_t i = 0; i < head_dim; i += kLanes, keys += kTileKeys * kLanes) {
    __m256 q[kRows];
    for (int r = 0; r < kRows; ++r) q[r] = load(rows[r].q + i);
    for (int j = 0; j < kTileKeys; ++j) {
      const __m256 key = _mm256_load_ps(keys + j * kLanes);
      for (int r = 0; r < kRows; ++r) acc[r][j] = _mm256_fmadd_ps(q[r], key, acc[r][j]);
    }
  }
#pragma GCC unroll 3
  for (int r = 0; r < kRows; ++r) {
    store_scores<Element>(scores + r * kAttendTile, acc[r], n_keys, scale, key_scales);
  }
}

/// Widens n keys into [group of 4 keys][step of 8 columns][key][8]; a last group of fewer keys is
/// filled up with the last one. head_dim is a multiple of 8.
template <class Element>
void widen_keys(float* wide, const Element* const* keys, int64_t n, int64_t head_dim) {
  for (int64_t j = 0; j < (n + kTileKeys - 1) / kTileKeys * kTileKeys; ++j) {
    const Element* from = keys[min_of(j, n - 1)];
    float* to = wide + j / kTileKeys * kTileKeys * head_dim + j % kTileKeys * kLanes;
    for (int64_t i = 0; i < head_dim; i += kLanes, to += kTileKeys * kLanes) {
      _mm256_store_ps(to, load(from + i));
    }
  }
}

/// Widens columns [0, n_columns) of n values into [value][n_columns].
template <class Element>
void widen_values(float* wide, const Element* const* values, int64_t n, int64_t column,
                  int64_t n_columns) {
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < n_columns; i += kLanes, wide += kLanes) {
      _mm256_store_ps(wide, load(values[j] + column + i));
    }
  }
}

/// Turns a row's scores of one tile (by position - tile.start) into weights, times the values' own
/// scales, and scales the row's sums to the tile's greatest score. Keys that the row does not see
/// get weight 0.
template <class Element>
void weigh(float* p, Row& row, const Tile<Element>& tile, const float* value_scales,
           int64_t head_dim) {
  for (int64_t j = 0; j < row.begin - tile.start; ++j) p[j] = -INFINITY;
  for (int64_t j = max_of(0, row.end - tile.start); j < kAttendTile; ++j) p[j] = -INFINITY;

  __m256 top = load(p);
  for (int64_t j = kLanes; j < kAttendTile; j += kLanes) top = _mm256_max_ps(top, load(p + j));
  const float tile_greatest = greatest(top);
  const float merged = tile_greatest > row.greatest ? tile_greatest : row.greatest;

  __m256 acc = _mm256_setzero_ps();
  for (int64_t j = 0; j < kAttendTile; j += kLanes) {
    __m256 weight = exp8(_mm256_sub_ps(load(p + j), _mm256_set1_ps(merged)));
    acc = _mm256_add_ps(acc, weight);
    if constexpr (kHasScale<Element>) weight = _mm256_mul_ps(weight, load(value_scales + j));
    _mm256_storeu_ps(p + j, weight);
  }
  const __m256 keep = exp8(_mm256_set1_ps(row.greatest - merged));
  row.sum = row.sum * _mm256_cvtss_f32(keep) + reduce(acc);
  if (row.greatest == merged) return;  // keep is exactly 1
  row.greatest = merged;
  int64_t i = 0;
  for (; i + kLanes <= head_dim; i += kLanes) {
    _mm256_storeu_ps(row.out + i, _mm256_mul_ps(load(row.out + i), keep));
  }
  if (i < head_dim) {
    const int64_t rest = head_dim - i;
    store_first(row.out + i, _mm256_mul_ps(load_first(row.out + i, rest), keep), rest);
  }
}

/// out[r][columns] += sum over keys [begin, end), ascending, of p[r][key] * value_at(key)[columns],
/// keys counted from the tile's start; load_from(p, c) and store_to(p, c, value) reach vector c of
/// kCount. Meanwhile it fetches what comes next.
template <int kRows, int kCount, class ValueAt, class Ahead, class Load, class Save>
void add_columns(const Row* rows, int64_t column, const float* p, int64_t begin, int64_t end,
                 const ValueAt& value_at, Ahead& ahead, const Load& load_from,
                 const Save& store_to) {
  if (begin >= end) return;
  __m256 acc[kRows][kCount];
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < kCount; ++c) acc[r][c] = load_from(rows[r].out + column, c);
  }
#pragma GCC unroll 4
  for (int64_t j = begin; j < end; ++j) {
    const auto* from = value_at(j);
    ahead.some();
    __m256 weight[kRows];
    for (int r = 0; r < kRows; ++r) weight[r] = _mm256_broadcast_ss(p + r * kAttendTile + j);
    for (int c = 0; c < kCount; ++c) {
      const __m256 value = load_from(from, c);
      for (int r = 0; r < kRows; ++r) acc[r][c] = _mm256_fmadd_ps(weight[r], value, acc[r][c]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < kCount; ++c) store_to(rows[r].out + column, c, acc[r][c]);
  }
}

/// The same for the keys of a tile that each row sees. Later rows begin and end no earlier: what a
/// row sees before the last row begins or after the first row ends it takes alone, the part between
/// together with the others, ascending for each.
template <int kRows, int kCount, class Element, class ValueAt, class Ahead, class Load, class Save>
void merge_columns(const Row* rows, int64_t column, const float* p, const Tile<Element>& tile,
                   const ValueAt& value_at, Ahead& ahead, const Load& load_from,
                   const Save& store_to) {
  const int64_t all_begin = min_of(max_of(rows[kRows - 1].begin, tile.begin), tile.end);
  const int64_t all_end = max_of(all_begin, min_of(rows[0].end, tile.end));
  const auto alone = [&](int r, int64_t begin, int64_t end) {
    add_columns<1, kCount>(
        rows + r, column, p + r * kAttendTile, max_of(rows[r].begin, begin) - tile.start,
        min_of(rows[r].end, end) - tile.start, value_at, ahead, load_from, store_to);
  };
  for (int r = 0; r < kRows; ++r) alone(r, tile.begin, all_begin);
  add_columns<kRows, kCount>(rows, column, p, all_begin - tile.start, all_end - tile.start,
                             value_at, ahead, load_from, store_to);
  for (int r = 0; r < kRows; ++r) alone(r, all_end, tile.end);
}

/// kCount whole vectors of columns.
template <int kRows, int kCount, class Element, class ValueAt, class Ahead>
void merge_vectors(const Row* rows, int64_t column, const float* p, const Tile<Element>& tile,
                   const ValueAt& value_at, Ahead& ahead) {
  merge_columns<kRows, kCount>(
      rows, column, p, tile, value_at, ahead,
      [](const auto* from, int c) { return load(from + c * kLanes); },
      [](float* to, int c, __m256 sum) { _mm256_storeu_ps(to + c * kLanes, sum); });
}

/// Bytes of a row of keys or values.
template <class Element>
int64_t row_bytes(int64_t head_dim) {
  return kHasScale<Element> ? int8_row_bytes(head_dim) : head_dim * int64_t{sizeof(Element)};
}

/// Starts to fetch rows of keys or values, while others are at work.
template <class Element>
void fetch(const Element* const* rows, int64_t n_rows, int64_t head_dim) {
  for (int64_t j = 0; j < n_rows; ++j) {
    const char* row = reinterpret_cast<const char*>(rows[j]);
    for (int64_t at = 0; at < row_bytes<Element>(head_dim); at += kLine) {
      _mm_prefetch(row + at, _MM_HINT_T0);
    }
  }
}

/// Fetches the keys of the next tile, a line or two at every call: they lie in other pages, where the
/// processor does not look by itself.
template <class Element>
class KeyFetch {
 public:
  KeyFetch(const Tile<Element>& tile, int64_t head_dim)
      : row_(tile.key),
        last_(tile.key + (tile.end - tile.begin - 1)),
        row_bytes_(row_bytes<Element>(head_dim)) {}
  void some() {
    for (int line = 0; line < kLines; ++line) {
      _mm_prefetch(reinterpret_cast<const char*>(*row_) + at_, _MM_HINT_T0);
      at_ += kLine;
      const bool done = at_ >= row_bytes_;
      row_ += done && row_ < last_ ? 1 : 0;
      at_ = done ? 0 : at_;
    }
  }

 private:
  // As many as 32 columns are, of which a value is merged meanwhile.
  static constexpr int kLines = kColumns * sizeof(Element) > kLine
                                    ? kColumns * sizeof(Element) / kLine
                                    : 1;
  const Element* const* row_;
  const Element* const* last_;
  int64_t row_bytes_;
  int64_t at_ = 0;
};
struct NoFetch {
  void some() {}
};

/// All columns of a tile's values, as they are stored: 32 at a time, then 8, then what is left.
template <int kRows, class Element>
void merge_values(const Row* rows, const float* p, const Tile<Element>& tile,
                  const Tile<Element>* next, int64_t head_dim) {
  int64_t i = 0;
  const int64_t skipped = tile.begin - tile.start;
  const auto value_at = [&](int64_t j) { return tile.value[j - skipped] + i; };
  KeyFetch<Element> ahead(next != nullptr ? *next : tile, head_dim);
  NoFetch nothing;
  for (; i + kColumns <= head_dim; i += kColumns) {
    merge_vectors<kRows, kVectors>(rows, i, p, tile, value_at, ahead);
  }
  for (; i + kLanes <= head_dim; i += kLanes) {
    merge_vectors<kRows, 1>(rows, i, p, tile, value_at, nothing);
  }
  if (i == head_dim) return;
  const int64_t rest = head_dim - i;
  merge_columns<kRows, 1>(
      rows, i, p, tile, value_at, nothing,
      [&](const auto* from, int) { return load_first(from, rest); },
      [&](float* to, int, __m256 sum) { store_first(to, sum, rest); });
}

template <class Element>
void weigh_rows(float* p, Row* rows, int64_t n_rows, const Tile<Element>& tile, int64_t head_dim) {
  float value_scales[kAttendTile] = {};  // by position - tile.start
  read_scales(value_scales + (tile.begin - tile.start), tile.value, tile.end - tile.begin,
              head_dim);
  for (int64_t r = 0; r < n_rows; ++r) {
    if (rows[r].begin < tile.end && tile.begin < rows[r].end) {
      weigh(p + r * kAttendTile, rows[r], tile, value_scales, head_dim);
    }
  }
}

/// A tile for up to three rows, straight from the cache.
template <int kRows, class Element>
void attend_tile(Row* rows, const Tile<Element>& tile, const Tile<Element>* next, int64_t head_dim,
                 float scale) {
  float p[kRows * kAttendTile];  // scores, then weights, by position - tile.start
  const int64_t n_keys = tile.end - tile.begin;
  for (int64_t j = 0; j < n_keys; j += kTileKeys) {
    fetch(tile.value + j, min_of(kTileKeys, n_keys - j), head_dim);
    score_keys<kRows>(p + (tile.begin - tile.start) + j, rows, tile.key + j, n_keys - j, head_dim,
                      scale);
  }
  weigh_rows(p, rows, kRows, tile, head_dim);
  merge_values<kRows>(rows, p, tile, next, head_dim);
}

/// Calls fn with three rows at a time, as an integral constant, and with what is left.
template <class Fn>
void by_threes(int64_t n_rows, const Fn& fn) {
  int64_t r = 0;
  for (; r + kTileRows <= n_rows; r += kTileRows) fn(Count<kTileRows>(), r);
  if (n_rows - r == 2) fn(Count<2>(), r);
  if (n_rows - r == 1) fn(Count<1>(), r);
}

/// A tile for up to kMaxRows rows, which share what is widened of it. head_dim is a multiple of 8
/// and at most kWideDim.
template <class Element>
void attend_wide_tile(Row* rows, int64_t n_rows, const Tile<Element>& tile,
                      const Tile<Element>* next, int64_t head_dim, float scale) {
  float p[kMaxRows * kAttendTile];
  alignas(32) float wide[kWideFloats];
  const int64_t n_keys = tile.end - tile.begin;
  for (int64_t j = 0; j < n_keys; j += kWideKeys) {
    const int64_t n = min_of(kWideKeys, n_keys - j);
    float key_scales[kWideKeys] = {};
    read_scales(key_scales, tile.key + j, n, head_dim);
    widen_keys(wide, tile.key + j, n, head_dim);
    fetch(tile.key + j + n, min_of(kWideKeys, n_keys - j - n), head_dim);
    fetch(tile.value + j, n, head_dim);
    by_threes(n_rows, [&](auto count, int64_t r) {
      const int64_t seen = min_of(n, rows[r + count.value - 1].end - tile.begin - j);
      float* scores = p + r * kAttendTile + (tile.begin - tile.start) + j;
      for (int64_t g = 0; g < seen; g += kTileKeys) {
        score_wide_keys<count.value, Element>(scores + g, rows + r, wide + g * head_dim,
                                              key_scales + g, n - g, head_dim, scale);
      }
    });
  }
  weigh_rows(p, rows, n_rows, tile, head_dim);
  if (next != nullptr) fetch(next->key, min_of(kWideKeys, next->end - next->begin), head_dim);
  NoFetch nothing;
  int64_t i = 0;
  const auto merge = [&](auto n_vectors) {
    constexpr int64_t kWidth = n_vectors.value * kLanes;
    widen_values(wide, tile.value, n_keys, i, kWidth);
    by_threes(n_rows, [&](auto count, int64_t r) {
      merge_vectors<count.value, n_vectors.value>(
          rows + r, i, p + r * kAttendTile, tile,
          [&](int64_t j) { return wide + (j - (tile.begin - tile.start)) * kWidth; }, nothing);
    });
    i += kWidth;
  };
  while (i + kColumns <= head_dim) merge(Count<kVectors>());
  while (i < head_dim) merge(Count<1>());
}

/// As attend_rows.hpp wants it.
struct Avx2 {
  static constexpr int64_t kMaxRows = avx2::kMaxRows;

  template <class Element>
  static void tile(Row* rows, int64_t n_rows, const Tile<Element>& tile, const Tile<Element>* next,
                   int64_t head_dim, float scale) {
    const bool widens = n_rows > kTileRows && head_dim <= kWideDim && head_dim % kLanes == 0;
    if (widens) return attend_wide_tile(rows, n_rows, tile, next, head_dim, scale);
    by_threes(n_rows, [&](auto count, int64_t r) {
      attend_tile<count.value>(rows + r, tile, next, head_dim, scale);
    });
  }
  static float exp(float x) { return _mm256_cvtss_f32(exp8(_mm256_set1_ps(x))); }
};

}  // namespace

void attend_f32(const AttendTask& task, const KvLayout& layout, const float* k, const float* v,
                const uint32_t* page_table) {
  AttendWalk<Avx2, float>(task, layout, k, v, page_table).run();
}

void attend_bf16(const AttendTask& task, const KvLayout& layout, const uint16_t* k,
                 const uint16_t* v, const uint32_t* page_table) {
  AttendWalk<Avx2, uint16_t>(task, layout, k, v, page_table).run();
}

void attend_int8(const AttendTask& task, const KvLayout& layout, const int8_t* k, const int8_t* v,
                 const uint32_t* page_table) {
  AttendWalk<Avx2, int8_t>(task, layout, k, v, page_table).run();
}

void attend_merge(float* out, const float* parts, int64_t n_parts, int64_t part_stride,
                  int64_t head_dim) {
  merge_attend_parts<Avx2>(out, parts, n_parts, part_stride, head_dim);
}

}  // namespace dovetail::kernels::avx2
