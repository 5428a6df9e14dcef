// The tile that NEON kernels share: rows of floats times four rows of weights or keys.
#pragma once

#include "kernels/cpu/neon_math.hpp"

namespace dovetail::kernels::neon {

inline constexpr int kDotColumns = 4;

/// Four of the eight lanes of a tile's sums. One half after the other leaves registers for the
/// operands: 3 x 4 sums of eight lanes take 24 of 32.
template <int kRows>
struct HalfTile {
  float32x4_t sum[kRows][kDotColumns];
};

/// By value: a tile that is passed by reference stays in memory.
template <int kRows, class Element, class Load>
HalfTile<kRows> add_products(HalfTile<kRows> tile, const float* const (&x)[kRows],
                             const Element* const (&w)[kDotColumns], const Load& load_from) {
  float32x4_t row[kRows];
  for (int i = 0; i < kRows; ++i) row[i] = load_from(x[i]);
  for (int j = 0; j < kDotColumns; ++j) {
    const float32x4_t column = load_from(w[j]);
    for (int i = 0; i < kRows; ++i) tile.sum[i][j] = vfmaq_f32(tile.sum[i][j], row[i], column);
  }
  return tile;
}

/// out[i][j] = sum_k x[i][k] * w[j][k]: each in eight lanes, lane l over k = l, l + 8, ...
/// ascending, fused, then the tree of reduce4.
template <int kRows, class Element>
void dots(float (&out)[kRows][kDotColumns], const float* const (&x)[kRows],
          const Element* const (&w)[kDotColumns], int64_t n) {
  HalfTile<kRows> low = {};  // lanes 0 to 3
  HalfTile<kRows> high = {};
  int64_t k = 0;
  for (; k + kLanes <= n; k += kLanes) {
    low = add_products(low, x, w, [k](const auto* p) { return load4(p + k); });
    high = add_products(high, x, w, [k](const auto* p) { return load4(p + k + 4); });
  }
  if (k < n) {
    low = add_products(low, x, w, [&](const auto* p) { return load_first(p + k, n - k).low; });
    high = add_products(high, x, w, [&](const auto* p) { return load_first(p + k, n - k).high; });
  }
  const auto lanes = [&](int i, int j) { return Float8{low.sum[i][j], high.sum[i][j]}; };
  const auto reduce_row = [&](int i) {
    vst1q_f32(out[i], reduce4(lanes(i, 0), lanes(i, 1), lanes(i, 2), lanes(i, 3)));
  };
  reduce_row(0);  // as a loop, GCC would keep the tile in memory
  if constexpr (kRows > 1) reduce_row(1);
  if constexpr (kRows > 2) reduce_row(2);
  static_assert(kRows <= 3);
}

}  // namespace dovetail::kernels::neon
