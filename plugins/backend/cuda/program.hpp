// A compiled graph on a CUDA device: every value has its place in one workspace there, and a step is the launches
// of its nodes in order.
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

  /// Runs the batch and waits for it.
  uint64_t submit(Call call, const dvt_batch& batch, std::span<const dvt_output> outs,
                  const dvt_sampling* sampling);
  void wait(Call call, uint64_t ticket) const;

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
  static constexpr uint64_t kHistory = 2;  // steps whose ids can be named

  Node make_node(const GraphView& g, const dvt_node& n);
  void place_values(const GraphView& g, const Weights& weights);
  void check(const dvt_batch& batch, std::span<const dvt_output> outs,
             const dvt_sampling* sampling);
  const int32_t* resolve_tokens(const dvt_batch& batch);
  int32_t earlier_id(const dvt_token_from& from) const;
  void bind_arrays();
  void sample(const dvt_batch& batch, std::vector<int32_t>& ids);

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
  DeviceBytes workspace_, scratch_, counters_, ids_;
  std::vector<int32_t> tokens_;
  std::array<std::vector<int32_t>, kHistory> history_;
  uint64_t ticket_ = 0;
};

}  // namespace dovetail::cuda
