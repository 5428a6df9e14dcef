// linear for NEON; contract in kernels/linear.hpp, oracle in kernels/ref/linear.cpp.
// One token is bound by memory: four weight rows at once are eight chains, enough to hide the FMA's
// latency. More tokens are bound by arithmetic: tiles of 3 tokens x 4 rows fill the 32 registers,
// and a block of tokens stays in L2 while the weights pass by. Widening bf16 takes few of a tile's
// instructions, so there is no panel of widened weights.
// Every path adds an output's products in the same order, in the same eight lanes.
#include <algorithm>

#include "kernels/cpu/neon.hpp"
#include "kernels/cpu/neon_dots.hpp"

namespace dovetail::kernels::neon {
namespace {

constexpr int kTileTokens = 3;
constexpr int64_t kMinBlock = 24;            // tokens
constexpr int64_t kBlockFloats = 64 * 1024;  // of x: half of a 512 KiB L2

constexpr auto kSet = [](float& y, float sum) { y = sum; };
constexpr auto kAdd = [](float& y, float sum) { y += sum; };

/// The operands of one call, as in the contract.
template <class Weight>
struct Operands {
  float* y;
  int64_t y_stride;
  const float* x;
  int64_t x_stride;
  const Weight* w;
  int64_t k_len;
};

/// kTokens tokens against up to four weight rows. Rows past n_rows are the last one again, and
/// their sums are dropped.
template <int kTokens, class Store, class Weight>
void tile(Store put, const Operands<Weight>& op, int64_t t, int64_t n, int64_t n_rows) {
  const float* x[kTokens];
  for (int i = 0; i < kTokens; ++i) x[i] = op.x + (t + i) * op.x_stride;
  const Weight* w[kDotColumns];
  for (int j = 0; j < kDotColumns; ++j) {
    w[j] = op.w + (n + std::min<int64_t>(j, n_rows - 1)) * op.k_len;
  }
  float sums[kTokens][kDotColumns];
  dots(sums, x, w, op.k_len);
  for (int i = 0; i < kTokens; ++i) {
    float* y = op.y + (t + i) * op.y_stride + n;
    for (int64_t j = 0; j < std::min<int64_t>(n_rows, kDotColumns); ++j) put(y[j], sums[i][j]);
  }
}

/// As many tokens as keep their x in L2.
int64_t block_len(int64_t k_len) {
  const int64_t fit = kBlockFloats / std::max<int64_t>(k_len, 1) / kTileTokens * kTileTokens;
  return std::max(fit, kMinBlock);
}

template <class Store, class Weight>
void stripe(Store put, const Operands<Weight>& op, int64_t n_tokens, int64_t n_begin,
            int64_t n_end) {
  const int64_t block = block_len(op.k_len);
  for (int64_t t_begin = 0; t_begin < n_tokens; t_begin += block) {
    const int64_t t_end = std::min(n_tokens, t_begin + block);
    for (int64_t n = n_begin; n < n_end; n += kDotColumns) {
      int64_t t = t_begin;
      for (; t + kTileTokens <= t_end; t += kTileTokens) {
        tile<kTileTokens>(put, op, t, n, n_end - n);
      }
      if (t_end - t == 2) tile<2>(put, op, t, n, n_end - n);
      if (t_end - t == 1) tile<1>(put, op, t, n, n_end - n);
    }
  }
}

}  // namespace

void linear_f32(float* y, int64_t y_stride, const float* x, int64_t x_stride, const float* w,
                int64_t n_tokens, int64_t k_len, int64_t n_begin, int64_t n_end) {
  stripe(kSet, Operands<float>{y, y_stride, x, x_stride, w, k_len}, n_tokens, n_begin, n_end);
}

void linear_add_f32(float* y, int64_t y_stride, const float* x, int64_t x_stride, const float* w,
                    int64_t n_tokens, int64_t k_len, int64_t n_begin, int64_t n_end) {
  stripe(kAdd, Operands<float>{y, y_stride, x, x_stride, w, k_len}, n_tokens, n_begin, n_end);
}

void linear_bf16(float* y, int64_t y_stride, const float* x, int64_t x_stride, const uint16_t* w,
                 int64_t n_tokens, int64_t k_len, int64_t n_begin, int64_t n_end) {
  stripe(kSet, Operands<uint16_t>{y, y_stride, x, x_stride, w, k_len}, n_tokens, n_begin, n_end);
}

void linear_add_bf16(float* y, int64_t y_stride, const float* x, int64_t x_stride,
                     const uint16_t* w, int64_t n_tokens, int64_t k_len, int64_t n_begin,
                     int64_t n_end) {
  stripe(kAdd, Operands<uint16_t>{y, y_stride, x, x_stride, w, k_len}, n_tokens, n_begin, n_end);
}

void linear_f16(float* y, int64_t y_stride, const float* x, int64_t x_stride, const F16* w,
                int64_t n_tokens, int64_t k_len, int64_t n_begin, int64_t n_end) {
  stripe(kSet, Operands<F16>{y, y_stride, x, x_stride, w, k_len}, n_tokens, n_begin, n_end);
}

void linear_add_f16(float* y, int64_t y_stride, const float* x, int64_t x_stride, const F16* w,
                    int64_t n_tokens, int64_t k_len, int64_t n_begin, int64_t n_end) {
  stripe(kAdd, Operands<F16>{y, y_stride, x, x_stride, w, k_len}, n_tokens, n_begin, n_end);
}

}  // namespace dovetail::kernels::neon
