// Arrays of records that may grow: the side that allocates them says how long its records are, the other steps by that.
// What only one side knows reads as 0.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace dovetail {

/// Copies of n records of `stride` bytes.
template <class T>
std::vector<T> read_records(const void* first, uint64_t n, uint64_t stride) {
  std::vector<T> out(n);
  for (uint64_t i = 0; i < n; ++i)
    std::memcpy(&out[i], static_cast<const uint8_t*>(first) + i * stride,
                std::min<uint64_t>(stride, sizeof(T)));
  return out;
}
/// The same of records that begin with their length.
template <class T>
std::vector<T> read_records(const T* first, uint64_t n) {
  return n == 0 ? std::vector<T>() : read_records<T>(first, n, first->struct_size);
}

/// Writes record i of an array whose first record says how long they are.
template <class T>
void write_record(T* first, uint64_t i, T value) {
  const uint32_t stride = first->struct_size;
  value.struct_size = stride;
  std::memcpy(reinterpret_cast<uint8_t*>(first) + i * stride, &value,
              std::min<uint64_t>(stride, sizeof(T)));
}

}  // namespace dovetail
