#include "byte_symbols.hpp"

#include "utf8.hpp"

namespace dovetail::bpe {

void append_symbols(std::string_view bytes, std::string* out) {
  for (const char c : bytes) append_utf8(kSymbolOfByte[static_cast<uint8_t>(c)], out);
}

void replace_by_symbols(std::string_view text, size_t begin, size_t end, Rewrite* rewrite) {
  std::string symbols;
  for (size_t pos = begin; pos < end;) {
    const auto lead = static_cast<uint8_t>(text[pos]);
    const size_t next = pos + utf8_len(lead);
    if (lead >= 0x80 || kSymbolOfByte[lead] != lead) {
      symbols.clear();
      append_symbols(text.substr(pos, next - pos), &symbols);
      rewrite->replace(pos, next, symbols);
    }
    pos = next;
  }
}

bool append_bytes(std::string_view symbols, std::string* out) {
  const size_t before = out->size();
  for (size_t pos = 0; pos < symbols.size();) {
    const auto* p = reinterpret_cast<const uint8_t*>(symbols.data()) + pos;
    const uint32_t c = decode_valid(p);
    if (c >= kByteSymbolEnd || kByteOfSymbol[c] < 0) {
      out->resize(before);
      return false;
    }
    out->push_back(static_cast<char>(kByteOfSymbol[c]));
    pos += utf8_len(*p);
  }
  return true;
}

}  // namespace dovetail::bpe
