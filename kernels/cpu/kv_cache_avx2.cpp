// cache_write_int8 for AVX2; contract in kernels/kv_cache.hpp, oracle in kernels/ref/kv_cache.cpp.
// Bound by arithmetic: a row is read twice, the second time from L1.
// Built with -mavx2: C headers and intrinsics only (a test finds no weak symbols here).
#include <string.h>

#include <kernels/cached_rows.hpp>

#include "kernels/cpu/avx2.hpp"
#include "kernels/cpu/avx2_math.hpp"

namespace dovetail::kernels::avx2 {
namespace {

uint32_t greatest_magnitude(const float* x, int64_t n) {
  __m256i most = _mm256_setzero_si256();
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) most = _mm256_max_epu32(most, magnitude_bits(load(x + i)));
  if (i < n) most = _mm256_max_epu32(most, magnitude_bits(load_first(x + i, n - i)));
  return greatest_bits(most);
}

/// x * inverse to the nearest whole numbers, as eight bytes.
__m128i levels_of(__m256 x, __m256 inverse) {
  const __m256i q = _mm256_cvtps_epi32(_mm256_mul_ps(x, inverse));
  const __m128i halves = _mm_packs_epi32(_mm256_castsi256_si128(q), _mm256_extracti128_si256(q, 1));
  return _mm_packs_epi16(halves, halves);
}

/// n numbers, and zeros to n_levels, which is less than eight more.
void store_levels(int8_t* to, const float* x, int64_t n, int64_t n_levels, float inverse) {
  const __m256 factor = _mm256_set1_ps(inverse);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to + i), levels_of(load(x + i), factor));
  }
  if (i == n) return;
  int8_t rest[kLanes];
  _mm_storel_epi64(reinterpret_cast<__m128i*>(rest), levels_of(load_first(x + i, n - i), factor));
  memcpy(to + i, rest, static_cast<size_t>(n_levels - i));
}

void quantize_row(int8_t* to, const float* x, int64_t n) {
  const uint32_t bits = greatest_magnitude(x, n);
  const float greatest = float_of_bits(bits);
  const float scale = bits < kLeastQuantized ? 0.0F : greatest / 127.0F;
  const int64_t n_levels = int8_level_bytes(n);
  if (bits < kLeastQuantized || bits >= kInfinityBits) {
    memset(to, 0, static_cast<size_t>(n_levels));
  } else {
    store_levels(to, x, n, n_levels, 127.0F / greatest);
  }
  memcpy(to + n_levels, &scale, sizeof scale);
}

}  // namespace

void cache_write_int8(int8_t* base, const KvLayout& layout, const uint32_t* page_table,
                      int64_t first_pos, const float* rows, int64_t row_stride, int64_t n_rows) {
  write_cached_rows(base, layout, page_table, first_pos, rows, row_stride, n_rows, quantize_row);
}

}  // namespace dovetail::kernels::avx2
