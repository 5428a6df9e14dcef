#include "unicode_forms.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "error.hpp"
#include "rewrite.hpp"
#include "unicode.hpp"
#include "utf8.hpp"

namespace dovetail::bpe {
namespace {

constexpr uint8_t kFirstTouchedLead = 0xCC;  // U+0300: below it every text is NFC
constexpr int kMaxDecomposition = 18;        // code points, of U+FDFA in NFKD

uint32_t code_point_at(std::string_view text, size_t pos) {
  return decode_valid(reinterpret_cast<const uint8_t*>(text.data()) + pos);
}
uint16_t class_at(std::string_view text, size_t pos) {
  return class_of(code_point_at(text, pos));
}

/// First position from `pos` on that is not ASCII, or the text's length.
size_t skip_ascii(std::string_view text, size_t pos) {
  uint64_t word;
  for (; pos + sizeof word <= text.size(); pos += sizeof word) {
    std::memcpy(&word, text.data() + pos, sizeof word);
    if ((word & 0x8080808080808080u) != 0) break;
  }
  while (pos < text.size() && static_cast<uint8_t>(text[pos]) < 0x80) ++pos;
  return pos;
}

/// First position from `pos` on whose code point NFC may touch, or the text's length.
size_t find_touched(std::string_view text, size_t pos) {
  for (pos = skip_ascii(text, pos); pos < text.size(); pos = skip_ascii(text, pos)) {
    const auto lead = static_cast<uint8_t>(text[pos]);
    if (lead >= kFirstTouchedLead && (class_at(text, pos) & kNfcTouched)) return pos;
    pos += utf8_len(lead);
  }
  return pos;
}

uint8_t combining_class(utf8proc_int32_t code_point) {
  return static_cast<uint8_t>(utf8proc_get_property(code_point)->combining_class);
}

/// Turns a text into segments and each segment into its form.
class Former {
 public:
  explicit Former(UnicodeForm form)
      : composes_(form == UnicodeForm::kNfc || form == UnicodeForm::kNfkc),
        compatible_(form == UnicodeForm::kNfkc || form == UnicodeForm::kNfkd) {}

  /// True if nothing before this code point reaches it or what is after it.
  bool starts_segment(uint32_t code_point) {
    if (!(class_of(code_point) & kNfcKnown)) return true;
    const uint32_t first = decompose(code_point) > 0 ? static_cast<uint32_t>(parts_[0]) : 0;
    return composes_ ? !(class_of(first) & kNfcTouched)
                     : combining_class(static_cast<utf8proc_int32_t>(first)) == 0;
  }

  /// Appends one segment, all of whose code points are in Unicode 9.0. utf8proc's own ordering of
  /// marks is quadratic, so marks are sorted here and only (de)composition is left to it.
  void append_segment(std::string_view segment, std::string* out) {
    buffer_.clear();
    for (size_t pos = 0; pos < segment.size();
         pos += utf8_len(static_cast<uint8_t>(segment[pos]))) {
      const int n = decompose(code_point_at(segment, pos));
      buffer_.insert(buffer_.end(), parts_, parts_ + n);
    }
    for (auto it = buffer_.begin(); it != buffer_.end();) {
      const auto run =
          std::find_if(it, buffer_.end(), [](auto c) { return combining_class(c) != 0; });
      it = std::find_if(run, buffer_.end(), [](auto c) { return combining_class(c) == 0; });
      std::stable_sort(run, it,
                       [](auto a, auto b) { return combining_class(a) < combining_class(b); });
    }
    auto n = static_cast<utf8proc_ssize_t>(buffer_.size());
    if (composes_) {
      n = utf8proc_normalize_utf32(
          buffer_.data(), n, static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
      if (n < 0) fail_invalid("unicode: utf8proc cannot compose a segment");
    }
    for (utf8proc_ssize_t i = 0; i < n; ++i) {
      append_utf8(static_cast<uint32_t>(buffer_[static_cast<size_t>(i)]), out);
    }
  }

 private:
  // Fills parts_ and says how many.
  int decompose(uint32_t code_point) {
    int boundary = 0;
    const auto options =
        static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | (compatible_ ? UTF8PROC_COMPAT : 0));
    const auto n = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code_point), parts_,
                                           kMaxDecomposition, options, &boundary);
    if (n < 0 || n > kMaxDecomposition) {
      fail_invalid("unicode: utf8proc cannot decompose a character");
    }
    return static_cast<int>(n);
  }

  const bool composes_, compatible_;
  utf8proc_int32_t parts_[kMaxDecomposition] = {};
  std::vector<utf8proc_int32_t> buffer_;
};

bool to_nfc(std::string_view text, Rewrite* rewrite) {
  Former former(UnicodeForm::kNfc);
  std::string segment;
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
    former.append_segment(text.substr(begin, pos - begin), &segment);
    rewrite->replace(begin, pos, segment);
  }
  return rewrite->finish();
}

}  // namespace

bool to_form(UnicodeForm form, std::string_view text, Layer* layer) {
  Rewrite rewrite(text, layer);
  if (form == UnicodeForm::kNfc) return to_nfc(text, &rewrite);
  Former former(form);
  std::string segment;
  for (size_t pos = skip_ascii(text, 0); pos < text.size(); pos = skip_ascii(text, pos)) {
    // ASCII decomposes into itself, but may be the base of what follows.
    size_t begin = pos;
    uint32_t c = code_point_at(text, pos);
    if (pos > 0 && !former.starts_segment(c)) {
      const size_t before = previous_char(text, pos);
      if (static_cast<uint8_t>(text[before]) < 0x80) begin = before;
    }
    const bool is_known = (class_of(c) & kNfcKnown) != 0;
    pos += utf8_len(static_cast<uint8_t>(text[pos]));
    if (!is_known) continue;
    while (pos < text.size()) {
      c = code_point_at(text, pos);
      if (c < 0x80 || former.starts_segment(c)) break;
      pos += utf8_len(static_cast<uint8_t>(text[pos]));
    }
    segment.clear();
    former.append_segment(text.substr(begin, pos - begin), &segment);
    rewrite.replace(begin, pos, segment);
  }
  return rewrite.finish();
}

}  // namespace dovetail::bpe
