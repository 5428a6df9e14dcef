#include "core/base/json.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace dovetail::core {
namespace {

Node parsed(std::string_view text, const JsonLimits& limits = {}) {
  Result<Node> r = parse_json(text, "t.json", limits);
  EXPECT_TRUE(r.is_ok()) << text << ": " << r.status().message();
  return r.is_ok() ? std::move(r).value() : Node();
}

std::string error_of(std::string_view text, const JsonLimits& limits = {}) {
  const Result<Node> r = parse_json(text, "t.json", limits);
  EXPECT_FALSE(r.is_ok()) << text;
  if (r.is_ok()) return "";
  EXPECT_EQ(r.status().code(), Code::kFormat);
  EXPECT_EQ(r.status().message().find('\n'), std::string::npos);
  return r.status().message();
}

void expect_error(std::string_view text, std::string_view part, const JsonLimits& limits = {}) {
  const std::string message = error_of(text, limits);
  EXPECT_NE(message.find(part), std::string::npos) << text << " gave: " << message;
}

TEST(ParseJson, KeepsEveryKindAndTheOrderOfKeys) {
  const Node n =
      parsed(R"( {"b": [1, 2.5, true, false, null], "a": {"x": "y"}, "e": [], "m": {}} )");
  ASSERT_TRUE(n.is_map());
  EXPECT_EQ(n.entries()[0].first, "b");
  EXPECT_EQ(n.entries()[1].first, "a");
  const auto& list = n.find("b")->items();
  ASSERT_EQ(list.size(), 5u);
  EXPECT_EQ(list[0].as_int(), 1);
  EXPECT_EQ(list[1].as_float(), 2.5);
  EXPECT_TRUE(list[2].as_bool());
  EXPECT_FALSE(list[3].as_bool());
  EXPECT_TRUE(list[4].is_null());
  EXPECT_EQ(n.find("a")->find("x")->as_string(), "y");
  EXPECT_TRUE(n.find("e")->items().empty());
  EXPECT_TRUE(n.find("m")->is_map());
}

TEST(ParseJson, AcceptsAScalarDocument) {
  EXPECT_EQ(parsed("7").as_int(), 7);
  EXPECT_EQ(parsed(" \"x\" ").as_string(), "x");
  EXPECT_TRUE(parsed("null").is_null());
}

TEST(ParseJson, KeepsNumberTextAndNeverBendsIntegers) {
  EXPECT_EQ(parsed("[1e-6]").items()[0].number_text(), "1e-6");
  EXPECT_EQ(parsed("9223372036854775807").as_int(), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(parsed("-9223372036854775808").as_int(), std::numeric_limits<int64_t>::min());
  const Node big = parsed("18446744073709551615");
  EXPECT_EQ(big.kind(), Node::Kind::kFloat);
  EXPECT_EQ(big.number_text(), "18446744073709551615");
  EXPECT_EQ(parsed("9223372036854775808").kind(), Node::Kind::kFloat);
  EXPECT_EQ(parsed("1.0").kind(), Node::Kind::kFloat);
  EXPECT_EQ(parsed("1e2").kind(), Node::Kind::kFloat);
  EXPECT_EQ(parsed("-0").as_int(), 0);
  EXPECT_EQ(parsed("1e-400").as_float(), 0.0);
  EXPECT_EQ(parsed("0.1").as_float(), 0.1);
  EXPECT_EQ(parsed("9007199254740993.0").as_float(), 9007199254740992.0);
}

TEST(ParseJson, RefusesNumbersBeyondDouble) {
  expect_error("{\"a\":\n  1e400}", "t.json:2:3: number 1e400 is beyond the range of a double");
  expect_error("-1e400", "beyond the range");
  expect_error("1" + std::string(400, '0'), "beyond the range");
  expect_error("1e99999999999", "beyond the range");
}

TEST(ParseJson, RefusesDuplicateKeysByName) {
  expect_error("{\"a\": 1,\n \"b\": 2, \"a\": 3}",
               "t.json:2:10: key \"a\" appears twice (first value at t.json:1:7)");
  std::string large = "{";
  for (int i = 0; i < 100; ++i) large += "\"k" + std::to_string(i) + "\":0,";
  expect_error(large + "\"k42\":1}", "key \"k42\" appears twice");
  expect_error(R"({"a": 1, "\u0061": 2})", "key \"a\" appears twice");
}

TEST(ParseJson, RecordsWhereEachValueStands) {
  const Node n = parsed("{\"a\\\"\\u0041\": [10,\n  {\"b\" : \"x\\\\\"}, -2.5e3, true , null]}");
  EXPECT_EQ(n.origin().str(), "t.json:1:1");
  const auto& list = n.entries()[0].second.items();
  EXPECT_EQ(list[0].origin().str(), "t.json:1:16");
  EXPECT_EQ(list[1].origin().str(), "t.json:2:3");
  EXPECT_EQ(list[1].find("b")->origin().str(), "t.json:2:10");
  EXPECT_EQ(list[2].origin().str(), "t.json:2:18");
  EXPECT_EQ(list[3].origin().str(), "t.json:2:26");
  EXPECT_EQ(list[4].origin().str(), "t.json:2:33");
}

TEST(ParseJson, NamesLineAndColumnOfSyntaxErrors) {
  expect_error("{\n  \"a\": 1,\n}", "t.json:3:1: got \"}\"");
  expect_error("{\"a\": 'x'}", "t.json:1:7: got \"'\"");
  expect_error("{\"a\": NaN}", "t.json:1:7:");
  expect_error("[1, // c\n 2]", "t.json:1:5:");
  expect_error("[1 2]", "t.json:1:4: got \"2\"");
  expect_error("[01]", "t.json:1:3:");
  expect_error("{\"a\": 1} x", "t.json:1:10: got more text after");
  expect_error("{\"a\": [1", "middle of a json value, with 2 lists or maps still open");
  expect_error("", "the file is empty");
  expect_error(" \n", "the file is empty");
  expect_error("[\"a\nb\"]", "raw control character");
  expect_error("[\"\\x\"]", "t.json:1:4:");
  expect_error("tru", "middle of a json value");
}

TEST(ParseJson, RefusesInvalidUtf8) {
  for (const std::string bad :
       {"\x80", "\xC0\xAF", "\xE0\x80\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xFF", "\xC3"}) {
    expect_error("[\"ab" + bad + "\"]", "not valid UTF-8");
  }
  EXPECT_EQ(parsed("[\"\xF0\x9F\x98\x80\"]").items()[0].as_string(), "\xF0\x9F\x98\x80");
}

TEST(ParseJson, DecodesEscapesAndSurrogatePairs) {
  EXPECT_EQ(parsed(R"("\ud83d\ude00\u00e9\n\/\u0000")").as_string(),
            std::string("\xF0\x9F\x98\x80\xC3\xA9\n/\0", 9));
}

TEST(ParseJson, RefusesOrReplacesLoneSurrogates) {
  JsonLimits replace;
  replace.lone_surrogates = LoneSurrogates::kReplace;
  const std::string fffd = "\xEF\xBF\xBD";
  const std::pair<const char*, std::string> cases[] = {
      {R"("\ud83d")", fffd},
      {R"("\ude00")", fffd},
      {R"("a\ud83dx")", "a" + fffd + "x"},
      {R"("\ud83d\u0041")", fffd + "A"},
      {R"("\ud83d\ud83d\ude00")", fffd + "\xF0\x9F\x98\x80"},
      {R"("\uDE00\uD83D")", fffd + fffd},
      {R"("\ud83d\n")", fffd + "\n"},
  };
  for (const auto& [text, expected] : cases) {
    expect_error(text, "t.json:1:");
    EXPECT_EQ(parsed(text, replace).as_string(), expected) << text;
  }
  EXPECT_EQ(parsed(R"("\\ud83d \ud83d\ude00")", replace).as_string(), "\\ud83d \xF0\x9F\x98\x80");
  expect_error("[\"\\ud8", "t.json:1:", replace);
}

TEST(ParseJson, SkipsAByteOrderMarkAndNamesUtf16) {
  EXPECT_EQ(parsed("\xEF\xBB\xBF{\"a\": 1}").find("a")->origin().str(), "t.json:1:7");
  expect_error(std::string_view("\xFF\xFE{\0", 4), "UTF-16");
}

TEST(ParseJson, HoldsItsLimits) {
  JsonLimits limits;
  limits.max_depth = 3;
  EXPECT_TRUE(parsed("[[[1]]]", limits).is_list());
  expect_error("[[[[1]]]]", "t.json:1:4: lists and maps are nested deeper than 3 levels", limits);
  expect_error("[[{\"a\":{}}]]", "nested deeper than 3", limits);
  const std::string deep = std::string(128, '[') + std::string(128, ']');
  EXPECT_TRUE(parsed(deep).is_list());
  expect_error("[" + deep + "]", "deeper than 128");
  expect_error(std::string(1'000'000, '['), "deeper than 128");

  limits = {};
  limits.max_bytes = 10;
  expect_error("[1,2,3,4,5]", "t.json: the json text has 11 bytes, expected at most 10", limits);
  limits = {};
  limits.max_values = 4;
  EXPECT_EQ(parsed("[1,2,3]", limits).items().size(), 3u);
  expect_error("[1,2,3,4]", "t.json:1:8: more than 4 values", limits);
  limits = {};
  limits.max_string_bytes = 3;
  EXPECT_EQ(parsed("\"abc\"", limits).as_string(), "abc");
  expect_error("\"abcd\"", "longer than 3 bytes", limits);
  expect_error("{\"ab\\ncd\": 1}", "longer than 3 bytes", limits);
}

TEST(ParseJson, LongStringsWithEscapesArriveWhole) {
  std::string text = "\"";
  std::string expected;
  for (int i = 0; i < 20'000; ++i) {
    text += "ab\\n";
    expected += "ab\n";
  }
  EXPECT_EQ(parsed(text + "\"").as_string(), expected);
}

TEST(ToJson, WritesWhatItParsed) {
  const std::string text =
      R"({"b":[1,-2,2.5,1.0,true,null,[],{}],"a":{"x":"é\"\\\n\u0001/"},"n":18446744073709551615})";
  EXPECT_EQ(to_json(parsed(text)), text);
}

TEST(ToJson, WritesFloatsThatReadBackTheSame) {
  EXPECT_EQ(to_json(Node::make_float(0.1)), "0.1");
  EXPECT_EQ(to_json(Node::make_float(3)), "3.0");
  EXPECT_EQ(to_json(Node::make_float(-0.0)), "-0.0");
  EXPECT_EQ(to_json(Node::make_float(std::numeric_limits<double>::infinity())), "null");
  for (const double v : {1e300, 5e-324, 1.0 / 3, 123456789012345680.0}) {
    const Node back = parsed(to_json(Node::make_float(v)));
    EXPECT_EQ(back.kind(), Node::Kind::kFloat);
    EXPECT_EQ(back.as_float(), v);
  }
}

TEST(ToJson, BytesThatAreNotUtf8BecomeReplacements) {
  Node map = Node::make_map();
  map.set("k\xFF", Node::make_string("half \xF0\x9F\x98, \"whole\" \xE4\xB8\xAD"));
  const Node back = parsed(to_json(map));
  ASSERT_NE(back.find("k\uFFFD"), nullptr);
  EXPECT_EQ(back.find("k\uFFFD")->as_string(), "half \uFFFD, \"whole\" \xE4\xB8\xAD");
}

TEST(ToJson, IndentsNestedContainers) {
  EXPECT_EQ(
      to_json(parsed(R"({"a":[1,{"b":2}],"c":[],"d":{}})"), 2),
      "{\n  \"a\": [\n    1,\n    {\n      \"b\": 2\n    }\n  ],\n  \"c\": [],\n  \"d\": {}\n}");
}

}  // namespace
}  // namespace dovetail::core
