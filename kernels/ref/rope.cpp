// Oracle of rope.hpp.
#include <kernels/rope.hpp>

#include <cmath>

namespace dovetail::kernels::ref {

// cosf and sinf differ by a bit between C libraries and processors. Double ones, rounded to float,
// differ only where the double's last bit decides, so the same tables come out everywhere.
void rope_table(float* cos, float* sin, const int32_t* positions, const float* inv_freq,
                int64_t n_tokens, int64_t half_len, float attention_factor) {
  for (int64_t t = 0; t < n_tokens; ++t) {
    for (int64_t i = 0; i < half_len; ++i) {
      const float angle = static_cast<float>(positions[t]) * inv_freq[i];
      const auto exact = static_cast<double>(angle);
      cos[t * half_len + i] = static_cast<float>(std::cos(exact)) * attention_factor;
      sin[t * half_len + i] = static_cast<float>(std::sin(exact)) * attention_factor;
    }
  }
}

void rope_half_split(float* out, int64_t out_stride, const float* x, int64_t x_stride,
                     const float* cos, const float* sin, int64_t n_tokens, int64_t n_heads,
                     int64_t head_dim, int64_t half_len) {
  for (int64_t t = 0; t < n_tokens; ++t) {
    for (int64_t h = 0; h < n_heads; ++h) {
      const float* in = x + t * x_stride + h * head_dim;
      float* to = out + t * out_stride + h * head_dim;
      for (int64_t i = 0; i < half_len; ++i) {
        const float c = cos[t * half_len + i];
        const float s = sin[t * half_len + i];
        const float first = in[i];
        const float second = in[i + half_len];
        to[i] = first * c - second * s;
        to[i + half_len] = second * c + first * s;
      }
      for (int64_t i = 2 * half_len; i < head_dim; ++i) to[i] = in[i];
    }
  }
}

}  // namespace dovetail::kernels::ref
