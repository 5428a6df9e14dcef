// Model: a checkpoint, an architecture and a backend put together: something that can run batches.
//
// What depends on the backend is its stage (a device, the graph there, its states): one while all layers are on one
// device. move_to() puts another in its place while requests run.
#pragma once

#include <dovetail/abi/arch.h>
#include <dovetail/abi/backend.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/node.hpp"
#include "core/base/status.hpp"
#include "core/config/settings.hpp"
#include "core/graph/graph.hpp"
#include "core/graph/op_registry.hpp"
#include "core/kv_cache/kv_cache.hpp"
#include "core/model/checkpoint.hpp"
#include "core/model/memory_plan.hpp"
#include "core/model/stage.hpp"
#include "core/model/state_move.hpp"
#include "core/model/weights.hpp"
#include "core/plugin/registry.hpp"
#include "core/text/chat_templates.hpp"
#include "core/text/tokenizer.hpp"

namespace dovetail::core {

struct ModelLoad {
  const Settings& settings;
  PluginRegistry& plugins;
  HostServices& host;
  OpRegistry& ops;
  std::vector<std::string> observed = {};  // values that must stay readable besides the outputs
  bool observe_layers = false;             // the output of every layer that the architecture names
  bool all_rows = false;                   // a step may want the logits of every token
  int64_t least_context = 0;               // tokens, where the config says nothing
  bool plan_only = false;                  // stop before weights are loaded
  const uint32_t* cancel = nullptr;
  ProgressFn progress = {};

  StageLoad stage() const { return {settings, plugins, ops, cancel, progress}; }
};

/// The name under which an architecture makes the output of layer i known: "layer_out.3".
std::string layer_output_name(uint32_t layer);

/// The config's chat template, else what the checkpoint's files have.
Result<ChatTemplates> read_chat_templates(const Settings::Chat& chat, Checkpoint& checkpoint);

class Model {
 public:
  /// `checkpoint` is that of the settings' model.path, or Checkpoint::none().
  static Result<std::unique_ptr<Model>> load(const ModelLoad& in,
                                             std::unique_ptr<Checkpoint> checkpoint);
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  /// Runs a batch and waits. logits is [n_rows, vocab_size]; `more` are further named values.
  ///
  /// threads  one call at a time
  /// errors   kCancelled, and what the backend reports
  Status forward(const dvt_batch& batch, std::span<float> logits,
                 std::span<const dvt_output> more = {});
  /// Starts a batch; `outs` are filled when its ticket has been waited for. Batches run in order.
  /// Everything given stays as it is until then. `sampling` may be null.
  Result<uint64_t> submit(const dvt_batch& batch, std::span<const dvt_output> outs,
                          const dvt_sampling* sampling);
  /// Whether submit() returns before the work is done.
  bool is_async() const { return (stage_->info().flags & DVT_DEVF_ASYNC) != 0; }
  /// Starts a batch whose argmax ids come with the ticket; no logits are copied. `allowed` is a mask of
  /// bits [V/32] that lives until then, or empty.
  Result<uint64_t> submit_argmax(const dvt_batch& batch, std::span<int32_t> ids,
                                 std::span<const uint32_t> allowed = {});
  Status wait(uint64_t ticket);

  /// Goes on with the backend of in.settings: the same graph, its weights and the states of `sequences` there, in
  /// the pages and slots that they have. The room of the cache stays; its number type is the one that the config
  /// means on that backend. Both backends are in memory until the states are over; then the first one ends.
  ///
  /// threads  no step is in flight
  /// errors   why it stays: kUnsupported, kNoMemory, kDevice, kCancelled, ... Nothing has changed then.
  Result<StateMove> move_to(const StageLoad& in, std::span<const SequenceCache* const> sequences);

  int64_t vocab_size() const { return info_.vocab_size; }
  int64_t max_seq_len() const { return max_seq_len_; }
  uint32_t n_layers() const { return info_.n_layers; }
  int64_t d_model() const { return info_.d_model; }
  /// Layers, from the first, whose output [T, d_model] can be read: none unless observe_layers asked for them.
  uint32_t n_layer_outputs() const { return n_layer_outputs_; }
  const std::vector<CacheGroup>& cache_groups() const { return cache_groups_; }
  uint32_t block_len() const { return room_.block_len; }
  uint32_t n_blocks() const { return room_.n_blocks; }
  uint32_t kv_dtype() const { return stage_->kv_dtype(); }
  /// Null for a model that speaks ids only.
  const Tokenizer* tokenizer() const { return tokenizer_.get(); }
  /// The config's chat template, else the checkpoint's; empty if there is none.
  const ChatTemplates& chat_templates() const { return chat_templates_; }
  /// Ids that end a text: generation_config.json's eos_token_id, else config.json's.
  const std::vector<uint32_t>& eos_ids() const { return eos_ids_; }
  const Node& tokenizer_config() const { return tokenizer_config_; }
  const MemoryPlan& memory() const { return stage_->memory(); }
  const Weights& weights() const { return stage_->weights(); }
  /// Weights::pack_rows() with this model's backend.
  Status pack_rows(size_t weight, int64_t row0, int64_t n, std::vector<std::byte>& out) const {
    return weights().pack_rows(weight, row0, n, stage_->table(), stage_->context(), cancel_, out);
  }
  Checkpoint& checkpoint() { return *checkpoint_; }
  const Checkpoint& checkpoint() const { return *checkpoint_; }
  /// In the ops of the backend.
  const Graph& graph() const { return stage_->graph(); }
  /// Tensors of the checkpoint that the graph does not use, in its order; not the copy of a
  /// tied embedding that some checkpoints store as the head.
  std::vector<const TensorInfo*> unused_tensors() const;
  /// Where each op of the architecture's graph runs, for `run --explain`.
  const std::vector<Placement>& placements() const { return stage_->placements(); }
  const std::string& arch_name() const { return arch_name_; }
  const std::string& backend_name() const { return stage_->backend(); }
  const std::string& backend_variant() const { return stage_->variant(); }
  /// Two per multiply-add of the linear layers: of a token's own, and of a row of logits.
  struct Flops {
    uint64_t per_token = 0, per_row = 0;
  };
  Flops linear_flops() const;
  /// Until work in the background is done: weights that move to 2 MiB pages. For measurements.
  void settle() { stage_->settle(); }
  /// Bytes of weights in 2 MiB pages so far.
  uint64_t promoted_bytes() const { return stage_->promoted_bytes(); }
  /// Reads `bytes` at p with the backend's own loop on all lanes; seconds.
  Result<double> read_bandwidth(const void* p, uint64_t bytes);

 private:
  Model() = default;
  Status open_architecture(const ModelLoad& in);
  Status build_graph(const ModelLoad& in);
  void warn_of_unused_tensors() const;
  /// How long texts may be, how many run at once, what a step may ask for.
  Status make_room(const ModelLoad& in);
  Status open_tokenizer(const ModelLoad& in);
  Status read_text_settings(const ModelLoad& in);

  std::unique_ptr<Checkpoint> checkpoint_;
  Node model_config_;  // of a model without checkpoint
  const Node* config_ = nullptr;
  const dvt_arch_v1* arch_table_ = nullptr;
  void* arch_ = nullptr;
  std::string arch_name_;
  dvt_arch_info info_{};
  std::vector<dvt_state_spec> states_;
  Graph graph_;  // as the architecture built it
  std::vector<std::string> observed_;
  uint32_t n_layer_outputs_ = 0;
  std::vector<dvt_str> observed_views_;
  int64_t max_seq_len_ = 0;
  std::vector<CacheGroup> cache_groups_;
  StageRoom room_;
  std::unique_ptr<Stage> stage_;  // over the checkpoint and the graph
  const uint32_t* cancel_ = nullptr;

  std::unique_ptr<HostScope> tokenizer_scope_;
  std::unique_ptr<Tokenizer> tokenizer_;
  ChatTemplates chat_templates_;
  Node tokenizer_config_;
  std::vector<uint32_t> eos_ids_;
};

}  // namespace dovetail::core
