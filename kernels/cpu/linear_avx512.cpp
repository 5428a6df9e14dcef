// linear for AVX-512: the tiles of linear_tiles.hpp in vectors of sixteen floats. An output's sum has
// sixteen lanes, so its bits are not those of AVX2. Built with -mavx512{f,bw,vl}: C headers and
// intrinsics only (a test finds no weak symbols here).
#include "kernels/cpu/avx512.hpp"
#include "kernels/cpu/avx512_math.hpp"
#include "kernels/cpu/linear_tiles.hpp"

namespace dovetail::kernels::avx512 {
namespace {

struct Isa : Vectors {
  static constexpr int kTileTokens = 6;  // 24 sums, 6 tokens and a row of the 32 registers
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

}  // namespace dovetail::kernels::avx512
