// What run, chat and compare share: messages to ids, an engine driven to the end of one answer, the answer as
// JSON.
#pragma once

#include <optional>
#include <vector>

#include "core/cli/session.hpp"
#include "core/text/template/chat_template.hpp"

namespace dovetail::core {

/// Messages as the tokens of the model's chat template; `thinking` is its variable enable_thinking.
Result<std::vector<TokenId>> chat_ids(const Session& session, const ChatTemplate& chat_template,
                                      Node messages, std::optional<bool> thinking);

/// A prompt as the model reads it: through its chat template, unless there is none or `raw` says otherwise.
/// errors   kInvalid: the model has no tokenizer.
Result<std::vector<TokenId>> prompt_ids(const Session& session, const std::string& prompt,
                                        bool raw);

/// Steps the engine until its one request is done, with progress of a long prompt unless `quiet`;
/// Ctrl-C ends the request and keeps what there is.
Result<Completion> drive(Engine& engine, size_t n_prompt, bool quiet);

/// A warning where an answer ended before the `asked_for` tokens because the context was full.
void warn_of_full_context(const Completion& c, size_t asked_for, const Model& model);

/// Finish reason, counts, seed and timings.
Node stats_node(const Completion& c);
/// Text (if the model has any), ids, and what stats_node says.
Node completion_node(const Completion& c, bool has_text);

}  // namespace dovetail::core
