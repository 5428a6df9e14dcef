#include "core/config/yaml.hpp"

#include <gtest/gtest.h>

#include <string>

#include "tests/core/config/nodes.hpp"

namespace dovetail::core {
namespace {

using std::string_literals::operator""s;

// The fault must be at this place and speak of this.
void expect_fault(const std::string& text, const std::string& place, const std::string& about) {
  const std::string message = fault_of(text);
  EXPECT_TRUE(message.starts_with("x.yaml" + place + ": "))
      << "in: " << text << "\ngot: " << message;
  EXPECT_NE(message.find(about), std::string::npos) << "in: " << text << "\ngot: " << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

TEST(Yaml, BuildsATreeInTheOrderOfTheFile) {
  const Node root = parsed("b: 1\na:\n  - x\n  - {y: true, z: [1.5, null]}\n");
  ASSERT_EQ(root.entries().size(), 2u);
  EXPECT_EQ(root.entries()[0].first, "b");
  const Node& list = *root.find("a");
  EXPECT_EQ(list.items()[0].as_string(), "x");
  EXPECT_TRUE(list.items()[1].find("y")->as_bool());
  EXPECT_EQ(list.items()[1].find("z")->items()[0].as_float(), 1.5);
  EXPECT_TRUE(list.items()[1].find("z")->items()[1].is_null());
}

TEST(Yaml, QuotedScalarsAreStrings) {
  for (const char* text :
       {"\"1\"", "'1'", "'~'", "\"null\"", "'08'", "\"1e400\"", "|\n  1\n", ">\n  1\n"}) {
    EXPECT_TRUE(parsed(text).is_string()) << text;
  }
  EXPECT_EQ(parsed("a: \"\\u00e9\\n\\x41\"").find("a")->as_string(), "\xC3\xA9\nA");
}

TEST(Yaml, KnowsThePlaceOfEveryValue) {
  const Node root = parsed("a:\n  bb: 1\nlist:\n  - x\n  - {k: v}\n");
  EXPECT_EQ(root.find("a")->origin().str(), "x.yaml:1:1");
  EXPECT_EQ(root.find("a")->find("bb")->origin().str(), "x.yaml:2:3");
  EXPECT_EQ(root.find("list")->items()[0].origin().str(), "x.yaml:4:5");
  EXPECT_EQ(root.find("list")->items()[1].find("k")->origin().str(), "x.yaml:5:6");
}

TEST(Yaml, CopiesAliasesAndPlacesThemAtTheirUse) {
  const Node root = parsed("a: &one {n: 1}\nb: *one\nc: [*one]\n");
  EXPECT_EQ(root.find("b")->find("n")->as_int(), 1);
  EXPECT_EQ(root.find("b")->origin().str(), "x.yaml:2:1");
  EXPECT_EQ(root.find("c")->items()[0].origin().str(), "x.yaml:3:5");
}

TEST(Yaml, TakesAByteOrderMarkAndCarriageReturns) {  // B092
  EXPECT_EQ(parsed("\xEF\xBB\xBF"
                   "a: 1")
                .find("a")
                ->origin()
                .str(),
            "x.yaml:1:1");
  const Node root = parsed("a: x\r\nb:\r\n  - y\r\n");
  EXPECT_EQ(root.find("a")->as_string(), "x");
  EXPECT_EQ(root.find("b")->items()[0].as_string(), "y");
  EXPECT_EQ(root.find("b")->items()[0].origin().str(), "x.yaml:3:5");
}

TEST(Yaml, RefusesDuplicateKeysAndNamesBothPlaces) {
  expect_fault("a: 1\nb: 2\n'a': 3\n", ":3:1", "first at x.yaml:1:1");
  expect_fault("m:\n  - {k: 1, k: 1}\n", ":2:12", "m.0: the key \"k\"");
}

TEST(Yaml, RefusesKeysThatAreNotNames) {
  expect_fault("<<: {a: 1}", ":1:1", "merge key");
  expect_fault("x: &b {a: 1}\ny:\n  <<: *b\n", ":3:3", "merge key");
  expect_fault(": 1", ":1:1", "missing or null");
  expect_fault("null: 1", ":1:1", "in quotes");
  expect_fault("[a]: 1", ":1:1", "expected a name");
  expect_fault("? {a: 1}\n: 1", ":1:3", "expected a name");
  expect_fault("a: &k b\n*k : 1", ":2:1", "alias");
  expect_fault(std::string(300, 'k') + ": 1", ":1:1", "300 bytes");
}

TEST(Yaml, RefusesTagsWithAndWithoutAValue) {  // B092
  expect_fault("!2", ":1:1", "\"!2\"");
  expect_fault("a: !!str 1", ":1:4", "not supported");
  expect_fault("a: !thing {b: 1}", ":1:4", "\"!thing\"");
  expect_fault("a: &x !t\n", ":1:4", "\"!t\"");
  expect_fault("- !<tag:x> y", ":1:3", "\"tag:x\"");
  expect_fault("!k a: 1", ":1:1", "\"!k\"");
}

TEST(Yaml, ExplainsBrokenSyntaxWithItsPlace) {  // B092
  expect_fault("&a ! *a]:", ":1:8", "bracket");
  expect_fault("*nosuch", ":1:1", "names no anchor");
  expect_fault("a: b: c", ":1:5", "unexpected \":\"");
  expect_fault("a: 1\n b: 2", ":2:3", "indentation");
  for (const char* end : {"", "\n", "\\\"", "\\\"\n", "''\n"}) {
    expect_fault("a: \"x" + std::string(end), ":1:4", "closing quote");
    expect_fault("a: &k \"x" + std::string(end), ":1:4", "closing quote");
  }
  for (const char* end : {"", "\n", "''", "''''\n", "\"\n", "\\\n"}) {
    expect_fault("a: 'x" + std::string(end), ":1:4", "closing quote");
    expect_fault("'x" + std::string(end), ":1:1", "closing quote");
  }
  EXPECT_EQ(parsed("a: ''\nb: 'x'''\n").find("b")->as_string(), "x'");
  EXPECT_EQ(parsed("a: &k\n  \"x\\\"\"").find("a")->as_string(), "x\"");
  EXPECT_TRUE(parsed("? a\n? b\n").find("b")->is_null());
  expect_fault("a: [1, 2\nb: 3\n", ":2:2", "\"[\" is not closed");
  expect_fault("a: [1}", ":1:6", "bracket");
  expect_fault("a: 1\n- b\n", ":2:1", "does not continue the map");
  expect_fault("a: @x", ":1:4", "unknown token");
  expect_fault("a: \"\\q\"", ":1:7", "unknown escape");
  expect_fault("a: 1\nb", ":2:1", "the key \"b\" has no colon");
  expect_fault("a:\n  - b: 1\n    c\n", ":3:5", "the key \"c\" has no colon");
}

TEST(Yaml, NamesATabInTheIndentation) {  // B092
  expect_fault("a:\n\tb: 1\n", ":2:1", "tab");
  expect_fault("a:\n  \t- 1\n", ":2:3", "tab");
  expect_fault("a:\n\tb\n", ":2:1", "tab");
  EXPECT_EQ(parsed("a: [1,\n\t2]\n").find("a")->items()[1].as_int(), 2);
  EXPECT_EQ(parsed("a:\t1\t# x\n\t\nb: 2").find("b")->as_int(), 2);
}

TEST(Yaml, RefusesSeveralDocumentsAndNone) {  // B092
  expect_fault("a: 1\n---\nb: 2\n", ":2:1", "second document");
  expect_fault("---\na: 1\n...\n---\nb: 1\n", ":4:1", "second document");
  expect_fault("", "", "nothing in it");
  expect_fault("# only this\n\n", "", "nothing in it");
  expect_fault("\"a\" \"b\"", ":1:5", "unexpected text");
  expect_fault("{a: 1} x", ":1:8", "unexpected text");
  EXPECT_EQ(parsed("%YAML 1.2\n---\na: 1\n...\n").find("a")->as_int(), 1);
}

TEST(Yaml, RefusesBytesThatAreNotText) {  // B092
  expect_fault("\xFF\xFE", ":1:1", "UTF-16");
  expect_fault("\xFE\xFF\0a"s, ":1:1", "UTF-16");
  expect_fault("a: 1\nb: \xC3(\n", ":2:4", "0xC3 is not valid UTF-8");
  expect_fault("a: \xED\xA0\x80", ":1:4", "UTF-8");
  expect_fault("a: \xF4\x90\x80\x80", ":1:4", "UTF-8");
  expect_fault("a: \xC0\x80", ":1:4", "UTF-8");
  expect_fault("a: \xE0\x80\x80", ":1:4", "UTF-8");
  expect_fault("a: \xF0\x8F\xBF\xBF", ":1:4", "UTF-8");
  expect_fault("a: \xE2\x82", ":1:4", "UTF-8");
  expect_fault("a: x\0y"s, ":1:5", "0x00");
  expect_fault("a: x\ny: \x04z: 1", ":2:4", "0x04");  // yaml-cpp would end here
  expect_fault("a: 1\rb: 2", ":1:5", "0x0D");
  expect_fault("a: \"x\\0y\"", ":1:4", "NUL");
  expect_fault("a: \"\\_\"", ":1:4", "\\u00a0");
  EXPECT_EQ(parsed("\xC3\xA9: \xF0\x9F\x98\x8A").find("\xC3\xA9")->as_string(), "\xF0\x9F\x98\x8A");
}

TEST(Yaml, NamesTheFieldOfABadNumber) {  // B088, B089
  expect_fault("generate:\n  max_tokens: 0080\n", ":2:15", "generate.max_tokens: \"0080\"");
  expect_fault("sampler:\n  - temperature: .inf\n", ":2:18", "sampler.0.temperature: \".inf\"");
  expect_fault("x: 1e400", ":1:4", "x: \"1e400\"");
}

}  // namespace
}  // namespace dovetail::core
