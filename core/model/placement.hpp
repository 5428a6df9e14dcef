// Placement: where each op of a graph runs on a backend, and why; and the graph as the backend gets it.
#pragma once

#include <dovetail/abi/backend.h>

#include <string>
#include <vector>

#include "core/base/status.hpp"
#include "core/graph/graph.hpp"
#include "core/graph/op_registry.hpp"

namespace dovetail::core {

/// Where one op of the architecture's graph runs.
struct Placement {
  enum class Runs : uint8_t { kNatively, kSlowly, kByDefinition };

  std::string scope, op;
  Runs runs = Runs::kNatively;
  std::string reason;  // the backend's; empty where it runs natively
};

struct PlacedGraph {
  Graph graph;  // with definitions in the place of what the backend lacks
  std::vector<Placement> placements;
};

/// Asks the backend for each op. `name` is the backend's, for messages.
/// errors  kUnsupported: an op that it cannot run and that has no definition.
Result<PlacedGraph> place_ops(Graph graph, const OpRegistry& ops, const dvt_backend_v1& backend,
                              void* context, const std::string& name);

}  // namespace dovetail::core
