// chat: a conversation. A line is a message, or a command if it begins with a slash.
#include <unistd.h>

#include <algorithm>
#include <array>

#include "core/base/files.hpp"
#include "core/base/json.hpp"
#include "core/base/nearest.hpp"
#include "core/cli/answer.hpp"
#include "core/cli/command.hpp"
#include "core/cli/line_reader.hpp"
#include "core/cli/session.hpp"
#include "core/text/prompt.hpp"

namespace dovetail::core {
namespace {

class Chat {
 public:
  static Result<std::unique_ptr<Chat>> open(const std::string& program,
                                            const ModelOptions& options);
  /// Reads lines until the input ends or the user leaves.
  Status run();

 private:
  struct Command {
    const char* name;
    const char* argument;  // as the help shows it
    const char* help;
    Status (Chat::*action)(const std::string& argument);
  };
  static const std::array<Command, 11> kCommands;

  Chat(std::string program, ModelOptions options)
      : program_(std::move(program)), options_(std::move(options)) {}
  static Result<std::unique_ptr<Session>> load(const std::string& program,
                                               const ModelOptions& options);
  void take(std::unique_ptr<Session> session);
  Status obey(const std::string& line);
  Status answer(const std::string& message);

  Status help(const std::string&);
  Status reset(const std::string&);
  Status system(const std::string& text);
  Status set(const std::string& text);
  Status thinking(const std::string& text);
  Status backend(const std::string& name);
  Status stats(const std::string&);
  Status history(const std::string&);
  Status save(const std::string& path);
  Status leave(const std::string&);

  std::string program_;
  ModelOptions options_;
  std::unique_ptr<Session> session_;
  std::optional<ChatTemplate> template_;
  std::unique_ptr<Engine> engine_;  // over session_
  Node messages_ = Node::make_list(), sampling_ = Node::make_map();
  std::optional<std::string> system_;
  std::optional<bool> thinking_;
  std::optional<Completion> last_;
  const bool terminal_ = isatty(STDIN_FILENO) != 0;
  bool left_ = false;
};

const std::array<Chat::Command, 11> Chat::kCommands = {{
    {"/help", "", "this text", &Chat::help},
    {"/reset", "", "forget the conversation, keep the system message", &Chat::reset},
    {"/system", "[TEXT]", "set the system message, or take it away, and start again",
     &Chat::system},
    {"/set", "[KEY VALUE]",
     "a sampler parameter for the answers that follow (/set temperature 0.2; null: as the config "
     "has it); alone: show them",
     &Chat::set},
    {"/thinking", "on|off",
     "whether the model may think first, if its template knows enable_thinking", &Chat::thinking},
    {"/backend", "[NAME]", "go on with another backend; alone: say which one runs", &Chat::backend},
    {"/stats", "", "tokens and speed of the last answer", &Chat::stats},
    {"/history", "", "the conversation so far", &Chat::history},
    {"/save", "FILE", "write the conversation as JSON", &Chat::save},
    {"/quit", "", "leave (so does Ctrl-D)", &Chat::leave},
    {"/exit", "", "the same", &Chat::leave},
}};

Result<std::unique_ptr<Session>> Chat::load(const std::string& program,
                                            const ModelOptions& options) {
  DVT_TRY(std::unique_ptr<Session> session, Session::open(program, options));
  if (!session->model().tokenizer() || !session->model().chat_template())
    return invalid(
        "this model has no chat template, so a conversation cannot be written for it; set "
        "chat.template or chat.template_file (see configs/demo-chat.yaml), or continue a text with "
        "dovetail run");
  return session;
}

Result<std::unique_ptr<Chat>> Chat::open(const std::string& program, const ModelOptions& options) {
  auto chat = std::unique_ptr<Chat>(new Chat(program, options));
  DVT_TRY(std::unique_ptr<Session> session, load(program, options));
  DVT_TRY(chat->template_, ChatTemplate::parse(*session->model().chat_template(), "chat_template"));
  chat->system_ = session->settings().chat.system;
  chat->thinking_ = session->settings().chat.enable_thinking;
  chat->take(std::move(session));
  DVT_TRY(chat->reset(""));
  return chat;
}

// The engine goes before the session that it stands on.
void Chat::take(std::unique_ptr<Session> session) {
  engine_.reset();
  session_ = std::move(session);
  engine_ = session_->make_engine();
}

Status Chat::run() {
  if (terminal_)
    DVT_TRY(
        print("chatting with " + session_->runtime().config_name() + "; /help lists commands\n"));
  LineReader input;
  std::string line;
  while (!left_) {
    if (terminal_) DVT_TRY(print("> "));
    const LineReader::Outcome outcome = input.next(line);
    if (outcome == LineReader::Outcome::kEnd) return terminal_ ? print("\n") : Status::ok();
    if (outcome == LineReader::Outcome::kInterrupted) {
      if (!terminal_) return {Code::kCancelled, "interrupted"};
      DVT_TRY(print("\nCtrl-C again, Ctrl-D or /quit leaves\n"));
      continue;
    }
    clear_interrupt();
    if (line.empty()) continue;
    const bool is_command = line[0] == '/' && !line.starts_with("//");
    DVT_TRY(is_command ? obey(line) : answer(line.substr(line[0] == '/' ? 1 : 0)));
    if (interrupted() && !terminal_) return {Code::kCancelled, "interrupted"};
    clear_interrupt();
  }
  return Status::ok();
}

Status Chat::obey(const std::string& line) {
  const size_t space = std::min(line.find(' '), line.size());
  const std::string name = line.substr(0, space);
  const size_t begin = line.find_first_not_of(' ', space);
  const std::string argument =
      begin == std::string::npos ? "" : line.substr(begin, line.find_last_not_of(' ') + 1 - begin);
  std::vector<std::string> names;
  for (const Command& c : kCommands) {
    if (name == c.name) return (this->*c.action)(argument);
    names.emplace_back(c.name);
  }
  return print("unknown command \"" + name + "\"" + did_you_mean(name, names) +
               "; /help lists them, //... says a message that begins with a slash\n");
}

Status Chat::answer(const std::string& message) {
  messages_.items().push_back(chat_message("user", message));
  Result<std::vector<TokenId>> ids = chat_ids(*session_, *template_, messages_, thinking_);
  RequestParams params = session_->request_params();
  params.sampling = sampling_;
  const size_t asked_for = params.max_tokens;
  Status written;
  Result<RequestId> id = ids.status();
  if (ids) {
    params.prompt = *ids;
    id = engine_->add(std::move(params), [&written](const RequestEvent& e) {
      if (written.is_ok()) written = print(e.text);
    });
  }
  if (!id) {  // the conversation goes on without the message that could not be answered
    messages_.items().pop_back();
    return print("cannot answer: " + id.status().message() + "\n");
  }
  DVT_TRY(const Completion done, drive(*engine_, ids->size(), !terminal_));
  DVT_TRY(written);
  DVT_TRY(print(done.finish == FinishReason::kCancelled ? "\n[interrupted]\n" : "\n"));
  if (done.finish == FinishReason::kError) {
    messages_.items().pop_back();
    return print("failed: " + done.error.message() + "\n");
  }
  warn_of_full_context(done, asked_for, session_->model());
  messages_.items().push_back(chat_message("assistant", done.text));
  last_ = done;
  return Status::ok();
}

Status Chat::help(const std::string&) {
  std::string text;
  for (const Command& c : kCommands) {
    std::string left = std::string(c.name) + (*c.argument ? " " : "") + c.argument;
    left.resize(std::max<size_t>(left.size() + 1, 18), ' ');
    text += left + c.help + "\n";
  }
  return print(text + "Ctrl-C ends an answer and keeps what there is of it.\n");
}

Status Chat::reset(const std::string&) {
  messages_ = Node::make_list();
  if (system_) messages_.items().push_back(chat_message("system", *system_));
  return Status::ok();
}

Status Chat::system(const std::string& text) {
  system_ = text.empty() ? std::nullopt : std::optional(text);
  return reset("");
}

Status Chat::set(const std::string& text) {
  if (text.empty()) return print(to_json(sampling_) + "\n");
  const size_t space = text.find(' ');
  if (space == std::string::npos)
    return print("expected /set KEY VALUE, such as /set temperature 0.2\n");
  const std::string key = text.substr(0, space),
                    value = text.substr(text.find_first_not_of(' ', space));
  Result<Node> parsed = parse_json(value, "/set " + key);
  Node changed = sampling_;
  changed.set(key, parsed ? *parsed : Node::make_string(value));
  const auto state = SamplerState::begin(session_->chain(), changed, {}, 0, 0);
  if (!state) return print("not set: " + state.status().message() + "\n");
  sampling_ = std::move(changed);
  return Status::ok();
}

Status Chat::thinking(const std::string& text) {
  if (text != "on" && text != "off") return print("expected /thinking on or /thinking off\n");
  thinking_ = text == "on";
  return Status::ok();
}

Status Chat::backend(const std::string& name) {
  const auto running = [this] {
    const std::string &plugin = session_->model().backend_name(),
                      &variant = session_->model().backend_variant();
    return variant == plugin ? plugin : plugin + " (" + variant + ")";
  };
  if (name.empty()) return print("the backend is " + running() + "\n");
  ModelOptions options = options_;
  options.sets.push_back("backend.plugin=" + name);
  Result<std::unique_ptr<Session>> loaded = load(program_, options);
  if (!loaded) return print("still on " + running() + ": " + loaded.status().message() + "\n");
  take(std::move(*loaded));
  options_ = std::move(options);
  return print("now on " + running() +
               ": the model was loaded again; the next answer reads the conversation again "
               "(messages so far: " +
               std::to_string(messages_.items().size()) + ")\n");
}

Status Chat::stats(const std::string&) {
  return print(last_ ? to_json(stats_node(*last_), 2) + "\n" : "nothing was said yet\n");
}

Status Chat::history(const std::string&) {
  std::string text;
  for (const Node& m : messages_.items())
    text += m.find("role")->as_string() + ": " + m.find("content")->as_string() + "\n";
  return print(text.empty() ? "nothing was said yet\n" : text);
}

Status Chat::save(const std::string& path) {
  if (path.empty()) return print("expected /save FILE\n");
  Node out = Node::make_map();
  out.set("messages", messages_);
  const Status saved = write_file(path, to_json(out, 2) + "\n");
  return print(saved.is_ok() ? "saved to " + path + "\n" : "not saved: " + saved.message() + "\n");
}

Status Chat::leave(const std::string&) {
  left_ = true;
  return Status::ok();
}

}  // namespace

void add_chat_command(Cli& cli) {
  auto options = std::make_shared<ModelOptions>();
  CLI::App* command = cli.app.add_subcommand("chat", "Talk with a model; /help lists commands");
  options->default_config = "demo-chat.yaml";
  options->add_to(*command, false, /*with_json=*/false);
  command->footer(
      "Examples:\n  dovetail chat    the embedded model goes on with what you say\n"
      "  dovetail chat models/Qwen3-0.6B\n  dovetail chat configs/qwen3-0.6b.yaml --set "
      "chat.enable_thinking=false");
  command->callback([&cli, options] {
    cli.action = [&cli, options]() -> Status {
      DVT_TRY(const std::unique_ptr<Chat> chat, Chat::open(cli.program, *options));
      return chat->run();
    };
  });
}

}  // namespace dovetail::core
