// cache_write_int8 for NEON; contract in kernels/kv_cache.hpp, oracle in kernels/ref/kv_cache.cpp.
// Bound by arithmetic: a row is read twice, the second time from L1.
#include <bit>
#include <cstring>

#include <kernels/cached_rows.hpp>

#include "kernels/cpu/neon.hpp"
#include "kernels/cpu/neon_math.hpp"

namespace dovetail::kernels::neon {
namespace {

uint32x4_t greater_bits(uint32x4_t most, Float8 x) {
  return vmaxq_u32(most, vmaxq_u32(magnitude_bits(x.low), magnitude_bits(x.high)));
}

uint32_t greatest_magnitude(const float* x, int64_t n) {
  uint32x4_t most = vdupq_n_u32(0);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) most = greater_bits(most, load(x + i));
  if (i < n) most = greater_bits(most, load_first(x + i, n - i));
  return vmaxvq_u32(most);
}

/// x * inverse to the nearest whole numbers, ties to even.
int8x8_t levels_of(Float8 x, float inverse) {
  const Float8 scaled = mul(x, inverse);
  return vmovn_s16(
      vcombine_s16(vmovn_s32(vcvtnq_s32_f32(scaled.low)), vmovn_s32(vcvtnq_s32_f32(scaled.high))));
}

/// n numbers, and zeros to n_levels, which is less than eight more.
void store_levels(int8_t* to, const float* x, int64_t n, int64_t n_levels, float inverse) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) vst1_s8(to + i, levels_of(load(x + i), inverse));
  if (i == n) return;
  int8_t rest[kLanes];
  vst1_s8(rest, levels_of(load_first(x + i, n - i), inverse));
  std::memcpy(to + i, rest, static_cast<size_t>(n_levels - i));
}

void quantize_row(int8_t* to, const float* x, int64_t n) {
  const uint32_t bits = greatest_magnitude(x, n);
  const auto greatest = std::bit_cast<float>(bits);
  const float scale = bits < kLeastQuantized ? 0.0F : greatest / 127.0F;
  const int64_t n_levels = int8_level_bytes(n);
  if (bits < kLeastQuantized || bits >= kInfinityBits) {
    std::memset(to, 0, static_cast<size_t>(n_levels));
  } else {
    store_levels(to, x, n, n_levels, 127.0F / greatest);
  }
  std::memcpy(to + n_levels, &scale, sizeof scale);
}

}  // namespace

void cache_write_int8(int8_t* base, const KvLayout& layout, const uint32_t* page_table,
                      int64_t first_pos, const float* rows, int64_t row_stride, int64_t n_rows) {
  write_cached_rows(base, layout, page_table, first_pos, rows, row_stride, n_rows, quantize_row);
}

}  // namespace dovetail::kernels::neon
