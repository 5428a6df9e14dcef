// perplexity: how well a model predicts a text, with the rules of counting said.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <optional>

#include "core/base/files.hpp"
#include "core/base/json.hpp"
#include "core/cli/command.hpp"
#include "core/cli/piece_json.hpp"
#include "core/cli/session.hpp"
#include "core/measure/perplexity.hpp"
#include "core/text/prompt.hpp"

namespace dovetail::core {
namespace {

constexpr uint32_t kDefaultContext = 512;
constexpr uint64_t kMostTextBytes = uint64_t{1} << 30;

struct PerplexityOptions {
  ModelOptions model;
  std::string file;  // empty or "-": standard input
  std::vector<uint32_t> ids;
  std::optional<uint32_t> context, stride;
  uint32_t n_windows = 0;
};

// A text as the model reads it: a prefix of the tokenizer's, then the text's own tokens.
struct ScoredText {
  std::string name;  // for people
  std::vector<TokenId> ids;
  size_t n_prefix = 0;
  std::vector<dvt_tok>
      tokens;  // those after the prefix, with their bytes; none where ids were given
};

Result<std::string> read_text(const PerplexityOptions& o) {
  const bool is_stdin = o.file.empty() || o.file == "-";
  if (is_stdin && o.file.empty() && isatty(STDIN_FILENO) != 0)
    return invalid("there is no text; give a file, or a text on standard input");
  std::string text;
  if (is_stdin) {
    text.assign(std::istreambuf_iterator<char>(std::cin), {});
  } else {
    DVT_TRY(const std::shared_ptr<File> file, File::open(o.file));
    DVT_TRY(text, file->read_all(kMostTextBytes));
  }
  if (text.empty()) return invalid((is_stdin ? "standard input" : o.file) + ": the text is empty");
  return text;
}

Result<ScoredText> scored_text(const PerplexityOptions& o, const std::string& text,
                               const Model& model) {
  ScoredText out;
  if (!o.ids.empty()) {
    out.name = "the ids";
    out.ids = o.ids;
    for (const TokenId id : o.ids)
      if (static_cast<int64_t>(id) >= model.vocab_size())
        return invalid("--ids has " + std::to_string(id) + ", expected ids of the vocabulary of " +
                       std::to_string(model.vocab_size()));
    return out;
  }
  out.name = o.file.empty() || o.file == "-" ? "standard input" : o.file;
  if (!model.tokenizer()) return invalid("this model has no tokenizer; give ids with --ids 1,2,3");
  DVT_TRY(BareText bare, encode_bare(*model.tokenizer(), text));
  out.n_prefix = bare.prefix.size();
  out.ids = std::move(bare.prefix);
  for (const dvt_tok& t : bare.tokens) out.ids.push_back(t.id);
  out.tokens = std::move(bare.tokens);
  return out;
}

// Bytes of the text that the counted tokens stand for.
uint64_t counted_bytes(const ScoredText& text, const std::vector<TextWindow>& windows) {
  uint64_t sum = 0;
  for (const TextWindow& w : windows) {
    const size_t first = w.counted - text.n_prefix;
    const uint64_t begin = first == 0 ? 0 : text.tokens[first - 1].end;
    sum += text.tokens[w.end - text.n_prefix - 1].end - begin;
  }
  return sum;
}

struct Score {
  WindowRule rule;
  std::vector<TextWindow> windows;
  RunningMean nll;
  std::optional<double> bits_per_byte;
  double seconds = 0;

  double perplexity() const { return std::exp(nll.mean()); }
  double perplexity_error() const { return perplexity() * nll.standard_error(); }
  double bits_per_token() const { return nll.mean() / std::log(2.0); }
};

Result<Score> score(Session& session, const PerplexityOptions& o, const ScoredText& text) {
  Model& model = session.model();
  const int64_t held = std::min<int64_t>(
      model.max_seq_len(), int64_t{model.n_blocks()} * std::max<int64_t>(model.block_len(), 1));
  Score out;
  out.rule.context =
      o.context.value_or(static_cast<uint32_t>(std::min<int64_t>(kDefaultContext, held)));
  if (o.stride) out.rule.stride = *o.stride;
  out.rule.n_prefix = text.n_prefix;
  out.rule.most = o.n_windows;
  if (o.stride && *o.stride > out.rule.context)
    return invalid("--stride is " + std::to_string(*o.stride) +
                   ", expected at most the tokens of a window, " +
                   std::to_string(out.rule.context) + " (--context)");
  if (text.ids.size() < out.rule.context)
    return invalid(text.name + ": the text has " + std::to_string(text.ids.size()) +
                   " tokens, expected at least those of a window, " +
                   std::to_string(out.rule.context) +
                   "; give a longer text or a smaller --context");
  out.windows = windows_of(text.ids.size(), out.rule);
  if (out.windows.empty())
    return invalid("windows of " + std::to_string(out.rule.context) +
                   " tokens leave none to count; give a larger --context");
  Progress progress;
  const auto start = std::chrono::steady_clock::now();
  const WindowProgress report = [&progress](size_t done, size_t total) -> Status {
    progress.update("measuring perplexity", done, total);
    return interrupted() ? Status(Code::kCancelled, "interrupted") : Status::ok();
  };
  DVT_TRY(out.nll, measure_nll(model, session.runtime().pool(),
                               static_cast<uint32_t>(session.settings().scheduler.max_batch_tokens),
                               text.ids, out.rule, out.windows, report));
  progress.finish();
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!text.tokens.empty())
    if (const uint64_t n_bytes = counted_bytes(text, out.windows); n_bytes > 0)
      out.bits_per_byte =
          out.bits_per_token() * static_cast<double>(out.nll.n()) / static_cast<double>(n_bytes);
  return out;
}

Result<Node> prefix_node(const ScoredText& text, const Model& model) {
  Node out = Node::make_list();
  for (size_t i = 0; i < text.n_prefix; ++i) {
    Node entry = Node::make_map();
    entry.set("id", Node::make_int(text.ids[i]));
    DVT_TRY(const std::string piece, model.tokenizer()->piece(text.ids[i]));
    set_piece(entry, piece);
    out.items().push_back(std::move(entry));
  }
  return out;
}

Result<Node> score_node(const Score& s, const ScoredText& text, Session& session) {
  Node out = Node::make_map();
  const auto integer = [](size_t n) { return Node::make_int(static_cast<int64_t>(n)); };
  out.set("model", Node::make_string(session.runtime().config_name()));
  out.set("backend", Node::make_string(session.model().backend_name()));
  out.set("text", Node::make_string(text.name));
  out.set("perplexity", Node::make_float(s.perplexity()));
  out.set("perplexity_error", Node::make_float(s.perplexity_error()));
  out.set("nll", Node::make_float(s.nll.mean()));
  out.set("nll_error", Node::make_float(s.nll.standard_error()));
  out.set("bits_per_token", Node::make_float(s.bits_per_token()));
  out.set("bits_per_byte", s.bits_per_byte ? Node::make_float(*s.bits_per_byte) : Node());
  out.set("tokens", integer(text.ids.size()));
  out.set("tokens_counted", integer(s.nll.n()));
  out.set("context", integer(s.rule.context));
  out.set("stride", s.rule.stride ? integer(*s.rule.stride) : Node());
  out.set("windows", integer(s.windows.size()));
  DVT_TRY(Node prefix, prefix_node(text, session.model()));
  out.set("prefix", std::move(prefix));
  out.set("seconds", Node::make_float(s.seconds));
  return out;
}

Result<std::string> score_text(const Score& s, const ScoredText& text, Session& session) {
  std::string begins = text.tokens.empty() ? "as the ids do" : "as the text does";
  for (size_t i = 0; i < text.n_prefix; ++i) {
    DVT_TRY(const std::string piece, session.model().tokenizer()->piece(text.ids[i]));
    begins = (i == 0 ? "with " : begins + " ") + to_json(Node::make_string(piece));
  }
  const std::string counted = s.rule.stride ? "one every " + std::to_string(*s.rule.stride) +
                                                  ", each counts what the one before did not"
                                            : "the second half of each counted";
  char numbers[400];
  std::snprintf(numbers, sizeof numbers, "perplexity %.4f +- %.4f over %zu tokens of ",
                s.perplexity(), s.perplexity_error(), s.nll.n());
  std::string out = numbers + text.name + "\n";
  out += "  model           " + session.runtime().config_name() + " on " +
         session.model().backend_name() + "\n";
  out += "  windows         " + std::to_string(s.windows.size()) + " of " +
         std::to_string(s.rule.context) + " tokens, " + counted + "\n";
  out += "  each begins     " + begins + "\n";
  std::snprintf(numbers, sizeof numbers, "  bits per token  %.4f\n", s.bits_per_token());
  out += numbers;
  if (s.bits_per_byte) {
    std::snprintf(numbers, sizeof numbers, "  bits per byte   %.4f\n", *s.bits_per_byte);
    out += numbers;
  }
  std::snprintf(numbers, sizeof numbers, "  time            %.1f s\n", s.seconds);
  return out + numbers;
}

Status run(const std::string& program, const PerplexityOptions& o) {
  std::string text;
  if (o.ids.empty()) {
    DVT_TRY(text, read_text(o));
  }
  ModelOptions model_options = o.model;
  model_options.sets.push_back("scheduler.max_seqs=1");
  if (o.context) {
    const std::string context = std::to_string(*o.context);
    model_options.sets.push_back("context=" + context);
    model_options.sets.push_back("kv_cache.max_tokens=" + context);
  }
  SessionOptions session_options;
  session_options.all_rows = true;
  DVT_TRY(const std::unique_ptr<Session> session,
          Session::open(program, model_options, session_options));
  DVT_TRY(const ScoredText scored, scored_text(o, text, session->model()));
  DVT_TRY(const Score s, score(*session, o, scored));
  if (o.model.json) {
    DVT_TRY(const Node node, score_node(s, scored, *session));
    return print(to_json(node, 2) + "\n");
  }
  DVT_TRY(const std::string report, score_text(s, scored, *session));
  return print(report);
}

}  // namespace

void add_perplexity_command(Cli& cli) {
  auto o = std::make_shared<PerplexityOptions>();
  CLI::App* command = cli.app.add_subcommand(
      "perplexity",
      "Measure how well a model predicts a text: perplexity, bits per token and byte");
  o->model.add_to(*command, true);
  CLI::Option* file =
      command->add_option("FILE", o->file, "a text in UTF-8; without it, or \"-\": standard input");
  command->add_option("--ids", o->ids, "token ids instead of a text, read as they are: --ids 1,2,3")
      ->delimiter(',')
      ->excludes(file);
  command
      ->add_option("-c,--context", o->context,
                   "tokens of a window (512, or what the model and its cache hold if that is less)")
      ->check(CLI::Range(4, 1 << 24));
  command
      ->add_option("--stride", o->stride,
                   "a window every so many tokens, which counts what the one before did not; "
                   "without it windows lie side by side and each counts its second half")
      ->check(CLI::Range(1, 1 << 24));
  command->add_option("--windows", o->n_windows, "windows at most, from the text's beginning")
      ->check(CLI::Range(1, 1 << 30));
  command->footer(
      "The tokens that the tokenizer puts before every text (BOS) stand at the beginning of every "
      "window.\nExamples:\n  dovetail perplexity configs/demo.yaml book.txt\n"
      "  dovetail perplexity models/model.gguf book.txt --context 2048 --stride 512 --json\n"
      "  cat book.txt | dovetail perplexity configs/demo.yaml --set backend.weights=int4");
  command->callback([&cli, o] { cli.action = [&cli, o] { return run(cli.program, *o); }; });
}

}  // namespace dovetail::core
