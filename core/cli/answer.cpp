#include "core/cli/answer.hpp"

#include <chrono>

#include "core/base/log.hpp"
#include "core/text/prompt.hpp"

namespace dovetail::core {
namespace {

double seconds(Clock::duration d) {
  return std::chrono::duration<double>(d).count();
}

// The generated text's speed and place in time, as JSON.
Node timings(const Completion& c) {
  Node t = Node::make_map();
  const bool any = !c.tokens.empty();
  const double ttft = any ? seconds(c.times.first_token - c.times.added) : 0;
  const double decode = any ? seconds(c.times.last_token - c.times.first_token) : 0;
  t.set("time_to_first_token_s", Node::make_float(ttft));
  t.set("prompt_tokens_per_s",
        Node::make_float(ttft > 0 ? static_cast<double>(c.n_prompt) / ttft : 0));
  t.set("decode_s", Node::make_float(decode));
  t.set("tokens_per_s",
        Node::make_float(decode > 0 ? static_cast<double>(c.tokens.size() - 1) / decode : 0));
  return t;
}

}  // namespace

Node stats_node(const Completion& c) {
  Node out = Node::make_map();
  out.set("finish_reason", Node::make_string(finish_reason_name(c.finish)));
  out.set("prompt_tokens", Node::make_int(static_cast<int64_t>(c.n_prompt)));
  out.set("completion_tokens", Node::make_int(static_cast<int64_t>(c.tokens.size())));
  out.set("seed", Node::make_string(std::to_string(c.seed)));
  out.set("timings", timings(c));
  return out;
}

void warn_of_full_context(const Completion& c, size_t asked_for, const Model& model) {
  if (c.finish != FinishReason::kLength || c.tokens.size() >= asked_for) return;
  log_warn("context", "the answer ends after " + std::to_string(c.tokens.size()) + " of " +
                          std::to_string(asked_for) + " tokens: the context of " +
                          std::to_string(model.max_seq_len()) + " is full");
}

Node completion_node(const Completion& c, bool has_text) {
  Node out = Node::make_map();
  if (has_text) out.set("text", Node::make_string(c.text));
  Node ids = Node::make_list();
  for (TokenId id : c.tokens) ids.items().push_back(Node::make_int(id));
  out.set("ids", std::move(ids));
  const Node stats = stats_node(c);
  for (const Node::Entry& entry : stats.entries()) out.set(entry.first, entry.second);
  return out;
}

Result<std::vector<TokenId>> chat_ids(const Session& session, const ChatTemplate& chat_template,
                                      Node messages, std::optional<bool> thinking) {
  const Model& model = session.model();
  Node context = Node::make_map();
  context.set("messages", std::move(messages));
  if (thinking) context.set("enable_thinking", Node::make_bool(*thinking));
  add_special_tokens(context, model.tokenizer_config());
  return encode_chat(*model.tokenizer(), chat_template, std::move(context));
}

Result<std::vector<TokenId>> prompt_ids(const Session& session, const std::string& prompt,
                                        bool raw) {
  const Model& model = session.model();
  if (!model.tokenizer()) return invalid("this model has no tokenizer; give ids with --ids 1,2,3");
  const Settings::Chat& chat = session.settings().chat;
  if (raw || !model.chat_template()) return encode_text(*model.tokenizer(), prompt);
  DVT_TRY(const ChatTemplate chat_template,
          ChatTemplate::parse(*model.chat_template(), "chat_template"));
  Node messages = Node::make_list();
  if (chat.system) messages.items().push_back(chat_message("system", *chat.system));
  messages.items().push_back(chat_message("user", prompt));
  return chat_ids(session, chat_template, std::move(messages), chat.enable_thinking);
}

Result<Completion> drive(Engine& engine, size_t n_prompt, bool quiet) {
  constexpr size_t kLongPrompt = 256;  // shorter ones are read before a bar could show
  Progress progress;
  bool more = true;
  while (more) {
    if (interrupted()) engine.cancel_all();
    Result<bool> stepped = engine.step();
    if (!stepped) {
      if (stepped.status().code() != Code::kCancelled) return stepped.status();
      engine.cancel_all();
      stepped = engine.step();
      if (!stepped) return stepped.status();
    }
    more = *stepped;
    if (!quiet && n_prompt > kLongPrompt && engine.n_prefilled() < n_prompt)
      progress.update("reading the prompt", engine.n_prefilled(), n_prompt);
    if (engine.n_prefilled() >= n_prompt) progress.finish();
  }
  std::vector<Completion> done = engine.take_completions();
  if (done.empty()) return internal_error("the engine stopped without an answer");
  return std::move(done[0]);
}

}  // namespace dovetail::core
