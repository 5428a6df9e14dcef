#include "core/text/template/unicode.hpp"

#include <string.h>  // memmem
#include <utf8proc.h>

#include <algorithm>
#include <iterator>

namespace dovetail::core::jinja {
namespace {

struct SpecialCasing {
  char32_t letter;
  const char* upper;
  const char* title;
};

constexpr SpecialCasing kSpecialCasing[] = {
#include "core/text/template/special_casing.inc"
};

const SpecialCasing* special_casing(char32_t c) {
  const auto* at =
      std::lower_bound(std::begin(kSpecialCasing), std::end(kSpecialCasing), c,
                       [](const SpecialCasing& s, char32_t x) { return s.letter < x; });
  return at != std::end(kSpecialCasing) && at->letter == c ? at : nullptr;
}

struct CharRange {
  char32_t first, last;
};

// Assigned after Unicode 14, which is what the reference prints with (utf8proc knows 15 and later).
constexpr CharRange kAssignedLater[] = {
    {0x0CF3, 0x0CF3},   {0x0ECE, 0x0ECE},   {0x2FFC, 0x2FFF},   {0x31EF, 0x31EF},
    {0x10EFD, 0x10EFF}, {0x1123F, 0x11241}, {0x11B00, 0x11B09}, {0x11F00, 0x11F10},
    {0x11F12, 0x11F3A}, {0x11F3E, 0x11F59}, {0x1342F, 0x1342F}, {0x13439, 0x13455},
    {0x1B132, 0x1B132}, {0x1B155, 0x1B155}, {0x1D2C0, 0x1D2D3}, {0x1DF25, 0x1DF2A},
    {0x1E030, 0x1E06D}, {0x1E08F, 0x1E08F}, {0x1E4D0, 0x1E4F9}, {0x1F6DC, 0x1F6DC},
    {0x1F774, 0x1F776}, {0x1F77B, 0x1F77F}, {0x1F7D9, 0x1F7D9}, {0x1FA75, 0x1FA77},
    {0x1FA87, 0x1FA88}, {0x1FAAD, 0x1FAAF}, {0x1FABB, 0x1FABD}, {0x1FABF, 0x1FABF},
    {0x1FACE, 0x1FACF}, {0x1FADA, 0x1FADB}, {0x1FAE8, 0x1FAE8}, {0x1FAF7, 0x1FAF8},
    {0x2B739, 0x2B739}, {0x2EBF0, 0x2EE5D}, {0x31350, 0x323AF},
};

bool assigned_later(char32_t c) {
  return std::any_of(std::begin(kAssignedLater), std::end(kAssignedLater),
                     [c](const CharRange& r) { return r.first <= c && c <= r.last; });
}

utf8proc_category_t category(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

bool is_letter(utf8proc_category_t cat) {
  return cat >= UTF8PROC_CATEGORY_LU && cat <= UTF8PROC_CATEGORY_LO;
}

bool is_case_ignorable(char32_t c) {
  switch (category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      break;
  }
  constexpr std::u32string_view kWordMiddle =
      U"'.:\u00B7\u0387\u055F\u05F4\u2018\u2019\u2024\u2027\uFE13\uFE52\uFE55\uFF07\uFF0E\uFF1A";
  return kWordMiddle.find(c) != std::u32string_view::npos;
}

// A sigma is final if a cased letter stands before it and none after, case-ignorables aside.
bool is_final_sigma(std::string_view s, size_t pos) {
  bool cased_before = false;
  for (size_t i = pos; i > 0;) {
    do {
      --i;
    } while (i > 0 && (static_cast<unsigned char>(s[i]) & 0xC0) == 0x80);
    size_t at = i;
    const char32_t c = next_char(s, at);
    if (is_case_ignorable(c)) continue;
    cased_before = is_cased(c);
    break;
  }
  if (!cased_before) return false;
  next_char(s, pos);
  while (pos < s.size()) {
    const char32_t c = next_char(s, pos);
    if (!is_case_ignorable(c)) return !is_cased(c);
  }
  return true;
}

}  // namespace

char32_t next_char(std::string_view s, size_t& pos) {
  const auto lead = static_cast<unsigned char>(s[pos]);
  if (lead < 0x80) {
    ++pos;
    return lead;
  }
  utf8proc_int32_t c = -1;
  const auto n = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(s.data()) + pos,
                                  static_cast<utf8proc_ssize_t>(s.size() - pos), &c);
  if (n <= 0) {
    ++pos;
    return 0xFFFD;
  }
  pos += static_cast<size_t>(n);
  return static_cast<char32_t>(c);
}

void append_utf8(char32_t c, std::string& out) {
  utf8proc_uint8_t buffer[4];
  const auto n = utf8proc_encode_char(static_cast<utf8proc_int32_t>(c), buffer);
  out.append(reinterpret_cast<const char*>(buffer), static_cast<size_t>(n));
}

std::string to_utf8(char32_t c) {
  std::string out;
  append_utf8(c, out);
  return out;
}

bool is_valid_utf8(std::string_view s) {
  for (size_t pos = 0; pos < s.size();) {
    if (static_cast<unsigned char>(s[pos]) < 0x80) {
      ++pos;
      continue;
    }
    utf8proc_int32_t c = -1;
    const auto n = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(s.data()) + pos,
                                    static_cast<utf8proc_ssize_t>(s.size() - pos), &c);
    if (n <= 0) return false;
    pos += static_cast<size_t>(n);
  }
  return true;
}

bool is_ascii(std::string_view s) {
  unsigned char all = 0;
  for (const char c : s) all |= static_cast<unsigned char>(c);
  return all < 0x80;
}

size_t count_chars(std::string_view s) {
  if (is_ascii(s)) return s.size();
  size_t n = 0;
  for (size_t pos = 0; pos < s.size(); ++n) next_char(s, pos);
  return n;
}

size_t byte_offset(std::string_view s, size_t n_chars) {
  size_t pos = 0;
  for (; n_chars > 0 && pos < s.size(); --n_chars) next_char(s, pos);
  return pos;
}

size_t find_bytes(std::string_view s, std::string_view what, size_t from) {
  if (from > s.size()) return std::string_view::npos;
  if (what.empty()) return from;
  // std::string_view::find is quadratic on hostile input; memmem is not.
  const void* at = memmem(s.data() + from, s.size() - from, what.data(), what.size());
  return at == nullptr ? std::string_view::npos
                       : static_cast<size_t>(static_cast<const char*>(at) - s.data());
}

bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

bool is_printable(char32_t c) {
  if (c == ' ') return true;
  switch (category(c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
      return false;
    default:
      return !assigned_later(c);
  }
}

bool is_alpha(char32_t c) {
  return is_letter(category(c));
}
bool is_digit(char32_t c) {
  return category(c) == UTF8PROC_CATEGORY_ND;
}
bool is_alnum(char32_t c) {
  const auto cat = category(c);
  return is_letter(cat) || (cat >= UTF8PROC_CATEGORY_ND && cat <= UTF8PROC_CATEGORY_NO);
}
bool is_upper(char32_t c) {
  return utf8proc_isupper(static_cast<utf8proc_int32_t>(c)) != 0;
}
bool is_lower(char32_t c) {
  return utf8proc_islower(static_cast<utf8proc_int32_t>(c)) != 0;
}
bool is_title(char32_t c) {
  return category(c) == UTF8PROC_CATEGORY_LT;
}

bool is_cased(char32_t c) {
  const auto i = static_cast<utf8proc_int32_t>(c);
  return is_upper(c) || is_lower(c) || is_title(c) || utf8proc_toupper(i) != i ||
         utf8proc_tolower(i) != i;
}

bool is_name_start(char32_t c) {
  if (c < 0x80) return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  return is_alpha(c) || category(c) == UTF8PROC_CATEGORY_NL;
}

bool is_name_part(char32_t c) {
  if (c < 0x80) return is_name_start(c) || (c >= '0' && c <= '9');
  const auto cat = category(c);
  return is_name_start(c) || cat == UTF8PROC_CATEGORY_MN || cat == UTF8PROC_CATEGORY_MC ||
         cat == UTF8PROC_CATEGORY_ND || cat == UTF8PROC_CATEGORY_PC;
}

bool is_line_break(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

std::string upper_of(char32_t c) {
  if (const SpecialCasing* s = c < 0x80 ? nullptr : special_casing(c)) return s->upper;
  return to_utf8(static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c))));
}

std::string title_of(char32_t c) {
  if (const SpecialCasing* s = c < 0x80 ? nullptr : special_casing(c)) return s->title;
  return to_utf8(static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c))));
}

std::string folded(char32_t c) {
  utf8proc_int32_t out[8];
  int boundclass = 0;
  const auto n = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), out, 8,
                                         UTF8PROC_CASEFOLD, &boundclass);
  std::string folded;
  for (utf8proc_ssize_t i = 0; i < n && i < 8; ++i) {
    append_utf8(static_cast<char32_t>(out[i]), folded);
  }
  return folded;
}

std::string lower_of(char32_t c, std::string_view s, size_t pos) {
  constexpr char32_t kCapitalSigma = 0x3A3;
  constexpr char32_t kFinalSigma = 0x3C2;
  constexpr char32_t kCapitalDottedI = 0x130;
  if (c == kCapitalSigma && is_final_sigma(s, pos)) return to_utf8(kFinalSigma);
  if (c == kCapitalDottedI) return "i\u0307";
  return to_utf8(static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
}

}  // namespace dovetail::core::jinja
