// chat: a conversation. A line is a message, or a command if it begins with a slash.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "core/base/files.hpp"
#include "core/base/json.hpp"
#include "core/base/nearest.hpp"
#include "core/cli/answer.hpp"
#include "core/cli/command.hpp"
#include "core/cli/line_reader.hpp"
#include "core/cli/reply_printer.hpp"
#include "core/cli/session.hpp"

namespace dovetail::core {
namespace {

struct ChatOptions {
  ModelOptions model;
  std::string tools;  // a file
};

class Chat {
 public:
  static Result<std::unique_ptr<Chat>> open(const std::string& program, const ChatOptions& options);
  /// Reads lines until the input ends or the user leaves.
  Status run();

 private:
  struct Command {
    const char* name;
    const char* argument;  // as the help shows it
    const char* help;
    Status (Chat::*action)(const std::string& argument);
  };
  static const std::array<Command, 12> kCommands;

  explicit Chat(ChatOptions options) : options_(std::move(options)) {}
  /// A command for a backend that was typed while the answer comes is obeyed at once.
  Status move_if_asked();
  Status obey(const std::string& line);
  Status answer(Node message);
  Status refuse(const std::string& why) const;
  Status show(const Answer& answer, ReplyPrinter& printer) const;
  Status say(const std::string& text) const;

  Status help(const std::string&);
  Status reset(const std::string&);
  Status system(const std::string& text);
  Status set(const std::string& text);
  Status thinking(const std::string& text);
  Status tool(const std::string& result);
  Status backend(const std::string& name);
  Status stats(const std::string&);
  Status history(const std::string&);
  Status save(const std::string& path);
  Status leave(const std::string&);

  ChatOptions options_;
  LineReader input_;
  std::unique_ptr<Session> session_;
  std::optional<ChatFormat> format_;  // over session_
  std::unique_ptr<Engine> engine_;    // over session_
  Node messages_ = Node::make_list(), sampling_ = Node::make_map();
  std::optional<std::string> system_;
  std::optional<bool> thinking_;
  std::optional<Answer> last_;
  std::vector<ToolCall> waiting_;  // calls of the last answer that have no result yet
  const bool terminal_ = isatty(STDIN_FILENO) != 0;
  bool left_ = false;
};

const std::array<Chat::Command, 12> Chat::kCommands = {{
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
    {"/tool", "RESULT",
     "the result of the first call that has none; after the last one the model goes on",
     &Chat::tool},
    {"/backend", "[NAME]",
     "go on with another backend, also while an answer comes; alone: say which one runs",
     &Chat::backend},
    {"/stats", "", "tokens and speed of the last answer", &Chat::stats},
    {"/history", "", "the conversation so far", &Chat::history},
    {"/save", "FILE", "write the conversation as JSON", &Chat::save},
    {"/quit", "", "leave (so does Ctrl-D)", &Chat::leave},
    {"/exit", "", "the same", &Chat::leave},
}};

Result<std::unique_ptr<Chat>> Chat::open(const std::string& program, const ChatOptions& options) {
  auto chat = std::unique_ptr<Chat>(new Chat(options));
  DVT_TRY(chat->session_, Session::open(program, options.model));
  Session& session = *chat->session_;
  if (!session.model().tokenizer() || session.model().chat_templates().empty())
    return invalid(
        "this model has no chat template, so a conversation cannot be written for it; set "
        "chat.template or chat.template_file (see configs/demo-chat.yaml), or continue a text with "
        "dovetail run");
  DVT_TRY(chat->format_, open_chat_format(session, options.tools));
  chat->engine_ = session.make_engine();
  chat->system_ = session.settings().chat.system;
  chat->thinking_ = session.settings().chat.enable_thinking;
  DVT_TRY(chat->reset(""));
  return chat;
}

// With --json standard output has nothing but answers.
Status Chat::say(const std::string& text) const {
  if (!options_.model.json) return print(text);
  std::fwrite(text.data(), 1, text.size(), stderr);
  return Status::ok();
}

Status Chat::run() {
  if (terminal_)
    DVT_TRY(say("chatting with " + session_->runtime().config_name() + "; /help lists commands\n"));
  std::string line;
  while (!left_) {
    if (terminal_) DVT_TRY(say("> "));
    const LineReader::Outcome outcome = input_.next(line);
    if (outcome == LineReader::Outcome::kEnd) return terminal_ ? say("\n") : Status::ok();
    if (outcome == LineReader::Outcome::kInterrupted) {
      if (!terminal_) return {Code::kCancelled, "interrupted"};
      DVT_TRY(say("\nCtrl-C again, Ctrl-D or /quit leaves\n"));
      continue;
    }
    clear_interrupt();
    if (line.empty()) continue;
    const bool is_command = line[0] == '/' && !line.starts_with("//");
    DVT_TRY(is_command ? obey(line)
                       : answer(chat_message("user", line.substr(line[0] == '/' ? 1 : 0))));
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
  return say("unknown command \"" + name + "\"" + did_you_mean(name, names) +
             "; /help lists them, //... says a message that begins with a slash\n");
}

// The model's answer once `message` has been said.
Status Chat::answer(Node message) {
  messages_.items().push_back(std::move(message));
  const Result<ChatPrompt> prompt = chat_prompt(*format_, messages_, thinking_);
  if (!prompt) {  // the conversation goes on without the message that could not be answered
    messages_.items().pop_back();
    return refuse(prompt.status().message());
  }
  RequestParams params = session_->request_params();
  params.sampling = sampling_;
  params.prompt = prompt->ids;
  ReplyPrinter printer;
  const bool json = options_.model.json;
  DVT_TRY(const Answer answer,
          ask(
              *engine_, std::move(params), &*format_, &*prompt, json || !terminal_,
              [&](const ReplyEvent& e) { return json ? Status::ok() : printer.show(e); },
              [this](size_t) { return move_if_asked(); }));
  if (answer.completion.finish == FinishReason::kError) {
    messages_.items().pop_back();
    return refuse(answer.completion.error.message());
  }
  DVT_TRY(show(answer, printer));
  warn_of_early_end(answer, session_->model());
  Node said = Node::make_map();
  said.set("role", Node::make_string("assistant"));
  answer.reply.write_to(said);
  messages_.items().push_back(std::move(said));
  waiting_ = answer.reply.calls;
  if (terminal_ && !waiting_.empty())
    DVT_TRY(say("(/tool RESULT answers " + waiting_[0].name + ")\n"));
  last_ = answer;
  return Status::ok();
}

Status Chat::refuse(const std::string& why) const {
  if (!options_.model.json) return print("cannot answer: " + why + "\n");
  Node out = Node::make_map();
  out.set("error", Node::make_string(why));
  return print(to_json(out) + "\n");
}

Status Chat::show(const Answer& answer, ReplyPrinter& printer) const {
  if (options_.model.json) return print(to_json(answer_node(answer, true)) + "\n");
  DVT_TRY(printer.finish());
  return answer.completion.finish == FinishReason::kCancelled ? print("[interrupted]\n")
                                                              : Status::ok();
}

Status Chat::tool(const std::string& result) {
  if (waiting_.empty()) return say("no call waits for a result\n");
  const ToolCall call = waiting_[0];
  Node message = chat_message("tool", result);
  message.set("tool_call_id", Node::make_string(call.id));
  message.set("name", Node::make_string(call.name));
  std::vector<ToolCall> rest(waiting_.begin() + 1, waiting_.end());
  if (rest.empty()) return answer(std::move(message));
  messages_.items().push_back(std::move(message));
  waiting_ = std::move(rest);
  return say("next is the result of " + waiting_[0].name + "\n");
}

Status Chat::help(const std::string&) {
  std::string text;
  for (const Command& c : kCommands) {
    std::string left = std::string(c.name) + (*c.argument ? " " : "") + c.argument;
    left.resize(std::max<size_t>(left.size() + 1, 18), ' ');
    text += left + c.help + "\n";
  }
  return say(text + "Ctrl-C ends an answer and keeps what there is of it.\n");
}

Status Chat::reset(const std::string&) {
  waiting_.clear();
  messages_ = Node::make_list();
  if (system_) messages_.items().push_back(chat_message("system", *system_));
  return Status::ok();
}

Status Chat::system(const std::string& text) {
  system_ = text.empty() ? std::nullopt : std::optional(text);
  return reset("");
}

Status Chat::set(const std::string& text) {
  if (text.empty()) return say(to_json(sampling_) + "\n");
  const size_t space = text.find(' ');
  if (space == std::string::npos)
    return say("expected /set KEY VALUE, such as /set temperature 0.2\n");
  const std::string key = text.substr(0, space),
                    value = text.substr(text.find_first_not_of(' ', space));
  Result<Node> parsed = parse_json(value, "/set " + key);
  Node changed = sampling_;
  changed.set(key, parsed ? *parsed : Node::make_string(value));
  const auto state = SamplerState::begin(session_->chain(), changed, {}, 0, 0);
  if (!state) return say("not set: " + state.status().message() + "\n");
  sampling_ = std::move(changed);
  return Status::ok();
}

Status Chat::thinking(const std::string& text) {
  if (text != "on" && text != "off") return say("expected /thinking on or /thinking off\n");
  thinking_ = text == "on";
  return Status::ok();
}

// Piped lines come one after the other: what follows a message waits for its answer.
Status Chat::move_if_asked() {
  if (!terminal_) return Status::ok();
  for (std::optional<std::string> line = input_.ready();
       line && (*line == "/backend" || line->starts_with("/backend ")); line = input_.ready()) {
    std::string taken;
    (void)input_.next(taken);
    DVT_TRY(say("\n"));
    DVT_TRY(obey(taken));
  }
  return Status::ok();
}

Status Chat::backend(const std::string& name) {
  const std::string before = session_->backend_text();
  if (name.empty() || name == session_->model().backend_name())
    return say("the backend is " + before + "\n");
  DVT_TRY(engine_->settle());
  const Result<BackendMove> moved = session_->move_to(name, "/backend", *engine_);
  if (!moved) return say("still on " + before + ": " + moved.status().message() + "\n");
  return say("now on " + session_->backend_text() + ": " + move_text(*moved) + "\n");
}

Status Chat::stats(const std::string&) {
  return say(last_ ? to_json(stats_node(*last_), 2) + "\n" : "nothing was said yet\n");
}

Status Chat::history(const std::string&) {
  std::string text;
  for (const Node& m : messages_.items()) {
    const std::string& role = m.find("role")->as_string();
    if (const Node* reasoning = m.find("reasoning_content"))
      text += role + " (reasoning): " + reasoning->as_string() + "\n";
    const Node* calls = m.find("tool_calls");
    if (const std::string& content = m.find("content")->as_string(); !content.empty() || !calls)
      text += role + ": " + content + "\n";
    if (calls == nullptr) continue;
    for (const Node& call : calls->items()) {
      const Node& function = *call.find("function");
      text += role + ": call " + function.find("name")->as_string() + " " +
              function.find("arguments")->as_string() + "\n";
    }
  }
  return say(text.empty() ? "nothing was said yet\n" : text);
}

Status Chat::save(const std::string& path) {
  if (path.empty()) return say("expected /save FILE\n");
  Node out = Node::make_map();
  out.set("messages", messages_);
  const Status saved = write_file(path, to_json(out, 2) + "\n");
  return say(saved.is_ok() ? "saved to " + path + "\n" : "not saved: " + saved.message() + "\n");
}

Status Chat::leave(const std::string&) {
  left_ = true;
  return Status::ok();
}

}  // namespace

void add_chat_command(Cli& cli) {
  auto options = std::make_shared<ChatOptions>();
  CLI::App* command = cli.app.add_subcommand("chat", "Talk with a model; /help lists commands");
  options->model.default_config = "demo-chat.yaml";
  options->model.add_to(*command, false, /*with_json=*/false);
  command->add_flag(
      "--json", options->model.json,
      "print each answer as a JSON object on a line; all else goes to standard error");
  command->add_option(
      "--tools", options->tools,
      "a JSON file with the functions that the model may call; /tool answers a call");
  command->footer(
      "Examples:\n  dovetail chat    the embedded model goes on with what you say\n"
      "  dovetail chat models/Qwen3-0.6B\n  dovetail chat configs/qwen3-0.6b.yaml --set "
      "chat.enable_thinking=false\n  dovetail chat models/Qwen3-0.6B --tools tools.json");
  command->callback([&cli, options] {
    cli.action = [&cli, options]() -> Status {
      DVT_TRY(const std::unique_ptr<Chat> chat, Chat::open(cli.program, *options));
      return chat->run();
    };
  });
}

}  // namespace dovetail::core
