// quantize_activations for AVX2: the blocks of quantize_activations_rows.hpp. Built with -mavx2: C headers
// and intrinsics only (a test finds no weak symbols here).
#include "kernels/cpu/avx2.hpp"
#include "kernels/cpu/avx2_math.hpp"
#include "kernels/cpu/quantize_activations_rows.hpp"

namespace dovetail::kernels::avx2 {
namespace {

constexpr int kVectors = 4;  // of eight floats in a block

struct Isa {
  struct Block {
    __m256 x[kVectors];
  };
  static Block load(const float* p) {
    Block block;
    for (int v = 0; v < kVectors; ++v) block.x[v] = _mm256_loadu_ps(p + 8 * v);
    return block;
  }
  static uint32_t greatest_bits(const Block& block) {
    __m256i most = magnitude_bits(block.x[0]);
    for (int v = 1; v < kVectors; ++v) most = _mm256_max_epu32(most, magnitude_bits(block.x[v]));
    return avx2::greatest_bits(most);
  }
  static int32_t store(int8_t* q, int16_t* q16, const Block& block, float inverse) {
    __m256i level[kVectors];
    __m256i fine[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      const __m256 x = _mm256_mul_ps(block.x[v], _mm256_set1_ps(inverse));
      level[v] = _mm256_cvtps_epi32(x);
      fine[v] = _mm256_cvtps_epi32(_mm256_mul_ps(x, _mm256_set1_ps(kFineSteps)));
    }
    auto* to16 = reinterpret_cast<__m256i*>(q16);
    _mm256_storeu_si256(to16, words(fine[0], fine[1]));
    _mm256_storeu_si256(to16 + 1, words(fine[2], fine[3]));
    const __m256i bytes = _mm256_packs_epi16(words(level[0], level[1]), words(level[2], level[3]));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(q), _mm256_permute4x64_epi64(bytes, 0xD8));
    return total_of(_mm256_add_epi32(_mm256_add_epi32(level[0], level[1]),
                                     _mm256_add_epi32(level[2], level[3])));
  }

 private:
  /// Packing works within 128-bit halves: the permutation puts them back in order.
  static __m256i words(__m256i first, __m256i second) {
    return _mm256_permute4x64_epi64(_mm256_packs_epi32(first, second), 0xD8);
  }
};

}  // namespace

void quantize_activations(void* xq, const float* x, int64_t x_stride, int64_t n_tokens,
                          int64_t k_len) {
  quantize_activation_rows<Isa>(xq, x, x_stride, n_tokens, k_len);
}

}  // namespace dovetail::kernels::avx2
