// GraphCopy: a graph of one's own, which a backend may change before it compiles it.
//
// The tables of a dvt_graph belong to the host; a program outlives them. A backend that prepares a
// value for several nodes (activations quantised once for all products that read them) says so by
// putting a node of its own before the first of them.
#pragma once

#include <dovetail/graph_view.hpp>
#include <dovetail/records.hpp>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace dovetail {

class GraphCopy {
 public:
  explicit GraphCopy(const dvt_graph& g) : graph_(g) {
    copy(nodes_, g.nodes, g.n_nodes, g.node_stride);
    copy(vals_, g.vals, g.n_vals, g.val_stride);
    copy(dims_, g.dims, g.n_dims, g.dim_stride);
    copy(ops_, g.ops, g.n_ops, g.op_stride);
    copy(attrs_, g.attrs, g.n_attrs, g.attr_stride);
    copy(weights_, g.weights, g.n_weights, g.weight_stride);
    copy(states_, g.states, g.n_states, g.n_states ? g.states->struct_size : 0);
    copy(edges_, g.edges, g.n_edges, sizeof(uint32_t));
    copy(strs_, g.strs, g.n_strs, sizeof(dvt_range));
    copy(attr_data_, g.attr_data, g.attr_bytes, 1);
    copy(chars_, g.chars, g.n_chars, 1);
  }

  /// The tables; valid until the copy changes or goes.
  dvt_graph view() const {
    dvt_graph g = graph_;
    table(g.nodes, g.n_nodes, g.node_stride, nodes_);
    table(g.vals, g.n_vals, g.val_stride, vals_);
    table(g.dims, g.n_dims, g.dim_stride, dims_);
    table(g.ops, g.n_ops, g.op_stride, ops_);
    table(g.attrs, g.n_attrs, g.attr_stride, attrs_);
    table(g.weights, g.n_weights, g.weight_stride, weights_);
    g.states = states_.data();
    g.edges = edges_.data();
    g.n_edges = edges_.size();
    g.strs = strs_.data();
    g.n_strs = strs_.size();
    g.attr_data = attr_data_.data();
    g.chars = chars_.data();
    g.n_chars = chars_.size();
    return g;
  }

  /// Puts the node op(x) before node `before`, in its scope; its result has x's rows (the first dim),
  /// each of `width` elements. Gives the result.
  uint32_t insert(uint64_t before, std::string_view op, uint32_t x, int64_t width, uint32_t dtype) {
    const auto dim0 = static_cast<uint32_t>(dims_.size());
    const dvt_dim rows = dims_[vals_[x].dim0];
    dims_.push_back(rows);
    dims_.push_back({width, 0, 0});
    const auto out = static_cast<uint32_t>(vals_.size());
    vals_.push_back({0, dtype, DVT_VAL_COMPUTED, 0, dim0, 2, 0, 0});
    dvt_node node{};
    node.op = op_index(op);
    node.in0 = static_cast<uint32_t>(edges_.size());
    node.out0 = node.in0 + 1;
    node.n_in = node.n_out = 1;
    node.scope = nodes_[before].scope;
    edges_.push_back(x);
    edges_.push_back(out);
    nodes_.insert(nodes_.begin() + static_cast<std::ptrdiff_t>(before), node);
    return out;
  }
  void set_op(uint64_t node, std::string_view op) { nodes_[node].op = op_index(op); }
  void set_input(uint64_t node, uint32_t k, uint32_t value) {
    edges_[nodes_[node].in0 + k] = value;
  }
  void set_output(uint64_t node, uint32_t k, uint32_t value) {
    edges_[nodes_[node].out0 + k] = value;
  }
  void set_inputs(uint64_t node, const std::vector<uint32_t>& values) {
    nodes_[node].in0 = static_cast<uint32_t>(edges_.size());
    nodes_[node].n_in = static_cast<uint32_t>(values.size());
    edges_.insert(edges_.end(), values.begin(), values.end());
  }
  /// The attributes of node `from`, their keys behind `prefix`.
  struct AttrSource {
    uint64_t from;
    std::string_view prefix;
  };
  /// Gives a node those attributes in place of its own.
  void set_attrs(uint64_t node, const std::vector<AttrSource>& sources) {
    std::vector<dvt_attr> taken;
    for (const AttrSource& source : sources)
      for (uint32_t i = 0; i < nodes_[source.from].n_attrs; ++i) {
        taken.push_back(attrs_[nodes_[source.from].attr0 + i]);
        if (!source.prefix.empty())
          taken.back().key =
              add_string(std::string(source.prefix) + std::string(string(taken.back().key)));
      }
    nodes_[node].attr0 = static_cast<uint32_t>(attrs_.size());
    nodes_[node].n_attrs = static_cast<uint32_t>(taken.size());
    attrs_.insert(attrs_.end(), taken.begin(), taken.end());
  }
  /// Takes node `from` to an earlier place, `to`; those between move one on.
  void move_up(uint64_t from, uint64_t to) {
    const auto begin = nodes_.begin();
    std::rotate(begin + static_cast<std::ptrdiff_t>(to), begin + static_cast<std::ptrdiff_t>(from),
                begin + static_cast<std::ptrdiff_t>(from) + 1);
  }
  /// Takes a node out; what it gave must be given by another, or be read by none.
  void erase(uint64_t node) { nodes_.erase(nodes_.begin() + static_cast<std::ptrdiff_t>(node)); }

 private:
  template <class T>
  static void copy(std::vector<T>& to, const void* from, uint64_t n, uint64_t stride) {
    to = read_records<T>(from, n, stride);
  }
  template <class T>
  static void table(const T*& p, uint64_t& n, uint32_t& stride, const std::vector<T>& from) {
    p = from.data();
    n = from.size();
    stride = sizeof(T);
  }
  std::string_view string(dvt_id id) const {
    const dvt_range r = strs_[id - 1];
    return {chars_.data() + r.begin, static_cast<size_t>(r.end - r.begin)};
  }
  dvt_id add_string(std::string_view text) {
    const auto begin = chars_.size();
    chars_.insert(chars_.end(), text.begin(), text.end());
    strs_.push_back({begin, chars_.size()});
    return static_cast<dvt_id>(strs_.size());
  }
  uint32_t op_index(std::string_view name) {
    for (size_t i = 0; i < ops_.size(); ++i)
      if (string(ops_[i].name) == name) return static_cast<uint32_t>(i);
    ops_.push_back({add_string(name), 1, DVT_TIER_VENDOR});
    return static_cast<uint32_t>(ops_.size() - 1);
  }

  dvt_graph graph_;  // what is in no table
  std::vector<dvt_node> nodes_;
  std::vector<dvt_val> vals_;
  std::vector<dvt_dim> dims_;
  std::vector<dvt_op_ref> ops_;
  std::vector<dvt_attr> attrs_;
  std::vector<dvt_weight_ref> weights_;
  std::vector<dvt_state_spec> states_;
  std::vector<uint32_t> edges_;
  std::vector<dvt_range> strs_;
  std::vector<uint8_t> attr_data_;
  std::vector<char> chars_;
};

}  // namespace dovetail
