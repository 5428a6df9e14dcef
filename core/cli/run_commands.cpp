// run: one answer, streamed.
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <iostream>

#include "core/base/json.hpp"
#include "core/base/log.hpp"
#include "core/cli/answer.hpp"
#include "core/cli/command.hpp"
#include "core/cli/explanation.hpp"
#include "core/cli/reply_printer.hpp"
#include "core/cli/session.hpp"
#include "core/cli/swaps.hpp"

namespace dovetail::core {
namespace {

struct RunOptions {
  ModelOptions model;
  std::vector<std::string> words;  // [CONFIG] [PROMPT], told apart by names_a_config
  std::vector<uint32_t> ids;
  std::vector<std::string> swaps;  // TOKENS:BACKEND
  std::string tools;               // a file
  bool raw = false, explain = false;
  std::optional<int32_t> max_tokens;
  std::optional<int64_t> seed;
};

// Where each op would run: no weights are loaded, nothing is generated.
Status explain(const std::string& program, const RunOptions& o) {
  SessionOptions options;
  options.plan_only = true;
  DVT_TRY(const std::unique_ptr<Session> session, Session::open(program, o.model, options));
  return print(o.model.json ? to_json(explanation_node(session->model()), 2) + "\n"
                            : explanation_text(session->model()));
}

Status run(const std::string& program, RunOptions o) {
  DVT_TRY(Swaps swaps, Swaps::parse(o.swaps));
  std::string prompt;
  if (o.words.size() == 1 && !o.ids.empty())
    o.model.config = o.words[0];  // a prompt has no place
  else
    DVT_TRY(split_words(o.words, o.model.config, prompt));
  if (o.explain && o.ids.empty() && prompt.empty()) return explain(program, o);
  const bool from_stdin =
      o.ids.empty() && (prompt == "-" || (prompt.empty() && isatty(STDIN_FILENO) == 0));
  if (from_stdin) prompt.assign(std::istreambuf_iterator<char>(std::cin), {});
  if (o.ids.empty() && prompt.empty())
    return invalid("there is no prompt" +
                   (o.model.config.empty() ? "" : " for the config \"" + o.model.config + "\"") +
                   "; give one as the last argument or on standard input");

  DVT_TRY(const std::unique_ptr<Session> session, Session::open(program, o.model));
  if (o.explain && !o.model.json)
    std::fputs(printable(explanation_text(session->model()), /*keep_line_breaks=*/true).c_str(),
               stderr);
  const Model& model = session->model();
  std::optional<ChatFormat> format;
  if (o.ids.empty() && is_chat(model, o.raw)) {
    DVT_TRY(format, open_chat_format(*session, o.tools));
  } else if (!o.tools.empty()) {
    return invalid("--tools needs a chat template, and there is none for this prompt");
  }
  ChatPrompt ready{o.ids};
  if (o.ids.empty()) {
    DVT_TRY(ready, read_prompt(*session, prompt, format ? &*format : nullptr));
  }
  const std::unique_ptr<Engine> engine = session->make_engine();
  RequestParams params = session->request_params();
  params.prompt = ready.ids;
  if (o.max_tokens) params.max_tokens = static_cast<uint32_t>(*o.max_tokens);
  if (o.seed) params.seed = static_cast<uint64_t>(*o.seed);

  const bool has_text = model.tokenizer() != nullptr;
  const bool stream = !o.model.json && has_text;
  // A model without a chat template continues the prompt: show it as one text.
  if (stream && o.ids.empty() && !format) DVT_TRY(print(prompt));
  ReplyPrinter printer;
  DVT_TRY(const Answer answer,
          ask(
              *engine, std::move(params), format ? &*format : nullptr, &ready, o.model.json,
              [&](const ReplyEvent& e) { return stream ? printer.show(e) : Status::ok(); },
              [&](size_t n) { return swaps.before_step(n, *session, *engine); }));
  if (answer.completion.finish == FinishReason::kError) return answer.completion.error;
  if (o.model.json) {
    Node node = answer_node(answer, has_text);
    if (o.explain) node.set("explanation", explanation_node(model));
    if (!swaps.empty()) node.set("swaps", swaps.node());
    DVT_TRY(print(to_json(node, 2) + "\n"));
  } else if (!has_text) {
    std::string line;
    for (TokenId t : answer.completion.tokens)
      line += (line.empty() ? "" : ",") + std::to_string(t);
    DVT_TRY(print(line + "\n"));
  } else {
    DVT_TRY(printer.finish());
  }
  const std::string swapped = swaps.finish();
  if (!o.model.json) std::fputs(swapped.c_str(), stderr);
  warn_of_early_end(answer, model);
  if (answer.completion.finish == FinishReason::kCancelled)
    return {Code::kCancelled, "interrupted; the text above is what there was"};
  return Status::ok();
}

}  // namespace

void add_run_commands(Cli& cli) {
  auto o = std::make_shared<RunOptions>();
  CLI::App* command = cli.app.add_subcommand("run", "Answer or continue one prompt, streamed");
  command
      ->add_option(
          "words", o->words,
          "a config is a YAML file, a model's folder or a path in a folder that is there; "
          "else it is a prompt for the embedded model. \"-\" reads the prompt from standard input")
      ->expected(0, -1)
      ->option_text("[CONFIG] [PROMPT]");
  command
      ->add_option("--set", o->model.sets,
                   "override one key of the config: --set sampler.0.temperature=0.2")
      ->allow_extra_args(false);
  command->add_flag(
      "--json", o->model.json,
      "print text (also as content, reasoning and tool calls), ids, finish reason and timings as "
      "one JSON object");
  command->add_option("--ids", o->ids, "token ids instead of a prompt: --ids 1,2,3")
      ->delimiter(',');
  command->add_option("--tools", o->tools,
                      "a JSON file with the functions that the model may call, for its template");
  command->add_flag("--raw", o->raw, "do not apply the checkpoint's chat template");
  command->add_flag("--explain", o->explain,
                    "say where each op runs, natively or by its definition, and why: before the "
                    "answer on standard error, or in its JSON; without a prompt alone");
  command
      ->add_option("-n,--max-tokens", o->max_tokens,
                   "tokens to generate at most (generate.max_tokens)")
      ->check(CLI::Range(0, INT32_MAX));
  command->add_option("--seed", o->seed, "seed of the sampler (generate.seed)")
      ->check(integer_up_to(INT64_MAX));
  command
      ->add_option("--swap", o->swaps,
                   "go on with another backend once the answer has so many tokens: --swap "
                   "20:reference; may be repeated")
      ->allow_extra_args(false)
      ->option_text("TOKENS:BACKEND");
  command->footer(
      "Examples:\n  dovetail run \"It was a dark night\"\n  dovetail run configs/qwen3-0.6b.yaml "
      "\"Why is the sky blue?\" -n 200\n"
      "  cat letter.txt | dovetail run models/Qwen3-0.6B -\n  dovetail run --ids 1,2,3 --json");
  command->callback([&cli, o] { cli.action = [&cli, o] { return run(cli.program, *o); }; });
  add_chat_command(cli);
}

}  // namespace dovetail::core
