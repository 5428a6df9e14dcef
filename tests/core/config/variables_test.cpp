#include "core/config/variables.hpp"

#include <gtest/gtest.h>

#include <string>

#include "tests/core/config/nodes.hpp"

namespace dovetail::core {
namespace {

std::optional<std::string> environment(const std::string& name) {
  if (name == "HOME") return "/home/jane";
  if (name == "EMPTY") return "";
  if (name == "NESTED") return "${HOME}";
  if (name == "BAD") return "\xFF";
  return std::nullopt;
}

std::string expanded(std::string_view text) {
  const Result<std::string> out = expand_variables(text, environment);
  return out ? *out : "fault: " + out.status().message();
}

TEST(Variables, AreReplacedByTheirValueOrDefault) {
  EXPECT_EQ(expanded("${HOME}/models"), "/home/jane/models");
  EXPECT_EQ(expanded("a${HOME}b${EMPTY}c"), "a/home/janebc");
  EXPECT_EQ(expanded("${NO_SUCH:-models}/x"), "models/x");
  EXPECT_EQ(expanded("${EMPTY:-models}"), "models");
  EXPECT_EQ(expanded("${HOME:-models}"), "/home/jane");
  EXPECT_EQ(expanded("${NO_SUCH:-}"), "");
}

TEST(Variables, AreReplacedOnce) {
  EXPECT_EQ(expanded("${NESTED}"), "${HOME}");
}

TEST(Variables, LeaveOtherDollarsAlone) {
  EXPECT_EQ(expanded("$HOME $ 5$ $$ $"), "$HOME $ 5$ $$ $");
  EXPECT_EQ(expanded("$${HOME}"), "${HOME}");
  EXPECT_EQ(expanded("$$${HOME}"), "$${HOME}");
}

TEST(Variables, EscapedTextComesBack) {
  for (const char* text : {"${HOME}", "$${HOME}", "$$${", "${", "a$b", "${${", "$", ""}) {
    EXPECT_EQ(expanded(escape_variables(text)), text);
  }
}

TEST(Variables, SayWhatIsWrong) {
  EXPECT_NE(expanded("${NO_SUCH}").find("the variable NO_SUCH is not set"), std::string::npos);
  EXPECT_NE(expanded("${HOME").find("no closing"), std::string::npos);
  EXPECT_NE(expanded("${}").find("names no variable"), std::string::npos);
  EXPECT_NE(expanded("${1X}").find("names no variable"), std::string::npos);
  EXPECT_NE(expanded("${A B:-x}").find("names no variable"), std::string::npos);
  EXPECT_NE(expanded("${BAD}").find("UTF-8"), std::string::npos);
}

TEST(Variables, ExpandEveryStringAndNoKey) {
  Node root = parsed("${HOME}:\n  - ${HOME}\n  - {k: \"${HOME}\"}\n");
  ASSERT_TRUE(expand_all(root, environment).is_ok());
  const Node* list = root.find("${HOME}");
  ASSERT_NE(list, nullptr);
  EXPECT_EQ(list->items()[0].as_string(), "/home/jane");
  EXPECT_EQ(list->items()[0].origin().str(), "x.yaml:2:5");
  EXPECT_EQ(list->items()[1].find("k")->as_string(), "/home/jane");
}

TEST(Variables, NameThePlaceOfAnUnsetOne) {
  Node root = parsed("model:\n  path: ${DOVETAIL_MODELS}/x\n");
  const Status status = expand_all(root, environment);
  EXPECT_TRUE(status.message().starts_with(
      "x.yaml:2:3: model.path: the variable DOVETAIL_MODELS is not set"))
      << status.message();
}

}  // namespace
}  // namespace dovetail::core
