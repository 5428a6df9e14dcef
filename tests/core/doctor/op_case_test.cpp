#include "core/doctor/op_case.hpp"

#include <gtest/gtest.h>

namespace dovetail::core {
namespace {

// Two steps of two and one tokens; the sum of a fed value [T, 2, 3] and a weight [3].
OpCase sum() {
  OpCase c;
  c.steps = {{{}, {0, 1}, {1}}, {{}, {2}, {0}}};
  c.fed = {{5, false, {2, 3}, std::vector<float>(18, 1.0F)}};
  c.weights = {{6, "bias", "float32", "", {3}, {}, nullptr}};
  c.nodes = {{"add", 1, "layers.3.attn", {5, 6}, {7}, {}}};
  c.wanted = {7};
  return c;
}

std::string why_not(const OpCase& c) {
  const Result<CaseGraph> made = graph_of(c, OpRegistry());
  return made ? "" : made.status().message();
}

TEST(OpCase, IsFedThroughATableOfItsTokens) {
  const OpCase c = sum();
  EXPECT_EQ(c.n_tokens(), 3u);
  EXPECT_EQ(c.row_tokens(), (std::vector<size_t>{1, 2}));
  const OpRegistry ops;
  const Result<CaseGraph> made = graph_of(c, ops);
  ASSERT_TRUE(made) << made.status().message();
  EXPECT_EQ(made->graph.dump(),
            "fed  embed(tokens[T], dovetail.fed.0[3, 6]) -> %3[T, 6]\n"
            "fed  reshape(%3[T, 6]) -> %4[T, 2, 3]\n"
            "layers.3.attn  add(%4[T, 2, 3], bias[3]) -> out.0[T, 2, 3]\n");
  ASSERT_EQ(made->outputs.size(), 1u);
  EXPECT_FALSE(made->outputs[0].is_of_rows);
  EXPECT_EQ(made->outputs[0].tail, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(made->outputs[0].width, 6u);
}

TEST(OpCase, AValueOfRowsIsFedAtItsTokens) {
  OpCase c = sum();
  c.fed[0].is_of_rows = true;
  c.fed[0].tail = {3};
  const OpRegistry ops;
  const Result<CaseGraph> made = graph_of(c, ops);
  ASSERT_TRUE(made) << made.status().message();
  EXPECT_NE(made->graph.dump().find("take_rows(%3[T, 3], out_rows[R]) -> %5[R, 3]"),
            std::string::npos)
      << made->graph.dump();
  EXPECT_TRUE(made->outputs[0].is_of_rows);
}

TEST(OpCase, WhatDoesNotFitIsSaid) {
  OpCase c = sum();
  c.nodes[0].in[1] = 9;
  EXPECT_EQ(why_not(c), "value 9 is not given before");
  c = sum();
  c.nodes[0].out[0] = 5;
  EXPECT_EQ(why_not(c), "value 5 is given twice");
  c = sum();
  c.nodes[0].out.clear();
  EXPECT_EQ(why_not(c), "op \"add\" gives 1 values, expected 0");
  c = sum();
  c.weights[0].shape = {4};
  EXPECT_NE(why_not(c).find("layers.3.attn: add: operands are [T, 2, 3] and [4]"),
            std::string::npos);
  c = sum();
  c.wanted = {6};
  EXPECT_EQ(why_not(c), "a value of [3] has no row of float32 for each token");
  c = sum();
  c.inputs = {{1, "tokens"}};
  EXPECT_EQ(why_not(c), "a case that is fed cannot read token ids");
}

}  // namespace
}  // namespace dovetail::core
