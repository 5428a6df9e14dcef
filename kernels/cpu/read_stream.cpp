// read_stream for any machine; contract in kernels/read_stream.hpp, oracle in
// kernels/ref/read_stream.cpp. Bound by memory: eight chains, so that no addition waits.
#include <cstring>

#include "kernels/cpu/portable.hpp"

namespace dovetail::kernels::portable {

uint64_t read_stream(const void* data, int64_t n_bytes) {
  constexpr int64_t kChains = 8;
  constexpr int64_t kBlock = kChains * static_cast<int64_t>(sizeof(uint64_t));
  const auto* bytes = static_cast<const unsigned char*>(data);

  uint64_t chain[kChains] = {};
  int64_t i = 0;
  for (; i + kBlock <= n_bytes; i += kBlock) {
    uint64_t words[kChains];
    std::memcpy(words, bytes + i, sizeof words);
    for (int64_t c = 0; c < kChains; ++c) chain[c] += words[c];
  }
  uint64_t total = ref::read_stream(bytes + i, n_bytes - i);
  for (const uint64_t part : chain) total += part;
  return total;
}

}  // namespace dovetail::kernels::portable
