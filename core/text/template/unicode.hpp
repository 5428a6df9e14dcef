// Unicode as Python's str sees it: code points in UTF-8, case, white space, what repr() escapes.
//
// Texts are assumed to be UTF-8; a byte that is not counts as one code point, U+FFFD, so that
// nothing here reads out of bounds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace dovetail::core::jinja {

/// Reads the code point at `pos` (< s.size()) and moves `pos` past it.
char32_t next_char(std::string_view s, size_t& pos);
void append_utf8(char32_t c, std::string& out);
std::string to_utf8(char32_t c);
bool is_valid_utf8(std::string_view s);
bool is_ascii(std::string_view s);

size_t count_chars(std::string_view s);
/// The byte where code point number `n_chars` begins; s.size() if there are not so many.
size_t byte_offset(std::string_view s, size_t n_chars);

/// Where `what` first begins in `s` at or after `from`, in time linear in s.size(); npos if nowhere.
size_t find_bytes(std::string_view s, std::string_view what, size_t from = 0);

bool is_space(char32_t c);      // str.isspace
bool is_printable(char32_t c);  // str.isprintable, with Unicode 14
bool is_alpha(char32_t c);      // str.isalpha
bool is_digit(char32_t c);      // str.isdigit, for decimal digits
bool is_alnum(char32_t c);
bool is_upper(char32_t c);
bool is_lower(char32_t c);
bool is_title(char32_t c);
bool is_cased(char32_t c);
bool is_name_start(char32_t c);  // of an identifier
bool is_name_part(char32_t c);
bool is_line_break(char32_t c);  // for str.splitlines; "\r\n" is one break

// Full case mappings: one letter may become several.
std::string upper_of(char32_t c);
std::string title_of(char32_t c);
std::string folded(char32_t c);
/// `pos` is where `c` begins in `s`: a capital sigma at the end of a word has its own small form.
std::string lower_of(char32_t c, std::string_view s, size_t pos);

}  // namespace dovetail::core::jinja
