// GraphView: a backend's reading of the flat graph tables, by stride, with checked attributes.
#pragma once

#include <dovetail/abi/backend.h>
#include <dovetail/doc.hpp>

#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dovetail {

/// The symbolic sizes of one batch, or their upper bounds.
struct Sizes {
  int64_t tokens = 0, rows = 0, seqs = 0;
};

class GraphView {
 public:
  explicit GraphView(const dvt_graph* g) : g_(g) {}
  const dvt_graph& raw() const { return *g_; }

  uint64_t n_nodes() const { return g_->n_nodes; }
  uint64_t n_vals() const { return g_->n_vals; }
  const dvt_node& node(uint64_t i) const { return at<dvt_node>(g_->nodes, g_->node_stride, i); }
  const dvt_val& val(uint64_t i) const { return at<dvt_val>(g_->vals, g_->val_stride, i); }
  const dvt_weight_ref& weight(uint64_t i) const {
    return at<dvt_weight_ref>(g_->weights, g_->weight_stride, i);
  }
  const dvt_state_spec& state(uint64_t i) const {
    return at<dvt_state_spec>(g_->states, g_->states->struct_size, i);
  }
  std::string_view str(dvt_id id) const {
    if (id == 0 || id > g_->n_strs) return {};
    return {g_->chars + g_->strs[id - 1].begin,
            static_cast<size_t>(g_->strs[id - 1].end - g_->strs[id - 1].begin)};
  }
  const dvt_op_ref& op(const dvt_node& n) const {
    return at<dvt_op_ref>(g_->ops, g_->op_stride, n.op);
  }
  std::string_view op_name(const dvt_node& n) const { return str(op(n).name); }
  std::span<const uint32_t> inputs(const dvt_node& n) const { return {g_->edges + n.in0, n.n_in}; }
  std::span<const uint32_t> outputs(const dvt_node& n) const {
    return {g_->edges + n.out0, n.n_out};
  }

  std::vector<int64_t> dims(uint32_t v, const Sizes& sizes) const {
    std::vector<int64_t> out;
    for (uint32_t i = 0; i < val(v).ndim; ++i) {
      const dvt_dim& d = dim(val(v).dim0 + i);
      out.push_back(d.sym == 0 ? d.value : sizes.*size_of(d));
    }
    return out;
  }
  const dvt_dim& dim(uint64_t i) const { return at<dvt_dim>(g_->dims, g_->dim_stride, i); }
  /// Which of the batch's sizes a symbolic dimension is; throws Error for one that is not known here.
  int64_t Sizes::*size_of(const dvt_dim& d) const {
    const std::string_view name = str(d.sym);
    if (name == "T") return &Sizes::tokens;
    if (name == "R") return &Sizes::rows;
    if (name == "S") return &Sizes::seqs;
    throw Error("this backend does not know the size \"" + std::string(name) + "\"",
                DVT_EUNSUPPORTED);
  }
  int64_t elements(uint32_t v, const Sizes& sizes) const {
    int64_t n = 1;
    for (int64_t d : dims(v, sizes)) n *= d;
    return n;
  }

  const dvt_attr* find_attr(const dvt_node& n, std::string_view key) const {
    for (uint32_t i = 0; i < n.n_attrs; ++i) {
      const dvt_attr& a = at<dvt_attr>(g_->attrs, g_->attr_stride, n.attr0 + i);
      if (str(a.key) == key) return &a;
    }
    return nullptr;
  }
  /// The value of an attribute of one element; throws Error when absent or of another type.
  int64_t i64(const dvt_node& n, std::string_view key) const {
    return one<int64_t>(n, key, DVT_ATTR_I64);
  }
  double f64(const dvt_node& n, std::string_view key) const {
    return one<double>(n, key, DVT_ATTR_F64);
  }
  std::span<const double> f64_list(const dvt_node& n, std::string_view key) const {
    const dvt_attr* a = find_attr(n, key);
    if (!a || a->type != DVT_ATTR_F64) throw missing(n, key);
    return {reinterpret_cast<const double*>(g_->attr_data + a->offset), static_cast<size_t>(a->n)};
  }
  /// All attributes in the form that plugin ops take; data points into the graph.
  std::vector<dvt_attr_in> attrs(const dvt_node& n) const {
    std::vector<dvt_attr_in> out;
    for (uint32_t i = 0; i < n.n_attrs; ++i) {
      const dvt_attr& a = at<dvt_attr>(g_->attrs, g_->attr_stride, n.attr0 + i);
      out.push_back({to_abi(str(a.key)), a.type, a.flags, g_->attr_data + a.offset, a.n});
    }
    return out;
  }

 private:
  template <class T>
  static const T& at(const void* base, uint64_t stride, uint64_t i) {
    return *reinterpret_cast<const T*>(static_cast<const uint8_t*>(base) + stride * i);
  }
  Error missing(const dvt_node& n, std::string_view key) const {
    return Error(
        "node " + std::string(op_name(n)) + " lacks attribute \"" + std::string(key) + "\"",
        DVT_EINVAL, std::string(str(n.scope)));
  }
  template <class T>
  T one(const dvt_node& n, std::string_view key, uint32_t type) const {
    const dvt_attr* a = find_attr(n, key);
    if (!a || a->type != type || a->n != 1) throw missing(n, key);
    T out;
    std::memcpy(&out, g_->attr_data + a->offset, sizeof out);
    return out;
  }

  const dvt_graph* g_;
};

}  // namespace dovetail
