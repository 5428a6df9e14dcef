// What the penalties count, and how they go back. B074.
#include "tests/plugins/sampler/stage_rig.hpp"

namespace dovetail::core::test {
namespace {

using Logits = std::vector<float>;

TEST(PresencePenalty, CountsGeneratedTokensOnceAndNotThePrompt) {
  Stage stage("presence_penalty", R"({"presence_penalty": 1})", "", {5, 5, 5});
  const Logits logits(8, 2.0f);
  EXPECT_EQ(stage.logits(logits), logits) << "none generated yet";
  ASSERT_TRUE(stage.accept(3));
  ASSERT_TRUE(stage.accept(3));
  EXPECT_EQ(stage.logits(logits), (Logits{2, 2, 2, 1, 2, 2, 2, 2}));
  ASSERT_TRUE(stage.accept(5));
  EXPECT_EQ(stage.logits(logits), (Logits{2, 2, 2, 1, 2, 1, 2, 2}));
}

TEST(FrequencyPenalty, CountsGeneratedTokensEachTimeAndNotThePrompt) {
  Stage stage("frequency_penalty", R"({"frequency_penalty": 0.5})", "", {5, 5, 5});
  const Logits logits(8, 2.0f);
  EXPECT_EQ(stage.logits(logits), logits);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(stage.accept(3));
  ASSERT_TRUE(stage.accept(5));
  EXPECT_EQ(stage.logits(logits), (Logits{2, 2, 2, 0.5, 2, 1.5, 2, 2}));
  Stage negative("frequency_penalty", R"({"frequency_penalty": 0})",
                 R"({"frequency_penalty": -2})");
  ASSERT_TRUE(negative.accept(1));
  EXPECT_EQ(negative.logits({0, 0}), (Logits{0, 2}));
}

TEST(RepetitionPenalty, CountsPromptAndGeneratedOnce) {
  Stage stage("repetition_penalty", R"({"repetition_penalty": 2})", "", {0, 1, 2, 0, 0});
  EXPECT_EQ(stage.logits({1, -1, 0, 4}), (Logits{0.5, -2, 0, 4}));
  ASSERT_TRUE(stage.accept(3));
  EXPECT_EQ(stage.logits({1, -1, 0, 4}), (Logits{0.5, -2, 0, 2}));
}

// As RepetitionPenaltyLogitsProcessor(1.7) of transformers 5.24 gives it.
TEST(RepetitionPenalty, GivesWhatTransformersGives) {
  Stage stage("repetition_penalty", R"({"repetition_penalty": 1.7})", "", {0, 2, 2, 3});
  const Logits out = stage.logits({1, 5, -3, 0.25});
  EXPECT_NEAR(out[0], 0.5882353f, 1e-7);
  EXPECT_EQ(out[1], 5);
  EXPECT_NEAR(out[2], -5.1f, 1e-6);
  EXPECT_NEAR(out[3], 0.1470588f, 1e-7);
}

TEST(Penalties, DoNotCountRejectedTokens) {
  for (const char* name : {"presence_penalty", "frequency_penalty", "repetition_penalty"}) {
    Stage stage(name, std::string("{\"") + name + "\": 1.5}", "", {7});
    const Logits logits(8, 3.0f);
    ASSERT_TRUE(stage.accept(2));
    const Logits before = stage.logits(logits);
    for (uint32_t id : {1u, 2u, 7u, 2u}) ASSERT_TRUE(stage.accept(id));
    EXPECT_NE(stage.logits(logits), before);
    ASSERT_TRUE(stage.rewind(4));
    EXPECT_EQ(stage.logits(logits), before) << name;
    const Status too_far = stage.rewind(2);
    EXPECT_EQ(too_far.message(), "got a rewind by 2 tokens, but only 1 were accepted");
    EXPECT_EQ(stage.logits(logits), before) << "nothing happened";
    ASSERT_TRUE(stage.rewind(1));
  }
}

TEST(Penalties, ChangeTheSameIdsInAnyOrderOfCandidates) {
  for (const char* name : {"presence_penalty", "frequency_penalty", "repetition_penalty"}) {
    Stage stage(name, std::string("{\"") + name + "\": 1.5}", "", {7, 6});
    for (uint32_t id : {1u, 2u, 999u, 2u}) ASSERT_TRUE(stage.accept(id));
    const Logits logits = {1, 2, 3, 4, 5, 6, -7, -8};
    Draw by_id(logits, 2), sorted(logits, 1), shuffled(logits, 0);
    for (Draw* d : {&by_id, &sorted, &shuffled}) ASSERT_TRUE(stage.apply(*d));
    EXPECT_EQ(sorted.by_id(), by_id.by_id());
    EXPECT_EQ(shuffled.by_id(), by_id.by_id());
    EXPECT_EQ(by_id.list.sorted, 2u);
  }
}

TEST(Penalties, RefuseDamagedState) {
  Stage stage("frequency_penalty", R"({"frequency_penalty": 1})");
  EXPECT_EQ(stage.load({1, 2, 3}).message(),
            "got 3 bytes of saved state, expected a multiple of 4");
  EXPECT_TRUE(stage.load({1, 0, 0, 0, 1, 0, 0, 0}));
  EXPECT_EQ(stage.logits({0, 5}), (Logits{0, 3}));
}

}  // namespace
}  // namespace dovetail::core::test
