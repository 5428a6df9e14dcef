// What run, chat and compare share: how the model converses, an engine driven to the end of one answer, the
// answer as JSON.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/cli/session.hpp"
#include "core/text/chat_format.hpp"

namespace dovetail::core {

/// The chat format of a model that has a tokenizer and a template, as the config's section `chat` has it;
/// `tools_file` is empty or a JSON file with a list of functions.
Result<ChatFormat> open_chat_format(const Session& session, const std::string& tools_file);
/// Messages as a prompt; `thinking` is the template's variable enable_thinking.
Result<ChatPrompt> chat_prompt(const ChatFormat& format, const Node& messages,
                               std::optional<bool> thinking);

/// Whether a prompt is a message: the model has a tokenizer and a chat template, and `raw` says nothing else.
bool is_chat(const Model& model, bool raw);
/// A prompt as the model reads it: as a message, or without a format (null) as a text to continue.
/// errors   kInvalid: the model has no tokenizer.
Result<ChatPrompt> read_prompt(const Session& session, const std::string& prompt,
                               const ChatFormat* format);

/// The tokens of the same, through the chat template if is_chat().
Result<std::vector<TokenId>> prompt_ids(const Session& session, const std::string& prompt,
                                        bool raw);

struct Answer {
  Completion completion;
  Reply reply;           // the completion's text, taken apart; empty without a chat format
  size_t asked_for = 0;  // tokens at most
  bool is_chat = false;
  bool ended_in_reasoning = false;
};

/// Asks the engine, which is idle, and drives it to the end of the answer, with progress of a long prompt
/// unless `quiet`; Ctrl-C ends the request and keeps what there is. Without a chat format (null) all text
/// is content. A request that cannot run, or that failed, is an answer with its error. `before_step`, if there is one,
/// is called before each step with the number of tokens so far: the engine is between two steps then.
/// errors  what `show`, `before_step`, or a step of the engine, failed with
Result<Answer> ask(Engine& engine, RequestParams params, const ChatFormat* format,
                   const ChatPrompt* prompt, bool quiet,
                   const std::function<Status(const ReplyEvent&)>& show,
                   const std::function<Status(size_t n_tokens)>& before_step = {});

/// A warning where the context was full before the answer had all its tokens, or where it ends amid its
/// reasoning.
void warn_of_early_end(const Answer& answer, const Model& model);

/// What a move took, for people: "the answer goes on, its 15 tokens of cache (60 KiB) went over, 0.12 s".
std::string move_text(const BackendMove& move);
/// Finish reason ("tool_calls" for an answer that ended with some), counts, seed and timings.
Node stats_node(const Answer& answer);
/// Text (if the model has any) and for a chat what it is made of, ids, and what stats_node says.
Node answer_node(const Answer& answer, bool has_text);

}  // namespace dovetail::core
