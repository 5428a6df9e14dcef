#include "core/text/reply/reply_format.hpp"

#include <algorithm>
#include <string>

#include "core/base/nearest.hpp"

namespace dovetail::core {
namespace {

constexpr ReasoningStyle kReasoning[] = {
    {"think", "<think>", "</think>"},
    {"mistral", "[THINK]", "[/THINK]"},
    {"seed_oss", "<seed:think>", "</seed:think>"},
    {"apertus", "<|inner_prefix|>", "<|inner_suffix|>"},
};

// Of two styles with the same tag the one whose template says more comes first.
constexpr ToolStyle kTools[] = {
    {"qwen3_coder", "<tool_call>", "</tool_call>", CallBody::kFunctionTags, "<function="},
    {"glm", "<tool_call>", "</tool_call>", CallBody::kArgTags, "<arg_key>"},
    {"hermes", "<tool_call>", "</tool_call>", CallBody::kJson, ""},
    {"seed_oss", "<seed:tool_call>", "</seed:tool_call>", CallBody::kFunctionTags, "<function="},
    {"mistral", "[TOOL_CALLS]", "", CallBody::kMistral, ""},
    {"apriel", "<tool_calls>", "</tool_calls>", CallBody::kJson, ""},
    {"phi4_mini", "<|tool_call|>", "<|/tool_call|>", CallBody::kJson, "<|/tool_call|>"},
    {"granite", "<|tool_call|>", "", CallBody::kJson, ""},
    {"llama3_json", "", "", CallBody::kJson, "{\"name\": function name, \"parameters\": "},
};

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != text.npos;
}

template <class Style>
Result<const Style*> named(std::string_view key, std::string_view name,
                           std::span<const Style> styles, const Style* detected) {
  if (name == "auto") return detected;
  if (name == "none") return static_cast<const Style*>(nullptr);
  std::vector<std::string> names = {"auto", "none"};
  for (const Style& style : styles) {
    if (style.name == name) return &style;
    names.emplace_back(style.name);
  }
  std::string all;
  for (const std::string& n : names) all += (all.empty() ? "" : ", ") + n;
  return invalid(std::string(key) + " is \"" + std::string(name) + "\", expected one of " + all +
                 did_you_mean(name, names));
}

}  // namespace

std::span<const ReasoningStyle> reasoning_styles() {
  return kReasoning;
}
std::span<const ToolStyle> tool_styles() {
  return kTools;
}

ReplyFormat ReplyFormat::detect(std::string_view source) {
  ReplyFormat format;
  for (const ReasoningStyle& style : kReasoning) {
    if (format.reasoning == nullptr &&
        (contains(source, style.open) || contains(source, style.close)))
      format.reasoning = &style;
  }
  for (const ToolStyle& style : kTools) {
    if (format.tools == nullptr && contains(source, style.open) && contains(source, style.mark))
      format.tools = &style;
  }
  return format;
}

Result<ReplyFormat> ReplyFormat::choose(std::string_view reasoning, std::string_view tools,
                                        std::string_view source) {
  const ReplyFormat detected = detect(source);
  ReplyFormat out;
  DVT_TRY(out.reasoning,
          named("chat.reasoning", reasoning, reasoning_styles(), detected.reasoning));
  DVT_TRY(out.tools, named("chat.tools", tools, tool_styles(), detected.tools));
  return out;
}

std::vector<std::string_view> ReplyFormat::tags() const {
  std::vector<std::string_view> tags;
  if (reasoning != nullptr) tags = {reasoning->open, reasoning->close};
  if (tools == nullptr) return tags;
  for (const std::string_view tag : {tools->open, tools->close})
    if (!tag.empty()) tags.push_back(tag);
  switch (tools->body) {
    case CallBody::kJson:
      if (tools->open.empty()) tags.push_back(kPythonTag);
      break;
    case CallBody::kMistral:
      tags.insert(tags.end(), {"[CALL_ID]", "[ARGS]"});
      break;
    case CallBody::kFunctionTags:
      break;
    case CallBody::kArgTags:
      tags.insert(tags.end(), {"<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"});
  }
  return tags;
}

bool ReplyFormat::begins_in_reasoning(const Rendered& prompt) const {
  if (reasoning == nullptr) return false;
  std::string_view text = prompt.text;
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  if (!text.ends_with(reasoning->open)) return false;
  // Not where a user has written it.
  const uint64_t begin = text.size() - reasoning->open.size(), end = text.size();
  return std::none_of(prompt.data_ranges.begin(), prompt.data_ranges.end(),
                      [&](const TextRange& r) { return r.begin < end && begin < r.end; });
}

}  // namespace dovetail::core
