// Byte symbols: the printable characters that stand for the 256 bytes in byte-level vocabularies.
//
// Bytes 0x21-0x7E, 0xA1-0xAC and 0xAE-0xFF stand for the code point of the same number; the other
// 68, in order, for U+0100, U+0101, ... So a space is written U+0120 and a line feed U+010A.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "rewrite.hpp"

namespace dovetail::bpe {

inline constexpr uint32_t kByteSymbolEnd = 0x144;  // all symbols are below

inline constexpr std::array<uint16_t, 256> kSymbolOfByte = [] {
  std::array<uint16_t, 256> t{};
  uint16_t next = 0x100;
  for (uint32_t b = 0; b < 256; ++b) {
    const bool printable = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
    t[b] = printable ? static_cast<uint16_t>(b) : next++;
  }
  return t;
}();

/// The byte that a symbol stands for, or -1.
inline constexpr std::array<int16_t, kByteSymbolEnd> kByteOfSymbol = [] {
  std::array<int16_t, kByteSymbolEnd> t{};
  for (auto& v : t) v = -1;
  for (uint32_t b = 0; b < 256; ++b) t[kSymbolOfByte[b]] = static_cast<int16_t>(b);
  return t;
}();

/// Appends the byte symbols of `bytes`.
void append_symbols(std::string_view bytes, std::string* out);

/// Has every byte of text[begin, end) (valid UTF-8) written as its symbol; a character of several
/// bytes maps back as a whole.
void replace_by_symbols(std::string_view text, size_t begin, size_t end, Rewrite* rewrite);

/// Appends the bytes that `symbols` (valid UTF-8) stands for. Returns false, with `out` as it was,
/// if a character is not a byte symbol.
bool append_bytes(std::string_view symbols, std::string* out);

}  // namespace dovetail::bpe
