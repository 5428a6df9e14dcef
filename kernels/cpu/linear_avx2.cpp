// linear for AVX2 + FMA: the tiles of linear_tiles.hpp in vectors of eight floats. Built with -mavx2
// -mfma: C headers and intrinsics only (a test finds no weak symbols here).
#include "kernels/cpu/avx2.hpp"
#include "kernels/cpu/linear_tiles.hpp"

namespace dovetail::kernels::avx2 {
namespace {

struct Isa {
  using Vec = __m256;
  static constexpr int kLanes = 8;
  static constexpr int kTileTokens = 3;  // 12 sums, 3 tokens and a row are the 16 registers

  static Vec zero() { return _mm256_setzero_ps(); }
  static Vec fma(Vec a, Vec b, Vec c) { return _mm256_fmadd_ps(a, b, c); }
  template <class Weight>
  static Vec load(const Weight* p) {
    return avx2::load(p);
  }
  template <class Weight>
  static Vec load_first(const Weight* p, int64_t n) {
    return avx2::load_first(p, n);
  }
  static Vec load_aligned(const float* p) { return _mm256_load_ps(p); }
  static void store_aligned(float* p, Vec v) { _mm256_store_ps(p, v); }
  static __m128 reduce4(Vec a, Vec b, Vec c, Vec d) { return avx2::reduce4(a, b, c, d); }
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
