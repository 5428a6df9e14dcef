#include "core/model/model.hpp"

#include <algorithm>
#include <set>

#include "core/base/json.hpp"
#include "core/base/log.hpp"
#include "core/base/pages.hpp"
#include "core/config/check_value.hpp"
#include "core/graph/builder.hpp"

namespace dovetail::core {
namespace {

// The longest text that is planned for when the config does not say.
constexpr int64_t kDefaultContext = 4096;

const Node* find_string(const Node& map, std::string_view key) {
  const Node* n = map.find(key);
  return n && n->is_string() ? n : nullptr;
}

// Weights keep the type they are stored in, so the config's dtype decides nothing; but one that
// nobody knows means a config of something else. `dtype` is the newer name and wins.
Status check_dtype(const Node& config) {
  static constexpr std::string_view kKnown[] = {"auto",          "float32",    "float",   "float16",
                                                "half",          "bfloat16",   "float64", "double",
                                                "float8_e4m3fn", "float8_e5m2"};
  const Node* text = config.find("text_config");
  for (const Node* map : {&config, text && text->is_map() ? text : nullptr})
    for (const char* key : {"dtype", "torch_dtype"}) {
      const Node* dtype = map ? map->find(key) : nullptr;
      if (!dtype || dtype->is_null()) continue;
      std::string_view name =
          dtype->is_string() ? std::string_view(dtype->as_string()) : std::string_view();
      if (name.starts_with("torch.")) name.remove_prefix(6);
      if (std::find(std::begin(kKnown), std::end(kKnown), name) != std::end(kKnown))
        return Status::ok();
      return bad_format(dtype->origin().str() + ": \"" + key + "\" is " + describe_value(*dtype) +
                        ", expected auto, float32, float16, bfloat16 or another type of torch");
    }
  return Status::ok();
}

}  // namespace

std::string layer_output_name(uint32_t layer) {
  return "layer_out." + std::to_string(layer);
}

Result<std::unique_ptr<Model>> Model::load(const ModelLoad& in,
                                           std::unique_ptr<Checkpoint> checkpoint) {
  auto model = std::unique_ptr<Model>(new Model);
  model->cancel_ = in.cancel;
  model->checkpoint_ = std::move(checkpoint);
  DVT_TRY(model->open_architecture(in));
  DVT_TRY(model->build_graph(in));
  DVT_TRY(model->stage_, Stage::open(in.stage(), model->graph_, *model->checkpoint_));
  DVT_TRY(model->make_room(in));
  Stage& stage = *model->stage_;
  DVT_TRY(stage.plan(in.stage(), model->room_, model->info_));
  DVT_TRY(model->open_tokenizer(in));
  DVT_TRY(model->read_text_settings(in));
  if (in.plan_only) return model;
  model->warn_of_unused_tensors();
  const MemoryPlan& memory = stage.memory();
  DVT_TRY(memory.check());
  if (memory.mapped_bytes() > memory.available)
    log_warn("memory", "the weights are " + bytes_text(memory.mapped_bytes()) + ", " +
                           bytes_text(memory.available) +
                           " is free: they will be read from the disk again and again");
  DVT_TRY(stage.load(in.stage(), model->room_));
  stage.promote();
  return model;
}

Model::~Model() {
  stage_.reset();  // before the architecture that its ops may come from
  if (arch_) arch_table_->close(arch_);
}

Result<StateMove> Model::move_to(const StageLoad& in,
                                 std::span<const SequenceCache* const> sequences) {
  DVT_TRY(std::unique_ptr<Stage> next, Stage::open(in, graph_, *checkpoint_));
  DVT_TRY(next->plan(in, room_, info_));
  DVT_TRY(next->memory().check());
  DVT_TRY(next->load(in, room_));
  DVT_TRY(const StateMove moved,
          move_states({stage_->table(), stage_->context(), stage_->kv_dtype()},
                      {next->table(), next->context(), next->kv_dtype()}, states_, sequences,
                      cache_groups_, room_.block_len, in.cancel, in.progress));
  stage_ = std::move(next);
  stage_->promote();
  return moved;
}

Status Model::open_architecture(const ModelLoad& in) {
  DVT_TRY(config_, checkpoint_->document("config"));
  std::string wanted = in.settings.model.arch.name;
  if (!config_) {
    if (!in.settings.model.path.empty())
      return bad_format(in.settings.model.path + ": config.json is missing; download incomplete?");
    model_config_ = in.settings.model.arch.params;
    config_ = &model_config_;
  }
  if (!config_->is_map() && !in.settings.model.path.empty())
    return bad_format(in.settings.model.path + ": config.json is " + config_->kind_name() +
                      ", expected a map");
  if (config_->is_map() && !in.settings.model.path.empty()) DVT_TRY(check_dtype(*config_));
  LoadedPlugin* plugin = nullptr;
  if (!wanted.empty()) {
    DVT_TRY(plugin, in.plugins.load("arch", wanted));
  } else {
    const Node* type = find_string(*config_, "model_type");
    if (!type)
      return in.settings.model.path.empty()
                 ? invalid(
                       "model.path is missing, and so is model.arch for a model without a "
                       "checkpoint")
                 : bad_format(in.settings.model.path +
                              ": config.json names no \"model_type\"; set model.arch");
    DVT_TRY(plugin, in.plugins.find_by_key("arch", type->as_string()));
    wanted = type->as_string();
  }
  arch_name_ = wanted;
  arch_table_ = plugin->interface<dvt_arch_v1>("dovetail.arch/1");
  if (!arch_table_)
    return unsupported("plugin \"" + wanted + "\" has no interface dovetail.arch/1");
  if (const auto* own = plugin->interface<dvt_op_set_v1>("dovetail.op/1"))
    for (uint32_t i = 0; i < own->n_ops; ++i) {
      DVT_TRY(in.ops.add_plugin_op(own->ops[i]));
      DVT_TRY(in.host.ops().add(own->ops[i]));
    }

  dvt_arch_open open{};
  open.struct_size = sizeof open;
  open.config = doc_handle(*config_);
  open.options = doc_handle(in.settings.model.arch.params);
  open.catalogue = checkpoint_->catalogue();
  CallFrame call;
  const Status opened = call.check(arch_table_->open(plugin->self, call, &open, &arch_)).in(wanted);
  // What an architecture finds wrong is in the checkpoint's files, if there are any.
  if (opened.code() == Code::kInvalid && !in.settings.model.path.empty())
    return bad_format(opened.message());
  DVT_TRY(opened);
  info_.struct_size = sizeof info_;
  DVT_TRY(call.check(arch_table_->info(arch_, call, &info_)));
  uint64_t n = 0;
  dvt_code code = arch_table_->states(arch_, call, nullptr, 0, &n);
  if (code != DVT_ETOOSMALL) DVT_TRY(call.check(code));
  states_.resize(n);
  for (dvt_state_spec& s : states_) s.struct_size = sizeof s;
  CallFrame again;
  DVT_TRY(again.check(arch_table_->states(arch_, again, states_.data(), states_.size(), &n)));
  return Status::ok();
}

Status Model::build_graph(const ModelLoad& in) {
  const auto shape = [this](std::string_view name) -> Result<std::vector<int64_t>> {
    const TensorInfo* t = checkpoint_->find(name);
    if (!t)
      return bad_format("weight \"" + std::string(name) + "\" is missing from the checkpoint");
    return t->shape;
  };
  GraphBuilder builder(in.ops, shape, states_);
  CallFrame call;
  const Status built =
      call.check(arch_table_->build(arch_, call, builder.table(), abi_text("main")));
  if (!builder.status().is_ok()) return builder.status().in(arch_name_);
  DVT_TRY(built.in(arch_name_));
  DVT_TRY(graph_, builder.finish());
  return Status::ok();
}

std::vector<const TensorInfo*> Model::unused_tensors() const {
  constexpr uint32_t kTied =
      DVT_ACCESS_ROWS | DVT_ACCESS_DENSE;  // an embedding that is the head too
  std::set<std::string_view> used;
  std::vector<const TensorInfo*> tied;
  for (const dvt_weight_ref& ref : graph_.weights()) {
    used.insert(graph_.str(ref.name));
    if ((ref.access & kTied) == kTied) tied.push_back(checkpoint_->find(graph_.str(ref.name)));
  }
  const auto is_copy = [&tied](const TensorInfo& t) {
    return std::any_of(tied.begin(), tied.end(), [&t](const TensorInfo* u) {
      return u && u->parts.empty() && t.parts.empty() && u->format == t.format &&
             u->shape == t.shape && samples(u->bytes) == samples(t.bytes);
    });
  };
  std::vector<const TensorInfo*> out;
  for (const TensorInfo& t : checkpoint_->tensors())
    if (!used.contains(t.name) && !is_copy(t)) out.push_back(&t);
  return out;
}

void Model::warn_of_unused_tensors() const {
  const std::vector<const TensorInfo*> unused = unused_tensors();
  if (unused.empty()) return;
  log_warn("model", checkpoint_->path() + ": architecture \"" + arch_name_ + "\" does not use " +
                        std::to_string(unused.size()) + " of " +
                        std::to_string(checkpoint_->tensors().size()) + " tensors, such as \"" +
                        unused[0]->name + "\"");
}

Status Model::make_room(const ModelLoad& in) {
  const Settings& s = in.settings;
  max_seq_len_ =
      std::min<int64_t>(std::max<int64_t>(kDefaultContext, in.least_context), info_.max_seq_len);
  if (s.max_seq_len) {
    max_seq_len_ = *s.max_seq_len;
    if (max_seq_len_ > info_.max_seq_len)
      return invalid("context is " + std::to_string(max_seq_len_) +
                     ", the model was made for at most " + std::to_string(info_.max_seq_len));
  }
  room_.block_len = static_cast<uint32_t>(
      s.kv_cache.block_len.value_or(static_cast<int32_t>(stage_->info().preferred_page_len)));
  room_.n_slots = static_cast<uint32_t>(s.scheduler.max_seqs);
  const auto n_tokens = static_cast<uint64_t>(s.kv_cache.max_tokens.value_or(max_seq_len_));
  room_.n_blocks =
      blocks_for(n_tokens, room_.block_len) + (s.kv_cache.max_tokens ? 0 : room_.n_slots - 1);
  for (const dvt_state_spec& spec : states_) {
    const bool known = std::any_of(cache_groups_.begin(), cache_groups_.end(),
                                   [&](const CacheGroup& g) { return g.number == spec.group; });
    if (spec.kind != DVT_STATE_FIXED && !known) cache_groups_.push_back({spec.group, spec.rate});
  }

  observed_ = in.observed;
  if (in.observe_layers) {
    while (n_layer_outputs_ < info_.n_layers && graph_.names(layer_output_name(n_layer_outputs_)))
      observed_.push_back(layer_output_name(n_layer_outputs_++));
  }
  for (const std::string& name : observed_) observed_views_.push_back(abi_text(name));
  dvt_compile_options& options = room_.options;
  options.struct_size = sizeof options;
  options.max_tokens = static_cast<uint32_t>(s.scheduler.max_batch_tokens);
  options.max_rows = std::max(room_.n_slots, in.all_rows ? options.max_tokens : 0);
  options.max_seqs = room_.n_slots;
  options.observed = observed_views_.data();
  options.n_observed = observed_views_.size();
  return Status::ok();
}

Status Model::open_tokenizer(const ModelLoad& in) {
  const Settings::Tokenizer& s = in.settings.tokenizer;
  const Node* definition = nullptr;
  Node parsed;
  dvt_dir dir = checkpoint_->dir();
  if (!s.path.empty()) {
    DVT_TRY(Folder folder, Folder::open(s.path));
    tokenizer_scope_ = std::make_unique<HostScope>(std::move(folder));
    DVT_TRY(std::string text, tokenizer_scope_->folder()->read("tokenizer.json"));
    DVT_TRY(parsed, parse_json(text, s.path + "/tokenizer.json"));
    parsed.build_index();
    definition = &parsed;
    dir = tokenizer_scope_->dir();
  } else {
    DVT_TRY(definition, checkpoint_->document("tokenizer"));
  }
  if (!definition) return Status::ok();  // ids only; whoever needs text says so
  DVT_TRY(LoadedPlugin * plugin, in.plugins.load("tokenizer", s.plugin.name));
  const auto* table = plugin->interface<dvt_tokenizer_v1>("dovetail.tokenizer/1");
  if (!table)
    return unsupported("plugin \"" + s.plugin.name + "\" has no interface dovetail.tokenizer/1");
  DVT_TRY(tokenizer_, Tokenizer::open(table, plugin->self, *definition, dir, s.plugin.params));
  // The tokenizer has read it: ten times its file's size as a tree of nodes.
  parsed = Node();
  checkpoint_->drop_document("tokenizer");
  release_freed_memory();
  return Status::ok();
}

Result<ChatTemplates> read_chat_templates(const Settings::Chat& chat, Checkpoint& checkpoint) {
  if (chat.chat_template) return ChatTemplates(*chat.chat_template);
  if (!chat.template_file.empty()) {
    DVT_TRY(const std::shared_ptr<File> file, File::open(chat.template_file));
    DVT_TRY(std::string source, file->read_all(16u << 20));
    return ChatTemplates(std::move(source));
  }
  DVT_TRY(const Node* tokenizer_config, checkpoint.document("tokenizer_config"));
  return ChatTemplates::read(checkpoint.folder(), tokenizer_config);
}

Status Model::read_text_settings(const ModelLoad& in) {
  DVT_TRY(const Node* tokenizer_config, checkpoint_->document("tokenizer_config"));
  if (tokenizer_config) tokenizer_config_ = *tokenizer_config;
  DVT_TRY(chat_templates_, read_chat_templates(in.settings.chat, *checkpoint_));
  DVT_TRY(const Node* generation, checkpoint_->document("generation"));
  const Node* eos = generation ? generation->find("eos_token_id") : nullptr;
  const Node* text = config_->find("text_config");
  for (const Node* map : {config_, text})
    if (map && (!eos || eos->is_null())) eos = map->find("eos_token_id");
  if (!eos || eos->is_null()) return Status::ok();
  std::string unknown;
  for (const Node& id : eos->is_list() ? eos->items() : std::vector<Node>{*eos}) {
    if (!id.is_int())
      return bad_format(id.origin().str() + ": \"eos_token_id\" has " + describe_value(id) +
                        ", expected a token id");
    if (id.as_int() >= 0 && id.as_int() < info_.vocab_size)
      eos_ids_.push_back(static_cast<uint32_t>(id.as_int()));
    else
      unknown += (unknown.empty() ? "" : ", ") + std::to_string(id.as_int());
  }
  if (!unknown.empty())
    log_warn("model", eos->origin().str() + ": \"eos_token_id\" has " + unknown +
                          ", expected ids of the vocabulary of " +
                          std::to_string(info_.vocab_size) + ": no text ends there");
  return Status::ok();
}

Status Model::forward(const dvt_batch& batch, std::span<float> logits,
                      std::span<const dvt_output> more) {
  std::vector<dvt_output> outs(more.begin(), more.end());
  outs.push_back({abi_text("logits"), logits.data(), logits.size_bytes()});
  DVT_TRY(const uint64_t ticket, submit(batch, outs, nullptr));
  return wait(ticket);
}

Result<uint64_t> Model::submit(const dvt_batch& batch, std::span<const dvt_output> outs,
                               const dvt_sampling* sampling) {
  CallFrame call(cancel_);
  uint64_t ticket = 0;
  DVT_TRY(call.check(stage_->table().submit(stage_->program(), call, &batch, outs.data(),
                                            outs.size(), sampling, &ticket)));
  return ticket;
}

Result<uint64_t> Model::submit_argmax(const dvt_batch& batch, std::span<int32_t> ids,
                                      std::span<const uint32_t> allowed) {
  const dvt_output out{abi_text("ids"), ids.data(), ids.size_bytes()};
  dvt_sampling sampling{};
  sampling.struct_size = sizeof sampling;
  sampling.kind = DVT_SAMPLE_ARGMAX;
  sampling.mask = allowed.empty() ? nullptr : allowed.data();
  return submit(batch, {&out, ids.empty() ? size_t{0} : 1}, &sampling);
}

Status Model::wait(uint64_t ticket) {
  CallFrame call(cancel_);
  return call.check(stage_->table().wait(stage_->program(), call, ticket));
}

Model::Flops Model::linear_flops() const {
  const Graph& graph = stage_->graph();
  Flops out;
  for (size_t i = 0; i < graph.n_nodes(); ++i) {
    const dvt_node& node = graph.node(i);
    if (graph.op_name(node) != "linear") continue;
    const std::vector<dvt_dim> weight = graph.type_of(graph.input(node, 1)).dims,
                               y = graph.type_of(graph.output(node, 0)).dims;
    const uint64_t flops =
        2 * static_cast<uint64_t>(weight[0].value) * static_cast<uint64_t>(weight[1].value);
    (graph.str(y[0].sym) == "R" ? out.per_row : out.per_token) += flops;
  }
  return out;
}

Result<double> Model::read_bandwidth(const void* p, uint64_t bytes) {
  const dvt_backend_v1* const table = &stage_->table();
  if (!DVT_HAS(table, read_bandwidth))
    return unsupported("backend \"" + backend_name() + "\" does not measure bandwidth");
  CallFrame call(cancel_);
  double seconds = 0;
  DVT_TRY(call.check(table->read_bandwidth(stage_->context(), call, p, bytes, &seconds)));
  return seconds;
}

}  // namespace dovetail::core
