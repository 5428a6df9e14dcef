#include "fusion.hpp"

#include <dovetail/host_layout.hpp>

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

namespace dovetail::cuda {
namespace {

constexpr uint32_t kAbsent = UINT32_MAX;

/// Who gives and who reads each value.
class Uses {
 public:
  Uses(const GraphView& g, const dvt_compile_options& options)
      : g_(g),
        kept_(LayoutMaker::find_lives(g, options).kept),
        giver_(g.n_vals(), UINT64_MAX),
        n_reads_(g.n_vals(), 0) {
    for (uint64_t i = 0; i < g.n_nodes(); ++i) {
      for (const uint32_t v : g.inputs(g.node(i)))
        if (v != kAbsent) ++n_reads_[v];
      for (const uint32_t v : g.outputs(g.node(i))) giver_[v] = i;
    }
  }

  /// The node of that op that gives v, if v is read n times and otherwise by nobody.
  std::optional<uint64_t> inner(uint32_t v, std::string_view op, int n_reads = 1) const {
    if (v == kAbsent || giver_[v] == UINT64_MAX || kept_[v] || n_reads_[v] != n_reads) return {};
    if (g_.op_name(g_.node(giver_[v])) != op) return {};
    return giver_[v];
  }

 private:
  const GraphView& g_;
  std::vector<bool> kept_;
  std::vector<uint64_t> giver_;
  std::vector<int> n_reads_;
};

uint32_t input(const GraphView& g, uint64_t node, size_t i) {
  const auto inputs = g.inputs(g.node(node));
  return i < inputs.size() ? inputs[i] : kAbsent;
}
bool have_same_dims(const GraphView& g, uint32_t a, uint32_t b) {
  const Sizes ones{1, 1, 1};
  return g.dims(a, ones) == g.dims(b, ones);
}

/// What takes the place of some nodes: the last one of them, changed.
struct Fused {
  std::string_view op;
  std::vector<uint64_t> nodes;
  std::vector<uint32_t> inputs;
  uint32_t output;
  std::vector<GraphCopy::AttrSource> attrs;

  /// Takes in the norm that gives x where it has no other readers than n of these nodes; gives what they read then,
  /// and its weight.
  std::pair<uint32_t, uint32_t> take_norm(const GraphView& g, const Uses& uses, uint32_t x, int n) {
    const auto norm = uses.inner(x, "rms_norm", n);
    if (!norm) return {x, kAbsent};
    nodes.push_back(*norm);
    attrs.push_back({*norm, "norm."});
    return {input(g, *norm, 0), input(g, *norm, 1)};
  }
};
void apply(GraphCopy& graph, Fused fused) {
  std::sort(fused.nodes.begin(), fused.nodes.end());
  const uint64_t at = fused.nodes.back();
  graph.set_op(at, fused.op);
  graph.set_inputs(at, fused.inputs);
  graph.set_output(at, 0, fused.output);
  graph.set_attrs(at, fused.attrs);
  fused.nodes.pop_back();
  for (auto node = fused.nodes.rbegin(); node != fused.nodes.rend(); ++node) graph.erase(*node);
}

// ---------------------------------------------------------------- what is looked for at a node

/// add(residual, linear(x)), in either order.
std::optional<Fused> residual_at(const GraphView& g, const Uses& uses, uint64_t i) {
  uint32_t residual = input(g, i, 0), y = input(g, i, 1);
  if (!uses.inner(y, "linear")) std::swap(y, residual);
  const auto product = uses.inner(y, "linear");
  if (!product || !have_same_dims(g, y, residual)) return {};
  Fused out{"cuda.linear", {i, *product}, {}, g.outputs(g.node(i))[0], {}};
  const auto [x, norm_weight] = out.take_norm(g, uses, input(g, *product, 0), 1);
  out.inputs = {x, norm_weight, input(g, *product, 1), input(g, *product, 2), residual};
  return out;
}
std::optional<Fused> normed_product_at(const GraphView& g, const Uses& uses, uint64_t i) {
  Fused out{"cuda.linear", {i}, {}, g.outputs(g.node(i))[0], {}};
  const auto [x, norm_weight] = out.take_norm(g, uses, input(g, i, 0), 1);
  if (norm_weight == kAbsent) return {};
  out.inputs = {x, norm_weight, input(g, i, 1), input(g, i, 2), kAbsent};
  return out;
}

std::optional<Fused> gate_up_at(const GraphView& g, const Uses& uses, uint64_t i) {
  const auto gate = uses.inner(input(g, i, 0), "linear"), up = uses.inner(input(g, i, 1), "linear");
  if (!gate || !up || input(g, *gate, 0) != input(g, *up, 0) ||
      !have_same_dims(g, input(g, *gate, 1), input(g, *up, 1)))
    return {};
  Fused out{"cuda.gate_up", {i, *gate, *up}, {}, g.outputs(g.node(i))[0], {}};
  const auto [x, norm_weight] = out.take_norm(g, uses, input(g, *gate, 0), 2);
  out.inputs = {
      x, norm_weight, input(g, *gate, 1), input(g, *up, 1), input(g, *gate, 2), input(g, *up, 2)};
  return out;
}

/// The nodes that make the heads of q, k or v.
struct HeadNodes {
  std::optional<uint64_t> rope, norm;
  uint64_t reshape = 0, product = 0;
};
std::optional<HeadNodes> heads_of(const GraphView& g, const Uses& uses, uint32_t v, bool has_rope) {
  HeadNodes out;
  if (has_rope) {
    out.rope = uses.inner(v, "rope");
    if (!out.rope) return {};
    v = input(g, *out.rope, 0);
    out.norm = uses.inner(v, "rms_norm");
    if (out.norm) v = input(g, *out.norm, 0);
  }
  const auto reshape = uses.inner(v, "reshape");
  if (!reshape) return {};
  const auto product = uses.inner(input(g, *reshape, 0), "linear");
  if (!product) return {};
  out.reshape = *reshape;
  out.product = *product;
  return out;
}
bool turn_alike(const GraphView& g, uint64_t a, uint64_t b) {
  const dvt_node &x = g.node(a), &y = g.node(b);
  return std::ranges::equal(g.f64_list(x, "inv_freq"), g.f64_list(y, "inv_freq")) &&
         g.f64(x, "attention_factor") == g.f64(y, "attention_factor");
}

std::optional<Fused> qkv_at(const GraphView& g, const Uses& uses, uint64_t i) {
  const auto q = heads_of(g, uses, input(g, i, 0), true),
             k = heads_of(g, uses, input(g, i, 1), true),
             v = heads_of(g, uses, input(g, i, 2), false);
  if (!q || !k || !v || !turn_alike(g, *q->rope, *k->rope)) return {};
  const uint32_t in = input(g, q->product, 0);
  if (input(g, k->product, 0) != in || input(g, v->product, 0) != in) return {};
  Fused out{"cuda.qkv", {}, {}, g.outputs(g.node(*q->rope))[0], {{*q->rope, ""}}};
  for (const HeadNodes& heads : {*q, *k, *v}) {
    out.nodes.insert(out.nodes.end(), {heads.reshape, heads.product});
    if (heads.rope) out.nodes.push_back(*heads.rope);
    if (heads.norm) out.nodes.push_back(*heads.norm);
  }
  const auto [x, norm_weight] = out.take_norm(g, uses, in, 3);
  out.inputs = {x, norm_weight};
  for (const size_t part : {1, 2})  // weights, then biases
    for (const HeadNodes& heads : {*q, *k, *v}) out.inputs.push_back(input(g, heads.product, part));
  const std::pair<const HeadNodes&, std::string_view> normed[] = {{*q, "q_norm."}, {*k, "k_norm."}};
  for (const auto& [heads, prefix] : normed) {
    out.inputs.push_back(heads.norm ? input(g, *heads.norm, 1) : kAbsent);
    if (heads.norm) out.attrs.push_back({*heads.norm, prefix});
  }
  out.inputs.insert(out.inputs.end(), {input(g, i, 3), input(g, i, 4)});
  return out;
}

using Match = std::optional<Fused>(const GraphView&, const Uses&, uint64_t);

/// Applies what `match` finds at nodes of those ops, from the first one on; then(node) is told where that node is now.
void fuse(GraphCopy& graph, const dvt_compile_options& options,
          std::initializer_list<std::string_view> ops, Match& match,
          const std::function<void(uint64_t)>& then = {}) {
  for (uint64_t i = 0; i < graph.view().n_nodes; ++i) {
    const dvt_graph view = graph.view();
    const GraphView g(&view);
    if (std::ranges::find(ops, g.op_name(g.node(i))) == ops.end()) continue;
    std::optional<Fused> found = match(g, Uses(g, options), i);
    if (!found) continue;
    i -= found->nodes.size() - 1;  // all but one of them go, and none lies behind this one
    apply(graph, std::move(*found));
    if (then) then(i);
  }
}

}  // namespace

GraphCopy with_fused_ops(GraphCopy graph, const dvt_compile_options& options) {
  fuse(graph, options, {"attention"}, qkv_at, [&graph](uint64_t attention) {
    const dvt_graph view = graph.view();
    const GraphView g(&view);
    const std::vector<uint32_t> inputs = {input(g, attention, 0), input(g, attention, 3),
                                          input(g, attention, 4), input(g, attention, 5)};
    graph.set_op(attention, "attend");
    graph.set_inputs(attention, inputs);
  });
  fuse(graph, options, {"swiglu"}, gate_up_at);
  fuse(graph, options, {"add"}, residual_at);
  fuse(graph, options, {"linear"}, normed_product_at);
  return graph;
}

}  // namespace dovetail::cuda
