// run: one answer, streamed. chat: a conversation with history.
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <iostream>

#include "core/base/json.hpp"
#include "core/cli/command.hpp"
#include "core/cli/session.hpp"
#include "core/text/prompt.hpp"

namespace dovetail::core {
namespace {

double seconds(Clock::duration d) { return std::chrono::duration<double>(d).count(); }

struct RunOptions {
  ModelOptions model;
  std::vector<std::string> words;  // [CONFIG] [PROMPT], told apart by names_a_config
  std::vector<uint32_t> ids;
  bool raw = false, explain = false;
  std::optional<int32_t> max_tokens;
  std::optional<int64_t> seed;
};

// The generated text's speed and place in time, as JSON.
Node timings(const Completion& c) {
  Node t = Node::make_map();
  const bool any = !c.tokens.empty();
  const double ttft = any ? seconds(c.times.first_token - c.times.added) : 0;
  const double decode = any ? seconds(c.times.last_token - c.times.first_token) : 0;
  t.set("time_to_first_token_s", Node::make_float(ttft));
  t.set("prompt_tokens_per_s", Node::make_float(ttft > 0 ? static_cast<double>(c.n_prompt) / ttft : 0));
  t.set("decode_s", Node::make_float(decode));
  t.set("tokens_per_s", Node::make_float(decode > 0 ? static_cast<double>(c.tokens.size() - 1) / decode : 0));
  return t;
}

Node completion_node(const Completion& c, bool has_text) {
  Node out = Node::make_map();
  if (has_text) out.set("text", Node::make_string(c.text));
  Node ids = Node::make_list();
  for (TokenId id : c.tokens) ids.items().push_back(Node::make_int(id));
  out.set("ids", std::move(ids));
  out.set("finish_reason", Node::make_string(finish_reason_name(c.finish)));
  out.set("prompt_tokens", Node::make_int(static_cast<int64_t>(c.n_prompt)));
  out.set("completion_tokens", Node::make_int(static_cast<int64_t>(c.tokens.size())));
  out.set("seed", Node::make_string(std::to_string(c.seed)));
  out.set("timings", timings(c));
  return out;
}

// Messages as the tokens of the model's chat template, with what the config sets for it.
Result<std::vector<TokenId>> chat_ids(const Session& session, const ChatTemplate& chat_template, Node messages) {
  const Model& model = session.model();
  const Settings::Chat& chat = session.settings().chat;
  Node context = Node::make_map();
  context.set("messages", std::move(messages));
  if (chat.enable_thinking) context.set("enable_thinking", Node::make_bool(*chat.enable_thinking));
  add_special_tokens(context, model.tokenizer_config());
  return encode_chat(*model.tokenizer(), chat_template, std::move(context));
}

Result<std::vector<TokenId>> prompt_ids(Session& session, const RunOptions& o, const std::string& prompt) {
  const Model& model = session.model();
  if (!o.ids.empty()) return o.ids;
  if (!model.tokenizer()) return invalid("this model has no tokenizer; give ids with --ids 1,2,3");
  const Settings::Chat& chat = session.settings().chat;
  if (o.raw || !model.chat_template()) return encode_text(*model.tokenizer(), prompt);
  DVT_TRY(const ChatTemplate chat_template, ChatTemplate::parse(*model.chat_template(), "chat_template"));
  Node messages = Node::make_list();
  if (chat.system) messages.items().push_back(chat_message("system", *chat.system));
  messages.items().push_back(chat_message("user", prompt));
  return chat_ids(session, chat_template, std::move(messages));
}

// Steps the engine until the request is done; Ctrl-C ends it and keeps what there is.
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
    if (!quiet && n_prompt > kLongPrompt && engine.n_prefilled() < n_prompt) progress.update("reading the prompt", engine.n_prefilled(), n_prompt);
    if (engine.n_prefilled() >= n_prompt) progress.finish();
  }
  std::vector<Completion> done = engine.take_completions();
  if (done.empty()) return internal_error("the engine stopped without an answer");
  return std::move(done[0]);
}

Status run(const std::string& program, RunOptions o) {
  std::string prompt;
  if (!o.words.empty() && (o.words.size() > 1 || names_a_config(o.words[0]))) {
    o.model.config = o.words[0];
    if (o.words.size() > 1) prompt = o.words[1];
  } else if (!o.words.empty()) {
    prompt = o.words[0];
  }
  const bool from_stdin = o.ids.empty() && (prompt == "-" || (prompt.empty() && isatty(STDIN_FILENO) == 0));
  if (from_stdin) prompt.assign(std::istreambuf_iterator<char>(std::cin), {});
  if (o.ids.empty() && prompt.empty()) return invalid("there is no prompt; give one as the last argument or on standard input");

  DVT_TRY(const std::unique_ptr<Session> session, Session::open(program, o.model));
  if (o.explain) {
    std::string text = "backend " + session->model().backend_name() + " (" + session->model().backend_variant() + ")\n";
    for (const Placement& p : session->model().placements())
      text += "  " + p.scope + "  " + p.op + "  " + (p.native ? "native" : "by its definition: " + p.reason) + "\n";
    DVT_TRY(print(text));
  }
  DVT_TRY(std::vector<TokenId> ids, prompt_ids(*session, o, prompt));
  const std::unique_ptr<Engine> engine = session->make_engine();
  RequestParams params = session->request_params();
  params.prompt = ids;
  if (o.max_tokens) params.max_tokens = static_cast<uint32_t>(*o.max_tokens);
  if (o.seed) params.seed = static_cast<uint64_t>(*o.seed);

  const bool has_text = session->model().tokenizer() != nullptr;
  const bool stream = !o.model.json && has_text;
  Status written;
  // A model without a chat template continues the prompt: show it as one text.
  if (stream && o.ids.empty() && (o.raw || !session->model().chat_template())) DVT_TRY(print(prompt));
  const RequestSink sink = [&](const RequestEvent& e) {
    if (stream && written.is_ok()) written = print(e.text);
  };
  DVT_TRY(engine->add(std::move(params), sink));
  DVT_TRY(const Completion done, drive(*engine, ids.size(), o.model.json));
  DVT_TRY(written);
  if (done.finish == FinishReason::kError) return done.error;
  if (o.model.json) {
    DVT_TRY(print(to_json(completion_node(done, has_text), 2) + "\n"));
  } else if (!has_text) {
    std::string line;
    for (TokenId t : done.tokens) line += (line.empty() ? "" : ",") + std::to_string(t);
    DVT_TRY(print(line + "\n"));
  } else {
    DVT_TRY(print("\n"));
  }
  if (done.finish == FinishReason::kCancelled) return {Code::kCancelled, "interrupted; the text above is what there was"};
  return Status::ok();
}

constexpr const char* kChatHelp = R"(/help            this text
/reset           forget the conversation
/system TEXT     set the system message and start again
/set KEY VALUE   a sampler parameter for the answers that follow: /set temperature 0.2
/stats           tokens and speed of the last answer
/quit            leave (so does Ctrl-D)
)";

Status chat(const std::string& program, const ModelOptions& options) {
  DVT_TRY(const std::unique_ptr<Session> session, Session::open(program, options));
  Model& model = session->model();
  if (!model.tokenizer() || !model.chat_template())
    return invalid("this model has no chat template, so a conversation cannot be written for it; set chat.template_file, or continue a text with dovetail run");
  DVT_TRY(const ChatTemplate chat_template, ChatTemplate::parse(*model.chat_template(), "chat_template"));
  const std::unique_ptr<Engine> engine = session->make_engine();
  Node messages = Node::make_list();
  Node sampling = Node::make_map();
  std::string stats = "nothing was said yet\n";
  const auto start_again = [&](const std::optional<std::string>& system) {
    messages = Node::make_list();
    if (system) messages.items().push_back(chat_message("system", *system));
  };
  start_again(session->settings().chat.system);
  const bool terminal = isatty(STDIN_FILENO) != 0;
  if (terminal) DVT_TRY(print("chatting with " + session->runtime().config_name() + "; /help lists commands\n"));
  for (std::string line;;) {
    if (terminal) DVT_TRY(print("> "));
    if (!std::getline(std::cin, line)) break;
    if (line.empty()) continue;
    if (line[0] == '/') {
      const size_t space = line.find(' ');
      const std::string command = line.substr(0, space), rest = space == std::string::npos ? "" : line.substr(space + 1);
      if (command == "/quit" || command == "/exit") break;
      if (command == "/reset") start_again(session->settings().chat.system);
      else if (command == "/system") start_again(rest);
      else if (command == "/stats") DVT_TRY(print(stats));
      else if (command == "/set" && rest.find(' ') != std::string::npos) {
        const std::string key = rest.substr(0, rest.find(' ')), value = rest.substr(rest.find(' ') + 1);
        Result<Node> parsed = parse_json(value, "/set " + key);
        sampling.set(key, parsed ? *parsed : Node::make_string(value));
      } else {
        DVT_TRY(print(command == "/help" ? kChatHelp : "unknown command \"" + command + "\"; /help lists them\n"));
      }
      continue;
    }
    messages.items().push_back(chat_message("user", line));
    Result<std::vector<TokenId>> ids = chat_ids(*session, chat_template, messages);
    RequestParams params = session->request_params();
    params.sampling = sampling;
    Status written;
    Result<RequestId> id = ids.status();
    if (ids) {
      params.prompt = *ids;
      id = engine->add(std::move(params), [&written](const RequestEvent& e) {
        if (written.is_ok()) written = print(e.text);
      });
    }
    if (!id) {  // the conversation goes on without the message that could not be answered
      messages.items().pop_back();
      DVT_TRY(print("cannot answer: " + id.status().message() + "\n"));
      continue;
    }
    DVT_TRY(const Completion done, drive(*engine, ids->size(), !terminal));
    DVT_TRY(written);
    DVT_TRY(print("\n"));
    if (done.finish == FinishReason::kError) DVT_TRY(print("failed: " + done.error.message() + "\n"));
    messages.items().push_back(chat_message("assistant", done.text));
    stats = to_json(completion_node(done, false), 2) + "\n";
    if (interrupted()) return {Code::kCancelled, "interrupted"};
  }
  return Status::ok();
}

}  // namespace

void add_run_commands(Cli& cli) {
  auto o = std::make_shared<RunOptions>();
  CLI::App* command = cli.app.add_subcommand("run", "Answer or continue one prompt, streamed");
  command->add_option("words", o->words, "[CONFIG] [PROMPT]: a config is an existing file or folder, anything with a / or ending in .yaml, .yml or .gguf; "
                                         "else it is a prompt for the embedded model. \"-\" reads the prompt from standard input")
      ->expected(0, 2);
  command->add_option("--set", o->model.sets, "override one key of the config: --set sampler.0.temperature=0.2")->allow_extra_args(false);
  command->add_flag("--json", o->model.json, "print text, ids, finish reason and timings as one JSON object");
  command->add_option("--ids", o->ids, "token ids instead of a prompt: --ids 1,2,3")->delimiter(',');
  command->add_flag("--raw", o->raw, "do not apply the checkpoint's chat template");
  command->add_flag("--explain", o->explain, "say where each op runs, and why");
  command->add_option("-n,--max-tokens", o->max_tokens, "tokens to generate at most (generate.max_tokens)")->check(CLI::Range(0, INT32_MAX));
  command->add_option("--seed", o->seed, "seed of the sampler (generate.seed)");
  command->footer("Examples:\n  dovetail run \"It was a dark night\"\n  dovetail run configs/qwen3-0.6b.yaml \"Why is the sky blue?\" -n 200\n"
                  "  cat letter.txt | dovetail run models/Qwen3-0.6B -\n  dovetail run --ids 1,2,3 --json");
  command->callback([&cli, o] { cli.action = [&cli, o] { return run(cli.program, *o); }; });

  auto chat_options = std::make_shared<ModelOptions>();
  CLI::App* chat_command = cli.app.add_subcommand("chat", "Talk with a model; /help lists commands");
  chat_options->add_to(*chat_command, false, /*with_json=*/false);
  chat_command->callback([&cli, chat_options] { cli.action = [&cli, chat_options] { return chat(cli.program, *chat_options); }; });
}

}  // namespace dovetail::core
