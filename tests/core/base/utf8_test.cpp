#include "core/base/utf8.hpp"

#include <gtest/gtest.h>

#include <string>

namespace dovetail::core {
namespace {

TEST(Utf8, KnowsTheEdgesOfWhatIsWellFormed) {
  for (const char* good :
       {"a", "\xC2\x80", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"})
    EXPECT_EQ(utf8_sequence_len(good), std::string(good).size());
  for (const char* bad : {"\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
                          "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xE2\x82"})
    EXPECT_EQ(utf8_sequence_len(bad), 0u);
}

TEST(Utf8, FindsTheFirstBadByte) {
  EXPECT_EQ(find_invalid_utf8("\xE4\xB8\xAD\xE6\x96\x87"), std::string::npos);
  EXPECT_EQ(find_invalid_utf8("ab\xE4\xB8"), 2u);
  EXPECT_EQ(find_invalid_utf8(""), std::string::npos);
}

TEST(Utf8, OneReplacementStandsForACharacterThatStopsTooEarly) {
  EXPECT_EQ(replace_invalid_utf8("x\xF0\x9F\x98"), "x\uFFFD");    // three of four bytes
  EXPECT_EQ(replace_invalid_utf8("\x98\x80y"), "\uFFFD\uFFFDy");  // the other half: no lead
  EXPECT_EQ(replace_invalid_utf8("\xE0\x80z"), "\uFFFD\uFFFDz");  // overlong
  EXPECT_EQ(replace_invalid_utf8("\xE4\xB8\xE4\xB8\xAD"),
            "\uFFFD\xE4\xB8\xAD");  // then a whole one
  EXPECT_EQ(replace_invalid_utf8("plain \xF0\x9F\x98\x80"), "plain \xF0\x9F\x98\x80");
}

}  // namespace
}  // namespace dovetail::core
