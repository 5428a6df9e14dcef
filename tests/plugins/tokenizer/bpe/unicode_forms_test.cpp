// NFC with the code points of Unicode 9.0, its spans, and its cost on hostile input.
#include "plugins/tokenizer/bpe/unicode_forms.hpp"

#include <gtest/gtest.h>

#include "json_support.hpp"

namespace dovetail::bpe::test {
namespace {

std::string normalized(std::string_view text) {
  Layer layer;
  return nfc(text, &layer) ? layer.text : std::string(text);
}

TEST(Nfc, AgreesWithTheReferenceComponents) {
  int n_cases = 0;
  for (const Node& group : vectors("components.jsonl")) {
    if (group.find("name")->as_string() != "NFC") continue;
    for (const Node& c : group.find("cases")->items()) {
      EXPECT_EQ(normalized(c.find("in")->as_string()), c.find("out")->as_string());
      ++n_cases;
    }
  }
  EXPECT_EQ(n_cases, 16);
}

TEST(Nfc, LeavesNormalizedTextAlone) {
  Layer layer;
  layer.text = "kept";
  EXPECT_FALSE(nfc("plain, caf\u00E9, \u4E16\u754C, \uAC00", &layer));
  EXPECT_EQ(layer.text, "kept");
}

TEST(Nfc, OrdersAndComposesMarks) {
  EXPECT_EQ(normalized("a\u0323\u0307"), "\u1EA1\u0307");
  EXPECT_EQ(normalized("a\u0307\u0323"), "\u1EA1\u0307");
  EXPECT_EQ(normalized("\u1112\u1161\u11AB"), "\uD55C");
  EXPECT_EQ(normalized("x\u0301e\u0301y"), "x\u0301\u00E9y");
  EXPECT_EQ(normalized("\u0344"), "\u0308\u0301");
}

TEST(Nfc, TreatsCodePointsAfterUnicode9AsPlainStarters) {
  EXPECT_EQ(normalized("\U00011935\U00011930"), "\U00011935\U00011930");  // composes since 13.0
  EXPECT_EQ(normalized("a\u1DF6\u0323"), "a\u1DF6\u0323");                // a mark since 10.0
}

TEST(Nfc, MapsChangedSegmentsAsAWhole) {
  Layer layer;
  ASSERT_TRUE(nfc("ab e\u0301cd", &layer));
  ASSERT_EQ(layer.text, "ab \u00E9cd");  // the e and its mark, bytes 3 to 6, became bytes 3 to 5
  const uint64_t expected[] = {0, 1, 2, 3, 3, 6, 7, 8};
  for (uint64_t i = 0; i <= layer.text.size(); ++i)
    EXPECT_EQ(layer.alignment.to_original(i), expected[i]) << i;
}

TEST(Nfc, SortsALongRunOfMarksWithoutQuadraticWork) {
  std::string text = "a", below, above;
  constexpr int kPairs = 100'000;
  for (int i = 0; i < kPairs; ++i) {
    text += "\u0307\u0323";  // each pair is out of order
    below += "\u0323";
    above += "\u0307";
  }
  below.erase(0, 2);  // one composes with the a
  EXPECT_EQ(normalized(text), "\u1EA1" + below + above);
}

}  // namespace
}  // namespace dovetail::bpe::test
