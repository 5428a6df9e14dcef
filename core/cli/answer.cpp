#include "core/cli/answer.hpp"

#include <chrono>
#include <cstdio>
#include <random>

#include "core/base/files.hpp"
#include "core/base/log.hpp"
#include "core/cli/request_json.hpp"
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

// Steps the engine until its one request is done.
Result<Completion> drive(Engine& engine, size_t n_prompt, bool quiet,
                         const std::function<Status()>& before_step) {
  constexpr size_t kLongPrompt = 256;  // shorter ones are read before a bar could show
  Progress progress;
  bool more = true;
  while (more) {
    if (interrupted())
      engine.cancel_all();
    else
      DVT_TRY(before_step());
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

uint64_t random_key() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

}  // namespace

void warn_of_early_end(const Answer& answer, const Model& model) {
  const Completion& c = answer.completion;
  if (c.finish != FinishReason::kLength) return;
  const std::string n = std::to_string(c.tokens.size());
  if (c.tokens.size() < answer.asked_for)
    log_warn("context", "the answer ends after " + n + " of " + std::to_string(answer.asked_for) +
                            " tokens: the context of " + std::to_string(model.max_seq_len()) +
                            " is full");
  else if (answer.ended_in_reasoning)
    log_warn("chat", "the answer ends after " + n +
                         " tokens, before its reasoning does; generate.max_tokens allows more");
}

Result<ChatFormat> open_chat_format(const Session& session, const std::string& tools_file) {
  const Settings::Chat& chat = session.settings().chat;
  const Model& model = session.model();
  Node tools;
  if (!tools_file.empty()) {
    DVT_TRY(tools, read_request(tools_file));
  }
  Result<ChatFormat> format =
      ChatFormat::open(*model.tokenizer(), model.chat_templates(), model.tokenizer_config(),
                       {chat.template_name, chat.reasoning, chat.tools}, std::move(tools));
  if (!format && format.status().message().starts_with("tools["))
    return format.status().in(tools_file);
  return format;
}

Result<ChatPrompt> chat_prompt(const ChatFormat& format, const Node& messages,
                               std::optional<bool> thinking) {
  Node variables = Node::make_map();
  if (thinking) variables.set("enable_thinking", Node::make_bool(*thinking));
  return format.prompt(messages, variables);
}

bool is_chat(const Model& model, bool raw) {
  return !raw && model.tokenizer() && !model.chat_templates().empty();
}

Result<ChatPrompt> read_prompt(const Session& session, const std::string& prompt,
                               const ChatFormat* format) {
  const Model& model = session.model();
  if (!model.tokenizer()) return invalid("this model has no tokenizer; give ids with --ids 1,2,3");
  const Settings::Chat& chat = session.settings().chat;
  if (format == nullptr) {
    DVT_TRY(std::vector<TokenId> ids, encode_text(*model.tokenizer(), prompt));
    return ChatPrompt{std::move(ids)};
  }
  Node messages = Node::make_list();
  if (chat.system) messages.items().push_back(chat_message("system", *chat.system));
  messages.items().push_back(chat_message("user", prompt));
  return chat_prompt(*format, messages, chat.enable_thinking);
}

Result<std::vector<TokenId>> prompt_ids(const Session& session, const std::string& prompt,
                                        bool raw) {
  std::optional<ChatFormat> format;
  if (is_chat(session.model(), raw)) {
    DVT_TRY(format, open_chat_format(session, ""));
  }
  DVT_TRY(ChatPrompt read, read_prompt(session, prompt, format ? &*format : nullptr));
  return std::move(read.ids);
}

Result<Answer> ask(Engine& engine, RequestParams params, const ChatFormat* format,
                   const ChatPrompt* prompt, bool quiet,
                   const std::function<Status(const ReplyEvent&)>& show,
                   const std::function<Status(size_t n_tokens)>& before_step) {
  Answer answer;
  answer.is_chat = format != nullptr;
  ReplyParser parser = format == nullptr
                           ? ReplyParser({}, {})
                           : format->parser(*prompt, params.seed ? *params.seed : random_key());
  if (format != nullptr) params.shown_special = format->tag_ids();
  Status shown;
  const auto take = [&](const std::vector<ReplyEvent>& events) {
    for (const ReplyEvent& event : events) {
      answer.reply.add(event);
      if (shown.is_ok()) shown = show(event);
    }
  };
  const size_t n_prompt = params.prompt.size();
  answer.asked_for = params.max_tokens;
  size_t n_tokens = 0;
  const Result<RequestId> id = engine.add(std::move(params), [&](const RequestEvent& e) {
    if (e.token) ++n_tokens;
    take(parser.feed(e.text));
    answer.ended_in_reasoning = parser.in_reasoning();
    if (e.finish != FinishReason::kNone) take(parser.flush());
  });
  if (!id) {
    answer.completion.finish = FinishReason::kError;
    answer.completion.error = id.status();
    return answer;
  }
  const auto before = [&] { return before_step ? before_step(n_tokens) : Status::ok(); };
  DVT_TRY(answer.completion, drive(engine, n_prompt, quiet, before));
  DVT_TRY(shown);
  return answer;
}

std::string move_text(const BackendMove& move) {
  char time[32];
  std::snprintf(time, sizeof time, "%.2f s", move.seconds);
  const StateMove& s = move.states;
  if (s.n_sequences == 0) return std::string("loaded in ") + time + ", no answer was under way";
  return "the answer goes on, its " + std::to_string(s.n_tokens) + " tokens of cache (" +
         bytes_text(s.n_bytes) + ") went over, " + time;
}

Node stats_node(const Answer& answer) {
  const Completion& c = answer.completion;
  const bool calls = c.finish == FinishReason::kStop && !answer.reply.calls.empty();
  Node out = Node::make_map();
  out.set("finish_reason", Node::make_string(calls ? "tool_calls" : finish_reason_name(c.finish)));
  out.set("prompt_tokens", Node::make_int(static_cast<int64_t>(c.n_prompt)));
  out.set("completion_tokens", Node::make_int(static_cast<int64_t>(c.tokens.size())));
  out.set("seed", Node::make_string(std::to_string(c.seed)));
  out.set("timings", timings(c));
  return out;
}

Node answer_node(const Answer& answer, bool has_text) {
  Node out = Node::make_map();
  if (has_text) out.set("text", Node::make_string(answer.completion.text));
  if (answer.is_chat) answer.reply.write_to(out);
  Node ids = Node::make_list();
  for (TokenId id : answer.completion.tokens) ids.items().push_back(Node::make_int(id));
  out.set("ids", std::move(ids));
  const Node stats = stats_node(answer);
  for (const Node::Entry& entry : stats.entries()) out.set(entry.first, entry.second);
  return out;
}

}  // namespace dovetail::core
