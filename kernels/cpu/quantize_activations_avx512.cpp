// quantize_activations for AVX-512: the blocks of quantize_activations_rows.hpp. Built with
// -mavx512{f,bw,vl}: C headers and intrinsics only (a test finds no weak symbols here).
#include "kernels/cpu/avx512.hpp"
#include "kernels/cpu/avx512_math.hpp"
#include "kernels/cpu/quantize_activations_rows.hpp"

namespace dovetail::kernels::avx512 {
namespace {

__m256i upper(__m512i v) {
  return _mm512_extracti64x4_epi64(v, 1);
}

struct Isa {
  struct Block {
    __m512 first;
    __m512 second;
  };
  static Block load(const float* p) { return {_mm512_loadu_ps(p), _mm512_loadu_ps(p + 16)}; }
  static uint32_t greatest_bits(const Block& block) {
    const __m512i most = _mm512_max_epu32(magnitude(block.first), magnitude(block.second));
    return avx2::greatest_bits(_mm256_max_epu32(_mm512_castsi512_si256(most), upper(most)));
  }
  static int32_t store(int8_t* q, int16_t* q16, const Block& block, float inverse) {
    const __m512 x[2] = {_mm512_mul_ps(block.first, _mm512_set1_ps(inverse)),
                         _mm512_mul_ps(block.second, _mm512_set1_ps(inverse))};
    const __m512 steps = _mm512_set1_ps(kFineSteps);
    _mm512_storeu_si512(q16, words(_mm512_cvtps_epi32(_mm512_mul_ps(x[0], steps)),
                                   _mm512_cvtps_epi32(_mm512_mul_ps(x[1], steps))));
    const __m512i first = _mm512_cvtps_epi32(x[0]);
    const __m512i second = _mm512_cvtps_epi32(x[1]);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(q), _mm512_cvtepi16_epi8(words(first, second)));
    const __m512i sum = _mm512_add_epi32(first, second);
    return avx2::total_of(_mm256_add_epi32(_mm512_castsi512_si256(sum), upper(sum)));
  }

 private:
  /// Packing works within 128-bit parts: the permutation puts them back in order.
  static __m512i words(__m512i first, __m512i second) {
    const __m512i in_order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
    return _mm512_permutexvar_epi64(in_order, _mm512_packs_epi32(first, second));
  }
  static __m512i magnitude(__m512 x) {
    return _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7FFFFFFF));
  }
};

}  // namespace

void quantize_activations(void* xq, const float* x, int64_t x_stride, int64_t n_tokens,
                          int64_t k_len) {
  quantize_activation_rows<Isa>(xq, x, x_stride, n_tokens, k_len);
}

}  // namespace dovetail::kernels::avx512
