#include "core/graph/graph.hpp"

#include <gtest/gtest.h>

#include "core/graph/builder.hpp"
#include "core/graph/op_registry.hpp"

namespace dovetail::core {
namespace {

Attr number(const char* key, double v) {
  Attr a;
  a.key = key;
  a.type = DVT_ATTR_F64;
  a.f64 = {v};
  return a;
}
Attr integers(const char* key, std::vector<int64_t> v) {
  Attr a;
  a.key = key;
  a.i64 = std::move(v);
  return a;
}

class GraphTest : public ::testing::Test {
 protected:
  uint32_t x() {  // [T, 8]
    const uint32_t table = w.weight("embed", {fixed_dim(32), fixed_dim(8)});
    return w.emit("embed", 1, {*w.input("tokens"), table}, {})->at(0);
  }
  std::string shape(uint32_t v) { return w.graph().shape_text(w.type_of(v).dims); }
  OpRegistry registry;
  GraphWriter w{registry};
};

TEST_F(GraphTest, InfersShapesThroughSymbolicSizes) {
  const uint32_t v = x();
  EXPECT_EQ(shape(v), "[T, 8]");
  const uint32_t y =
      w.emit("linear", 1, {v, w.weight("w", {fixed_dim(12), fixed_dim(8)})}, {})->at(0);
  EXPECT_EQ(shape(y), "[T, 12]");
  const uint32_t heads =
      w.emit("reshape", 1, {y}, {integers("n_last", {1}), integers("tail", {3, 4})})->at(0);
  EXPECT_EQ(shape(heads), "[T, 3, 4]");
  EXPECT_EQ(shape(w.emit("take_rows", 1, {y, *w.input("out_rows")}, {})->at(0)), "[R, 12]");
}

TEST_F(GraphTest, RefusesWhatDoesNotFitAndNamesTheScope) {
  w.scope("layers.3.attn");
  const auto wrong = w.emit("linear", 1, {x(), w.weight("w", {fixed_dim(12), fixed_dim(9)})}, {});
  ASSERT_FALSE(wrong.is_ok());
  EXPECT_EQ(
      wrong.status().message(),
      "layers.3.attn: linear: x is [T, 8] and weight is [12, 9], expected [.., K] and [N, K]");
}

TEST_F(GraphTest, RefusesUnknownOpsAndRevisions) {
  EXPECT_EQ(w.emit("conv9", 1, {x()}, {}).status().code(), Code::kUnsupported);
  EXPECT_EQ(w.emit("silu", 7, {x()}, {}).status().code(), Code::kUnsupported);
  EXPECT_FALSE(w.emit("silu", 1, {x(), x()}, {}).is_ok());
}

TEST_F(GraphTest, RopeChecksItsFrequencies) {
  const uint32_t heads =
      w.emit("reshape", 1, {x()}, {integers("n_last", {1}), integers("tail", {2, 4})})->at(0);
  const uint32_t positions = *w.input("positions");
  Attr freq;
  freq.key = "inv_freq";
  freq.type = DVT_ATTR_F64;
  freq.f64 = {1.0, 0.1};
  EXPECT_TRUE(
      w.emit("rope", 1, {heads, positions}, {freq, number("attention_factor", 1.0)}).is_ok());
  freq.f64 = {1.0, 0.1, 0.01};
  EXPECT_FALSE(
      w.emit("rope", 1, {heads, positions}, {freq, number("attention_factor", 1.0)}).is_ok());
}

TEST_F(GraphTest, EveryCompositeDecomposesIntoCoreOpsOfTheSameShape) {
  const uint32_t v = x();
  const uint32_t norm = w.emit("rms_norm", 1, {v, w.weight("n", {fixed_dim(8)})},
                               {number("eps", 1e-6), integers("unit_offset", {1})})
                            ->at(0);
  const uint32_t gated = w.emit("swiglu", 1, {norm, v}, {})->at(0);
  const uint32_t heads =
      w.emit("reshape", 1, {gated}, {integers("n_last", {1}), integers("tail", {2, 4})})->at(0);
  dvt_state_spec spec{};
  spec.struct_size = sizeof spec;
  spec.kind = DVT_STATE_PAGED;
  spec.dtype = DVT_ACTIVATION;
  spec.ndim = 2;
  spec.dim[0] = 2;
  spec.dim[1] = 4;
  spec.name = {"k", 1};
  const uint32_t k = w.add_state(spec);
  spec.name = {"v", 1};
  const uint32_t vs = w.add_state(spec);
  const uint32_t y = w.emit("attention", 1, {heads, heads, heads, k, vs, *w.input("positions")},
                            {number("scale", 0.5), integers("window", {0})})
                         ->at(0);
  ASSERT_TRUE(w.name_value("y", y, DVT_VALF_OUTPUT).is_ok());
  const Graph graph = w.take();
  const Result<Graph> core = decompose(graph, std::vector<bool>(graph.n_nodes(), true), registry);
  ASSERT_TRUE(core.is_ok()) << core.status().message();
  EXPECT_GT(core->n_nodes(), graph.n_nodes());
  bool found = false;
  const dvt_graph g = core->view();
  for (size_t i = 0; i < core->n_nodes(); ++i)
    EXPECT_EQ(g.ops[core->node(i).op].tier, DVT_TIER_CORE) << core->op_name(core->node(i));
  for (uint32_t i = 0; i < g.n_vals; ++i)
    if (core->str(g.vals[i].name) == "y") {
      found = true;
      EXPECT_EQ(core->shape_text(core->type_of(i).dims), "[T, 2, 4]");
      EXPECT_TRUE(g.vals[i].flags & DVT_VALF_OUTPUT);
    }
  EXPECT_TRUE(found);
}

TEST_F(GraphTest, EqualGraphsHaveEqualFingerprints) {
  GraphWriter other(registry);
  const uint32_t table = other.weight("embed", {fixed_dim(32), fixed_dim(8)});
  ASSERT_TRUE(other.emit("embed", 1, {*other.input("tokens"), table}, {}).is_ok());
  x();
  const uint64_t one = w.take().view().fingerprint;
  EXPECT_EQ(one, other.take().view().fingerprint);
  GraphWriter third(registry);
  const uint32_t wider = third.weight("embed", {fixed_dim(32), fixed_dim(9)});
  ASSERT_TRUE(third.emit("embed", 1, {*third.input("tokens"), wider}, {}).is_ok());
  EXPECT_NE(one, third.take().view().fingerprint);
}

TEST(GraphBuilder, KeepsTheFirstFailure) {
  OpRegistry registry;
  GraphBuilder builder(registry,
                       [](std::string_view name) -> Result<std::vector<int64_t>> {
                         return invalid("no " + std::string(name));
                       },
                       {});
  const dvt_builder_v1* b = builder.table();
  dvt_id out = 0;
  EXPECT_EQ(b->weight(b->self, nullptr, {"a", 1}, nullptr, 0, &out), DVT_EINVAL);
  EXPECT_EQ(b->weight(b->self, nullptr, {"b", 1}, nullptr, 0, &out), DVT_EINVAL);
  dvt_op_desc desc{};
  desc.struct_size = sizeof desc;
  desc.rev = 1;
  desc.op = {"silu", 4};
  EXPECT_EQ(b->emit(b->self, nullptr, &desc, &out), DVT_EINVAL);
  EXPECT_EQ(builder.finish().status().message(), "no a");
}

TEST(OpRegistry, PluginOpsNeedAnOwner) {
  OpRegistry registry;
  dvt_op_v1 op{};
  op.struct_size = sizeof op;
  op.rev = 1;
  op.name = {"mine", 4};
  EXPECT_FALSE(registry.add_plugin_op(&op).is_ok());
  op.name = {"me/mine", 7};
  EXPECT_TRUE(registry.add_plugin_op(&op).is_ok());
  EXPECT_TRUE(registry.add_plugin_op(&op).is_ok());  // the same table again
  const dvt_op_v1 other = op;
  EXPECT_FALSE(registry.add_plugin_op(&other).is_ok());
}

}  // namespace
}  // namespace dovetail::core
