#include "core/config/show.hpp"

#include <gtest/gtest.h>

#include <string>

#include "core/config/variables.hpp"
#include "tests/core/config/nodes.hpp"

namespace dovetail::core {
namespace {

Node read_back(const std::string& text) {
  Node node = parsed(text);
  EXPECT_TRUE(expand_all(node, [](const std::string&) { return std::nullopt; }).is_ok()) << text;
  return node;
}

TEST(ShowConfig, WritesWhatAPersonWouldWrite) {
  const std::string text =
      "dovetail: 1\n"
      "model:\n"
      "  path: /models/Qwen3-0.6B\n"
      "sampler:\n"
      "  - greedy\n"
      "  - top_k:\n"
      "      k: 20\n"
      "      min_keep: 1\n"
      "  - - 1\n"
      "    - - a\n"
      "generate:\n"
      "  stop: []\n"
      "  seed: 0x1F\n";
  EXPECT_EQ(show_config(parsed(text), false), text);
}

TEST(ShowConfig, EndsEveryValueWithItsOrigin) {
  EXPECT_EQ(show_config(parsed("a: 1\nb:\n- x\n- {c: {}}\n"), true),
            "a: 1  # x.yaml:1:1\nb:\n  - x  # x.yaml:3:3\n  - c: {}  # x.yaml:4:4\n");
}

TEST(ShowConfig, EveryStringComesBack) {
  for (const std::string text : {"",
                                 " ",
                                 "~",
                                 "null",
                                 "true",
                                 "False",
                                 "no",
                                 "1",
                                 "08",
                                 "1e3",
                                 ".inf",
                                 "0x1F",
                                 "-",
                                 "- a",
                                 "a: b",
                                 "a #b",
                                 "#",
                                 "x ",
                                 " x",
                                 "a\nb",
                                 "\n",
                                 "\t",
                                 "\"",
                                 "\\",
                                 "'",
                                 "[a",
                                 "{b}",
                                 "a,b",
                                 "&a",
                                 "*a",
                                 "!a",
                                 "|",
                                 ">",
                                 "%a",
                                 "@a",
                                 "`a",
                                 "?",
                                 ":",
                                 "a:",
                                 "<<",
                                 "=",
                                 "---",
                                 "...",
                                 "\x01",
                                 "\x7F",
                                 "\x1B[0m",
                                 "é",
                                 "\xF0\x9F\x98\x8A",
                                 "\xC2\x85",
                                 "\xE2\x80\xA8",
                                 "\xEF\xBB\xBF",
                                 "${HOME}",
                                 "$${x}",
                                 "$",
                                 "{% for %}\n  {{ x }}\n",
                                 "a\\nb",
                                 "/abs/path",
                                 "C:\\x",
                                 "1_000",
                                 "+1",
                                 "-x"}) {
    Node node = Node::make_map();
    node.set("s", Node::make_string(text));
    Node list = Node::make_list();
    list.items().push_back(Node::make_string(text));
    node.set("l", std::move(list));
    if (!text.empty() && text != "<<") node.set(text, Node::make_int(1));
    for (const bool with_origins : {false, true}) {
      const std::string shown = show_config(node, with_origins);
      EXPECT_TRUE(same_values(read_back(shown), node)) << shown;
    }
  }
}

TEST(ShowConfig, EveryNumberComesBack) {
  for (const double value :
       {0.0, -0.0, 1.0, 0.1, 1e-6, 1e300, -5e-324, 123456789.125, 1e15, 1e16, 3.0}) {
    Node node = Node::make_map();
    node.set("x", Node::make_float(value));
    EXPECT_TRUE(same_values(parsed(show_config(node, false)), node)) << show_config(node, false);
  }
  for (const int64_t value : {int64_t{0}, int64_t{-7}, INT64_MAX, INT64_MIN}) {
    Node node = Node::make_map();
    node.set("x", Node::make_int(value));
    EXPECT_TRUE(same_values(parsed(show_config(node, false)), node)) << show_config(node, false);
  }
  const std::string spelled = "a: 1e-6\nb: .5\nc: 0x1F\nd: +1\ne: 18446744073709551615\n";
  EXPECT_EQ(show_config(parsed(spelled), false), spelled);
}

TEST(ShowConfig, AnOriginCannotBreakTheLine) {
  const Result<Node> node = parse_yaml("a: 1", "odd\nname: 2");
  ASSERT_TRUE(node.is_ok());
  EXPECT_TRUE(same_values(parsed(show_config(*node, true)), *node));
}

}  // namespace
}  // namespace dovetail::core
