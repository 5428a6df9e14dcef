// Reply: what a model said, with its reasoning and its tool calls apart from the answer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/node.hpp"

namespace dovetail::core {

struct ToolCall {
  std::string id;         // nine letters and digits, or the model's own
  std::string name;       // never empty
  std::string arguments;  // a JSON object, as the model wrote it
};

/// A part of a reply, in the order in which the model said it.
struct ReplyEvent {
  enum class Kind : uint8_t { kReasoning, kContent, kCall };
  Kind kind = Kind::kContent;
  std::string text;  // of reasoning and content; UTF-8, never empty, never part of a tag
  ToolCall call;     // of kCall: whole
};

struct Reply {
  std::string reasoning, content;
  std::vector<ToolCall> calls;

  void add(const ReplyEvent& event);
  /// Sets "content", and where there is any "reasoning_content" and "tool_calls", as the OpenAI API
  /// names them; arguments are a string.
  void write_to(Node& message) const;
};

}  // namespace dovetail::core
