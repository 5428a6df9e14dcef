#include "products.hpp"

#include <dovetail/host_layout.hpp>

#include <algorithm>
#include <span>
#include <utility>

namespace dovetail::cpu {
namespace {

bool is_product(const GraphView& g, const dvt_node& n) {
  return (g.op_name(n) == "linear" || g.op_name(n) == "cpu.linear_packed") &&
         (n.n_in < 3 || g.inputs(n)[2] == UINT32_MAX);
}

bool is_read_once(const GraphView& g, uint32_t v) {
  int64_t n = 0;
  for (uint64_t i = 0; i < g.n_nodes(); ++i) n += std::ranges::count(g.inputs(g.node(i)), v);
  return n == 1;
}

/// Products that write no memory which others may still read.
bool can_come_first(const GraphView& g, uint64_t node) {
  const std::string_view op = g.op_name(g.node(node));
  return op == "linear" || op == "cpu.linear_packed";
}

/// Whether node i adds r to y, the product of the node before it, and the sum can take r's place: what is kept may be
/// asked for in other memory.
bool can_take_place(const GraphView& g, const Layout& lives, uint64_t i, uint32_t r, uint32_t y) {
  const dvt_node& product = g.node(i - 1);
  if (lives.kept[r] || lives.kept[y] || lives.kept[g.outputs(g.node(i))[0]]) return false;
  const Sizes ones{1, 1, 1};
  return is_product(g, product) && g.outputs(product)[0] == y && is_read_once(g, y) &&
         g.val(r).role == DVT_VAL_COMPUTED && lives.root[r] == r &&
         lives.last_use[r] == static_cast<int64_t>(i) && lives.root[g.inputs(product)[0]] != r &&
         g.dims(r, ones) == g.dims(y, ones);
}

}  // namespace

GraphCopy with_residuals(GraphCopy graph, const dvt_compile_options& options) {
  for (uint64_t i = 1; i < graph.view().n_nodes; ++i) {
    const dvt_graph view = graph.view();
    const GraphView g(&view);
    const dvt_node node = g.node(i);
    if (g.op_name(node) != "add") continue;
    const Layout lives = LayoutMaker::find_lives(g, options);
    uint32_t r = g.inputs(node)[0], y = g.inputs(node)[1];
    if (!can_take_place(g, lives, i, r, y)) std::swap(r, y);
    if (!can_take_place(g, lives, i, r, y)) continue;
    const dvt_node product = g.node(i - 1);
    const std::string op =
        g.op_name(product) == "linear" ? "cpu.linear_add" : "cpu.linear_packed_add";
    const std::vector<uint32_t> inputs = {g.inputs(product)[0], g.inputs(product)[1], r};
    const uint32_t sum = g.outputs(node)[0];
    graph.erase(i--);
    graph.set_op(i, op);
    graph.set_inputs(i, inputs);
    graph.set_output(i, 0, sum);
  }
  return graph;
}

GraphCopy with_products_first(GraphCopy graph) {
  for (uint64_t i = 1; i < graph.view().n_nodes; ++i) {
    const dvt_graph view = graph.view();
    const GraphView g(&view);
    if (!can_come_first(g, i)) continue;
    const std::span<const uint32_t> inputs = g.inputs(g.node(i));
    const auto gives_input = [&](uint64_t node) {
      return std::ranges::any_of(g.outputs(g.node(node)), [&](uint32_t v) {
        return std::ranges::find(inputs, v) != inputs.end();
      });
    };
    uint64_t to = i;
    while (to > 0 && !can_come_first(g, to - 1) && !gives_input(to - 1)) --to;
    if (to < i) graph.move_up(i, to);
  }
  return graph;
}

}  // namespace dovetail::cpu
