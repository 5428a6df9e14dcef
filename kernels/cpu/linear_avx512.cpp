// linear for AVX-512: the tiles of linear_tiles.hpp in vectors of sixteen floats. An output's sum has
// sixteen lanes, so its bits are not those of AVX2. Built with -mavx512{f,bw,vl}: C headers and
// intrinsics only (a test finds no weak symbols here).
#include "kernels/cpu/avx512.hpp"
#include "kernels/cpu/linear_tiles.hpp"

namespace dovetail::kernels::avx512 {
namespace {

struct Isa {
  using Vec = __m512;
  static constexpr int kLanes = 16;
  static constexpr int kTileTokens = 6;  // 24 sums, 6 tokens and a row of the 32 registers

  static Vec zero() { return _mm512_setzero_ps(); }
  static Vec fma(Vec a, Vec b, Vec c) { return _mm512_fmadd_ps(a, b, c); }

  static Vec load(const float* p) { return _mm512_loadu_ps(p); }
  static Vec load(const uint16_t* p) { return widen(load16(p)); }
  static Vec load(const F16* p) { return _mm512_cvtph_ps(load16(p)); }

  static Vec load_first(const float* p, int64_t n) { return _mm512_maskz_loadu_ps(first(n), p); }
  static Vec load_first(const uint16_t* p, int64_t n) {
    return widen(_mm256_maskz_loadu_epi16(first(n), p));
  }
  static Vec load_first(const F16* p, int64_t n) {
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(first(n), p));
  }
  static Vec load_aligned(const float* p) { return _mm512_load_ps(p); }
  static void store_aligned(float* p, Vec v) { _mm512_store_ps(p, v); }

  /// Lane i + lane i + 8, then AVX2's tree.
  static __m128 reduce4(Vec a, Vec b, Vec c, Vec d) {
    return avx2::reduce4(halves(a), halves(b), halves(c), halves(d));
  }

 private:
  static __mmask16 first(int64_t n) { return static_cast<__mmask16>((1U << n) - 1); }
  static __m256i load16(const void* p) {
    return _mm256_loadu_si256(static_cast<const __m256i*>(p));
  }
  static Vec widen(__m256i bf16) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bf16), 16));
  }
  static __m256 halves(Vec v) {
    const __m512d bits = _mm512_castps_pd(v);
    return _mm256_add_ps(_mm512_castps512_ps256(v),
                         _mm256_castpd_ps(_mm512_extractf64x4_pd(bits, 1)));
  }
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
