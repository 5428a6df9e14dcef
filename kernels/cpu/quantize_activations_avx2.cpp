// quantize_activations for AVX2; contract in kernels/linear_quantized.hpp, oracle in
// kernels/ref/linear_quantized.cpp.
// Bound by arithmetic, and small beside the products that read its result.
// Built with -mavx2: C headers and intrinsics only (a test finds no weak symbols here).
#include "kernels/cpu/avx2.hpp"
#include "kernels/cpu/avx2_math.hpp"

namespace dovetail::kernels::avx2 {
namespace {

constexpr int kVectors = 4;  // of eight floats in a block

int32_t total_of(__m256i v) {
  __m128i s = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4E));
  s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0xB1));
  return _mm_cvtsi128_si32(s);
}

struct Row {
  int8_t* q;
  int16_t* q16;
  float* scale;
  int32_t* sum;
};

void quantize_block(const Row& row, int64_t b, const float* from) {
  __m256 x[kVectors];
  for (int v = 0; v < kVectors; ++v) x[v] = _mm256_loadu_ps(from + 8 * v);
  __m256i most = magnitude_bits(x[0]);
  for (int v = 1; v < kVectors; ++v) most = _mm256_max_epu32(most, magnitude_bits(x[v]));
  const uint32_t bits = greatest_bits(most);
  const float greatest = float_of_bits(bits);
  row.scale[b] = bits < kLeastQuantized ? 0.0F : greatest / 127.0F;

  __m256i q[kVectors];
  if (bits < kLeastQuantized || bits >= kInfinityBits) {
    for (__m256i& part : q) part = _mm256_setzero_si256();
  } else {
    const __m256 inverse = _mm256_set1_ps(127.0F / greatest);
    for (int v = 0; v < kVectors; ++v) q[v] = _mm256_cvtps_epi32(_mm256_mul_ps(x[v], inverse));
  }
  row.sum[b] =
      total_of(_mm256_add_epi32(_mm256_add_epi32(q[0], q[1]), _mm256_add_epi32(q[2], q[3])));

  // Packing works within 128-bit halves: the permutations put them back in order.
  const __m256i first = _mm256_permute4x64_epi64(_mm256_packs_epi32(q[0], q[1]), 0xD8);
  const __m256i second = _mm256_permute4x64_epi64(_mm256_packs_epi32(q[2], q[3]), 0xD8);
  auto* to16 = reinterpret_cast<__m256i*>(row.q16 + b * kQuantBlock);
  _mm256_storeu_si256(to16, first);
  _mm256_storeu_si256(to16 + 1, second);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(row.q + b * kQuantBlock),
                      _mm256_permute4x64_epi64(_mm256_packs_epi16(first, second), 0xD8));
}

}  // namespace

void quantize_activations(void* xq, const float* x, int64_t x_stride, int64_t n_tokens,
                          int64_t k_len) {
  const int64_t row_bytes = quantized_row_bytes(k_len);
  const int64_t n_blocks = k_len / kQuantBlock;
  for (int64_t t = 0; t < n_tokens; ++t) {
    uint8_t* bytes = static_cast<uint8_t*>(xq) + t * row_bytes;
    const Row row = {reinterpret_cast<int8_t*>(bytes), reinterpret_cast<int16_t*>(bytes + k_len),
                     reinterpret_cast<float*>(bytes + 3 * k_len),
                     reinterpret_cast<int32_t*>(bytes + 3 * k_len + 4 * n_blocks)};
    for (int64_t b = 0; b < n_blocks; ++b) {
      quantize_block(row, b, x + t * x_stride + b * kQuantBlock);
    }
    for (int64_t i = 3 * k_len + 8 * n_blocks; i < row_bytes; ++i) bytes[i] = 0;
  }
}

}  // namespace dovetail::kernels::avx2
