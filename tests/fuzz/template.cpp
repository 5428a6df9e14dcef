// A chat template: parsed, then rendered with a small conversation under tight limits.
#include "core/text/template/chat_template.hpp"

#include "core/base/json.hpp"
#include "tests/fuzz/must.hpp"

namespace dovetail::core::fuzz {
namespace {

const Node& conversation() {
  static const Node context = *parse_json(
      R"({"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "2 <|x|> + 2?"},
          {"role": "assistant", "content": "<think>\nsum\n</think>\n4", "reasoning_content": "sum",
           "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "add", "arguments": {"a": 2.5, "b": [null, true]}}}]},
          {"role": "tool", "name": "add", "tool_call_id": "c1", "content": "4"},
          {"role": "user", "content": [{"type": "text", "text": "Gr\u00fc\u00dfe"}]}],
          "tools": [{"type": "function", "function": {"name": "add", "description": "d", "parameters": {"type": "object", "properties": {"a": {"type": "number"}}}}}],
          "add_generation_prompt": true, "bos_token": "<s>", "eos_token": "</s>"})",
      "conversation");
  return context;
}

void try_template(std::string source) {
  const Result<ChatTemplate> parsed = ChatTemplate::parse(source, "t");
  if (!parsed) return must_explain(parsed.status());
  RenderOptions options;
  options.clock = [] { return std::tm{.tm_mday = 14, .tm_mon = 1, .tm_year = 125}; };
  options.limits.max_string_bytes = 1 << 20;
  options.limits.max_value_bytes = 16 << 20;
  options.limits.max_steps = 50'000;
  options.limits.max_seconds = 2;
  const Result<Rendered> out = parsed->render(conversation(), options);
  if (!out) {  // with no message where the template raised an empty one
    must(out.status().code() != Code::kInternal, out.status().message());
    return;
  }
  size_t end = 0;
  for (const TextRange& r : out->data_ranges) {
    must(r.begin < r.end && r.end <= out->text.size() && (end == 0 || r.begin > end),
         "a range of data is empty, outside the text or not in order");
    end = r.end;
  }
}

}  // namespace
}  // namespace dovetail::core::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  dovetail::core::fuzz::try_template({reinterpret_cast<const char*>(data), size});
  return 0;
}
