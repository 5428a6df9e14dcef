// linear for any machine; contract in kernels/linear.hpp, oracle in kernels/ref/linear.cpp.
// Bound by arithmetic. One output at a time, weight row outermost so that it is read from memory
// once; the eight lanes are two or more vectors to a compiler with SSE2 or NEON.
#include "kernels/cpu/portable.hpp"
#include "kernels/cpu/portable_math.hpp"

namespace dovetail::kernels::portable {
namespace {

template <class Weight, class Store>
void stripe(Store store, float* y, int64_t y_stride, const float* x, int64_t x_stride,
            const Weight* w, int64_t n_tokens, int64_t k_len, int64_t n_begin, int64_t n_end) {
  for (int64_t n = n_begin; n < n_end; ++n) {
    for (int64_t t = 0; t < n_tokens; ++t) {
      store(y[t * y_stride + n], dot(x + t * x_stride, w + n * k_len, k_len));
    }
  }
}

constexpr auto kSet = [](float& y, float sum) { y = sum; };
constexpr auto kAdd = [](float& y, float sum) { y += sum; };

}  // namespace

void linear_f32(float* y, int64_t y_stride, const float* x, int64_t x_stride, const float* w,
                int64_t n_tokens, int64_t k_len, int64_t n_begin, int64_t n_end) {
  stripe(kSet, y, y_stride, x, x_stride, w, n_tokens, k_len, n_begin, n_end);
}

void linear_add_f32(float* y, int64_t y_stride, const float* x, int64_t x_stride, const float* w,
                    int64_t n_tokens, int64_t k_len, int64_t n_begin, int64_t n_end) {
  stripe(kAdd, y, y_stride, x, x_stride, w, n_tokens, k_len, n_begin, n_end);
}

void linear_bf16(float* y, int64_t y_stride, const float* x, int64_t x_stride, const uint16_t* w,
                 int64_t n_tokens, int64_t k_len, int64_t n_begin, int64_t n_end) {
  stripe(kSet, y, y_stride, x, x_stride, w, n_tokens, k_len, n_begin, n_end);
}

void linear_add_bf16(float* y, int64_t y_stride, const float* x, int64_t x_stride,
                     const uint16_t* w, int64_t n_tokens, int64_t k_len, int64_t n_begin,
                     int64_t n_end) {
  stripe(kAdd, y, y_stride, x, x_stride, w, n_tokens, k_len, n_begin, n_end);
}

void linear_f16(float* y, int64_t y_stride, const float* x, int64_t x_stride, const F16* w,
                int64_t n_tokens, int64_t k_len, int64_t n_begin, int64_t n_end) {
  stripe(kSet, y, y_stride, x, x_stride, w, n_tokens, k_len, n_begin, n_end);
}

void linear_add_f16(float* y, int64_t y_stride, const float* x, int64_t x_stride, const F16* w,
                    int64_t n_tokens, int64_t k_len, int64_t n_begin, int64_t n_end) {
  stripe(kAdd, y, y_stride, x, x_stride, w, n_tokens, k_len, n_begin, n_end);
}

}  // namespace dovetail::kernels::portable
