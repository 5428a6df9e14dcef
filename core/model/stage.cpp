#include "core/model/stage.hpp"

#include <algorithm>
#include <optional>

#include "core/base/files.hpp"
#include "core/base/log.hpp"
#include "core/plugin/call_frame.hpp"
#include "core/plugin/host.hpp"

namespace dovetail::core {
namespace {

// What kv_cache.dtype calls them; f16 only where auto takes what the backend asks for.
struct KvDtype {
  std::string_view name;
  uint32_t dtype;
  uint32_t bits;  // of a number
};
constexpr KvDtype kKvDtypes[] = {{"float32", DVT_F32, 32},
                                 {"bf16", DVT_BF16, 16},
                                 {"f16", DVT_F16, 16},
                                 {"int8", DVT_I8_SCALED, 8}};

}  // namespace

std::string kv_dtype_name(uint32_t dtype) {
  for (const KvDtype& d : kKvDtypes)
    if (d.dtype == dtype) return std::string(d.name);
  return "dtype " + std::to_string(dtype);
}

uint32_t kv_dtype_bits(uint32_t dtype) {
  for (const KvDtype& d : kKvDtypes)
    if (d.dtype == dtype) return d.bits;
  return 32;
}

Result<std::unique_ptr<Stage>> Stage::open(const StageLoad& in, const Graph& graph,
                                           const Checkpoint& checkpoint) {
  auto stage = std::unique_ptr<Stage>(new Stage);
  const PluginUse& use = in.settings.backend.plugin;
  DVT_TRY(LoadedPlugin * plugin, in.plugins.load("backend", use.name));
  stage->name_ = use.name;
  stage->file_ = plugin->file;
  stage->table_ = plugin->interface<dvt_backend_v1>("dovetail.backend/1");
  if (!stage->table_)
    return unsupported("plugin \"" + use.name + "\" has no interface dovetail.backend/1");
  stage->options_ = use.params;
  CallFrame call;
  DVT_TRY(call.check(stage->table_->open(plugin->self, call, 0, doc_handle(stage->options_),
                                         &stage->context_))
              .in("backend " + use.name));
  stage->info_.struct_size = sizeof stage->info_;
  DVT_TRY(call.check(stage->table_->info(stage->context_, call, &stage->info_)));
  stage->variant_ = text_of(stage->info_.variant);
  DVT_TRY(PlacedGraph placed, place_ops(graph, in.ops, *stage->table_, stage->context_, use.name));
  stage->graph_ = std::move(placed.graph);
  stage->placements_ = std::move(placed.placements);
  DVT_TRY(stage->plan_weights(in.settings.backend, checkpoint));
  stage->kv_dtype_ = stage->weights_.is_float32() ? uint32_t{DVT_F32} : stage->info_.kv_dtype;
  for (const KvDtype& d : kKvDtypes)
    if (in.settings.kv_cache.dtype == d.name) stage->kv_dtype_ = d.dtype;
  return stage;
}

Stage::~Stage() {
  if (program_) table_->drop(program_);
  if (context_) table_->close(context_);
}

Status Stage::plan_weights(const Settings::Backend& settings, const Checkpoint& checkpoint) {
  WeightFormats formats;
  formats.everywhere = settings.weights;
  formats.by_class.assign(settings.class_weights.begin(), settings.class_weights.end());
  const Status planned = weights_.plan(graph_, checkpoint, formats, *table_, context_);
  const bool is_about_the_key =
      planned.code() == Code::kInvalid || planned.code() == Code::kUnsupported;
  return is_about_the_key && !settings.weights_origin.empty() ? planned.in(settings.weights_origin)
                                                              : planned;
}

Status Stage::plan(const StageLoad& in, const StageRoom& room, const dvt_arch_info& info) {
  const dvt_graph view = graph_.view();
  uint64_t per_block = 0, per_slot = 0, workspace = 0;
  CallFrame call;
  DVT_TRY(call.check(table_->estimate(context_, call, &view, &room.options, kv_dtype_,
                                      room.block_len, &per_block, &per_slot, &workspace)));
  const uint64_t logits =
      uint64_t{room.options.max_rows} * static_cast<uint64_t>(info.vocab_size) * sizeof(float);
  memory_.bytes_per_token = per_block / room.block_len;
  memory_.n_tokens = uint64_t{room.n_blocks} * room.block_len;
  memory_.available = available_memory();
  memory_.weights_expand = weights_.expands();
  if (weights_.mapped_bytes() > 0)
    memory_.items.push_back({"weights, mapped", weights_.mapped_bytes(),
                             weights_.formats_text(true) + ", read from the file where they lie",
                             false});
  if (weights_.packed_bytes() > 0)
    memory_.items.push_back({"weights, repacked", weights_.packed_bytes(),
                             weights_.formats_text(false) + ", in the layout of " + name_});
  memory_.items.push_back({"KV cache", per_block * room.n_blocks,
                           std::to_string(memory_.n_tokens) + " tokens at " +
                               bytes_text(memory_.bytes_per_token) + " (" +
                               kv_dtype_name(kv_dtype_) + ")"});
  if (per_slot > 0)
    memory_.items.push_back(
        {"fixed states", per_slot * room.n_slots, std::to_string(room.n_slots) + " sequences"});
  memory_.items.push_back({"workspace", workspace + logits,
                           "steps of up to " + std::to_string(room.options.max_tokens) +
                               " tokens, " + std::to_string(room.n_slots) + " rows of logits"});
  const uint64_t fixed = memory_.private_bytes() - per_block * room.n_blocks;
  if (const uint64_t later = memory_.private_bytes() - weights_.packed_bytes();
      weights_.staging_bytes() > later)
    memory_.items.push_back(
        {"while loading", weights_.staging_bytes() - later,
         "the largest weight before it is packed takes " + bytes_text(weights_.staging_bytes())});
  const bool may_promote = in.settings.backend.huge_pages && has_huge_pages();
  if (may_promote)
    for (const Promotion::Range& r : weights_.streamed({})) memory_.promoted_bytes += r.bytes;
  promotes_ =
      may_promote &&
      memory_.private_bytes() + memory_.promoted_bytes + Promotion::kReserve <= memory_.available;
  if (!promotes_) memory_.promoted_bytes = 0;
  memory_.max_context =
      memory_.available > fixed && memory_.bytes_per_token > 0
          ? std::min<uint64_t>((memory_.available - fixed) / memory_.bytes_per_token,
                               static_cast<uint64_t>(info.max_seq_len))
          : static_cast<uint64_t>(memory_.available > fixed ? info.max_seq_len : 0);
  return Status::ok();
}

Status Stage::load(const StageLoad& in, const StageRoom& room) {
  const std::optional<std::filesystem::path> folder = RepackCache::default_folder();
  if (folder)
    repack_cache_ =
        RepackCache(*folder, static_cast<uint64_t>(in.settings.backend.weight_cache_gib) << 30);
  repack_cache_.open(weights_.packed_items(), file_);
  DVT_TRY(weights_.load(*table_, context_, repack_cache_, in.cancel, in.progress));
  const Status stored =
      repack_cache_.store(weights_.packed(), in.settings.model.path, in.cancel, in.progress);
  if (stored.code() == Code::kCancelled) return stored;
  if (!stored.is_ok())
    log_warn("cache", stored.message() + "; the weights are packed again next time");
  const std::vector<dvt_state_spec>& states = graph_.states();
  CallFrame call(in.cancel);
  DVT_TRY(call.check(table_->alloc_states(context_, call, states.data(), states.size(), kv_dtype_,
                                          room.block_len, room.n_blocks, room.n_slots)));
  const dvt_graph view = graph_.view();
  return call.check(table_->compile(context_, call, &view, &room.options, &program_))
      .in("backend " + name_);
}

void Stage::promote() {
  if (promotes_) promotion_.start(weights_.streamed(repack_cache_));
}

}  // namespace dovetail::core
