// read_stream for NEON; contract in kernels/read_stream.hpp, oracle in kernels/ref/read_stream.cpp.
// Bound by memory: eight chains of 16 bytes.
#include "kernels/cpu/neon.hpp"
#include "kernels/cpu/neon_math.hpp"

namespace dovetail::kernels::neon {
namespace {

template <int64_t kAheadBytes>
uint64_t read(const void* data, int64_t n_bytes) {
  constexpr int kChains = 8;
  constexpr int64_t kBlock = kChains * static_cast<int64_t>(sizeof(uint64x2_t));
  const auto* bytes = static_cast<const uint8_t*>(data);

  uint64x2_t chain[kChains];
  for (uint64x2_t& sum : chain) sum = vdupq_n_u64(0);
  int64_t i = 0;
  for (; i + kBlock <= n_bytes; i += kBlock) {
    if constexpr (kAheadBytes > 0) {
      for (int64_t line = 0; line < kBlock; line += 64) {
        __builtin_prefetch(bytes + i + kAheadBytes + line);
      }
    }
    for (int c = 0; c < kChains; ++c) {
      const uint8x16_t here = vld1q_u8(bytes + i + 16 * c);
      chain[c] = vaddq_u64(chain[c], vreinterpretq_u64_u8(here));
    }
  }
  uint64_t total = ref::read_stream(bytes + i, n_bytes - i);
  for (const uint64x2_t sum : chain) total += vaddvq_u64(sum);
  return total;
}

}  // namespace

uint64_t read_stream(const void* data, int64_t n_bytes) {
  return read<0>(data, n_bytes);
}

uint64_t read_stream_ahead(const void* data, int64_t n_bytes) {
  return read<2048>(data, n_bytes);
}

}  // namespace dovetail::kernels::neon
