// Oracle of read_stream.hpp.
#include <kernels/read_stream.hpp>

#include <algorithm>
#include <cstring>

namespace dovetail::kernels::ref {

uint64_t read_stream(const void* data, int64_t n_bytes) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  uint64_t sum = 0;
  for (int64_t i = 0; i < n_bytes; i += 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes + i, static_cast<size_t>(std::min<int64_t>(8, n_bytes - i)));
    sum += word;
  }
  return sum;
}

}  // namespace dovetail::kernels::ref
