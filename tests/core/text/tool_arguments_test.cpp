// Arguments of tool calls, as text or as an object, into templates that want either.
#include "core/text/tool_arguments.hpp"

#include <gtest/gtest.h>

#include "core/base/json.hpp"
#include "tests/core/text/template/vectors.hpp"

namespace dovetail::core {
namespace {

constexpr const char* kItems =
    "{% for m in messages %}{% for c in m.tool_calls or [] %}{% for k, v in "
    "c.function.arguments|items %}"
    "{{ k }}={{ v }};{% endfor %}{% endfor %}{% endfor %}";
constexpr const char* kJoins =
    "{% for m in messages %}{% for c in m.tool_calls or [] %}{{ 'call ' + c.function.arguments }}"
    "{% endfor %}{% endfor %}";
constexpr const char* kDumps =
    "{% for m in messages %}{% for c in m.tool_calls or [] %}{{ c.function.arguments|tojson }}"
    "{% endfor %}{% endfor %}";

Node messages_with(const std::string& arguments) {
  return *parse_json(R"([{"role": "user", "content": "x"}, {"role": "assistant", "content": "",
                         "tool_calls": [{"id": "abcdefghi", "type": "function", "function":
                         {"name": "f", "arguments": )" +
                         arguments + "}}]}]",
                     "messages");
}

// What the template prints of these arguments, or the error.
std::string printed(const std::string& source, const std::string& arguments) {
  const Result<ChatTemplate> t = ChatTemplate::parse(source, "t");
  EXPECT_TRUE(t.is_ok()) << t.status().message();
  Node context = Node::make_map(), messages = messages_with(arguments);
  context.set("tools", Node());
  if (const Status s = fit_tool_arguments(messages, *t, context); !s) return s.message();
  context.set("messages", std::move(messages));
  const Result<Rendered> out = t->render(context);
  return out ? out->text : "failed: " + out.status().message();
}

// B019
TEST(ToolArguments, ATextIsParsedForATemplateThatWalksAnObject) {
  EXPECT_EQ(printed(kItems, R"("{\"x\":1,\"b\":18446744073709551616}")"),
            "x=1;b=18446744073709551616;");
  EXPECT_EQ(printed(kItems, R"({"x": 1})"), "x=1;");
  EXPECT_EQ(printed(kItems, R"("")"), "");
  EXPECT_EQ(printed(kDumps, R"("{\"x\":1,\"a\":1.0}")"), R"({"x": 1, "a": 1.0})")
      << "not a text in quotes, although that would be no error";
}

TEST(ToolArguments, ATemplateThatTakesBothGetsWhatWasGiven) {
  const std::string qwen3 = test::read_file("tests/data/chat/templates/qwen3.jinja");
  EXPECT_NE(printed(qwen3, R"("{\"x\":1}")").find(R"("arguments": {"x":1}})"), std::string::npos)
      << "verbatim";
  EXPECT_NE(printed(qwen3, R"({"x":1})").find(R"("arguments": {"x": 1}})"), std::string::npos);
}

TEST(ToolArguments, AnObjectBecomesATextForATemplateThatJoinsTexts) {
  EXPECT_EQ(printed(kJoins, R"("{\"x\":1}")"), R"(call {"x":1})");
  EXPECT_EQ(printed(kJoins, R"({"x":1})"), R"(call {"x":1})");
}

TEST(ToolArguments, ATextThatIsNoObjectIsRefusedWithItsPlace) {
  const std::string where = "messages[1].tool_calls[0].function.arguments";
  for (const char* wrong : {R"("{\"x\":")", R"("[1]")", R"("3")", R"("x")"}) {
    const std::string message = printed(kItems, wrong);
    EXPECT_TRUE(message.starts_with(where)) << message;
    EXPECT_NE(message.find("JSON object"), std::string::npos) << message;
  }
  EXPECT_EQ(printed(kJoins, R"("no object")"), "call no object") << "nobody reads it as one";
}

// Every real template with tool calls prints arguments that come as text: as an object would be, or
// verbatim.
TEST(ToolArguments, EveryRealTemplateTakesArgumentsAsText) {
  int n_templates = 0;
  for (const char* name :
       {"qwen3", "qwen3.5", "qwen3-coder", "qwen2.5", "glm-4.6", "seed-oss-unsloth", "mistral-nemo",
        "mistral-small-3.2", "devstral-small-unsloth", "ministral-3-reasoning", "apriel-1.6",
        "gpt-oss", "deepseek-r1", "deepseek-v3.1", "gemma-4-31b", "bielik-v3", "mimo-vl"}) {
    const Result<ChatTemplate> t = ChatTemplate::parse(
        test::read_file("tests/data/chat/templates/" + std::string(name) + ".jinja"), name);
    ASSERT_TRUE(t.is_ok()) << t.status().message();
    Node context = Node::make_map();
    for (const char* token : {"bos_token", "eos_token"})
      context.set(token, Node::make_string("<s>"));
    context.set("tools", Node());
    const auto render = [&](const std::string& arguments) {
      Node messages = messages_with(arguments);
      const Status fitted = fit_tool_arguments(messages, *t, context);
      EXPECT_TRUE(fitted.is_ok()) << fitted.message();
      Node with = context;
      with.set("messages", std::move(messages));
      const Result<Rendered> out = t->render(with, test::vector_options());
      EXPECT_TRUE(out.is_ok()) << name << ": " << out.status().message();
      return out ? out->text : "";
    };
    const std::string as_text = render(R"("{\"city\": \"Paris\"}")");
    const std::string as_object = render(R"({"city": "Paris"})");
    EXPECT_NE(as_text.find("Paris"), std::string::npos) << name;
    EXPECT_EQ(as_text.find("\\\"Paris"), std::string::npos) << name << ": escaped twice\n"
                                                            << as_text;
    EXPECT_NE(as_object.find("Paris"), std::string::npos) << name;
    ++n_templates;
  }
  EXPECT_EQ(n_templates, 17);
}

}  // namespace
}  // namespace dovetail::core
