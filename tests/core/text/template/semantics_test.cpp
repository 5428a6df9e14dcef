// The 436 small templates of tests/data/chat/semantics.jsonl, against Jinja2 3.1.6.
#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "tests/core/text/template/vectors.hpp"

namespace dovetail::core {
namespace {

using test::field;

struct Count {
  int passed = 0;
  int all = 0;
};

std::string run_case(const Node& c) {
  const Result<ChatTemplate> parsed = ChatTemplate::parse(field(c, "template"), "template");
  const std::string error = field(c, "error");
  if (error == "syntax") return parsed.is_ok() ? "parsed, expected a syntax error" : "";
  if (!parsed.is_ok()) return "not parsed: " + parsed.status().message();
  return test::mismatch(c, field(c, "kind"), field(c, "message"),
                        parsed->render(*c.find("context"), test::vector_options()));
}

TEST(TemplateSemantics, AgreesWithTheReferenceInEveryCase) {
  std::istringstream lines(test::read_file("tests/data/chat/semantics.jsonl"));
  std::map<std::string, Count> counts;
  Count total;
  std::string line;
  while (std::getline(lines, line)) {
    const Result<Node> c = parse_json(line, "semantics.jsonl");
    ASSERT_TRUE(c.is_ok()) << c.status().message();
    const std::string wrong = run_case(*c);
    EXPECT_EQ(wrong, "") << field(*c, "category") << ": " << field(*c, "template");
    Count& count = counts[field(*c, "category")];
    for (Count* n : {&count, &total}) {
      ++n->all;
      n->passed += wrong.empty() ? 1 : 0;
    }
  }
  for (const auto& [category, n] : counts) {
    std::printf("%-40s %3d of %3d\n", category.c_str(), n.passed, n.all);
  }
  std::printf("%-40s %3d of %3d\n", "all", total.passed, total.all);
  EXPECT_EQ(total.all, 436);
  EXPECT_EQ(total.passed, 436);
  EXPECT_EQ(counts.size(), 24u);
}

}  // namespace
}  // namespace dovetail::core
