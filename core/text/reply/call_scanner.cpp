#include "core/text/reply/call_scanner.hpp"

#include <algorithm>

namespace dovetail::core {
namespace {

// {"type": "function", "function": {...}} or the function itself.
const Node& function_of(const Node& tool) {
  const Node* function = tool.find("function");
  return function != nullptr && function->is_map() ? *function : tool;
}

}  // namespace

const Node* ToolSet::find(std::string_view name) const {
  if (!is_known()) return nullptr;
  for (const Node& tool : tools_->items()) {
    const Node& function = function_of(tool);
    const Node* own = function.find("name");
    if (own != nullptr && own->is_string() && own->as_string() == name) return &function;
  }
  return nullptr;
}

int ToolSet::is_string(std::string_view function, std::string_view parameter) const {
  const Node* at = find(function);
  for (const std::string_view key : {std::string_view("parameters"), std::string_view("properties"),
                                     parameter, std::string_view("type")})
    at = at != nullptr ? at->find(key) : nullptr;
  if (at == nullptr || !at->is_string()) return -1;
  return at->as_string() == "string" ? 1 : 0;
}

bool may_begin_with(std::string_view text, std::string_view tag) {
  const size_t n = std::min(text.size(), tag.size());
  return text.substr(0, n) == tag.substr(0, n);
}

CallScanner::State CallScanner::scan_close(std::string_view text, size_t at, std::string_view close,
                                           bool is_end) {
  if (close.empty()) {
    end_ = at;
    return State::kDone;
  }
  at = std::min(text.find_first_not_of(" \t\r\n", at), text.size());
  const std::string_view rest = text.substr(at);
  if (!may_begin_with(rest, close)) return State::kNoCall;
  if (rest.size() < close.size() && !is_end) return State::kMore;
  end_ = std::min(at + close.size(), text.size());
  return State::kDone;
}

std::unique_ptr<CallScanner> make_call_scanner(const ToolStyle& style, const ToolSet& tools) {
  switch (style.body) {
    case CallBody::kJson:
    case CallBody::kMistral:
      return make_json_scanner(style, tools);
    case CallBody::kFunctionTags:
    case CallBody::kArgTags:
      return make_tag_scanner(style, tools);
  }
  return nullptr;
}

}  // namespace dovetail::core
