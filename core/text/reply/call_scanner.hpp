// CallScanner: one opening tag of a tool call and what follows it, as it comes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/node.hpp"
#include "core/text/reply/reply.hpp"
#include "core/text/reply/reply_format.hpp"

namespace dovetail::core {

/// The functions that a request offers, in the OpenAI form or bare.
class ToolSet {
 public:
  explicit ToolSet(const Node* tools = nullptr)
      : tools_(tools) {}  // outlives this; null: not known

  bool is_known() const { return tools_ != nullptr && tools_->is_list(); }
  bool has(std::string_view name) const { return find(name) != nullptr; }
  /// Whether the schema says that this parameter is a string: 1 yes, 0 no, -1 it says nothing.
  int is_string(std::string_view function, std::string_view parameter) const;

 private:
  const Node* find(std::string_view name) const;
  const Node* tools_;
};

class CallScanner {
 public:
  enum class State : uint8_t { kMore, kNoCall, kDone };

  virtual ~CallScanner() = default;
  /// `text` is all there is behind the opening tag, at each call with more at its end. `is_end`: no more
  /// will come; a call whose closing tag alone is missing then counts.
  ///
  /// What it answers depends on the text alone, never on the pieces in which it came.
  virtual State scan(std::string_view text, bool is_end) = 0;

  // After kDone.
  size_t end() const { return end_; }  // behind the call
  std::vector<ToolCall>& calls() { return calls_; }

 protected:
  /// Behind a body that ends at `at`: blanks and the closing tag.
  State scan_close(std::string_view text, size_t at, std::string_view close, bool is_end);

  size_t end_ = 0;
  std::vector<ToolCall> calls_;
};

std::unique_ptr<CallScanner> make_call_scanner(const ToolStyle& style, const ToolSet& tools);

// One per file.
std::unique_ptr<CallScanner> make_json_scanner(const ToolStyle& style, const ToolSet& tools);
std::unique_ptr<CallScanner> make_tag_scanner(const ToolStyle& style, const ToolSet& tools);

/// Whether `text` begins with `tag`, or could once more of it has come.
bool may_begin_with(std::string_view text, std::string_view tag);

}  // namespace dovetail::core
