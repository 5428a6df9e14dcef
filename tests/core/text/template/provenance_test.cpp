// Which bytes of a rendered prompt came from data.
#include <gtest/gtest.h>

#include "tests/core/text/template/vectors.hpp"

namespace dovetail::core {
namespace {

using test::field;

Rendered render(const std::string& source, const std::string& context,
                const RenderOptions& options = test::vector_options()) {
  const Result<ChatTemplate> parsed = ChatTemplate::parse(source, "t");
  EXPECT_TRUE(parsed.is_ok()) << parsed.status().message();
  const Result<Node> node = parse_json(context, "context");
  EXPECT_TRUE(node.is_ok()) << node.status().message();
  if (!parsed.is_ok() || !node.is_ok()) return {};
  Result<Rendered> out = parsed->render(*node, options);
  EXPECT_TRUE(out.is_ok()) << out.status().message();
  return out.is_ok() ? std::move(out).value() : Rendered{};
}

// The text with its data in «».
std::string marked(const Rendered& r) {
  std::string out;
  uint64_t at = 0;
  for (const TextRange& range : r.data_ranges) {
    EXPECT_LT(range.begin, range.end);
    EXPECT_LE(range.end, r.text.size());
    EXPECT_TRUE(at == 0 || at < range.begin) << "ranges must be sorted and merged";
    out += r.text.substr(at, range.begin - at) + "«" +
           r.text.substr(range.begin, range.end - range.begin) + "»";
    at = range.end;
  }
  return out + r.text.substr(at);
}

std::string marked(const std::string& source, const std::string& context) {
  return marked(render(source, context));
}

TEST(TemplateProvenance, MarksWhatUsersWroteInAQwen3Prompt) {
  const std::string source = test::read_file("tests/data/chat/templates/qwen3.jinja");
  const std::string context = R"({"messages": [{"role": "user", "content": "a<|im_end|>b"}],
                                  "tools": null, "add_generation_prompt": true})";
  EXPECT_EQ(marked(source, context),
            "<|im_start|>«user»\n«a<|im_end|>b»<|im_end|>\n<|im_start|>assistant\n");
}

TEST(TemplateProvenance, LiteralsOfTheTemplateAreNotData) {
  EXPECT_EQ(marked("<a>{{ '<b>' + x ~ '<c>' }}{% set y = '<d>' %}{{ y }}", R"({"x": "<e>"})"),
            "<a><b>«<e>»<c><d>");
  EXPECT_TRUE(render("no data", "{}").data_ranges.empty());
  EXPECT_TRUE(render("{{ x }}", R"({"x": ""})").data_ranges.empty());
}

TEST(TemplateProvenance, NeighbouringDataIsOneRange) {
  EXPECT_EQ(marked("{{ x }}{{ x }}-{{ x ~ x }}", R"({"x": "ab"})"), "«abab»-«abab»");
}

TEST(TemplateProvenance, SurvivesEveryOperationOnStrings) {
  const std::string context = R"({"x": "<|im_end|> é\"tail\" ", "w": "a,b", "l": ["p", "q"],
                                  "d": {"k<": "v<"}, "n": 5})";
  const std::pair<const char*, const char*> cases[] = {
      {"{{ x[2:8] }}", "«im_end»"},
      {"{{ ('[' + x)[:4] }}", "[«<|i»"},
      {"{{ w[::-1] }}", "«b,a»"},
      {"{{ w[0] }}.", "«a»."},
      {"{{ ('--' ~ x).strip('- \"') }}", "«<|im_end|> é\"tail»"},
      {"{{ x.split('|')[1] }}", "«im_end»"},
      {"{{ w.split(',')|join('+') }}", "«a»+«b»"},
      {"{{ '+'.join(l) }}", "«p»+«q»"},
      {"{{ w.replace(',', '<>') }}", "«a»<>«b»"},
      {"{{ 'a-b'.replace('-', w) }}", "a«a,b»b"},
      {"{{ w|upper }}{{ 'x'|upper }}", "«A,B»X"},
      {"{{ (w ~ '!')|title }}", "«A,b»!"},
      {"{{ w|tojson }}", "\"«a,b»\""},
      {"{{ x[11:]|tojson }}", "\"«é\\\"tail\\\" »\""},
      {"{{ d|tojson }}", "{\"«k<»\": \"«v<»\"}"},
      {"{{ d }}", "{'«k<»': '«v<»'}"},
      {"{{ l }}", "['«p»', '«q»']"},
      {"{{ '%s|%5s' % (w, w) }}", "«a,b»|  «a,b»"},
      {"{{ '{}-{:>5}'.format(w, w) }}", "«a,b»-  «a,b»"},
      {"{{ '<'|safe + d['k<'] }}", "<«v&lt;»"},
      {"{{ w|indent(2, true) }}", "  «a,b»"},
      {"{{ w * 2 }}", "«a,ba,b»"},
      {"{% for c in w %}{{ c }}.{% endfor %}", "«a».«,».«b»."},
      {"{% for k, v in d|items %}{{ k }}={{ v }}{% endfor %}", "«k<»=«v<»"},
      {"{% set y %}[{{ w }}]{% endset %}{{ y[1:] }}", "«a,b»]"},
      {"{% macro m(t) %}<{{ t }}>{% endmacro %}{{ m(w)|trim('<') }}", "«a,b»>"},
      {"{% filter upper %}x{{ w }}{% endfilter %}", "X«A,B»"},
      {"{% set ns = namespace(s='') %}{% for p in l %}{% set ns.s = ns.s + p + '/' %}{% endfor %}"
       "{{ ns.s }}",
       "«p»/«q»/"},
      {"{{ l|map('upper')|list|first }}", "«P»"},
      {"{{ '[\"u\"]'|from_json|first }}{{ ('[\"' ~ w ~ '\"]')|from_json|first }}", "u«a,b»"},
      {"{{ w.partition(',')[2] }}{{ w.rsplit(',')[0] }}", "«ba»"},
      {"{{ w.center(7, '*') }}", "**«a,b»**"},
  };
  for (const auto& [source, expected] : cases) {
    EXPECT_EQ(marked(source, context), expected) << source;
  }
}

TEST(TemplateProvenance, NumbersAreNotData) {
  EXPECT_EQ(marked("{{ n }}{{ n|string }}{{ [n] }}", R"({"n": 5})"), "55[5]");
}

TEST(TemplateProvenance, SpecialTokensOfTheContextAreTrusted) {
  const std::string context = R"({"bos_token": "<s>", "additional_special_tokens": ["<t>"],
                                  "token": "<u>"})";
  const std::string source = "{{ bos_token }}{{ additional_special_tokens[0] }}{{ token }}";
  EXPECT_EQ(marked(source, context), "<s><t>«<u>»");
  RenderOptions options = test::vector_options();
  options.trusted_names = {"token"};
  EXPECT_EQ(marked(render(source, context, options)), "«<s><t>»<u>");
}

// Appends a mark to all texts that users and tools write, and renders every real template.
void append_mark(Node& node, const std::string& mark) {
  if (node.is_list()) {
    for (Node& item : node.items()) append_mark(item, mark);
  }
  if (!node.is_map()) return;
  for (auto& [key, value] : node.entries()) {
    const bool is_text = key == "content" || key == "description" || key == "text" ||
                         key == "reasoning_content" || key == "city";
    if (value.is_string() && is_text) {
      value = Node::make_string(value.as_string() + mark);
    } else {
      append_mark(value, mark);
    }
  }
}

TEST(TemplateProvenance, NothingThatUsersWroteLooksLikeTemplateInAnyRealTemplate) {
  const std::string mark = "\u2603<|im_end|>\u2603";
  int n_found = 0;
  for (const char* name : {"qwen3", "qwen3.5", "qwen2.5", "gpt-oss", "gemma-4-31b", "smollm3",
                           "mistral-small-3.2", "deepseek-v3.1", "glm-4.6", "granite-3.3",
                           "seed-oss-unsloth", "apertus", "phi-4", "zephyr"}) {
    const std::string folder = "tests/data/chat/";
    const Result<Node> file = parse_json(test::read_file(folder + name + ".json"), name);
    ASSERT_TRUE(file.is_ok()) << file.status().message();
    const std::string path = field(*file, "template");
    const Result<ChatTemplate> parsed = ChatTemplate::parse(test::read_file(folder + path), path);
    ASSERT_TRUE(parsed.is_ok()) << parsed.status().message();
    int n_in_file = 0;
    for (const Node& c : file->find("cases")->items()) {
      Node context = *c.find("context");
      append_mark(context, mark);
      const Result<Rendered> out = parsed->render(context, test::vector_options());
      if (!out.is_ok()) continue;
      marked(*out);
      std::string data_only(out->text.size(), '.');
      for (const TextRange& r : out->data_ranges) {
        data_only.replace(r.begin, r.end - r.begin, out->text, r.begin, r.end - r.begin);
      }
      for (size_t at = out->text.find("\u2603"); at != std::string::npos;
           at = out->text.find("\u2603", at + 1)) {
        EXPECT_EQ(data_only.compare(at, 3, "\u2603"), 0) << name << ": " << field(c, "name");
        ++n_in_file;
      }
    }
    EXPECT_GT(n_in_file, 20) << name;
    n_found += n_in_file;
  }
  EXPECT_GT(n_found, 1000);
}

}  // namespace
}  // namespace dovetail::core
