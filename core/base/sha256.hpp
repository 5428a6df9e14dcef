// SHA-256, to know a file by its content.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace dovetail::core {

/// source  FIPS 180-4, section 6.2.
std::array<uint8_t, 32> sha256(std::span<const std::byte> data);

/// The same as 64 lower-case hexadecimal digits.
std::string sha256_hex(std::span<const std::byte> data);

}  // namespace dovetail::core
