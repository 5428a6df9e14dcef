#include "byte_fallback.hpp"

#include <algorithm>
#include <string>

namespace dovetail::bpe {

std::vector<uint32_t> find_byte_tokens(const Vocabulary& vocabulary) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::vector<uint32_t> ids;
  for (uint32_t b = 0; b < 256; ++b) {
    ids.push_back(vocabulary.find(std::string("<0x") + kHex[b >> 4] + kHex[b & 15] + ">"));
  }
  return ids;
}

bool has_all_bytes(const std::vector<uint32_t>& id_of_byte, std::string_view text) {
  if (id_of_byte.empty()) return false;
  return std::all_of(text.begin(), text.end(),
                     [&](char c) { return id_of_byte[static_cast<uint8_t>(c)] != kNoId; });
}

int byte_of_token(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  int value = 0;
  for (const char c : token.substr(3, 2)) {
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                             : -1;
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

}  // namespace dovetail::bpe
