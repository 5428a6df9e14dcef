// What Python's str methods do, on texts that keep their sources. Filters and methods both use them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/text/template/text_builder.hpp"
#include "core/text/template/value.hpp"

namespace dovetail::core::jinja {

enum class Side : uint8_t { kBoth, kLeft, kRight };

/// Without white space, or without the characters in `chars`, at the ends.
SourcedText strip(const SourcedText& text, std::optional<std::string_view> chars, Side side);

/// Parts between runs of white space; at most `max_splits` cuts unless negative.
std::vector<SourcedText> split_space(const SourcedText& text, int64_t max_splits, Budget& budget);
std::vector<SourcedText> split_space_right(const SourcedText& text, int64_t max_splits,
                                           Budget& budget);
/// Parts between occurrences of `separator`, which is not empty.
std::vector<SourcedText> split_at(const SourcedText& text, std::string_view separator,
                                  int64_t max_splits, Budget& budget);
std::vector<SourcedText> split_at_right(const SourcedText& text, std::string_view separator,
                                        int64_t max_splits, Budget& budget);
std::vector<SourcedText> split_lines(const SourcedText& text, bool keep_ends, Budget& budget);

/// The first `count` occurrences replaced, all if it is negative.
SourcedText replace(const SourcedText& text, std::string_view old, const SourcedText& with,
                    int64_t count, Budget& budget);
SourcedText join(const std::vector<SourcedText>& parts, const SourcedText& separator,
                 Budget& budget);

SourcedText upper(const SourcedText& text, Budget& budget);
SourcedText lower(const SourcedText& text, Budget& budget);
SourcedText capitalize(const SourcedText& text, Budget& budget);
SourcedText title(const SourcedText& text, Budget& budget);  // str.title: letters after non-letters
SourcedText swap_case(const SourcedText& text, Budget& budget);
SourcedText fold_case(const SourcedText& text, Budget& budget);
SourcedText reversed(const SourcedText& text, Budget& budget);

/// `text` in a field of `width` characters.
SourcedText justify(const SourcedText& text, int64_t width, const SourcedText& fill, char align,
                    Budget& budget);

/// Last place where `what` begins; npos if nowhere.
size_t find_last(std::string_view s, std::string_view what, Budget& budget);
int64_t count_occurrences(std::string_view s, std::string_view what);

bool has_upper_only(std::string_view s);  // str.isupper
bool has_lower_only(std::string_view s);  // str.islower

}  // namespace dovetail::core::jinja
