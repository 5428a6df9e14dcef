// ChatFormat: how one model writes a conversation: messages to a prompt, its text back to a reply.
//
// What users and tools wrote is encoded literally, so that "<|im_end|>" in a message is ten characters
// and not the end of a turn.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/node.hpp"
#include "core/base/status.hpp"
#include "core/text/chat_templates.hpp"
#include "core/text/reply/reply_parser.hpp"
#include "core/text/template/chat_template.hpp"
#include "core/text/tokenizer.hpp"

namespace dovetail::core {

struct ChatFormatOptions {
  std::string template_name;  // of several; empty: "tool_use" with tools, else "default"
  std::string reasoning = "auto", tools = "auto";  // styles: ReplyFormat::choose
};

struct ChatPrompt {
  std::vector<uint32_t> ids;
  bool in_reasoning = false;  // the answer begins inside the reasoning
};

class ChatFormat {
 public:
  /// `tokenizer` outlives this. `tools` is what a request offers, or null: a list of functions, in the
  /// OpenAI form or bare ({"name", "description", "parameters"}).
  /// errors   kInvalid: no such template or style, tools that are none. kFormat: a faulty template
  static Result<ChatFormat> open(const Tokenizer& tokenizer, const ChatTemplates& templates,
                                 const Node& tokenizer_config, const ChatFormatOptions& options,
                                 Node tools = {});

  /// Messages as the model reads them. `variables` is a map of what else the template may read
  /// (enable_thinking), or null.
  ///
  /// `tools` and `documents` are null where there are none; a template that fails for that gets neither.
  /// Arguments of calls: fit_tool_arguments(). `reasoning_content` goes under the name that the template
  /// reads.
  /// errors   kInvalid: what the template raised, unchanged, or what failed in it
  Result<ChatPrompt> prompt(const Node& messages, const Node& variables = {}) const;

  /// For the answer to `prompt`; `id_key` is another for each answer (ReplyStart). This outlives it.
  ReplyParser parser(const ChatPrompt& prompt, uint64_t id_key) const;
  /// Special tokens that are tags of the reply: a parser must get their text.
  const std::vector<uint32_t>& tag_ids() const { return tag_ids_; }
  const ReplyFormat& reply() const { return reply_; }
  bool has_tools() const { return tools_.is_list(); }

 private:
  ChatFormat(const Tokenizer& tokenizer, ChatTemplate chat_template)
      : tokenizer_(&tokenizer), template_(std::move(chat_template)) {}
  Result<Rendered> render(const Node& messages, const Node& variables) const;

  const Tokenizer* tokenizer_;
  ChatTemplate template_;
  ReplyFormat reply_;
  Node special_tokens_ = Node::make_map();
  Node tools_;
  std::string reasoning_key_;
  std::vector<uint32_t> tag_ids_;
};

/// {"role": role, "content": content}
Node chat_message(std::string_view role, std::string_view content);

/// The variables that a template may read about special tokens (bos_token, eos_token, ...), from
/// tokenizer_config.json.
void add_special_tokens(Node& context, const Node& tokenizer_config);

}  // namespace dovetail::core
