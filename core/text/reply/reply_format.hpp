// ReplyFormat: how a model marks its reasoning and its tool calls. docs/chat-templates.md lists the
// styles.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.hpp"
#include "core/text/template/chat_template.hpp"

namespace dovetail::core {

struct ReasoningStyle {
  std::string_view name;  // as in chat.reasoning
  std::string_view open, close;
};

/// What stands between the tags of a call.
enum class CallBody : uint8_t {
  kJson,          // {"name": ..., "arguments": {...}}, or a list of such
  kMistral,       // the same, or NAME[CALL_ID]ID[ARGS]{...}
  kFunctionTags,  // <function=NAME> <parameter=KEY> VALUE </parameter> </function>
  kArgTags,       // NAME <arg_key>KEY</arg_key> <arg_value>VALUE</arg_value>
};

struct ToolStyle {
  std::string_view name;  // as in chat.tools
  std::string_view open;  // empty: a call is an answer that begins with its JSON
  std::string_view close;
  CallBody body;
  std::string_view mark;  // what a template of this style says, beside `open`; may be empty
};

/// May stand before the call of a style without a tag.
inline constexpr std::string_view kPythonTag = "<|python_tag|>";

/// All that are known, in the order in which they are looked for.
std::span<const ReasoningStyle> reasoning_styles();
std::span<const ToolStyle> tool_styles();

struct ReplyFormat {
  const ReasoningStyle* reasoning = nullptr;  // null: reasoning is not told apart
  const ToolStyle* tools = nullptr;           // null: neither are calls

  /// What a template's text says about the answers that it expects.
  static ReplyFormat detect(std::string_view template_source);
  /// `reasoning` and `tools` as in the YAML: "auto" (by the template), "none" or a style's name.
  /// errors   kInvalid: no style of that name
  static Result<ReplyFormat> choose(std::string_view reasoning, std::string_view tools,
                                    std::string_view template_source);

  /// Every tag that the parser looks for: as tokens they must reach it even if they are special.
  std::vector<std::string_view> tags() const;
  /// Whether the answer to this prompt begins inside the reasoning: the template has opened it.
  bool begins_in_reasoning(const Rendered& prompt) const;
};

}  // namespace dovetail::core
