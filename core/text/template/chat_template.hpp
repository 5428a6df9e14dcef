// ChatTemplate: a model's chat template (Jinja, as Hugging Face Transformers sets it up), rendered.
//
// The text is the one that the model was trained on, byte for byte. Beside it come the byte ranges
// that were data (what users and tools wrote) rather than template, so that a control token spelled
// out in a message can be encoded as plain characters.
#pragma once

#include <cstdint>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/node.hpp"
#include "core/base/status.hpp"
#include "core/text/template/budget.hpp"
#include "core/text/template/sourced_text.hpp"

namespace dovetail::core {

struct Rendered {
  std::string text;
  std::vector<TextRange> data_ranges;  // sorted, disjoint, not adjacent, none empty
};

/// The variables in which Transformers hands a tokenizer's special tokens to a template.
std::vector<std::string> special_token_names();

struct RenderOptions {
  /// Variables whose strings are control tokens like the template's own text, not data. Whoever
  /// lets a request choose variables must keep these names out of it.
  std::vector<std::string> trusted_names = special_token_names();
  /// The local time that strftime_now prints; the system's if empty.
  std::function<std::tm()> clock;
  uint64_t random_seed = 0;  // of the filter `random`: the same seed picks the same items
  RenderLimits limits;
};

class ChatTemplate {
 public:
  /// `name` stands in front of messages: "chat_template:12:7: ...".
  /// errors   kFormat: a syntax error, or a filter or test that nobody knows. kUnsupported: a part of
  ///          Jinja that this engine lacks.
  static Result<ChatTemplate> parse(const std::string& source, std::string name);

  /// Renders with `context`, a map of variables (messages, tools, add_generation_prompt, ...). A
  /// variable that is null is none, which is not undefined: see the notes of each template.
  ///
  /// threads  reentrant: one template may be rendered by many threads at once.
  /// errors   kInvalid: the template called raise_exception (its message, unchanged), or an operation
  ///          failed, or a limit was reached ("name:line:column: what, in `expression`").
  ///          kUnsupported: as above, met only now. kNoMemory.
  Result<Rendered> render(const Node& context, const RenderOptions& options = {}) const;

  const std::string& source() const;

 private:
  struct Parsed;
  explicit ChatTemplate(std::shared_ptr<const Parsed> parsed) : parsed_(std::move(parsed)) {}

  std::shared_ptr<const Parsed> parsed_;
};

}  // namespace dovetail::core
