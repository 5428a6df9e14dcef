// linear for AVX2 + FMA: the tiles of linear_tiles.hpp in vectors of eight floats. Built with -mavx2
// -mfma: C headers and intrinsics only (a test finds no weak symbols here).
#include "kernels/cpu/avx2.hpp"
#include "kernels/cpu/avx2_math.hpp"
#include "kernels/cpu/linear_tiles.hpp"

namespace dovetail::kernels::avx2 {
namespace {

struct Isa : Vectors {
  static constexpr int kTileTokens = 3;  // 12 sums, 3 tokens and a row are the 16 registers
};

}  // namespace

void linear_f32(float* y, int64_t y_stride, const float* x, int64_t x_stride, const float* w,
                int64_t n_tokens, int64_t k_len, int64_t n_begin, int64_t n_end) {
  LinearTiles<Isa>::stripe<Set, float>({y, y_stride, x, x_stride, w, k_len}, n_tokens, n_begin,
                                       n_end);
}

void linear_add_f32(float* y, int64_t y_stride, const float* x, int64_t x_stride, const float* w,
                    int64_t n_tokens, int64_t k_len, int64_t n_begin, int64_t n_end) {
  LinearTiles<Isa>::stripe<Add, float>({y, y_stride, x, x_stride, w, k_len}, n_tokens, n_begin,
                                       n_end);
}

void linear_bf16(float* y, int64_t y_stride, const float* x, int64_t x_stride, const uint16_t* w,
                 int64_t n_tokens, int64_t k_len, int64_t n_begin, int64_t n_end) {
  LinearTiles<Isa>::stripe<Set, uint16_t>({y, y_stride, x, x_stride, w, k_len}, n_tokens, n_begin,
                                          n_end);
}

void linear_add_bf16(float* y, int64_t y_stride, const float* x, int64_t x_stride,
                     const uint16_t* w, int64_t n_tokens, int64_t k_len, int64_t n_begin,
                     int64_t n_end) {
  LinearTiles<Isa>::stripe<Add, uint16_t>({y, y_stride, x, x_stride, w, k_len}, n_tokens, n_begin,
                                          n_end);
}

void linear_f16(float* y, int64_t y_stride, const float* x, int64_t x_stride, const F16* w,
                int64_t n_tokens, int64_t k_len, int64_t n_begin, int64_t n_end) {
  LinearTiles<Isa>::stripe<Set, F16>({y, y_stride, x, x_stride, w, k_len}, n_tokens, n_begin,
                                     n_end);
}

void linear_add_f16(float* y, int64_t y_stride, const float* x, int64_t x_stride, const F16* w,
                    int64_t n_tokens, int64_t k_len, int64_t n_begin, int64_t n_end) {
  LinearTiles<Isa>::stripe<Add, F16>({y, y_stride, x, x_stride, w, k_len}, n_tokens, n_begin,
                                     n_end);
}

}  // namespace dovetail::kernels::avx2
