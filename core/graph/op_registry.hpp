// OpRegistry: every op there is, by name and revision, with its shape rule and its meaning.
//
// core ops       any backend has them
// composite ops  the vocabulary of language models; each is defined in core ops (decompose), so that
//                it runs where a backend lacks it
// plugin ops     brought by a plugin through "dovetail.op/1"
// A new op is an entry here (ops_core.cpp, ops_composite.cpp) and nowhere else.
#pragma once

#include <dovetail/abi/op.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/graph.hpp"

namespace dovetail::core {

struct OpDef;

/// One use of an op, as its rule and its definition see it.
struct OpCall {
  GraphWriter& writer;
  const OpDef& def;
  const std::vector<uint32_t>& in;  // values; kNoValue = absent
  const std::vector<Attr>& attrs;
  std::vector<ValueType> types;  // of in

  bool has(size_t i) const { return i < in.size() && in[i] != kNoValue; }
  const Attr* attr(std::string_view key) const;
  Result<int64_t> i64(std::string_view key) const;
  Result<double> f64(std::string_view key) const;
  std::string shape(size_t i) const { return writer.graph().shape_text(types[i].dims); }
};

struct OpDef {
  std::string name;
  uint32_t rev = 1;
  uint32_t tier = DVT_TIER_CORE;
  size_t min_inputs = 1, max_inputs = 1;
  Status (*infer)(const OpCall&, std::vector<ValueType>& out) = nullptr;
  /// Emits the definition in core ops and returns the outputs; null for core and plugin ops.
  Result<std::vector<uint32_t>> (*decompose)(const OpCall&) = nullptr;
  const dvt_op_v1* plugin_op = nullptr;
};

class OpRegistry {
 public:
  /// All core and composite ops.
  OpRegistry();
  const OpDef* find(std::string_view name, uint32_t rev) const;
  Status add(OpDef def);
  /// An op that a plugin brings; the table lives as long as the plugin.
  Status add_plugin_op(const dvt_op_v1* op);
  std::vector<const OpDef*> all() const;

 private:
  std::map<std::pair<std::string, uint32_t>, OpDef> ops_;
};

void register_core_ops(OpRegistry& registry);       // ops_core.cpp
void register_composite_ops(OpRegistry& registry);  // ops_composite.cpp

}  // namespace dovetail::core
