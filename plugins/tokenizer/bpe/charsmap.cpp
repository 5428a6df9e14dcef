#include "charsmap.hpp"

#include <utf8proc.h>

#include "error.hpp"
#include "rewrite.hpp"
#include "utf8.hpp"

namespace dovetail::bpe {
namespace {

constexpr size_t kWholeClusterBytes = 6;  // clusters below this are looked up whole

std::string decode_base64(std::string_view text, const std::string& path) {
  const auto value_of = [&](char c) -> uint32_t {
    if (c >= 'A' && c <= 'Z') return static_cast<uint32_t>(c - 'A');
    if (c >= 'a' && c <= 'z') return static_cast<uint32_t>(c - 'a' + 26);
    if (c >= '0' && c <= '9') return static_cast<uint32_t>(c - '0' + 52);
    if (c == '+') return 62;
    if (c == '/') return 63;
    fail_format(path + " is not base64: it holds a character that is none of A-Z a-z 0-9 + / =");
  };
  while (!text.empty() && text.back() == '=') text.remove_suffix(1);
  if (text.size() % 4 == 1) fail_format(path + " is not base64: its length is wrong");
  std::string out;
  out.reserve(text.size() * 3 / 4);
  uint32_t bits = 0, n_bits = 0;
  for (const char c : text) {
    bits = (bits << 6 | value_of(c)) & 0xFFFFFF;
    n_bits += 6;
    if (n_bits < 8) continue;
    n_bits -= 8;
    out.push_back(static_cast<char>(bits >> n_bits & 0xFF));
  }
  return out;
}

uint32_t read_u32(std::string_view bytes, size_t pos) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) {
    value |= uint32_t{static_cast<uint8_t>(bytes[pos + i])} << (8 * i);
  }
  return value;
}

// A unit of the double array: a leaf's value, or a label and where its children are.
bool has_leaf(uint32_t unit) {
  return (unit >> 8 & 1) != 0;
}
uint32_t label_of(uint32_t unit) {
  return unit & 0x800000FFu;
}
uint32_t offset_of(uint32_t unit) {
  return unit >> 10 << ((unit & 0x200u) >> 6);
}

// End of the extended grapheme cluster that starts at `pos`.
size_t cluster_end(std::string_view text, size_t pos) {
  const auto code_point = [&](size_t at) {
    return static_cast<utf8proc_int32_t>(
        decode_valid(reinterpret_cast<const uint8_t*>(text.data()) + at));
  };
  utf8proc_int32_t state = 0, left = code_point(pos);
  for (pos += utf8_len(static_cast<uint8_t>(text[pos])); pos < text.size();) {
    const utf8proc_int32_t right = code_point(pos);
    if (utf8proc_grapheme_break_stateful(left, right, &state)) break;
    left = right;
    pos += utf8_len(static_cast<uint8_t>(text[pos]));
  }
  return pos;
}

}  // namespace

Charsmap::Charsmap(std::string_view base64, const std::string& path) {
  const std::string blob = decode_base64(base64, path);
  const uint64_t trie_len = blob.size() < 4 ? 0 : read_u32(blob, 0);
  if (blob.size() < 8 || trie_len % 4 != 0 || trie_len == 0 || trie_len > blob.size() - 4) {
    fail_format(path + " is damaged: " + std::to_string(blob.size()) +
                " bytes cannot hold a trie of " + std::to_string(trie_len));
  }
  for (size_t pos = 4; pos < 4 + trie_len; pos += 4) units_.push_back(read_u32(blob, pos));
  pool_ = blob.substr(4 + trie_len);
  pool_.push_back('\0');
  if (const size_t ok = valid_utf8_prefix(pool_); ok != pool_.size()) {
    fail_format(path + " is damaged: its texts are not valid UTF-8 at byte " + std::to_string(ok));
  }
  for (uint32_t byte = 1; byte < 256; ++byte) {
    const uint64_t node = uint64_t{offset_of(units_[0])} ^ byte;
    starts_[byte] = node < units_.size() && label_of(units_[node]) == byte;
  }
}

std::optional<std::string_view> Charsmap::find(std::string_view key) const {
  uint64_t node = offset_of(units_[0]);
  for (const char c : key) {
    const auto byte = static_cast<uint8_t>(c);
    if (byte == 0) break;
    node ^= byte;
    if (node >= units_.size() || label_of(units_[node]) != byte) break;
    const uint32_t unit = units_[node];
    node ^= offset_of(unit);
    if (!has_leaf(unit)) continue;
    const uint32_t begin = node < units_.size() ? units_[node] & 0x7FFFFFFFu : UINT32_MAX;
    const bool is_text =
        begin < pool_.size() && (static_cast<uint8_t>(pool_[begin]) & 0xC0) != 0x80;
    if (!is_text) break;
    return std::string_view(pool_.data() + begin);
  }
  return std::nullopt;
}

bool Charsmap::rewrite(std::string_view text, Layer* layer) const {
  Rewrite result(text, layer);
  for (size_t pos = 0; pos < text.size();) {
    const auto byte = [&](size_t at) { return static_cast<uint8_t>(text[at]); };
    // Between two ASCII characters there is a border, save inside CR LF.
    const bool is_single =
        byte(pos) < 0x80 && byte(pos) != '\r' && (pos + 1 == text.size() || byte(pos + 1) < 0x80);
    const size_t end = is_single ? pos + 1 : cluster_end(text, pos);
    if (end - pos < kWholeClusterBytes && starts_[byte(pos)]) {
      if (const auto entry = find(text.substr(pos, end - pos))) {
        result.replace(pos, end, *entry);
        pos = end;
        continue;
      }
    }
    for (; pos < end; pos += utf8_len(byte(pos))) {
      const uint32_t len = utf8_len(byte(pos));
      if (!starts_[byte(pos)]) continue;
      if (const auto entry = find(text.substr(pos, len))) result.replace(pos, pos + len, *entry);
    }
  }
  return result.finish();
}

}  // namespace dovetail::bpe
