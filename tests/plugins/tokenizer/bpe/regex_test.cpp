// Patterns: Oniguruma's meaning where PCRE2 has another, and refusals by name.
#include "plugins/tokenizer/bpe/regex.hpp"

#include <gtest/gtest.h>

#include "plugins/tokenizer/bpe/error.hpp"

namespace dovetail::bpe {
namespace {

std::vector<std::string> matches(std::string_view pattern, std::string_view text) {
  RegexScratch scratch;
  std::vector<RegexMatch> found;
  Regex(pattern).find_all(text, &scratch, &found);
  std::vector<std::string> out;
  for (const RegexMatch& m : found) out.emplace_back(text.substr(m.begin, m.end - m.begin));
  return out;
}

using Strings = std::vector<std::string>;

TEST(Regex, PlusAfterAnIntervalRepeatsIt) {
  EXPECT_EQ(matches(R"(\p{N}{1,3}+)", "12345"), (Strings{"12345"}));
  EXPECT_EQ(matches(R"(\p{N}{1,3})", "12345"), (Strings{"123", "45"}));
  EXPECT_EQ(matches("a{2}?b", "aab b"), (Strings{"aab", "b"}));  // an optional {2}, not a lazy one
  EXPECT_EQ(matches("a{,2}b", "aaab"), (Strings{"aab"}));
  EXPECT_EQ(matches("a{1,2}?", "aa"), (Strings{"a", "a"}));
  EXPECT_EQ(matches("a{x", "a{x"), (Strings{"a{x"}));
}

TEST(Regex, PossessiveQuantifiersDoNotGiveBack) {
  EXPECT_EQ(matches("a++b", "aaab"), (Strings{"aaab"}));
  EXPECT_EQ(matches("a++a", "aaaa"), Strings{});
  EXPECT_EQ(matches("a*+a", "aaaa"), Strings{});
  EXPECT_EQ(matches("(?>a+)a", "aaaa"), Strings{});
}

TEST(Regex, LineAnchorsMatchAtEveryLine) {
  EXPECT_EQ(matches("^a", "a\na\n\na"), (Strings{"a", "a", "a"}));
  EXPECT_EQ(matches("a$", "a\naa"), (Strings{"a", "a"}));
  EXPECT_EQ(matches(R"(\Aa)", "a\na"), (Strings{"a"}));
  EXPECT_EQ(matches(R"(a\z)", "a\na"), (Strings{"a"}));
  EXPECT_EQ(matches(".+", "ab\rc\nd"), (Strings{"ab\rc", "d"}));
}

TEST(Regex, LongSMatchesSWhereCaseIsIgnored) {
  EXPECT_EQ(matches("(?i:'s)", "'s 'S '\u017F"), (Strings{"'s", "'S", "'\u017F"}));
  EXPECT_EQ(matches("'s", "'s 'S '\u017F"), (Strings{"'s"}));
  EXPECT_EQ(matches("(?i:k)k", "Kk \u212Ak kK"), (Strings{"Kk", "\u212Ak"}));
}

TEST(Regex, ClassesFollowUnicode16) {
  EXPECT_EQ(matches(R"(\p{L}+)", "a\U000105C0b"),
            (Strings{"a\U000105C0b"}));  // Todhri, new in 16.0
  EXPECT_EQ(matches(R"(\s)", "\u0085\u180E\u200B\uFEFF\x1C"), (Strings{"\u0085"}));
  EXPECT_EQ(matches(R"(\d+)", "1٣½"), (Strings{"1٣"}));
  EXPECT_EQ(matches(R"(\p{^L}+)", "ab12"), (Strings{"12"}));
  EXPECT_EQ(matches(R"([\p{L}&&[^\p{Han}]]+)", "ab中c"), (Strings{"ab", "c"}));
  EXPECT_EQ(matches(R"([^\S\n]+)", "a \t\nb"), (Strings{" \t"}));
  EXPECT_EQ(matches(R"([]a]+)", "a]"), (Strings{"a]"}));
  EXPECT_EQ(matches(R"(\bx\b)", "x xy é\u0301x x"), (Strings{"x", "x"}));
}

TEST(Regex, EmptyMatchesCountUnlessTheyTouchTheLast) {
  EXPECT_EQ(matches("x*", "axxb"),
            (Strings{"", "xx", ""}));  // at a, xx, and the end; not right after xx
  EXPECT_EQ(matches("x*", "ab"), (Strings{"", "", ""}));
}

void expect_refused(std::string_view pattern, Error::Kind kind, const char* part) {
  try {
    const Regex regex(pattern);
    FAIL() << pattern;
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
  }
}

TEST(Regex, RefusesWhatItCannotKeepTheMeaningOf) {
  using enum Error::Kind;
  expect_refused(R"((a)\1)", kUnsupported, "the escape \\1 at byte 4");
  expect_refused(R"(\p{Greek})", kUnsupported, "\\p{Greek}");
  expect_refused("(?<name>a)", kUnsupported, "group");
  expect_refused("(?i)a", kUnsupported, "group");
  expect_refused("(?i:ss)", kUnsupported, "single characters");
  expect_refused("(?i:ä)", kUnsupported, "outside ASCII");
  expect_refused("[[:alpha:]]", kUnsupported, "POSIX");
  expect_refused(R"(\X)", kUnsupported, "\\X");
  expect_refused("(a", kFormat, "missing )");
  expect_refused("a)", kFormat, "unmatched )");
  expect_refused("[a", kFormat, "missing ]");
  expect_refused("*a", kFormat, "nothing to repeat");
  expect_refused("[z-a]", kFormat, "out of order");
  expect_refused(std::string(100, '('), kUnsupported, "nesting");
}

TEST(Regex, StopsAPatternThatWouldRunForever) {
  RegexScratch scratch;
  std::vector<RegexMatch> found;
  const Regex regex("(?:(?:a|aa)+)+$");
  EXPECT_THROW(regex.find_all(std::string(200, 'a') + "b", &scratch, &found), Error);
}

}  // namespace
}  // namespace dovetail::bpe
