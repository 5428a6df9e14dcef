// Which style a model's answers have: by its template, or by name.
#include "core/text/reply/reply_format.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/config/schema.hpp"
#include "tests/core/text/template/vectors.hpp"

namespace dovetail::core {
namespace {

std::string styles_of(const ReplyFormat& f) {
  return std::string(f.reasoning ? f.reasoning->name : "none") + " " +
         std::string(f.tools ? f.tools->name : "none");
}

TEST(ReplyFormat, IsFoundInTheTemplatesOfRealModels) {
  const std::pair<const char*, const char*> expected[] = {
      {"qwen3", "think hermes"},
      {"qwen3-coder", "none qwen3_coder"},
      {"qwen3.5", "think qwen3_coder"},
      {"qwen2.5", "none hermes"},
      {"qwq-32b", "think hermes"},
      {"smollm3", "think hermes"},
      {"bielik-v3", "think hermes"},
      {"mimo-vl", "none hermes"},
      {"glm-4.6", "think glm"},
      {"glm-4.7-flash", "think glm"},
      {"seed-oss-unsloth", "seed_oss seed_oss"},
      {"mistral-7b-v0.3", "none mistral"},
      {"mistral-nemo", "none mistral"},
      {"mistral-small-3.2", "none mistral"},
      {"devstral-small-unsloth", "none mistral"},
      {"ministral-3-reasoning", "mistral mistral"},
      {"apriel-1.6", "none apriel"},
      {"granite-3.3", "think granite"},
      {"phi-4-mini-llamacpp", "none phi4_mini"},
      {"deepseek-r1", "think none"},
      {"zephyr", "none none"},
      {"smollm2", "none none"},
  };
  for (const auto& [name, styles] : expected) {
    const std::string source =
        test::read_file("tests/data/chat/templates/" + std::string(name) + ".jinja");
    ASSERT_FALSE(source.empty()) << name;
    EXPECT_EQ(styles_of(ReplyFormat::detect(source)), styles) << name;
  }
}

TEST(ReplyFormat, BareJsonIsSeenByTheWordsThatAskForIt) {
  EXPECT_EQ(
      styles_of(ReplyFormat::detect(
          "{{- 'Respond in the format {\"name\": function name, \"parameters\": dictionary of "
          "argument name and its value}.' }}")),
      "none llama3_json");
}

TEST(ReplyFormat, MayBeNamed) {
  const std::string qwen3 = test::read_file("tests/data/chat/templates/qwen3.jinja");
  EXPECT_EQ(styles_of(*ReplyFormat::choose("auto", "auto", qwen3)), "think hermes");
  EXPECT_EQ(styles_of(*ReplyFormat::choose("none", "mistral", qwen3)), "none mistral");
  EXPECT_EQ(styles_of(*ReplyFormat::choose("auto", "none", qwen3)), "think none");
  EXPECT_EQ(ReplyFormat::choose("thinks", "auto", qwen3).status().message(),
            "chat.reasoning is \"thinks\", expected one of auto, none, think, mistral, seed_oss, "
            "apertus, did you mean \"think\"?");
}

TEST(ReplyFormat, TheConfigHasTheSameNames) {
  const Section& chat = *find_section("chat");
  const auto choices = [&](std::string_view key) {
    for (const ParamSpec& spec : chat.keys)
      if (spec.name == key) return spec.choices;
    return std::vector<std::string>();
  };
  std::vector<std::string> reasoning = {"auto", "none"}, tools = reasoning;
  for (const ReasoningStyle& style : reasoning_styles()) reasoning.emplace_back(style.name);
  for (const ToolStyle& style : tool_styles()) tools.emplace_back(style.name);
  EXPECT_EQ(choices("reasoning"), reasoning);
  EXPECT_EQ(choices("tools"), tools);
}

Rendered rendered(const std::string& text, std::vector<TextRange> data = {}) {
  return {text, std::move(data)};
}

// B053
TEST(ReplyFormat, TheEndOfThePromptSaysWhereTheAnswerBegins) {
  const ReplyFormat f = *ReplyFormat::choose("think", "none", "");
  EXPECT_TRUE(f.begins_in_reasoning(rendered("<|im_start|>assistant\n<think>")));
  EXPECT_TRUE(f.begins_in_reasoning(rendered("<|im_start|>assistant\n<think>\n\n")));
  EXPECT_FALSE(f.begins_in_reasoning(rendered("assistant\n<think>\n\n</think>\n\n")));
  EXPECT_FALSE(f.begins_in_reasoning(rendered("<|im_start|>assistant\n")));
  EXPECT_FALSE(f.begins_in_reasoning(rendered("user: <think>", {{6, 13}})))
      << "what a user wrote opens nothing";
  EXPECT_FALSE(ReplyFormat().begins_in_reasoning(rendered("<think>")));
}

}  // namespace
}  // namespace dovetail::core
