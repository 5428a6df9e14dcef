// attend for NEON; contract in kernels/attend.hpp, oracle in kernels/ref/attend.cpp.
// Decode is bound by memory: a tile of keys and values is read once for all heads of the group.
// Prefill is bound by arithmetic: up to kMaxRows (token, head) rows share each tile, three at a
// time, as tiles of 3 rows x 4 keys for the scores and of 3 rows x 32 columns for the values.
// A row's own arithmetic is the same whatever it is grouped with; the row of out is its running
// sum. Rows of int8 are read as whole numbers: their scales meet the scores and weights.
#include <algorithm>
#include <cmath>

#include <kernels/cached_rows.hpp>

#include "kernels/cpu/attend_rows.hpp"
#include "kernels/cpu/neon.hpp"
#include "kernels/cpu/neon_dots.hpp"

namespace dovetail::kernels::neon {
namespace {

constexpr int kTileRows = 3;
constexpr int64_t kMaxRows = 48;

using Row = AttendRow;
template <class Element>
using Tile = AttendTile<Element>;
static_assert(kTileKeys == kDotColumns);

/// scores[r * kAttendTile + 0..3] = scale * q of row r times four keys (or n_keys, when fewer) and
/// their own scales. One (row, key) pair adds in eight lanes over head_dim, as linear does.
template <int kRows, class Element>
void score_keys(float* scores, const Row* rows, const Element* const* keys, int64_t n_keys,
                int64_t head_dim, float scale) {
  const float* q[kRows];
  for (int r = 0; r < kRows; ++r) q[r] = rows[r].q;
  const Element* four[kDotColumns];
  std::copy_n(keys, kDotColumns, four);
  float sums[kRows][kDotColumns];
  dots(sums, q, four, head_dim);
  for (int64_t j = 0; j < std::min<int64_t>(n_keys, kDotColumns); ++j) {
    const float key_scale = row_scale(four[j], head_dim);
    for (int r = 0; r < kRows; ++r) {
      scores[r * kAttendTile + j] = (sums[r][j] * scale) * key_scale;
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
  for (int64_t j = std::max<int64_t>(0, row.end - tile.start); j < kAttendTile; ++j) {
    p[j] = -INFINITY;
  }

  Float8 top = load(p);
  for (int64_t j = kLanes; j < kAttendTile; j += kLanes) top = max(top, load(p + j));
  const float tile_greatest = greatest(top);
  const float merged = tile_greatest > row.greatest ? tile_greatest : row.greatest;

  Float8 sum = all(0.0F);
  for (int64_t j = 0; j < kAttendTile; j += kLanes) {
    Float8 weight = exp8(sub(load(p + j), all(merged)));
    sum = add(sum, weight);
    if constexpr (kHasScale<Element>) weight = mul(weight, load(value_scales + j));
    store(p + j, weight);
  }
  const float keep = vgetq_lane_f32(exp4(vdupq_n_f32(row.greatest - merged)), 0);
  row.sum = row.sum * keep + reduce(sum);
  if (row.greatest == merged) return;  // keep is exactly 1
  row.greatest = merged;
  for (int64_t i = 0; i < head_dim; ++i) row.out[i] *= keep;
}

/// out[r][columns] += sum over positions [begin, end), ascending, of p[r][pos] *
/// value[pos][columns]; load_from(p, c) and store_to(p, c, value) reach vector c of kVectors in a
/// row of head_dim columns.
template <int kRows, int kVectors, class Element, class Load, class Save>
void add_columns(const Row* rows, const float* p, const Tile<Element>& tile, int64_t begin,
                 int64_t end, const Load& load_from, const Save& store_to) {
  Float8 acc[kRows][kVectors];
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < kVectors; ++c) acc[r][c] = load_from(rows[r].out, c);
  }
  for (int64_t pos = begin; pos < end; ++pos) {
    const Element* from = tile.value[pos - tile.begin];
    const float* weights = p + (pos - tile.start);
    for (int c = 0; c < kVectors; ++c) {
      const Float8 value = load_from(from, c);
      for (int r = 0; r < kRows; ++r) acc[r][c] = fma(acc[r][c], value, weights[r * kAttendTile]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < kVectors; ++c) store_to(rows[r].out, c, acc[r][c]);
  }
}

/// All columns: 32 at a time, then 8, then what is left.
template <int kRows, class Element>
void add_values(const Row* rows, const float* p, const Tile<Element>& tile, int64_t begin,
                int64_t end, int64_t head_dim) {
  if (begin >= end) return;
  int64_t i = 0;
  const auto load_eight = [&](const auto* from, int c) { return load(from + i + c * kLanes); };
  const auto store_eight = [&](float* to, int c, Float8 sum) { store(to + i + c * kLanes, sum); };
  for (; i + 4 * kLanes <= head_dim; i += 4 * kLanes) {
    add_columns<kRows, 4>(rows, p, tile, begin, end, load_eight, store_eight);
  }
  for (; i + kLanes <= head_dim; i += kLanes) {
    add_columns<kRows, 1>(rows, p, tile, begin, end, load_eight, store_eight);
  }
  if (i == head_dim) return;
  const auto load_rest = [&](const auto* from, int) { return load_first(from + i, head_dim - i); };
  const auto store_rest = [&](float* to, int, Float8 sum) {
    store_first(to + i, sum, head_dim - i);
  };
  add_columns<kRows, 1>(rows, p, tile, begin, end, load_rest, store_rest);
}

/// Later rows begin and end no earlier. What a row sees before the last row begins or after the
/// first row ends it takes alone, the part between together with the others: ascending for each.
template <int kRows, class Element>
void merge_values(const Row* rows, const float* p, const Tile<Element>& tile, int64_t head_dim) {
  const int64_t begin = std::max(rows[kRows - 1].begin, tile.begin);
  const int64_t end = std::max(begin, std::min(rows[0].end, tile.end));
  for (int r = 0; r < kRows; ++r) {
    add_values<1>(rows + r, p + r * kAttendTile, tile, std::max(rows[r].begin, tile.begin),
                  std::min({rows[r].end, tile.end, begin}), head_dim);
  }
  add_values<kRows>(rows, p, tile, begin, std::min(end, tile.end), head_dim);
  for (int r = 0; r < kRows; ++r) {
    add_values<1>(rows + r, p + r * kAttendTile, tile, end, std::min(rows[r].end, tile.end),
                  head_dim);
  }
}

template <int kRows, class Element>
void attend_tile(Row* rows, const Tile<Element>& tile, int64_t head_dim, float scale) {
  float p[kRows * kAttendTile];  // scores, then weights, by position - tile.start

  const int64_t n_keys = tile.end - tile.begin;
  for (int64_t j = 0; j < n_keys; j += kDotColumns) {
    score_keys<kRows>(p + (tile.begin - tile.start) + j, rows, tile.key + j, n_keys - j, head_dim,
                      scale);
  }
  float value_scales[kAttendTile] = {};  // by position - tile.start
  if constexpr (kHasScale<Element>) {
    for (int64_t j = 0; j < n_keys; ++j) {
      value_scales[tile.begin - tile.start + j] = row_scale(tile.value[j], head_dim);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    if (rows[r].begin < tile.end && tile.begin < rows[r].end) {
      weigh(p + r * kAttendTile, rows[r], tile, value_scales, head_dim);
    }
  }
  merge_values<kRows>(rows, p, tile, head_dim);
}

/// As attend_rows.hpp wants it.
struct Neon {
  static constexpr int64_t kMaxRows = neon::kMaxRows;

  template <class Element>
  static void tile(Row* rows, int64_t n_rows, const Tile<Element>& tile,
                   const Tile<Element>* /*next*/, int64_t head_dim, float scale) {
    int64_t r = 0;
    for (; r + kTileRows <= n_rows; r += kTileRows) {
      attend_tile<kTileRows>(rows + r, tile, head_dim, scale);
    }
    if (n_rows - r == 2) attend_tile<2>(rows + r, tile, head_dim, scale);
    if (n_rows - r == 1) attend_tile<1>(rows + r, tile, head_dim, scale);
  }
  static float exp(float x) { return vgetq_lane_f32(exp4(vdupq_n_f32(x)), 0); }
};

}  // namespace

void attend_f32(const AttendTask& task, const KvLayout& layout, const float* k, const float* v,
                const uint32_t* page_table) {
  AttendWalk<Neon, float>(task, layout, k, v, page_table).run();
}

void attend_bf16(const AttendTask& task, const KvLayout& layout, const uint16_t* k,
                 const uint16_t* v, const uint32_t* page_table) {
  AttendWalk<Neon, uint16_t>(task, layout, k, v, page_table).run();
}

void attend_int8(const AttendTask& task, const KvLayout& layout, const int8_t* k, const int8_t* v,
                 const uint32_t* page_table) {
  AttendWalk<Neon, int8_t>(task, layout, k, v, page_table).run();
}

void attend_merge(float* out, const float* parts, int64_t n_parts, int64_t part_stride,
                  int64_t head_dim) {
  merge_attend_parts<Neon>(out, parts, n_parts, part_stride, head_dim);
}

}  // namespace dovetail::kernels::neon
