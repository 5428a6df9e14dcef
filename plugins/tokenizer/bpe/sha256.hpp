// SHA-256, as FIPS 180-4 gives it.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace dovetail::bpe {

class Sha256 {
 public:
  void add(std::string_view bytes);
  /// The digest; nothing may be added after it.
  std::array<uint8_t, 32> finish();

 private:
  void add_block(const uint8_t* block);

  std::array<uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> buffer_{};
  uint64_t n_bytes_ = 0;
};

}  // namespace dovetail::bpe
