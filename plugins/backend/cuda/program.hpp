// A compiled graph on a CUDA device: every value has its place in one workspace there, and a step is the launches
// of its nodes in order. Those of decode are recorded, once for each size of a batch that is a power of two, and
// replayed as one.
#pragma once

#include <dovetail/graph_copy.hpp>
#include <dovetail/host_layout.hpp>

#include <array>
#include <map>
#include <string>

#include "ops.hpp"
#include "weights.hpp"

namespace dovetail::cuda {

using Weights = std::map<std::string, Weight, std::less<>>;

class Program {
 public:
  /// errors    throws Error for a weight that was never bound and an op that is not there.
  Program(Device& device, const dvt_graph& graph, const dvt_compile_options& options,
          const Weights& weights, const DeviceStates& states);

  /// Device memory that a graph takes besides weights and states.
  static uint64_t workspace(const dvt_graph& graph, const dvt_compile_options& options);
  uint64_t workspace_bytes() const { return workspace_bytes_; }

  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// Queues the batch. What it writes is there once its ticket has been waited for; where a value of the graph is
  /// asked for, and not ids alone, the call itself waits.
  uint64_t submit(Call call, const dvt_batch& batch, std::span<const dvt_output> outs,
                  const dvt_sampling* sampling);
  void wait(Call call, uint64_t ticket);

 private:
  struct Node {
    const DeviceOp* op;
    std::any prepared;
    NodeLaunch launch;
    std::vector<uint32_t> in, out;
  };
  /// A dimension that each batch sets.
  struct SizedDim {
    uint32_t val, dim;
    int64_t Sizes::*size;
  };
  static constexpr uint64_t kInFlight =
      2;  // steps that may be queued; also those whose ids can be named

  /// What a step that is queued has of the host's.
  struct InFlight {
    HostBytes tables, ids;
    Mark done;
    bool is_queued = false;
    std::vector<std::pair<void*, uint64_t>> ids_to;  // where its ids are asked for, in bytes
  };
  /// Which launches a step takes.
  using LaunchKey = std::pair<StepShape, bool>;  // and whether it samples

  Node make_node(const GraphView& g, const dvt_node& n);
  void place_values(const GraphView& g, const Weights& weights);
  void set_sizes(const Sizes& sizes);
  void check(const dvt_batch& batch, std::span<const dvt_output> outs,
             const dvt_sampling* sampling);
  /// For take_tokens: where tokens that are not known yet come from.
  void find_sources(const dvt_batch& batch);
  void bind_arrays();
  void launch(bool samples);
  void run(const StepShape& shape, bool has_few_shapes, bool samples);
  void finish(InFlight& step);

  Device& device_;
  const DeviceStates& states_;
  GraphCopy copy_;  // outlives the caller's graph
  dvt_graph graph_;
  Sizes max_;
  Layout layout_;
  DevicePreparation preparation_;
  Step step_;
  std::vector<Node> nodes_;
  std::vector<Array> arrays_;
  std::vector<SizedDim> sized_;
  std::vector<uint32_t> computed_;
  std::vector<std::pair<uint32_t, uint32_t>>
      views_;  // of the second value, in the order of their nodes
  std::map<std::string, uint32_t, std::less<>> named_;
  uint64_t workspace_bytes_ = 0;
  DeviceBytes workspace_, scratch_, counters_;
  DeviceBytes ids_;  // [2, max rows]: of the last step, of the one before
  std::vector<int32_t> sources_;
  std::map<LaunchKey, LaunchGraph> recorded_;  // of steps whose shapes come again
  std::array<InFlight, kInFlight> in_flight_;  // by ticket
  uint64_t ticket_ = 0;
};

}  // namespace dovetail::cuda
