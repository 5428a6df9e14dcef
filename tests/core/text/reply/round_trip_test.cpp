// What a real template writes of an assistant's calls is what the parser reads as those calls. Seed-OSS's is
// not here: it writes nested values as Python does, which is no JSON.
#include <gtest/gtest.h>

#include "core/base/json.hpp"
#include "core/text/reply/reply_parser.hpp"
#include "core/text/tool_arguments.hpp"
#include "tests/core/text/template/vectors.hpp"

namespace dovetail::core {
namespace {

constexpr const char* kArguments =
    R"({"city": "Paris, \"é\" <b> 1", "days": 2, "more": {"a": [1, null, true], "b": "x\ny"}})";

Node conversation() {
  return *parse_json(
      R"({"messages": [{"role": "user", "content": "QQQ"},
          {"role": "assistant", "content": "", "tool_calls": [
            {"id": "abcdefghi", "type": "function", "function": {"name": "get_weather", "arguments": )" +
          std::string(kArguments) + R"(}},
            {"id": "bcdefghij", "type": "function", "function": {"name": "add", "arguments": {"a": 1.5}}}]}],
          "tools": [{"type": "function", "function": {"name": "get_weather", "description": "d", "parameters":
            {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}}},
            {"type": "function", "function": {"name": "add", "description": "d", "parameters":
            {"type": "object", "properties": {"a": {"type": "number"}}}}}],
          "documents": null, "add_generation_prompt": false, "bos_token": "<s>", "eos_token": "</s>"})",
      "conversation");
}

class RoundTrip : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(RoundTrip, CallsComeBack) {
  const auto& [name, end_of_turn] = GetParam();
  const std::string source =
      test::read_file("tests/data/chat/templates/" + std::string(name) + ".jinja");
  const Result<ChatTemplate> parsed = ChatTemplate::parse(source, name);
  ASSERT_TRUE(parsed.is_ok()) << parsed.status().message();
  Node context = conversation();
  Node beside = context;
  ASSERT_TRUE(fit_tool_arguments(*context.find("messages"), *parsed, beside).is_ok());
  const Result<Rendered> out = parsed->render(context, test::vector_options());
  ASSERT_TRUE(out.is_ok()) << out.status().message();

  const ReplyFormat format = ReplyFormat::detect(source);
  ASSERT_NE(format.tools, nullptr);
  const size_t begin = out->text.find(format.tools->open, out->text.find("QQQ"));
  ASSERT_NE(begin, std::string::npos) << out->text;
  const std::string said = out->text.substr(begin, out->text.find(end_of_turn, begin) - begin);
  const Reply reply = parse_reply(format, {false, context.find("tools"), 1}, said);
  EXPECT_EQ(reply.content, "") << said;
  ASSERT_EQ(reply.calls.size(), 2u) << said;
  EXPECT_EQ(reply.calls[0].name, "get_weather");
  EXPECT_EQ(reply.calls[1].name, "add");
  const auto spelled = [](const std::string& arguments) {
    const Result<Node> node = parse_json(arguments, "arguments");
    return node ? to_json(*node) : "no JSON: " + arguments;
  };
  EXPECT_EQ(spelled(reply.calls[0].arguments), spelled(kArguments)) << said;
  EXPECT_EQ(spelled(reply.calls[1].arguments), R"({"a":1.5})") << said;
}

INSTANTIATE_TEST_SUITE_P(
    Models, RoundTrip,
    testing::Values(std::pair("qwen3", "<|im_end|>"), std::pair("qwen3-coder", "<|im_end|>"),
                    std::pair("qwen3.5", "<|im_end|>"), std::pair("qwen2.5", "<|im_end|>"),
                    std::pair("qwq-32b", "<|im_end|>"), std::pair("bielik-v3", "<|im_end|>"),
                    std::pair("mimo-vl", "<|im_end|>"), std::pair("glm-4.6", "<|user|>"),
                    std::pair("glm-4.7-flash", "<|user|>"), std::pair("mistral-7b-v0.3", "</s>"),
                    std::pair("mistral-nemo", "</s>"), std::pair("mistral-small-3.2", "</s>"),
                    std::pair("devstral-small-unsloth", "</s>"),
                    std::pair("ministral-3-reasoning", "</s>"), std::pair("apriel-1.6", "<|end|>"),
                    std::pair("phi-4-mini-llamacpp", "<|end|>")),
    [](const auto& model) {
      std::string name = model.param.first;
      for (char& c : name)
        if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
      return name;
    });

}  // namespace
}  // namespace dovetail::core
