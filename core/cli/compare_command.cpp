// compare: two models, or one in two ways, on a prompt: layer by layer, then what they would say next.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>

#include "core/base/files.hpp"
#include "core/base/json.hpp"
#include "core/cli/answer.hpp"
#include "core/cli/command.hpp"
#include "core/cli/compare_report.hpp"
#include "core/cli/session.hpp"
#include "core/model/memory_plan.hpp"

namespace dovetail::core {
namespace {

constexpr const char* kDefaultPrompt =
    "It is a truth universally acknowledged, that the weather in London is seldom the same on two "
    "days of a week.";

struct CompareOptions {
  ModelOptions model;              // what both have: --set, --json
  std::vector<std::string> words;  // [A] [B] [PROMPT]
  std::vector<std::string> a_sets, b_sets;
  std::vector<uint32_t> ids;
  std::optional<double> tolerance;
  bool raw = false;
};

struct Sides {
  ModelOptions a, b;
  std::string prompt;
};

// The first words that name configs are A and B; of three words the first two are, whatever they name, and with
// --ids all.
Result<Sides> split_sides(const CompareOptions& o) {
  std::vector<std::string> configs, rest = o.words;
  const size_t n_prompts = o.ids.empty() ? 1 : 0;
  while (!rest.empty() && configs.size() < 2 &&
         (n_prompts == 0 || rest.size() == 3 - configs.size() || names_a_config(rest[0]))) {
    configs.push_back(rest[0]);
    rest.erase(rest.begin());
  }
  if (n_prompts == 0 && !rest.empty())
    return invalid("got \"" + rest[0] + "\" beside two configs and --ids; give a prompt or ids");
  Sides out;
  if (configs.size() == 2 && rest.size() == 1) {
    out.prompt = rest[0];
  } else {
    std::string more;
    DVT_TRY(split_words(rest, more, out.prompt));  // says what is wrong with several words
    if (!more.empty()) configs.push_back(more);
  }
  if (configs.size() > 2)
    return invalid("\"" + configs[2] + "\" is a third config; two can be compared");
  if (!configs.empty()) out.a.config = configs[0];
  out.b.config = configs.size() > 1 ? configs[1] : out.a.config;
  const bool is_one = configs.size() < 2;
  if (is_one && o.a_sets.empty() && o.b_sets.empty())
    return invalid(
        "there is nothing to compare with; give a second config, or what B has differently: "
        "--b-set backend.weights=int4");
  for (ModelOptions* side : {&out.a, &out.b}) {
    side->sets = o.model.sets;
    const std::vector<std::string>& own = side == &out.a ? o.a_sets : o.b_sets;
    side->sets.insert(side->sets.end(), own.begin(), own.end());
    side->sets.emplace_back("scheduler.max_seqs=1");
  }
  return out;
}

std::string counts_text(const std::vector<std::string>& formats) {
  std::map<std::string, size_t> counts;
  for (const std::string& f : formats) ++counts[f];
  std::string out;
  for (const auto& [format, n] : counts)
    out += (out.empty() ? "" : ", ") +
           (counts.size() == 1 ? format : std::to_string(n) + " of " + format);
  return out.empty() ? "none" : out;
}

Result<ComparedSide> side_of(Session& session) {
  const Model& model = session.model();
  ComparedSide out;
  out.config = session.runtime().config_name();
  out.backend = model.backend_name() + " (" + model.backend_variant() + ")";
  out.formats = model.weights().matrix_formats();
  out.weights = counts_text(out.formats);
  out.least_bits = model.weights().least_bits();
  out.kv_bits = kv_dtype_bits(model.kv_dtype());
  out.kv_cache = kv_dtype_name(model.kv_dtype());
  out.n_layers = model.n_layers();
  out.d_model = model.d_model();
  out.vocab_size = model.vocab_size();
  if (const Tokenizer* tokenizer = model.tokenizer())
    for (uint32_t id = 0; id < tokenizer->n_ids(); ++id) {
      // An id that the tokenizer leaves out has no piece.
      const Result<std::string> piece = tokenizer->piece(id);
      out.pieces.push_back(piece ? *piece : std::string());
    }
  return out;
}

// Both must mean the same tokens by the same ids: what is compared is what they say next.
Status check_same_vocabulary(const ComparedSide& a, const ComparedSide& b) {
  const std::string other = "; logits of different vocabularies cannot be compared";
  if (a.pieces.empty() || b.pieces.empty()) {
    if (a.vocab_size == b.vocab_size) return Status::ok();
    return invalid("A has a vocabulary of " + std::to_string(a.vocab_size) + " ids, B one of " +
                   std::to_string(b.vocab_size) + other);
  }
  const size_t n = std::min(a.pieces.size(), b.pieces.size());
  for (size_t id = 0; id < n; ++id)
    if (a.pieces[id] != b.pieces[id])
      return invalid("A and B have different tokenizers: id " + std::to_string(id) + " is " +
                     to_json(Node::make_string(a.pieces[id])) + " in A, " +
                     to_json(Node::make_string(b.pieces[id])) + " in B" + other);
  if (a.pieces.size() != b.pieces.size())
    return invalid("A's tokenizer has " + std::to_string(a.pieces.size()) + " ids, B's " +
                   std::to_string(b.pieces.size()) + other);
  return Status::ok();
}

// The ids whose logits both have and that stand for something.
size_t shared_ids(const ComparedSide& a, const ComparedSide& b) {
  if (a.vocab_size == b.vocab_size) return static_cast<size_t>(a.vocab_size);
  return std::min(
      {static_cast<size_t>(a.vocab_size), static_cast<size_t>(b.vocab_size), a.pieces.size()});
}

uint32_t step_len(const Session& session) {
  return static_cast<uint32_t>(session.settings().scheduler.max_batch_tokens);
}

// One is loaded, run and let go before the other: together they need not fit.
Result<ComparisonReport> compare(const std::string& program, const CompareOptions& o) {
  DVT_TRY(Sides sides, split_sides(o));
  ComparisonReport report;
  report.prompt = sides.prompt;
  if (o.ids.empty() && report.prompt == "-")
    report.prompt.assign(std::istreambuf_iterator<char>(std::cin), {});
  else if (o.ids.empty() && report.prompt.empty())
    report.prompt = kDefaultPrompt;
  SessionOptions options;
  options.observe_layers = options.all_rows = true;
  options.least_context = static_cast<int64_t>(o.ids.size());

  RecordedRun recorded;
  const auto run_a = [&]() -> Status {
    DVT_TRY(const std::unique_ptr<Session> a, Session::open(program, sides.a, options));
    DVT_TRY(report.a, side_of(*a));
    report.ids = o.ids;
    if (report.ids.empty()) {
      DVT_TRY(report.ids, prompt_ids(*a, report.prompt, o.raw));
      if (report.ids.empty()) return invalid("the prompt is empty");
    }
    const uint64_t bytes = recorded_bytes(a->model(), report.ids.size());
    if (bytes > available_memory())
      return {Code::kNoMemory, "the outputs for " + std::to_string(report.ids.size()) +
                                   " tokens take " + bytes_text(bytes) + ", " +
                                   bytes_text(available_memory()) +
                                   " is free; give a shorter prompt"};
    DVT_TRY(recorded, record_run(a->model(), step_len(*a), report.ids));
    return Status::ok();
  };
  const auto run_b = [&]() -> Status {
    DVT_TRY(const std::unique_ptr<Session> b, Session::open(program, sides.b, options));
    DVT_TRY(report.b, side_of(*b));
    DVT_TRY(check_same_vocabulary(report.a, report.b));
    if (o.ids.empty() && b->model().tokenizer()) {
      DVT_TRY(const std::vector<TokenId> ids, prompt_ids(*b, report.prompt, o.raw));
      report.b_reads_other_ids = ids != report.ids;
    }
    DVT_TRY(report.found, compare_with(recorded, b->model(), b->runtime().pool(), step_len(*b),
                                       shared_ids(report.a, report.b)));
    return Status::ok();
  };
  DVT_TRY(run_a().in("A"));
  if (interrupted()) return Status(Code::kCancelled, "interrupted");
  DVT_TRY(run_b().in("B"));
  const bool same_layers =
      report.a.n_layers == report.b.n_layers && report.a.d_model == report.b.d_model;
  report.tolerance = o.tolerance;
  if (!o.tolerance && same_layers) report.tolerance = default_tolerance(report.a, report.b);
  return report;
}

Status run(Cli& cli, const CompareOptions& o) {
  DVT_TRY(const ComparisonReport report, compare(cli.program, o));
  if (report.first_beyond()) cli.found = kExitDiffers;
  return print(o.model.json ? to_json(report.node(), 2) + "\n" : report.text());
}

}  // namespace

void add_compare_command(Cli& cli) {
  auto o = std::make_shared<CompareOptions>();
  CLI::App* command = cli.app.add_subcommand(
      "compare", "Compare two models, or one run in two ways, layer by layer on a prompt");
  command
      ->add_option(
          "words", o->words,
          "configs are told from a prompt as in dovetail run. Without B it is A with other "
          "settings, without A the embedded model; \"-\" reads the prompt from standard "
          "input, without one a sentence is taken")
      ->expected(0, -1)
      ->option_text("[A] [B] [PROMPT]");
  command
      ->add_option("--set", o->model.sets,
                   "override one key of both configs: --set kv_cache.dtype=float32")
      ->allow_extra_args(false);
  command->add_option("--a-set", o->a_sets, "override one key of A's config")
      ->allow_extra_args(false);
  command
      ->add_option("--b-set", o->b_sets,
                   "override one key of B's config: --b-set backend.weights=int4")
      ->allow_extra_args(false);
  command->add_flag("--json", o->model.json, "print one JSON object instead of text");
  command->add_option("--ids", o->ids, "token ids instead of a prompt: --ids 1,2,3")
      ->delimiter(',');
  command->add_flag("--raw", o->raw, "do not apply the checkpoint's chat template");
  command
      ->add_option("--tolerance", o->tolerance,
                   "relative error that an output may have at any position: 0.01 is 1 %; the "
                   "default depends on the weights' formats (docs/cli.md)")
      ->check(CLI::NonNegativeNumber);
  command->footer(
      "Relative errors are |B - A| / |A| of a layer's output for one token. Exit code 6: an output "
      "is beyond the tolerance.\nExamples:\n"
      "  dovetail compare configs/demo.yaml \"Mr. Darcy was\" --b-set backend.weights=int4\n"
      "  dovetail compare models/Qwen3-0.6B models/Qwen3-0.6B-int4 \"Why is the sky blue?\"\n"
      "  dovetail compare configs/qwen3-0.6b.yaml --a-set backend.plugin=reference --tolerance "
      "0.001");
  command->callback([&cli, o] { cli.action = [&cli, o] { return run(cli, *o); }; });
}

}  // namespace dovetail::core
