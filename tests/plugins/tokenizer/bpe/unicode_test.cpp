// The generated class tables against the ranges they were made from, over all code points.
#include "plugins/tokenizer/bpe/unicode.hpp"

#include <gtest/gtest.h>

#include <map>

#include "json_support.hpp"
#include "plugins/tokenizer/bpe/code_point_set.hpp"
#include "plugins/tokenizer/bpe/lowercase.hpp"
#include "plugins/tokenizer/bpe/utf8.hpp"

namespace dovetail::bpe::test {
namespace {

const Node& classes() {
  static const Node root = parse(read_file("tests/data/tokenizer/unicode-classes.json"));
  return root;
}

CodePointSet set_of(const Node& ranges) {
  CodePointSet set;
  std::vector<CodePointRange> list;
  for (const Node& r : ranges.items()) {
    list.push_back({static_cast<uint32_t>(r.items()[0].as_int()),
                    static_cast<uint32_t>(r.items()[1].as_int())});
  }
  return CodePointSet(list);
}

CodePointSet union_of(std::initializer_list<const char*> names) {
  CodePointSet all;
  for (const char* name : names) {
    all.add(set_of(*classes().find("regex_classes_unicode_16")->find(name)));
  }
  return all;
}

TEST(UnicodeTables, ClassFlagsEqualTheReferenceRanges) {
  const Node& regex = *classes().find("regex_classes_unicode_16");
  const Node& functions = *classes().find("hf_functions");
  const std::pair<uint16_t, CodePointSet> flags[] = {
      {kLetter, set_of(*regex.find("L"))},
      {kNumber, set_of(*regex.find("N"))},
      {kSpace, set_of(*regex.find("regex_space"))},
      {kWord, set_of(*functions.find("whitespace_pretokenizer_word"))},
      {kNumeric, set_of(*functions.find("digits_is_numeric"))},
      {kPunctuation, set_of(*functions.find("punctuation"))},
      {kBertRemoved, set_of(*functions.find("bert_clean_text_removed"))},
      {kAccent, set_of(*functions.find("strip_accents_removed"))},
      {kNonspacingMark, set_of(*functions.find("bert_nonspacing_mark"))},
      {kMark, set_of(*regex.find("M"))},
      {kNotLower, union_of({"Lu", "Lt", "Lm", "Lo"})},
      {kNotUpper, union_of({"Ll", "Lm", "Lo"})},
      {kPunctOrSymbol, union_of({"P", "S"})},
      {kNfcKnown, set_of(*classes().find("normalization_known_code_points")->find("ranges"))},
  };
  for (const auto& [flag, set] : flags) {
    for (uint32_t c = 0; c < kCodePointEnd; ++c) {
      if (c >= 0xD800 && c < 0xE000) continue;
      ASSERT_EQ((class_of(c) & flag) != 0, set.contains(c)) << int{flag} << " " << std::hex << c;
    }
  }
}

TEST(UnicodeTables, RegexPropertiesEqualTheReferenceRanges) {
  const Node& regex = *classes().find("regex_classes_unicode_16");
  EXPECT_EQ(kPropertiesLen, 17u);
  for (size_t i = 0; i < kPropertiesLen; ++i) {
    std::string key(kProperties[i].name);
    if (key == "space" || key == "word" || key == "digit") key = "regex_" + key;
    EXPECT_EQ(CodePointSet(kProperties[i].ranges), set_of(*regex.find(key))) << key;
  }
}

TEST(UnicodeTables, LowerCaseAndScriptsEqualTheReference) {
  const Node root = parse(read_file("tests/data/tokenizer/unicode-lowercase-scripts.json"));
  std::map<uint32_t, uint32_t> lower;
  for (const Node& r : root.find("lowercase")->find("ranges")->items()) {
    const auto number = [&](size_t i) { return r.items()[i].as_int(); };
    for (int64_t c = number(0); c <= number(1); c += number(2)) {
      lower[static_cast<uint32_t>(c)] = static_cast<uint32_t>(c + number(3));
    }
  }
  EXPECT_EQ(lower.size(), 1487u);
  for (uint32_t c = 0; c < kCodePointEnd; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string got, expected;
    const bool changes = append_lowercase(c, &got);
    const auto it = lower.find(c);
    if (it != lower.end()) append_utf8(it->second, &expected);
    if (c == 0x130) expected = "i\u0307";
    ASSERT_EQ(got, expected) << std::hex << c;
    ASSERT_EQ(changes, !expected.empty()) << std::hex << c;
  }
  EXPECT_EQ(kScripts.size(), root.find("scripts")->find("ranges")->items().size());
}

TEST(CodePointSet, AlgebraKeepsItsLaws) {
  CodePointSet set = CodePointSet::range(10, 20);
  set.add(CodePointSet::range(21, 30));
  set.add(CodePointSet::of(5));
  ASSERT_EQ(set.ranges().size(), 2u);
  EXPECT_TRUE(set.contains(5) && set.contains(10) && set.contains(30));
  EXPECT_FALSE(set.contains(4) || set.contains(6) || set.contains(31));
  EXPECT_EQ(set.complement().complement(), set);
  EXPECT_TRUE(set.intersect(set.complement()).empty());
  EXPECT_EQ(set.intersect(CodePointSet::range(15, 25)), CodePointSet::range(15, 25));
}

}  // namespace
}  // namespace dovetail::bpe::test
