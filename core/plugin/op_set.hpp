// OpSet: the ops that plugins bring ("dovetail.op/1"), and the host's "dovetail.ops/1" over them.
#pragma once

#include <dovetail/abi/op.h>

#include <cstdint>
#include <map>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/status.hpp"

namespace dovetail::core {

class OpSet {
 public:
  OpSet();
  OpSet(const OpSet&) = delete;
  OpSet& operator=(const OpSet&) = delete;

  /// Adds an op; its table lives as long as the plugin. Adding the same table again does nothing.
  /// errors  kInvalid: a name without an owner ("x.hash/mix" has one) or without its functions, or
  ///         another plugin's op of that name and revision.
  Status add(const dvt_op_v1* op);
  /// Null if there is none.
  const dvt_op_v1* find(std::string_view name, uint32_t rev) const;
  std::vector<const dvt_op_v1*> all() const;

  const dvt_ops_v1* table() const { return &table_; }

 private:
  mutable std::shared_mutex mutex_;
  std::map<std::pair<std::string, uint32_t>, const dvt_op_v1*> ops_;
  dvt_ops_v1 table_;
};

}  // namespace dovetail::core
