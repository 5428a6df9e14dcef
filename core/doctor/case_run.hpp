// Runs a case on a backend: in a context of its own, with nothing of a model but what the case holds.
#pragma once

#include <dovetail/abi/backend.h>

#include <string>
#include <vector>

#include "core/base/node.hpp"
#include "core/base/status.hpp"
#include "core/doctor/op_case.hpp"
#include "core/graph/op_registry.hpp"
#include "core/model/placement.hpp"

namespace dovetail::core {

/// A backend and how it is to be opened.
struct CaseBackend {
  std::string name;
  const dvt_backend_v1* table = nullptr;
  void* plugin = nullptr;
  Node params;
  uint32_t kv_dtype = DVT_F32;
  uint32_t page_len = 16;
};

/// Of each wanted value, [n_tokens, width]; of a value of rows those at the rows' tokens, 0 elsewhere.
struct CaseOutputs {
  std::vector<CaseGraph::Output> values;
  std::vector<std::vector<float>> numbers;
  std::vector<Placement> placements;  // of the case's graph, the feeding too
};

/// errors  what the backend reports, with its name; kFormat: a weight whose bytes do not fit its shape. As graph_of().
Result<CaseOutputs> run_case(const OpCase& c, const CaseBackend& backend, const OpRegistry& ops,
                             const uint32_t* cancel);

}  // namespace dovetail::core
