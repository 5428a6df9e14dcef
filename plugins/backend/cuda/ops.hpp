// The op table of the CUDA backend: each op launches its kernels, nothing waits.
#pragma once

#include <dovetail/host_program.hpp>

#include <any>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "step.hpp"

namespace dovetail::cuda {

/// One node with everything resolved for this step; arrays lie on the device.
struct NodeLaunch {
  std::vector<Array> in, out;
  std::vector<int32_t> state;  // state index of each input, -1 for others
  const Step* step = nullptr;
  const DeviceStates* states = nullptr;
  uint8_t* scratch = nullptr;    // for this node alone
  uint32_t* counters = nullptr;  // zeros, before and after
  const std::any* prepared = nullptr;

  bool has(size_t i) const { return i < in.size() && in[i].data != nullptr; }
  kernels::cuda::Stream stream() const { return step->stream(); }
};

/// What `prepare` may use: bounds, values that nodes of one program share by key, and launches that begin
/// every step.
struct DevicePreparation {
  Device& device;
  Sizes max;
  uint64_t shared_bytes = 0;  // on the device
  std::map<std::string, std::any> shared;
  std::vector<std::function<void(const Step&)>> at_start;
};

/// How the backend runs one op. `scratch`: bytes that it needs besides its values, in a step of that size;
/// `n_counters`: how many counters its launches take.
struct DeviceOp {
  std::string_view name;
  void (*launch)(const NodeLaunch&);
  std::any (*prepare)(const GraphView&, const dvt_node&, DevicePreparation&) = nullptr;
  uint64_t (*scratch)(const GraphView&, const dvt_node&, const Sizes&) = nullptr;
  int64_t (*n_counters)(const GraphView&, const dvt_node&) = nullptr;
};

/// The op of that name, or null.
const DeviceOp* find_op(std::string_view name);
/// The same among those that fusion.hpp puts in a graph.
const DeviceOp* find_fused_op(std::string_view name);

/// Why a node of an op in the table cannot run; empty where it can.
std::string_view why_not(const GraphView& g, const dvt_node& n);

/// The tokens that a tile of this attention has; 0 for other ops.
int64_t attend_tile_len(const GraphView& g, const dvt_node& n);

/// Bytes of the tables that rope keeps for a graph.
uint64_t rope_bytes(const GraphView& g, const Sizes& max);

}  // namespace dovetail::cuda
