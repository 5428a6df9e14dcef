// inspect: what a checkpoint holds. plan: what running it would take, before it is loaded.
#include <algorithm>
#include <map>

#include "core/base/files.hpp"
#include "core/base/json.hpp"
#include "core/base/log.hpp"
#include "core/cli/command.hpp"
#include "core/cli/session.hpp"

namespace dovetail::core {
namespace {

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string out = "[";
  for (size_t i = 0; i < shape.size(); ++i) out += (i ? ", " : "") + std::to_string(shape[i]);
  return out + "]";
}

struct InspectOptions {
  ModelOptions model;
  bool tensors = false, graph = false;
};

Status inspect(const std::string& program, const InspectOptions& o) {
  SessionOptions session_options;
  session_options.plan_only = true;
  DVT_TRY(const std::unique_ptr<Session> session, Session::open(program, o.model, session_options));
  const Model& model = session->model();
  std::map<std::string, std::pair<size_t, uint64_t>> formats;  // count, bytes
  uint64_t n_params = 0;
  const std::vector<const TensorInfo*> unused = model.unused_tensors();
  for (const TensorInfo& t : model.checkpoint().tensors()) {
    auto& [count, bytes] = formats[t.stored_as()];
    ++count;
    bytes += t.stored_bytes();
    uint64_t n = 1;
    for (int64_t d : t.shape) n *= static_cast<uint64_t>(d);
    n_params += n;
  }
  if (o.model.json) {
    Node out = Node::make_map(), tensors = Node::make_list();
    out.set("model", Node::make_string(session->runtime().config_name()));
    out.set("path", Node::make_string(model.checkpoint().path()));
    out.set("architecture", Node::make_string(model.arch_name()));
    out.set("parameters", Node::make_int(static_cast<int64_t>(n_params)));
    out.set("layers", Node::make_int(model.n_layers()));
    out.set("d_model", Node::make_int(model.d_model()));
    out.set("vocab_size", Node::make_int(model.vocab_size()));
    out.set("context", Node::make_int(model.max_seq_len()));
    out.set("tokenizer_ids",
            model.tokenizer() ? Node::make_int(model.tokenizer()->n_ids()) : Node());
    out.set("chat_template", Node::make_bool(!model.chat_templates().empty()));
    for (const TensorInfo& t : model.checkpoint().tensors()) {
      Node item = Node::make_map(), shape = Node::make_list();
      for (int64_t d : t.shape) shape.items().push_back(Node::make_int(d));
      item.set("name", Node::make_string(t.name));
      item.set("format", Node::make_string(t.stored_as()));
      item.set("shape", std::move(shape));
      item.set("bytes", Node::make_int(static_cast<int64_t>(t.stored_bytes())));
      item.set("file", Node::make_string(t.source->name()));
      tensors.items().push_back(std::move(item));
    }
    out.set("tensors", std::move(tensors));
    Node not_used = Node::make_list();
    for (const TensorInfo* t : unused) not_used.items().push_back(Node::make_string(t->name));
    out.set("unused_tensors", std::move(not_used));
    return print(to_json(out, 2) + "\n");
  }
  std::string text = session->runtime().config_name() + "\n";
  const auto row = [&text](const std::string& name, const std::string& value) {
    text += "  " + name + std::string(16 - std::min<size_t>(15, name.size()), ' ') + value + "\n";
  };
  row("files", model.checkpoint().path().empty() ? "none" : model.checkpoint().path());
  row("architecture", model.arch_name());
  row("parameters", std::to_string(n_params) + " in " +
                        std::to_string(model.checkpoint().tensors().size()) + " tensors");
  for (const auto& [format, sum] : formats)
    row("", std::to_string(sum.first) + " of " + format + ", " + bytes_text(sum.second));
  if (!unused.empty())
    row("not used",
        std::to_string(unused.size()) + " tensors, such as " + printable(unused[0]->name));
  row("layers", std::to_string(model.n_layers()) + " of width " + std::to_string(model.d_model()));
  row("vocabulary",
      std::to_string(model.vocab_size()) + " rows, " +
          (model.tokenizer() ? std::to_string(model.tokenizer()->n_ids()) + " ids, " +
                                   std::to_string(model.tokenizer()->n_added()) + " added tokens"
                             : std::string("no tokenizer")));
  row("context", std::to_string(model.max_seq_len()) + " tokens");
  row("chat template", !model.chat_templates().empty() ? "yes" : "no: prompts are continued");
  if (o.tensors)
    for (const TensorInfo& t : model.checkpoint().tensors())
      text += "  " + printable(t.name) + "  " + t.stored_as() + "  " + shape_text(t.shape) + "  " +
              t.source->name() + "\n";
  if (o.graph) text += model.graph().dump();
  return print(text);
}

Status plan(const std::string& program, const ModelOptions& options) {
  SessionOptions session_options;
  session_options.plan_only = true;
  DVT_TRY(const std::unique_ptr<Session> session, Session::open(program, options, session_options));
  const MemoryPlan& memory = session->model().memory();
  if (options.json) {
    DVT_TRY(print(to_json(memory.node(), 2) + "\n"));
  } else {
    DVT_TRY(print(session->runtime().config_name() + " on " + session->model().backend_name() +
                  "\n" + memory.text()));
  }
  return memory.check();
}

}  // namespace

void add_inspect_commands(Cli& cli) {
  auto o = std::make_shared<InspectOptions>();
  CLI::App* command = cli.app.add_subcommand(
      "inspect", "Show what a checkpoint holds: sizes, tensors, tokenizer, template");
  o->model.add_to(*command, false);
  command->add_flag("--tensors", o->tensors, "list every tensor");
  command->add_flag("--graph", o->graph, "list every node of the graph as the backend gets it");
  command->footer(
      "Examples:\n  dovetail inspect models/Qwen3-0.6B --tensors\n  dovetail inspect --graph");
  command->callback([&cli, o] { cli.action = [&cli, o] { return inspect(cli.program, *o); }; });

  auto plan_options = std::make_shared<ModelOptions>();
  CLI::App* plan_command =
      cli.app.add_subcommand("plan",
                             "Say what a model would take, item by item, before loading it; exit "
                             "code 5 if it does not fit");
  plan_options->add_to(*plan_command, false);
  plan_command->footer("Example:\n  dovetail plan configs/qwen3-8b.yaml --set context=32768");
  plan_command->callback([&cli, plan_options] {
    cli.action = [&cli, plan_options] { return plan(cli.program, *plan_options); };
  });
}

}  // namespace dovetail::core
