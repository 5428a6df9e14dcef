// logits: float32 logits of every position (and layer outputs) as safetensors, for comparisons.
#include <algorithm>
#include <deque>

#include "core/cli/command.hpp"
#include "core/cli/session.hpp"
#include "core/engine/sequence.hpp"
#include "core/model/tensor_file.hpp"

namespace dovetail::core {
namespace {

struct LogitsOptions {
  ModelOptions model;
  std::vector<uint32_t> ids;
  std::string output;
  bool layers = false, steps = false;
  uint32_t chunk = 0;  // tokens of a step; 0 = as many as fit
};

// Named float32 arrays, filled step by step.
class LogitsFile {
 public:
  std::vector<float>& add(const std::string& name, std::vector<int64_t> shape) {
    size_t n = 1;
    for (int64_t d : shape) n *= static_cast<size_t>(d);
    return entries_.emplace_back(Entry{name, std::move(shape), std::vector<float>(n)}).data;
  }
  Status write(const std::string& path) const {
    std::vector<NamedArray> arrays;
    for (const Entry& e : entries_)
      arrays.push_back({e.name, "F32", e.shape, std::as_bytes(std::span<const float>(e.data))});
    return write_tensor_file(path, arrays);
  }

 private:
  struct Entry {
    std::string name;
    std::vector<int64_t> shape;
    std::vector<float> data;
  };
  std::deque<Entry> entries_;
};

Status run(const std::string& program, const LogitsOptions& o) {
  if (o.ids.empty()) return invalid("--ids is empty; give at least one id: --ids 1,2,3");
  ModelOptions model_options = o.model;
  SessionOptions session_options;
  session_options.observe_layers = o.layers;
  session_options.all_rows = true;
  session_options.least_context = static_cast<int64_t>(o.ids.size());
  DVT_TRY(const std::unique_ptr<Session> session,
          Session::open(program, model_options, session_options));
  Model& model = session->model();
  DVT_TRY(check_ids(model, o.ids));
  if (o.layers && model.n_layer_outputs() != model.n_layers())
    return unsupported("architecture \"" + model.arch_name() + "\" names the outputs of " +
                       std::to_string(model.n_layer_outputs()) + " of its " +
                       std::to_string(model.n_layers()) + " layers; leave --layers out");

  const auto n = static_cast<int64_t>(o.ids.size());
  LogitsFile file;
  std::vector<float>& logits = file.add("logits", {n, model.vocab_size()});
  SequenceWants wants;
  wants.step_len = o.steps ? 1 : o.chunk;
  std::vector<std::vector<float>*> layers;
  for (uint32_t i = 0; i < model.n_layer_outputs(); ++i) {
    const std::string& name =
        wants.values.emplace_back(layer_output_name(i), static_cast<size_t>(model.d_model())).name;
    layers.push_back(&file.add(name, {n, model.d_model()}));
  }
  const auto put = [](std::vector<float>& all, size_t row, std::span<const float> rows,
                      size_t n_rows) {
    if (n_rows > 0)
      std::copy(rows.begin(), rows.end(),
                all.begin() + static_cast<std::ptrdiff_t>(row * (rows.size() / n_rows)));
  };
  Sequence sequence(model, static_cast<uint32_t>(session->settings().scheduler.max_batch_tokens),
                    o.ids);
  DVT_TRY(sequence.run(wants, [&](const SequenceStep& step) {
    put(logits, step.first_row, step.logits, step.n_rows);
    for (size_t i = 0; i < layers.size(); ++i)
      put(*layers[i], step.first, step.values[i], step.n_tokens);
    return Status::ok();
  }));
  DVT_TRY(file.write(o.output));
  return print(o.output + ": logits of " + std::to_string(n) + " positions" +
               (o.layers ? ", outputs of " + std::to_string(layers.size()) + " layers" : "") +
               "\n");
}

}  // namespace

void add_logits_command(Cli& cli) {
  auto o = std::make_shared<LogitsOptions>();
  CLI::App* command = cli.app.add_subcommand(
      "logits", "Write float32 logits of every position of a list of ids as safetensors");
  o->model.add_to(*command, true, /*with_json=*/false);
  command->add_option("--ids", o->ids, "token ids: --ids 1,2,3")->delimiter(',')->required();
  command->add_option("-o,--output", o->output, "file to write")->required();
  command->add_flag("--layers", o->layers,
                    "each layer's output too (layer_out.0, layer_out.1, ...)");
  command->add_flag("--steps", o->steps, "feed the ids one by one through the cache");
  command->add_option("--chunk", o->chunk, "feed at most this many ids in a step")
      ->check(CLI::PositiveNumber);
  command->footer(
      "Example:\n  dovetail logits tests/golden/qwen3 --ids 5,17,42 -o logits.safetensors "
      "--layers");
  command->callback([&cli, o] { cli.action = [&cli, o] { return run(cli.program, *o); }; });
}

}  // namespace dovetail::core
