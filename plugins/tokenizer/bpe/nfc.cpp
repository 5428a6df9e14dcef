#include "nfc.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "error.hpp"
#include "unicode.hpp"
#include "utf8.hpp"

namespace dovetail::bpe {
namespace {

constexpr uint8_t kFirstTouchedLead = 0xCC;  // U+0300: below it every text is NFC

uint8_t class_at(std::string_view text, size_t pos) {
  return class_of(decode_valid(reinterpret_cast<const uint8_t*>(text.data()) + pos));
}

/// First position from `pos` on whose code point NFC may touch, or the text's length.
size_t find_touched(std::string_view text, size_t pos) {
  while (pos < text.size()) {
    uint64_t word;
    if (pos + sizeof word <= text.size()) {
      std::memcpy(&word, text.data() + pos, sizeof word);
      if ((word & 0x8080808080808080u) == 0) {
        pos += sizeof word;
        continue;
      }
    }
    const auto lead = static_cast<uint8_t>(text[pos]);
    if (lead >= kFirstTouchedLead && (class_at(text, pos) & kNfcTouched)) return pos;
    pos += utf8_len(lead);
  }
  return pos;
}

uint8_t combining_class(utf8proc_int32_t code_point) {
  return static_cast<uint8_t>(utf8proc_get_property(code_point)->combining_class);
}

/// NFC of one segment whose code points are all in Unicode 9.0. utf8proc's own ordering of marks is
/// quadratic, so marks are sorted here and only (de)composition is left to it.
void append_nfc_segment(std::string_view segment, std::vector<utf8proc_int32_t>* buffer,
                        std::string* out) {
  constexpr int kMaxDecomposition = 4;
  buffer->clear();
  for (size_t pos = 0; pos < segment.size(); pos += utf8_len(static_cast<uint8_t>(segment[pos]))) {
    const uint32_t c = decode_valid(reinterpret_cast<const uint8_t*>(segment.data()) + pos);
    utf8proc_int32_t parts[kMaxDecomposition];
    int boundary = 0;
    const auto n = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts,
                                           kMaxDecomposition, UTF8PROC_DECOMPOSE, &boundary);
    if (n < 0 || n > kMaxDecomposition) fail_invalid("nfc: utf8proc cannot decompose a character");
    buffer->insert(buffer->end(), parts, parts + n);
  }
  for (auto it = buffer->begin(); it != buffer->end();) {
    const auto run =
        std::find_if(it, buffer->end(), [](auto c) { return combining_class(c) != 0; });
    it = std::find_if(run, buffer->end(), [](auto c) { return combining_class(c) == 0; });
    std::stable_sort(run, it,
                     [](auto a, auto b) { return combining_class(a) < combining_class(b); });
  }
  const auto n =
      utf8proc_normalize_utf32(buffer->data(), static_cast<utf8proc_ssize_t>(buffer->size()),
                               static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
  if (n < 0) fail_invalid("nfc: utf8proc cannot compose a segment");
  for (utf8proc_ssize_t i = 0; i < n; ++i) append_utf8(static_cast<uint32_t>((*buffer)[i]), out);
}

}  // namespace

bool nfc(std::string_view text, std::string* out, Alignment* alignment) {
  std::vector<utf8proc_int32_t> buffer;
  std::string segment;
  bool changed = false;
  size_t copied = 0;  // text up to here is in `out`, once something has changed
  for (size_t pos = find_touched(text, 0); pos < text.size(); pos = find_touched(text, pos)) {
    // A code point that NFC does not touch starts a segment: nothing composes across it from the left.
    size_t begin = pos;
    if (pos > 0) {
      const size_t before = previous_char(text, pos);
      if (class_at(text, before) & kNfcKnown) begin = before;
    }
    while (pos < text.size() && (class_at(text, pos) & kNfcTouched)) {
      pos += utf8_len(static_cast<uint8_t>(text[pos]));
    }
    segment.clear();
    append_nfc_segment(text.substr(begin, pos - begin), &buffer, &segment);
    if (segment == text.substr(begin, pos - begin)) continue;
    if (!changed) out->clear();
    changed = true;
    out->append(text, copied, begin - copied);
    alignment->add(out->size(), out->size() + segment.size(), begin, pos);
    out->append(segment);
    copied = pos;
  }
  if (changed) out->append(text, copied);
  return changed;
}

}  // namespace dovetail::bpe
