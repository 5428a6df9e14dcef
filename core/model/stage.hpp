// Stage: a graph on one backend: its weights there, the states of sequences, the compiled program.
//
// A model has one. To go on with another backend it makes a second one, copies the states over (state_move.hpp)
// and lets go of the first.
#pragma once

#include <dovetail/abi/arch.h>
#include <dovetail/abi/backend.h>

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/node.hpp"
#include "core/base/status.hpp"
#include "core/config/settings.hpp"
#include "core/graph/graph.hpp"
#include "core/graph/op_registry.hpp"
#include "core/model/checkpoint.hpp"
#include "core/model/memory_plan.hpp"
#include "core/model/placement.hpp"
#include "core/model/promotion.hpp"
#include "core/model/repack_cache.hpp"
#include "core/model/weights.hpp"
#include "core/plugin/registry.hpp"

namespace dovetail::core {

/// What opening and loading a stage takes: its backend is that of the settings.
struct StageLoad {
  const Settings& settings;
  PluginRegistry& plugins;
  const OpRegistry& ops;
  const uint32_t* cancel = nullptr;
  ProgressFn progress = {};
};

/// What a stage has room for, the same on every backend that the model goes to: page tables stay as they are.
struct StageRoom {
  uint32_t block_len = 0, n_blocks = 0, n_slots = 0;
  dvt_compile_options options{};
};

/// What kv_cache.dtype calls a dtype, and the bits of a number in it, without scales.
std::string kv_dtype_name(uint32_t dtype);
uint32_t kv_dtype_bits(uint32_t dtype);

class Stage {
 public:
  /// Opens the backend, gives it the graph in the ops that it has, and plans its weights. `graph` and `checkpoint`
  /// outlive the stage.
  /// errors   kUnsupported: no such interface, an op or a weight that it cannot do. What its open() reports.
  static Result<std::unique_ptr<Stage>> open(const StageLoad& in, const Graph& graph,
                                             const Checkpoint& checkpoint);
  ~Stage();
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  /// What it will take, item by item.
  Status plan(const StageLoad& in, const StageRoom& room, const dvt_arch_info& info);
  /// Puts weights in place, allocates the states, compiles the graph.
  /// errors   kNoMemory, kDevice, kCancelled
  Status load(const StageLoad& in, const StageRoom& room);
  /// Begins to move mapped weights to 2 MiB pages in the background, if plan() found room. Once.
  void promote();
  /// Until that is done.
  void settle() { promotion_.wait(); }
  uint64_t promoted_bytes() const { return promotion_.moved_bytes(); }

  const dvt_backend_v1& table() const { return *table_; }
  void* context() const { return context_; }
  void* program() const { return program_; }
  const dvt_backend_info& info() const { return info_; }
  const std::string& backend() const { return name_; }
  const std::string& variant() const { return variant_; }
  /// In the backend's ops.
  const Graph& graph() const { return graph_; }
  const std::vector<Placement>& placements() const { return placements_; }
  const Weights& weights() const { return weights_; }
  const MemoryPlan& memory() const { return memory_; }
  uint32_t kv_dtype() const { return kv_dtype_; }

 private:
  Stage() = default;
  Status plan_weights(const Settings::Backend& settings, const Checkpoint& checkpoint);

  std::string name_, variant_;
  std::filesystem::path file_;
  Node options_;
  const dvt_backend_v1* table_ = nullptr;
  void* context_ = nullptr;
  dvt_backend_info info_{};
  Graph graph_;
  std::vector<Placement> placements_;
  Weights weights_;
  RepackCache repack_cache_;
  bool promotes_ = false;
  Promotion promotion_;  // stops before the cache's file closes
  MemoryPlan memory_;
  uint32_t kv_dtype_ = DVT_F32;
  void* program_ = nullptr;
};

}  // namespace dovetail::core
