// ChatTemplates: the chat templates that a model comes with. Most have one; some have a list by names,
// such as "default", "tool_use" and "rag".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/folder.hpp"
#include "core/base/node.hpp"
#include "core/base/status.hpp"

namespace dovetail::core {

class ChatTemplates {
 public:
  struct Entry {
    std::string name, source;
  };

  ChatTemplates() = default;
  explicit ChatTemplates(std::string source) : all_{{"default", std::move(source)}} {}

  /// What a folder (null: none) and a tokenizer_config.json say. chat_template.jinja comes first, with
  /// additional_chat_templates/NAME.jinja beside it, then chat_template.json, then `chat_template` of the
  /// config: a text, or a list of {"name", "template"}.
  /// errors   kFormat: something else stands there. kIo.
  static Result<ChatTemplates> read(const Folder* folder, const Node* tokenizer_config);

  bool empty() const { return all_.empty(); }
  const std::vector<Entry>& all() const { return all_; }
  /// The one of that name; an empty name is the one that pick() takes.
  /// errors   kInvalid: there is none, with the names that there are
  Result<const Entry*> find(std::string_view name, bool with_tools = false) const;
  /// "tool_use" for requests with tools, else "default", else the only one there is, else null.
  const Entry* pick(bool with_tools) const;

 private:
  const Entry* named(std::string_view name) const;
  Status add(const Node& value);

  std::vector<Entry> all_;
};

}  // namespace dovetail::core
