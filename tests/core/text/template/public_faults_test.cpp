// Templates that broke other engines, by the numbers under which they are listed: B014 to B022.
#include <gtest/gtest.h>

#include "tests/core/text/template/vectors.hpp"

namespace dovetail::core {
namespace {

Result<Rendered> render(const std::string& source, const std::string& context = "{}") {
  const Result<ChatTemplate> parsed = ChatTemplate::parse(source, "t");
  EXPECT_TRUE(parsed.is_ok()) << parsed.status().message();
  if (!parsed.is_ok()) return parsed.status();
  return parsed->render(*parse_json(context, "context"), test::vector_options());
}

struct Case {
  const char* source;
  const char* expected;
};

void expect_all(std::initializer_list<Case> cases, const std::string& context) {
  for (const auto& [source, expected] : cases) {
    const Result<Rendered> out = render(source, context);
    ASSERT_TRUE(out.is_ok()) << source << ": " << out.status().message();
    EXPECT_EQ(out->text, expected) << source;
  }
}

TEST(PublicFaults, B014SlicesAndPythonPrinting) {
  expect_all({{"{% for m in x[::-1] %}{{ m }},{% endfor %}", "3,2,1,"},
              {"{{ x[1:] }}|{{ x[:-1] }}|{{ x[-1] }}", "[2, 3]|[1, 2]|3"},
              {"{{ 'abc'[::-1] }} {{ 'abc'[-1:] }}", "cba c"},
              {"{{ none }}|{{ true }}|{{ [1,'a'] }}", "None|True|[1, 'a']"},
              {"{{ 'a' ~ 1 ~ none }}", "a1None"},
              {"{{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }}", "-4 2 3.5"},
              {"{{ 1.0 }}", "1.0"}},
             R"({"x": [1, 2, 3]})");
}

TEST(PublicFaults, B016TojsonsDefaultForm) {
  const std::string d =
      R"({"b": 1, "a": [1, 2], "c": true, "d": null, "e": 1.0, "f": "日本", "g": "a/b — <x> & 'y'"})";
  expect_all(
      {{"{{ d|tojson }}", d.c_str()}},
      R"({"d":{"b":1,"a":[1,2],"c":true,"d":null,"e":1.0,"f":"日本","g":"a/b — <x> & 'y'"}})");
}

TEST(PublicFaults, B017TojsonsKeywordArguments) {
  expect_all({{"{{ {'b':1,'a':2}|tojson(sort_keys=True) }}", R"({"a": 2, "b": 1})"},
              {"{{ {'a':'é'}|tojson(ensure_ascii=True) }}", R"({"a": "\u00e9"})"},
              {"{{ {'a':[1,2]}|tojson(separators=(',',':')) }}", R"({"a":[1,2]})"},
              {"{{ {'b':[1]}|tojson(indent=2) }}", "{\n  \"b\": [\n    1\n  ]\n}"},
              {"{{ {'b':[1]}|tojson(indent='\\t') }}", "{\n\t\"b\": [\n\t\t1\n\t]\n}"},
              {"{{ 1e-7|tojson }}", "1e-07"}},
             "{}");
}

TEST(PublicFaults, B019ItemsOfATextAreAnError) {
  const Result<Rendered> out =
      render("{% for k, v in a|items %}{{ k }}{% endfor %}", R"({"a": "{\"x\":1}"})");
  ASSERT_FALSE(out.is_ok());
  EXPECT_NE(out.status().message().find("can only get item pairs from a mapping"),
            std::string::npos)
      << out.status().message();
}

TEST(PublicFaults, B020ALateSystemMessageAndNoUserMessage) {
  const auto render_model = [](const char* name, const char* messages) {
    return render(test::read_file("tests/data/chat/templates/" + std::string(name) + ".jinja"),
                  "{\"messages\": " + std::string(messages) +
                      ", \"tools\": null, \"add_generation_prompt\": true}");
  };
  const char* late = R"([{"role": "user", "content": "a"}, {"role": "system", "content": "s"},
                         {"role": "user", "content": "b"}])";
  const char* alone = R"([{"role": "system", "content": "s"}])";
  EXPECT_EQ(render_model("qwen3", late)->text,
            "<|im_start|>user\na<|im_end|>\n<|im_start|>system\ns<|im_end|>\n<|im_start|>user\nb<|"
            "im_end|>\n"
            "<|im_start|>assistant\n");
  EXPECT_EQ(render_model("qwen3", alone)->text,
            "<|im_start|>system\ns<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(render_model("qwen3.5", late).status().message(),
            "System message must be at the beginning.");
  EXPECT_FALSE(render_model("qwen3.5", alone).is_ok());
}

TEST(PublicFaults, B022NamespacesLoopVariablesAndAbsentValues) {
  expect_all(
      {{"{% set ns=namespace(n=0) %}{% for i in x %}{% set ns.n=ns.n+i %}{% endfor %}{{ ns.n }}",
        "6"},
       {"{% set n=0 %}{% for i in x %}{% set n=n+i %}{% endfor %}{{ n }}", "0"},
       {"{{ u }}|{{ u is defined }}", "|False"},
       {"{{ m.nope is none }}", "False"},
       {"{% for i in range(5) %}{% if i==3 %}{% break %}{% endif %}{{i}}{% endfor %}", "012"},
       {"{{ 'a</think>b</think>c'.split('</think>')[-1] }}", "c"},
       {"{% for a in [] %}x{% else %}none{% endfor %}", "none"},
       {"{% generation %}x{% endgeneration %}", "x"}},
      R"({"x": [1, 2, 3], "m": {}})");
  EXPECT_FALSE(render("{{ u.x }}").is_ok());
}

// Every kind of error says where: in the lexer, the parser, names, filters, values, macros, loops.
TEST(PublicFaults, ErrorsNameTheirLineAndColumn) {
  const Case cases[] = {
      {"a\n b {{ 'open }}", "t:2:7: "},
      {"a\n{# open", "t:2:1: "},
      {"{{ 1 }}\n\n{{ [1, 2 }}", "t:3:"},
      {"\n{% if %}", "t:2:"},
      {"x\n{% for a in b %}\n{{ a }}", "t:2:"},
      {"\n\n  {{ x|nope }}", "t:3:8: "},
      {"\n{{ x is nope }}", "t:2:9: "},
      {"\n{% nope %}", "t:2:4: "},
      {"\n{% set true = 1 %}", "t:2:"},
      {"\n{% break %}", "t:2:4: "},
      {"\n{{ a.b.c }}", "t:2:4: "},
      {"\n {{ 1 + 'a' }}", "t:2:5: "},
      {"\n\n{{ none|length }}", "t:3:4: "},
      {"\n{{ 'a'|int(base='x') }}", "t:2:"},
      {"\n{% for x in 3 %}{% endfor %}", "t:2:"},
      {"\n{% set a, b = [1] %}", "t:2:"},
      {"{% macro m(x) %}\n{{ x.y.z }}{% endmacro %}\n{{ m(1) }}", "t:2:4: "},
      {"\n{{ nothing() }}", "t:2:4: "},
      {"\n{{ [1].append(2) }}", "t:2:4: "},
      {"\n{{ 1 / 0 }}", "t:2:4: "},
      {"\n{{ range(9999999) }}", "t:2:4: "},
      {"\n{{ x|tojson }}", "t:2:4: "},
      {"\n{{ strftime_now('%Q') }}", "t:2:4: "},
      {"ä\nä {{ u.x }}", "t:2:7: "},
  };
  for (const auto& [source, where] : cases) {
    const Result<ChatTemplate> parsed = ChatTemplate::parse(source, "t");
    const Result<Rendered> out =
        parsed.is_ok() ? parsed->render(Node::make_map()) : Result<Rendered>(parsed.status());
    ASSERT_FALSE(out.is_ok()) << source;
    EXPECT_TRUE(out.status().message().starts_with(where)) << source << "\n"
                                                           << out.status().message();
  }
}

}  // namespace
}  // namespace dovetail::core
