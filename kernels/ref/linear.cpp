// Oracle of linear.hpp: one sum per output, in ascending k.
#include <kernels/bf16.hpp>
#include <kernels/linear.hpp>

namespace dovetail::kernels::ref {
namespace {

float widen(float value) {
  return value;
}
float widen(uint16_t bits) {
  return bf16_to_float(bits);
}
float widen(F16 value) {
  return f16_to_float(value.bits);
}

template <class Weight>
float dot(const float* x, const Weight* w, int64_t k_len) {
  float sum = 0.0F;
  for (int64_t k = 0; k < k_len; ++k) sum += x[k] * widen(w[k]);
  return sum;
}

}  // namespace

void linear_f32(float* y, int64_t y_stride, const float* x, int64_t x_stride, const float* w,
                int64_t n_tokens, int64_t k_len, int64_t n_begin, int64_t n_end) {
  for (int64_t t = 0; t < n_tokens; ++t) {
    for (int64_t n = n_begin; n < n_end; ++n) {
      y[t * y_stride + n] = dot(x + t * x_stride, w + n * k_len, k_len);
    }
  }
}

void linear_add_f32(float* y, int64_t y_stride, const float* x, int64_t x_stride, const float* w,
                    int64_t n_tokens, int64_t k_len, int64_t n_begin, int64_t n_end) {
  for (int64_t t = 0; t < n_tokens; ++t) {
    for (int64_t n = n_begin; n < n_end; ++n) {
      y[t * y_stride + n] += dot(x + t * x_stride, w + n * k_len, k_len);
    }
  }
}

void linear_bf16(float* y, int64_t y_stride, const float* x, int64_t x_stride, const uint16_t* w,
                 int64_t n_tokens, int64_t k_len, int64_t n_begin, int64_t n_end) {
  for (int64_t t = 0; t < n_tokens; ++t) {
    for (int64_t n = n_begin; n < n_end; ++n) {
      y[t * y_stride + n] = dot(x + t * x_stride, w + n * k_len, k_len);
    }
  }
}

void linear_add_bf16(float* y, int64_t y_stride, const float* x, int64_t x_stride,
                     const uint16_t* w, int64_t n_tokens, int64_t k_len, int64_t n_begin,
                     int64_t n_end) {
  for (int64_t t = 0; t < n_tokens; ++t) {
    for (int64_t n = n_begin; n < n_end; ++n) {
      y[t * y_stride + n] += dot(x + t * x_stride, w + n * k_len, k_len);
    }
  }
}

void linear_f16(float* y, int64_t y_stride, const float* x, int64_t x_stride, const F16* w,
                int64_t n_tokens, int64_t k_len, int64_t n_begin, int64_t n_end) {
  for (int64_t t = 0; t < n_tokens; ++t) {
    for (int64_t n = n_begin; n < n_end; ++n) {
      y[t * y_stride + n] = dot(x + t * x_stride, w + n * k_len, k_len);
    }
  }
}

void linear_add_f16(float* y, int64_t y_stride, const float* x, int64_t x_stride, const F16* w,
                    int64_t n_tokens, int64_t k_len, int64_t n_begin, int64_t n_end) {
  for (int64_t t = 0; t < n_tokens; ++t) {
    for (int64_t n = n_begin; n < n_end; ++n) {
      y[t * y_stride + n] += dot(x + t * x_stride, w + n * k_len, k_len);
    }
  }
}

}  // namespace dovetail::kernels::ref
