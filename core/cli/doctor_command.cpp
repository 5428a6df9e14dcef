// doctor: a model's ops one by one on its backend and on one that is trusted; the first that is wrong, as a case to
// run again.
#include <algorithm>
#include <filesystem>
#include <iostream>

#include "core/base/json.hpp"
#include "core/cli/answer.hpp"
#include "core/cli/command.hpp"
#include "core/cli/doctor_report.hpp"
#include "core/cli/session.hpp"
#include "core/config/check_value.hpp"
#include "core/doctor/case_file.hpp"
#include "core/doctor/examination.hpp"
#include "core/doctor/reduction.hpp"
#include "core/engine/sequence.hpp"
#include "core/model/plugin_params.hpp"

namespace dovetail::core {
namespace {

constexpr const char* kDefaultPrompt = "It was a fine evening, and the garden was full of voices.";
constexpr size_t kDefaultIds = 12;  // for a model without a tokenizer

struct DoctorOptions {
  ModelOptions model;
  std::vector<std::string> words;  // [CONFIG] [PROMPT]
  std::vector<uint32_t> ids;
  std::string against = "reference", output;
  std::optional<double> tolerance;
  bool raw = false;
  std::string replay, backend;     // a file, and the backend to run it on
  std::vector<std::string> paths;  // of plugins, with replay
};

// The backend of that name, with what `params` says of its parameters.
Result<CaseBackend> open_backend(Runtime& runtime, const std::string& name, const Node& params) {
  DVT_TRY(LoadedPlugin * plugin, runtime.plugins().load("backend", name));
  CaseBackend out;
  out.name = name;
  out.table = plugin->interface<dvt_backend_v1>("dovetail.backend/1");
  out.plugin = plugin->self;
  if (!out.table) return unsupported("plugin \"" + name + "\" has no interface dovetail.backend/1");
  DVT_TRY(const std::vector<ParamSpec> specs, param_specs(*plugin->table));
  Faults faults;
  check_params(params, specs, name, faults);
  DVT_TRY(faults.status());
  DVT_TRY(out.params, complete_params(params, specs, name));
  return out;
}

Result<std::vector<TokenId>> ids_of(const Session& session, const DoctorOptions& o,
                                    std::string& prompt) {
  const Model& model = session.model();
  std::vector<TokenId> ids(o.ids.begin(), o.ids.end());
  if (ids.empty() && !model.tokenizer() && prompt.empty()) {
    for (size_t i = 0; i < kDefaultIds; ++i)
      ids.push_back(static_cast<TokenId>((7 + 13 * i) % static_cast<size_t>(model.vocab_size())));
  } else if (ids.empty()) {
    if (prompt == "-")
      prompt.assign(std::istreambuf_iterator<char>(std::cin), {});
    else if (prompt.empty())
      prompt = kDefaultPrompt;
    DVT_TRY(ids, prompt_ids(session, prompt, o.raw));
    if (ids.empty()) return invalid("the prompt is empty");
  }
  DVT_TRY(check_ids(model, ids));
  return ids;
}

// "doctor-layers.3.ffn-rms_norm.safetensors"
std::string default_path(const OpFinding& f) {
  std::string name = "doctor-" + (f.scope.empty() ? "" : f.scope + "-") + f.op + ".safetensors";
  for (char& c : name)
    if (c == '/' || c == ' ') c = '_';
  return name;
}

Status keep_case(const DoctorOptions& o, const Model& model, const CaseBackend& checked,
                 DoctorReport& report) {
  const OpFinding& f = *report.found.finding;
  report.case_path = o.output.empty() ? default_path(f) : o.output;
  DVT_TRY(write_case_file(report.case_path, {f.op_case, f.expected, f.tolerance, f.scope, f.op,
                                             checked.name, report.trusted, model.arch_name(),
                                             checked.params, checked.kv_dtype, checked.page_len}));
  std::error_code error;
  const uintmax_t size = std::filesystem::file_size(report.case_path, error);
  report.case_bytes = error ? 0 : size;
  return Status::ok();
}

Status examine_model(Cli& cli, const DoctorOptions& o) {
  DoctorReport report;
  ModelOptions options = o.model;
  if (o.words.size() == 1 && !o.ids.empty())
    options.config = o.words[0];  // a prompt has no place
  else
    DVT_TRY(split_words(o.words, options.config, report.prompt));
  if (!o.ids.empty() && !report.prompt.empty())
    return invalid("got \"" + report.prompt + "\" beside --ids; give a prompt or ids");
  SessionOptions session_options;
  session_options.plan_only = true;  // each case loads what it needs
  session_options.least_context = static_cast<int64_t>(o.ids.size());
  DVT_TRY(const std::unique_ptr<Session> session,
          Session::open(cli.program, options, session_options));
  const Model& model = session->model();
  Runtime& runtime = session->runtime();
  const PluginUse& use = session->settings().backend.plugin;
  DVT_TRY(CaseBackend checked, open_backend(runtime, use.name, use.params));
  checked.kv_dtype = model.kv_dtype();
  checked.page_len = model.block_len();
  DVT_TRY(CaseBackend trusted, open_backend(runtime, o.against, Node::make_map()));
  // The same cache: its rounding is no error of the op. One that only the checked backend has is held to float32.
  const bool is_common = checked.kv_dtype == DVT_BF16 || checked.kv_dtype == DVT_I8_SCALED;
  trusted.kv_dtype = is_common ? checked.kv_dtype : uint32_t{DVT_F32};
  trusted.page_len = model.block_len();
  DVT_TRY(const std::vector<TokenId> ids, ids_of(*session, o, report.prompt));
  report.config = runtime.config_name();
  report.backend = checked.name;
  report.variant = model.backend_variant();
  report.trusted = trusted.name;
  report.ids.assign(ids.begin(), ids.end());

  Progress progress;
  const ExaminationInput in{model,
                            checked,
                            trusted,
                            runtime.ops(),
                            report.ids,
                            o.tolerance,
                            interrupt_flag(),
                            [&progress](size_t done, size_t total, std::string_view what) {
                              progress.update("examining ops", done, total, what);
                            }};
  DVT_TRY(report.found, examine(in));
  progress.finish();
  if (report.found.finding) {
    DVT_TRY(keep_case(o, model, checked, report));
    cli.found = kExitDiffers;
  }
  return print(o.model.json ? to_json(report.node(), 2) + "\n" : report.text());
}

// Ops of plugins come with the architecture that the case was found in.
Status add_plugin_ops(Runtime& runtime, const CaseFile& file) {
  const bool has_any =
      std::any_of(file.op_case.nodes.begin(), file.op_case.nodes.end(),
                  [](const OpCase::Node& n) { return n.op.find('/') != std::string::npos; });
  if (!has_any) return Status::ok();
  DVT_TRY(LoadedPlugin * plugin, runtime.plugins().load("arch", file.arch));
  const auto* own = plugin->interface<dvt_op_set_v1>("dovetail.op/1");
  for (uint32_t i = 0; own && i < own->n_ops; ++i) {
    DVT_TRY(runtime.ops().add_plugin_op(own->ops[i]));
    DVT_TRY(runtime.host().ops().add(own->ops[i]));
  }
  return Status::ok();
}

Status replay(Cli& cli, const DoctorOptions& o) {
  if (!o.words.empty() || !o.ids.empty() || !o.model.sets.empty())
    return invalid("--replay takes no config, prompt, ids or --set: all of them stand in the file");
  DVT_TRY(const CaseFile file, read_case_file(o.replay));
  DVT_TRY(const std::unique_ptr<Runtime> runtime, Runtime::open_plugins_only(cli.program, o.paths));
  const bool is_same = o.backend.empty() || o.backend == file.backend;
  DVT_TRY(CaseBackend backend,
          open_backend(*runtime, is_same ? file.backend : o.backend,
                       is_same && file.params.is_map() ? file.params : Node::make_map()));
  backend.kv_dtype = file.kv_dtype;
  backend.page_len = file.page_len;
  DVT_TRY(add_plugin_ops(*runtime, file));
  const Result<CaseGraph> made = graph_of(file.op_case, runtime->ops());
  if (!made) return bad_format(made.status().in(o.replay).message());
  DVT_TRY(const CaseOutputs got, run_case(file.op_case, backend, runtime->ops(), interrupt_flag()));

  CaseOutputs expected{got.values, file.expected, {}};
  for (size_t i = 0; i < got.numbers.size(); ++i)
    if (i >= expected.numbers.size() || expected.numbers[i].size() != got.numbers[i].size())
      return bad_format(o.replay + ": what is expected has not the shape that the case gives");
  const Wrong wrong = worst_of(file.op_case, std::move(expected), got);
  ReplayReport report{o.replay,    backend.name, file,
                      wrong.error, wrong.value,  got.values[wrong.value].tail};
  report.is_native =
      std::none_of(got.placements.begin(), got.placements.end(),
                   [](const Placement& p) { return p.runs == Placement::Runs::kByDefinition; });
  if (report.error.is_beyond(file.tolerance)) cli.found = kExitDiffers;
  return print(o.model.json ? to_json(report.node(), 2) + "\n" : report.text());
}

}  // namespace

void add_doctor_command(Cli& cli) {
  auto o = std::make_shared<DoctorOptions>();
  CLI::App* command = cli.app.add_subcommand(
      "doctor", "Find the first op that a backend computes wrongly, by a prompt of your own");
  command
      ->add_option("words", o->words,
                   "a YAML file or a model's folder, and a prompt (\"-\": standard input); by "
                   "default the embedded model and a sentence")
      ->expected(0, -1)
      ->option_text("[CONFIG] [PROMPT]");
  command->add_option("--against", o->against, "the backend that is trusted (reference)");
  command
      ->add_option("--set", o->model.sets,
                   "override one key of the config: --set backend.plugin=cuda")
      ->allow_extra_args(false);
  command->add_flag("--json", o->model.json, "print one JSON object instead of text");
  command->add_option("--ids", o->ids, "token ids instead of a prompt: --ids 1,2,3")
      ->delimiter(',');
  command->add_flag("--raw", o->raw, "do not apply the checkpoint's chat template");
  command
      ->add_option("--tolerance", o->tolerance,
                   "relative error that a row of an op's output may have: 0.01 is 1 %; the default "
                   "depends on the op's formats (docs/cli.md)")
      ->check(CLI::PositiveNumber);
  command->add_option("-o,--output", o->output,
                      "where the case is written (doctor-SCOPE-OP.safetensors)");
  command->add_option("--replay", o->replay, "run the case of this file again instead");
  command
      ->add_option("--backend", o->backend,
                   "with --replay: on this backend, not the one that the case was found on")
      ->needs("--replay");
  command
      ->add_option("--path", o->paths,
                   "with --replay: a further folder with plugins, as plugins.path of a config")
      ->needs("--replay")
      ->allow_extra_args(false);
  command->footer(
      "Exit code 6: an op is beyond its tolerance.\nExamples:\n"
      "  dovetail doctor configs/qwen3-0.6b.yaml \"Why is the sky blue?\"\n"
      "  dovetail doctor --set backend.plugin=cuda --against cpu\n"
      "  dovetail doctor --replay doctor-layers.0.attn-rms_norm.safetensors");
  command->callback([&cli, o] {
    cli.action = [&cli, o] { return o->replay.empty() ? examine_model(cli, *o) : replay(cli, *o); };
  });
}

}  // namespace dovetail::core
