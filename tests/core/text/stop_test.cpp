// Stop strings over streamed text: what is held, what is shown, where it ends.
#include "core/text/stop.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <random>

namespace dovetail::core {
namespace {

using Strings = std::vector<std::string>;

// B049
TEST(StopMatcher, FindsAStopStringThatBeginsInsideAToken) {
  StopMatcher m({"DEFGHIJ"});
  EXPECT_EQ(m.feed("ABCDEFGHI"), "ABC");
  EXPECT_FALSE(m.stopped());
  EXPECT_EQ(m.feed("JK"), "");
  EXPECT_TRUE(m.stopped()) << "after two tokens";
  EXPECT_EQ(m.matched(), "DEFGHIJ");
  EXPECT_EQ(m.feed("L"), "");
  EXPECT_EQ(m.flush(), "");

  StopMatcher with({"DEFGHIJ"}, true);
  std::string text;
  for (const char* piece : {"ABCDEFGHI", "JK", "L"}) text += with.feed(piece);
  EXPECT_EQ(text + with.flush(), "ABCDEFGHIJ");
}

// B050
TEST(StopMatcher, ReleasesWhatIsNoStopStringAfterAll) {
  StopMatcher m({"XYZ"});
  EXPECT_EQ(m.feed("aXY"), "a");
  EXPECT_EQ(m.feed("b"), "XYb") << "disproved";
  EXPECT_EQ(m.flush(), "");

  StopMatcher at_end({"XYZ"});
  EXPECT_EQ(at_end.feed("aXY"), "a");
  EXPECT_EQ(at_end.flush(), "XY") << "the text ended by length";
  EXPECT_FALSE(at_end.stopped());
}

TEST(StopMatcher, ShowsNothingAfterAMatch) {
  StopMatcher m({"two"});
  EXPECT_EQ(m.feed("one two three four five"), "one ");
  EXPECT_EQ(m.feed(" six"), "");
  EXPECT_EQ(m.feed("two"), "");
  EXPECT_EQ(m.flush(), "");
  StopMatcher with({"two"}, true);
  EXPECT_EQ(with.feed("one two three four five"), "one two");
}

TEST(StopMatcher, HoldsOnlyTheLongestEndThatBeginsAStopString) {
  StopMatcher m({"aab"});
  EXPECT_EQ(m.feed("a"), "");
  EXPECT_EQ(m.feed("a"), "");
  EXPECT_EQ(m.feed("a"), "a") << "aa is still held";
  EXPECT_EQ(m.feed("b"), "");
  EXPECT_TRUE(m.stopped());

  StopMatcher two({"\n\nUser:", "###"});
  EXPECT_EQ(two.feed("text\n"), "text");
  EXPECT_EQ(two.feed("#"), "\n") << "now only # is held";
  EXPECT_EQ(two.feed(" "), "# ");
}

TEST(StopMatcher, StopsAtTheFirstByteThatCompletesAny) {
  StopMatcher inner({"ABCD", "BC"});
  EXPECT_EQ(inner.feed("xABCD"), "xA");
  EXPECT_EQ(inner.matched(), "BC");
  StopMatcher longest({"C", "BC", "ABC"});
  EXPECT_EQ(longest.feed("xABC"), "x") << "all three end here: the longest counts";
  StopMatcher same_end({"yBC", "ABC", "BC"});
  EXPECT_EQ(same_end.feed("xABC"), "x");
  EXPECT_EQ(same_end.matched(), "ABC") << "the longest of those that end here";
}

TEST(StopMatcher, IgnoresEmptyStringsAndRepeatedOnes) {
  StopMatcher none({}), empty({"", ""});
  EXPECT_EQ(none.feed("abc"), "abc");
  EXPECT_EQ(empty.feed("abc"), "abc");
  EXPECT_FALSE(empty.stopped());
  StopMatcher twice({"b", "b", ""});
  EXPECT_EQ(twice.feed("abc"), "a");
}

TEST(StopMatcher, MatchesBytesOfAnyText) {
  StopMatcher m({"日本", std::string("\0x", 2)});
  EXPECT_EQ(m.feed("今日"), "今");
  EXPECT_EQ(m.feed("は"), "日は");
  EXPECT_EQ(m.feed(std::string_view("a\0y", 3)), std::string_view("a\0y", 3));
  EXPECT_EQ(m.feed("日本語"), "");
  EXPECT_TRUE(m.stopped());
}

TEST(StopMatcher, StartsAgainAfterAFlush) {
  StopMatcher m({"abc"});
  EXPECT_EQ(m.feed("ab"), "");
  EXPECT_EQ(m.flush(), "ab");
  EXPECT_EQ(m.feed("c"), "c");
  EXPECT_FALSE(m.stopped());
}

// The plain way: look for every stop string at every byte.
std::string expected_text(const std::string& text, const Strings& stops, bool include) {
  for (size_t end = 1; end <= text.size(); ++end) {
    size_t n = 0;
    for (const std::string& s : stops)
      if (!s.empty() && s.size() <= end && text.compare(end - s.size(), s.size(), s) == 0)
        n = std::max(n, s.size());
    if (n > 0) return text.substr(0, include ? end : end - n);
  }
  return text;
}

TEST(StopMatcher, EqualsASearchOfTheWholeTextInAnyPieces) {
  std::mt19937 random(1);
  for (int i = 0; i < 4000; ++i) {
    const auto word = [&](size_t n) {
      std::string s;
      for (; n > 0; --n) s += static_cast<char>('a' + random() % 2);
      return s;
    };
    Strings stops;
    for (uint32_t n = random() % 4; n > 0; --n) stops.push_back(word(random() % 7));
    const std::string text = word(random() % 24);
    const bool include = random() % 2 == 0;
    StopMatcher m(stops, include);
    std::string out;
    for (size_t at = 0; at < text.size();) {
      const size_t n = 1 + random() % 5;
      out += m.feed(std::string_view(text).substr(at, n));
      at += n;
      const std::string want = expected_text(text.substr(0, at), stops, include);
      ASSERT_EQ(want.compare(0, out.size(), out), 0)
          << "nothing was shown that has to be taken back";
    }
    out += m.flush();
    ASSERT_EQ(out, expected_text(text, stops, include)) << text;
  }
}

TEST(StopMatcher, TakesTimeLinearInTheTextWithManyLongStopStrings) {
  Strings stops;
  for (int i = 0; i < 2000; ++i) stops.push_back(std::string(300, 'a') + std::to_string(i) + "!");
  stops.push_back(std::string(5000, 'a') + "b");
  const auto begin = std::chrono::steady_clock::now();
  StopMatcher m(stops);
  size_t n_shown = 0;
  for (int i = 0; i < 20000; ++i)
    n_shown += m.feed("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa").size();
  EXPECT_EQ(n_shown, 20000 * 50 - 5000u);
  EXPECT_EQ(m.feed("b"), "");
  EXPECT_TRUE(m.stopped());
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  EXPECT_LT(took.count(), 20.0) << "a million bytes; looking for each string apart takes minutes";
}

}  // namespace
}  // namespace dovetail::core
