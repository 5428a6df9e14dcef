// GraphBuilder: the dvt_builder_v1 that an architecture plugin sees. Keeps the first failure.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/graph/graph.hpp"

namespace dovetail::core {

class GraphBuilder {
 public:
  /// Shape of a checkpoint tensor by canonical name, or a Status that says it is missing.
  using WeightShape = std::function<Result<std::vector<int64_t>>(std::string_view name)>;

  GraphBuilder(const OpRegistry& registry, WeightShape weight_shape,
               const std::vector<dvt_state_spec>& states);
  const dvt_builder_v1* table() const { return &table_; }
  const Status& status() const { return status_; }
  /// The finished graph, or the first failure.
  Result<Graph> finish();

 private:
  struct Slots;  // the C functions
  dvt_code keep(Status status);
  dvt_code named(dvt_str name, dvt_id val, uint32_t flag);

  GraphWriter writer_;
  WeightShape weight_shape_;
  Status status_;
  dvt_builder_v1 table_{};
};

/// The same graph with every node i for which chosen[i] is set replaced by its op's definition.
Result<Graph> decompose(const Graph& graph, const std::vector<bool>& chosen,
                        const OpRegistry& registry);

}  // namespace dovetail::core
