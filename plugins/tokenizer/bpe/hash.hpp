// Hashing of short byte strings and pairs of ids: multiply and fold, good enough for table indices.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace dovetail::bpe {

inline uint64_t mix(uint64_t a, uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

inline constexpr uint64_t kHashSeed = 0x9E3779B97F4A7C15u;
inline constexpr uint64_t kHashStep = 0xD6E8FEB86659FD93u;

inline uint64_t hash_bytes(std::string_view s) {
  uint64_t h = mix(s.size() + 1, kHashSeed);
  const char* p = s.data();
  size_t left = s.size();
  uint64_t word = 0;
  for (; left >= sizeof word; left -= sizeof word, p += sizeof word) {
    std::memcpy(&word, p, sizeof word);
    h = mix(h ^ word, kHashStep);
  }
  word = 0;
  std::memcpy(&word, p, left);
  return mix(h ^ word, kHashStep);
}

inline uint64_t hash_pair(uint32_t left, uint32_t right) {
  return mix((uint64_t{left} << 32 | right) ^ kHashSeed, kHashStep);
}

}  // namespace dovetail::bpe
