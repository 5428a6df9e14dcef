// Which sums the CPU backend computes with the product they add, and in which order products come. That the bits stay the same is shown by
// the backends' contract suite, which observes layers' sums and compares the logits.
#include "plugins/backend/cpu/products.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/contract/small_model.hpp"

namespace dovetail::cpu {
namespace {

using core::fixed_dim;

using Ops = std::vector<std::string>;

/// The ops of a graph, in order.
Ops ops_of(const dvt_graph& graph) {
  const GraphView g(&graph);
  Ops out;
  for (uint64_t i = 0; i < g.n_nodes(); ++i) out.emplace_back(g.op_name(g.node(i)));
  return out;
}
/// Those after with_residuals.
Ops ops_after(const core::Graph& graph, const std::vector<dvt_str>& observed = {}) {
  dvt_compile_options options{};
  options.struct_size = sizeof options;
  options.observed = observed.data();
  options.n_observed = observed.size();
  const dvt_graph view = graph.view();
  const GraphCopy copy = with_residuals(GraphCopy(view), options);
  return ops_of(copy.view());
}

class Residuals : public testing::Test {
 protected:
  uint32_t emit(const char* op, const std::vector<uint32_t>& in) {
    return w.emit(op, 1, in, {})->at(0);
  }
  uint32_t embed() {
    return emit("embed", {*w.input("tokens"), w.weight("embed", {fixed_dim(32), fixed_dim(8)})});
  }
  uint32_t weight(const char* name) { return w.weight(name, {fixed_dim(8), fixed_dim(8)}); }
  Ops ops_with(uint32_t last) {
    EXPECT_TRUE(w.name_value("logits", emit("silu", {last}), DVT_VALF_OUTPUT));
    return ops_after(w.take());
  }
  core::OpRegistry registry;
  core::GraphWriter w{registry};
};

TEST_F(Residuals, AreAddedByTheProductOnEitherSide) {
  const uint32_t x = embed();
  const uint32_t left = emit("add", {x, emit("linear", {emit("silu", {x}), weight("a")})});
  const uint32_t right = emit("add", {emit("linear", {emit("silu", {left}), weight("b")}), left});
  EXPECT_EQ(ops_with(right),
            (Ops{"embed", "silu", "cpu.linear_add", "silu", "cpu.linear_add", "silu"}));
}

TEST_F(Residuals, StayWhereTheProductReadsTheResidualItself) {
  const uint32_t x = embed();
  EXPECT_EQ(ops_with(emit("add", {x, emit("linear", {x, weight("a")})})),
            (Ops{"embed", "linear", "add", "silu"}));
}

TEST_F(Residuals, StayWhereTheResidualIsReadLater) {
  const uint32_t x = embed();
  const uint32_t sum = emit("add", {x, emit("linear", {emit("silu", {x}), weight("a")})});
  EXPECT_EQ(ops_with(emit("mul", {sum, x})),
            (Ops{"embed", "silu", "linear", "add", "mul", "silu"}));
}

TEST_F(Residuals, StayWhereTheProductHasAnotherReaderOrABias) {
  const uint32_t x = embed();
  const uint32_t y = emit("linear", {emit("silu", {x}), weight("a")});
  const uint32_t sum = emit("mul", {emit("add", {x, y}), y});
  const uint32_t biased =
      emit("linear", {emit("silu", {sum}), weight("b"), w.weight("c", {fixed_dim(8)})});
  EXPECT_EQ(ops_with(emit("add", {sum, biased})),
            (Ops{"embed", "silu", "linear", "add", "mul", "silu", "linear", "add", "silu"}));
}

TEST(ProductsFirst, BringsTheProductsOfAValueTogether) {
  const core::OpRegistry registry;
  core::GraphWriter w(registry);
  const auto emit = [&w](const char* op, const std::vector<uint32_t>& in) {
    return w.emit(op, 1, in, {})->at(0);
  };
  const auto weight = [&w](const char* name) {
    return w.weight(name, {fixed_dim(8), fixed_dim(8)});
  };
  const uint32_t x =
      emit("embed", {*w.input("tokens"), w.weight("embed", {fixed_dim(32), fixed_dim(8)})});
  const uint32_t a = emit("silu", {emit("linear", {x, weight("a")})});
  const uint32_t b = emit("silu", {emit("linear", {x, weight("b")})});
  const uint32_t c = emit("linear", {emit("mul", {a, b}), weight("c")});
  EXPECT_TRUE(w.name_value("logits", c, DVT_VALF_OUTPUT));
  const core::Graph graph = w.take();
  const dvt_graph view = graph.view();
  const GraphCopy ordered = with_products_first(GraphCopy(view));
  const dvt_graph after = ordered.view();
  EXPECT_EQ(ops_of(after), (Ops{"embed", "linear", "linear", "silu", "silu", "mul", "linear"}));
  const GraphView g(&after);
  EXPECT_EQ(g.str(g.val(g.inputs(g.node(1))[1]).name), "a") << "in the order that they had";
}

TEST(ResidualsOfADecoder, AreTwoALayerUnlessObserved) {
  const core::OpRegistry registry;
  const core::Graph graph = core::test::SmallModel().graph(registry);
  constexpr auto kAll = 2 * core::test::SmallModel::kLayers;
  EXPECT_EQ(std::ranges::count(ops_after(graph), "cpu.linear_add"), kAll);
  // The first layer's sum may be asked for in other memory, and must be there in the end.
  EXPECT_EQ(std::ranges::count(ops_after(graph, {to_abi("layer_out.0")}), "cpu.linear_add"),
            kAll - 2);
}

}  // namespace
}  // namespace dovetail::cpu
