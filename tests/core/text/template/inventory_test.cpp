// What take_inventory() finds in templates: small ones, and every real one.
#include "core/text/template/inventory.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/core/text/template/vectors.hpp"

namespace dovetail::core {
namespace {

TemplateInventory inventory(const std::string& source) {
  const Result<TemplateInventory> out = take_inventory(source, "t");
  EXPECT_TRUE(out.is_ok()) << out.status().message();
  return out ? *out : TemplateInventory();
}

// "name:line,line other:line!" with "!" where something is missing.
std::string text_of(const std::vector<TemplateUse>& uses) {
  std::string text;
  for (const TemplateUse& use : uses) {
    text += (text.empty() ? "" : " ") + use.name + ":";
    for (size_t i = 0; i < use.lines.size(); ++i)
      text += (i == 0 ? "" : ",") + std::to_string(use.lines[i]);
    if (!use.missing.empty()) text += "!";
  }
  return text;
}

TEST(TemplateInventory, NamesEachKindWithItsLines) {
  const TemplateInventory i = inventory(
      "{% set ns = namespace(n=0) %}\n"
      "{% macro show(x, y=pad) %}{{ x|trim|upper }}{{ later }}{% endmacro %}\n"
      "{% for m in messages if m.role is string %}\n"
      "{{ show(m['content'].split('\\n')) ~ loop.index }}{% set ns.n = 1 %}\n"
      "{% endfor %}{% set later = 1 %}\n"
      "{{ messages|selectattr('role', 'equalto', 'x')|map('upper')|list }}{{ 'name' in m }}");
  EXPECT_EQ(text_of(i.statements), "for:3 macro:2 set:1,4,5");
  EXPECT_EQ(text_of(i.filters), "list:6 map:6 selectattr:6 trim:2 upper:2,6");
  EXPECT_EQ(text_of(i.tests), "equalto:6 string:3");
  EXPECT_EQ(text_of(i.functions), "namespace:1");
  EXPECT_EQ(text_of(i.methods), "split:4");
  EXPECT_EQ(text_of(i.macros), "show:2");
  EXPECT_EQ(text_of(i.variables), "m:6 messages:3,6 pad:2") << "later is set before show is called";
  EXPECT_EQ(text_of(i.fields), "content:4 index:4 name:6 role:3,6");
  EXPECT_TRUE(i.reads_field("content"));
  EXPECT_FALSE(i.reads_field("contents"));
  EXPECT_EQ(i.n_missing, 0u);
}

TEST(TemplateInventory, VariablesAreThoseThatNothingHasSetBefore) {
  EXPECT_EQ(text_of(inventory("{{ a }}{% set a = 1 %}{{ a }}").variables), "a:1");
  EXPECT_EQ(text_of(inventory("{% if x %}{% set a = 1 %}{% endif %}{{ a }}").variables), "x:1");
  EXPECT_EQ(
      text_of(inventory("{% for i in l %}{% set a = i %}{% endfor %}{{ a }}{{ i }}").variables),
      "a:1 i:1 l:1");
  EXPECT_EQ(text_of(inventory("{% set messages = messages[1:] %}").variables), "messages:1");
  EXPECT_EQ(text_of(inventory("{% with a = b %}{{ a }}{% endwith %}{{ a }}").variables), "a:1 b:1");
  EXPECT_EQ(text_of(inventory("{% macro m() %}{{ caller() }}{{ varargs }}{% endmacro %}"
                              "{% call(z) m() %}{{ z }}{% endcall %}")
                        .variables),
            "");
}

TEST(TemplateInventory, FindsAllThatIsMissingInOnePass) {
  const TemplateInventory i = inventory(
      "{% include 'a' %}\n"
      "{% block b %}{{ x|nope }}{% endblock %}\n"
      "{% if y is strange %}{{ x|urlize }}{% endif %}\n"
      "{{ len(x) }}{{ lipsum() }}\n"
      "{{ x.append(1) }}{{ x.shout() }}\n"
      "{% frobnicate %}{{ x|map('nope')|select('strange') }}{{ range(2) }}\n"
      "{{ x|nope }}");
  EXPECT_EQ(text_of(i.statements), "block:2! frobnicate:6! if:3 include:1!");
  EXPECT_EQ(text_of(i.filters), "map:6 nope:2,6,7! select:6 urlize:3!");
  EXPECT_EQ(text_of(i.tests), "strange:3,6!");
  EXPECT_EQ(text_of(i.functions), "len:4! lipsum:4! range:6");
  EXPECT_EQ(text_of(i.methods), "append:5! shout:5!");
  EXPECT_EQ(i.n_missing, 3u + 4 + 2 + 2 + 2);
  EXPECT_EQ(i.methods[0].missing, "templates may not change lists and dicts, as 'append' would");
  EXPECT_EQ(i.filters[1].missing, "no filter is named 'nope'");
  EXPECT_EQ(i.filters[3].missing, "the filter 'urlize' is not supported");
}

TEST(TemplateInventory, SyntaxErrorsAreThoseOfTheParser) {
  for (const char* source : {"{{ 1 + }}", "{% if x %}", "{% endif %}", "{% for %}",
                             "{% block %}{% endfor %}", "{{ '", "{% break %}", "{% include"}) {
    const Result<TemplateInventory> out = take_inventory(source, "t");
    EXPECT_EQ(out.status().code(), Code::kFormat) << source;
    EXPECT_TRUE(out.status().message().starts_with("t:1:")) << out.status().message();
  }
}

// Whatever renders has nothing missing on the way; of the real templates only those that change a list lack
// something.
TEST(TemplateInventory, EveryRealTemplateIsSupported) {
  int n_templates = 0;
  for (const auto& entry : std::filesystem::directory_iterator("tests/data/chat/templates")) {
    const std::string name = entry.path().filename().string();
    const TemplateInventory i = inventory(test::read_file(entry.path().string()));
    EXPECT_EQ(i.n_missing, 0u) << name;
    EXPECT_NE(text_of(i.variables).find("messages"), std::string::npos) << name;
    EXPECT_FALSE(i.statements.empty()) << name;
    ++n_templates;
  }
  EXPECT_EQ(n_templates, 33);
}

}  // namespace
}  // namespace dovetail::core
