// Which ops of a graph the CUDA backend computes in one launch. That the bits stay the same is shown by the tests of the
// kernels (decode_test.cpp) and by the backends' contract suite.
#include "plugins/backend/cuda/fusion.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/contract/small_model.hpp"

namespace dovetail::cuda {
namespace {

using core::fixed_dim;
using core::test::SmallModel;

using Ops = std::vector<std::string>;

GraphCopy fused(const dvt_graph& graph, const std::vector<dvt_str>& observed = {}) {
  dvt_compile_options options{};
  options.struct_size = sizeof options;
  options.observed = observed.data();
  options.n_observed = observed.size();
  return with_fused_ops(GraphCopy(graph), options);
}
Ops ops_of(const GraphCopy& copy) {
  const dvt_graph view = copy.view();
  const GraphView g(&view);
  Ops out;
  for (uint64_t i = 0; i < g.n_nodes(); ++i) out.emplace_back(g.op_name(g.node(i)));
  return out;
}
Ops ops_after(const core::Graph& graph, const std::vector<dvt_str>& observed = {}) {
  const dvt_graph view = graph.view();
  return ops_of(fused(view, observed));
}

// The first layer has SwiGLU, the second GeGLU, whose products are left as they are.
TEST(Fusion, TakesADecoderInFiveLaunchesALayer) {
  const core::OpRegistry registry;
  const core::Graph graph = SmallModel().graph(registry);
  EXPECT_EQ(ops_after(graph), (Ops{"embed",        "mul_scalar",  //
                                   "cuda.qkv",     "attend",      "reshape",   "cuda.linear",
                                   "cuda.gate_up", "cuda.linear",                              //
                                   "cuda.qkv",     "attend",      "reshape",   "cuda.linear",  //
                                   "rms_norm",     "linear",      "linear",    "gelu_tanh",
                                   "mul",          "cuda.linear", "take_rows",  //
                                   "cuda.linear"}));
}

TEST(Fusion, KeepsWhatComesOutOfItsLaunches) {
  const core::OpRegistry registry;
  const core::Graph graph = SmallModel().graph(registry);
  // Heads come out of attention, merged ones go into the product, sums out of it: all of them are there anyway.
  EXPECT_EQ(ops_after(graph, {to_abi("heads.0"), to_abi("merged_heads.1"), to_abi("layer_out.0")}),
            ops_after(graph));
}

TEST(Fusion, KeepsAttributesUnderTheNameOfTheirPart) {
  const core::OpRegistry registry;
  const core::Graph graph = SmallModel().graph(registry);
  const dvt_graph view = graph.view();
  const GraphCopy copy = fused(view);
  const dvt_graph after = copy.view();
  const GraphView g(&after);
  for (uint64_t i = 0; i < g.n_nodes(); ++i) {
    const dvt_node& n = g.node(i);
    if (g.op_name(n) == "cuda.qkv") {
      EXPECT_EQ(g.f64(n, "norm.eps"), SmallModel::kEps);
      EXPECT_EQ(g.f64(n, "attention_factor"), SmallModel::kRopeFactor);
      EXPECT_EQ(g.f64_list(n, "inv_freq").size(), static_cast<size_t>(SmallModel::kHead / 2));
      EXPECT_EQ(g.find_attr(n, "q_norm.eps"), nullptr) << "its heads have no norms";
      EXPECT_EQ(g.str(g.val(g.inputs(n)[3]).name).substr(8), ".k") << "weights in order";
    }
    if (g.op_name(n) == "attend") {
      EXPECT_EQ(g.f64(n, "scale"), SmallModel::kScale);
    }
  }
}

/// A graph by hand: x is [T, 8].
class FusedByHand : public testing::Test {
 protected:
  uint32_t emit(const char* op, const std::vector<uint32_t>& in,
                std::vector<core::Attr> attrs = {}) {
    return w.emit(op, 1, in, attrs)->at(0);
  }
  uint32_t embed() {
    return emit("embed", {*w.input("tokens"), w.weight("embed", {fixed_dim(32), fixed_dim(8)})});
  }
  uint32_t weight(const char* name) { return w.weight(name, {fixed_dim(8), fixed_dim(8)}); }
  uint32_t norm(uint32_t x) {
    core::Attr eps, offset;
    eps.key = "eps", eps.type = DVT_ATTR_F64, eps.flags = DVT_ATTR_MUST, eps.f64 = {1e-6};
    offset.key = "unit_offset", offset.type = DVT_ATTR_I64, offset.flags = DVT_ATTR_MUST;
    offset.i64 = {0};
    return emit("rms_norm", {x, w.weight("norm", {fixed_dim(8)})}, {eps, offset});
  }
  Ops ops_with(uint32_t last) {
    EXPECT_TRUE(w.name_value("logits", last, DVT_VALF_OUTPUT));
    return ops_after(w.take());
  }
  core::OpRegistry registry;
  core::GraphWriter w{registry};
};

TEST_F(FusedByHand, ResidualsOnEitherSideEvenOfTheInputItself) {
  const uint32_t x = embed();
  const uint32_t left = emit("add", {x, emit("linear", {x, weight("a")})});
  const uint32_t right = emit("add", {emit("linear", {norm(left), weight("b")}), left});
  EXPECT_EQ(ops_with(right), (Ops{"embed", "cuda.linear", "cuda.linear"}));
}

TEST_F(FusedByHand, ANormThatIsReadTwiceStays) {
  const uint32_t a = norm(embed());
  EXPECT_EQ(ops_with(emit("mul", {emit("linear", {a, weight("a")}), a})),
            (Ops{"embed", "rms_norm", "linear", "mul"}));
}

TEST_F(FusedByHand, AProductThatIsReadTwiceStays) {
  const uint32_t x = embed();
  const uint32_t y = emit("linear", {x, weight("a")});
  EXPECT_EQ(ops_with(emit("mul", {emit("add", {x, y}), y})),
            (Ops{"embed", "linear", "add", "mul"}));
}

TEST_F(FusedByHand, WhatIsObservedOnTheWayStays) {
  const uint32_t x = embed(), a = norm(x), y = emit("linear", {a, weight("a")});
  EXPECT_TRUE(w.name_value("a", a, DVT_VALF_OBSERVED));
  EXPECT_TRUE(w.name_value("y", y, DVT_VALF_OBSERVED));
  EXPECT_TRUE(w.name_value("logits", emit("add", {y, x}), DVT_VALF_OUTPUT));
  const core::Graph graph = w.take();
  EXPECT_EQ(ops_after(graph), (Ops{"embed", "cuda.linear"}));
  EXPECT_EQ(ops_after(graph, {to_abi("a")}), (Ops{"embed", "rms_norm", "cuda.linear"}));
  EXPECT_EQ(ops_after(graph, {to_abi("y")}), (Ops{"embed", "cuda.linear", "add"}));
}

TEST_F(FusedByHand, GateAndUpOfTwoInputsStay) {
  const uint32_t x = embed();
  const uint32_t gate = emit("linear", {x, weight("a")}),
                 up = emit("linear", {emit("silu", {x}), weight("b")});
  EXPECT_EQ(ops_with(emit("swiglu", {gate, up})),
            (Ops{"embed", "linear", "silu", "linear", "swiglu"}));
}

TEST_F(FusedByHand, GateAndUpWithoutANormAreOneLaunch) {
  const uint32_t x = embed();
  EXPECT_EQ(ops_with(emit("swiglu",
                          {emit("linear", {x, weight("a")}), emit("linear", {x, weight("b")})})),
            (Ops{"embed", "cuda.gate_up"}));
}

}  // namespace
}  // namespace dovetail::cuda
