// Graph: the owning form of dvt_graph, and GraphWriter, the only way to add to one.
//
// A graph is a list of nodes in the order they run, over values whose shape and dtype the op's rule
// has inferred. Reading it goes through view(), which is what backends get.
#pragma once

#include <dovetail/abi/graph.h>

#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/status.hpp"

namespace dovetail::core {

class OpRegistry;

/// Dtype and dims of a value.
struct ValueType {
  uint32_t dtype = DVT_ACTIVATION;
  std::vector<dvt_dim> dims;
};

/// An attribute with its data, as an op's rule reads it.
struct Attr {
  std::string key;
  uint32_t type = DVT_ATTR_I64;
  uint32_t flags = 0;
  std::vector<int64_t> i64;
  std::vector<double> f64;
  std::string str;
};

class Graph {
 public:
  /// Tables over this graph's storage; valid until it changes or dies.
  dvt_graph view() const;
  std::string_view str(dvt_id id) const;

  size_t n_nodes() const { return nodes_.size(); }
  const dvt_node& node(size_t i) const { return nodes_[i]; }
  const dvt_val& val(uint32_t i) const { return vals_[i]; }
  std::string_view op_name(const dvt_node& n) const { return str(ops_[n.op].name); }
  uint32_t input(const dvt_node& n, uint32_t i) const { return edges_[n.in0 + i]; }
  uint32_t output(const dvt_node& n, uint32_t i) const { return edges_[n.out0 + i]; }
  ValueType type_of(uint32_t val) const;
  /// Whether a value has this name.
  bool names(std::string_view name) const;
  std::vector<Attr> attrs_of(const dvt_node& n) const;
  const std::vector<dvt_weight_ref>& weights() const { return weights_; }
  const std::vector<dvt_state_spec>& states() const { return states_; }
  /// "[T, 1024]"
  std::string shape_text(const std::vector<dvt_dim>& dims) const;
  /// One line per node: what `plugins explain` and messages print.
  std::string dump() const;

 private:
  friend class GraphWriter;
  std::vector<dvt_node> nodes_;
  std::vector<dvt_val> vals_;
  std::vector<dvt_dim> dims_;
  std::vector<dvt_op_ref> ops_;
  std::vector<dvt_attr> attrs_;
  std::vector<dvt_weight_ref> weights_;
  std::vector<dvt_state_spec> states_;
  std::vector<uint32_t> edges_;
  std::vector<uint8_t> attr_data_;
  std::vector<dvt_range> strs_;
  std::string chars_;
  std::deque<std::string> state_names_;
  uint64_t fingerprint_ = 0;
};

constexpr uint32_t kNoValue = UINT32_MAX;

/// Adds to a graph. Values are indices (kNoValue = absent).
class GraphWriter {
 public:
  explicit GraphWriter(const OpRegistry& registry) : registry_(registry) {}

  dvt_id intern(std::string_view text);
  Result<uint32_t> input(std::string_view name);
  uint32_t weight(std::string_view name, std::vector<dvt_dim> dims);
  uint32_t add_state(const dvt_state_spec& spec);  // copies the name
  Result<uint32_t> state(std::string_view slot);
  void scope(std::string_view path) { scope_ = intern(path); }
  dvt_id current_scope() const { return scope_; }
  Result<std::vector<uint32_t>> emit(std::string_view op, uint32_t rev,
                                     const std::vector<uint32_t>& in,
                                     const std::vector<Attr>& attrs);
  Status name_value(std::string_view name, uint32_t val, uint32_t flag);  // DVT_VALF_*
  ValueType type_of(uint32_t val) const { return graph_.type_of(val); }
  const Graph& graph() const { return graph_; }
  /// Seals the graph: fingerprint, access sets of weights.
  Graph take();

 private:
  uint32_t add_value(std::string_view name, uint32_t role, const ValueType& type, uint32_t bind);
  void add_attr(const Attr& a);
  void mark_weights(const std::vector<uint32_t>& in, uint32_t access);
  const OpRegistry& registry_;
  Graph graph_;
  dvt_id scope_ = 0;
  std::unordered_map<std::string, dvt_id> interned_;
  std::map<std::string, uint32_t, std::less<>> inputs_, weights_, states_, ops_;
};

/// A fixed size, or a symbol of the graph's string table.
inline dvt_dim fixed_dim(int64_t value) {
  return {value, 0, 0};
}
bool same_dim(const dvt_dim& a, const dvt_dim& b);

}  // namespace dovetail::core
