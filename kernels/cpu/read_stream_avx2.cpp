// read_stream for AVX2; contract in kernels/read_stream.hpp, oracle in kernels/ref/read_stream.cpp.
// Bound by memory: eight chains of 32 bytes. No software prefetch: it made plain streams slower.
// Built with -mavx2: C headers and intrinsics only (a test finds no weak symbols here).
#include "kernels/cpu/avx2.hpp"
#include "kernels/cpu/avx2_math.hpp"

namespace dovetail::kernels::avx2 {

uint64_t read_stream(const void* data, int64_t n_bytes) {
  constexpr int kChains = 8;
  constexpr int64_t kBlock = kChains * static_cast<int64_t>(sizeof(__m256i));
  const auto* bytes = static_cast<const unsigned char*>(data);

  __m256i chain[kChains];
  for (int c = 0; c < kChains; ++c) chain[c] = _mm256_setzero_si256();
  int64_t i = 0;
  for (; i + kBlock <= n_bytes; i += kBlock) {
    const auto* block = reinterpret_cast<const __m256i*>(bytes + i);
    for (int c = 0; c < kChains; ++c) {
      chain[c] = _mm256_add_epi64(chain[c], _mm256_loadu_si256(block + c));
    }
  }
  uint64_t total = ref::read_stream(bytes + i, n_bytes - i);
  for (int c = 0; c < kChains; ++c) {
    alignas(32) uint64_t words[4];
    _mm256_store_si256(reinterpret_cast<__m256i*>(words), chain[c]);
    for (const uint64_t word : words) total += word;
  }
  return total;
}

}  // namespace dovetail::kernels::avx2
