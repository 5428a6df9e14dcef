// The core's part of a draw: which ids are candidates, the order of stages, the random choice, the
// short way to the argmax. Stages are fakes; what the real ones do is in tests/plugins/sampler.
#include "core/sampling/sampler.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <random>

#include "tests/core/sampling/fake_stage.hpp"

namespace dovetail::core {
namespace {

using test::FakeStage;
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

std::unique_ptr<SamplerState> begin(const SamplerChain& chain, uint64_t seed = 1,
                                    uint32_t choice = 0) {
  Result<std::unique_ptr<SamplerState>> s = SamplerState::begin(chain, Node(), {}, seed, choice);
  EXPECT_TRUE(s) << s.status().message();
  return std::move(s).value();
}
void add(SamplerChain& chain, FakeStage& stage, std::string name = "fake",
         std::vector<ParamSpec> params = {}) {
  const Status s = chain.add(std::move(name), FakeStage::table(), &stage, Node::make_map(), 100,
                             std::move(params));
  ASSERT_TRUE(s) << s.message();
}

TEST(Sampler, DrawsFromSoftmaxWhenTheChainIsEmpty) {
  const SamplerChain chain;
  const std::vector<float> logits = {0, 1, 2, -kInf, 3, -1};
  double total = 0;
  for (float l : logits) total += std::exp(double{l});
  const auto state = begin(chain, 99);
  EXPECT_FALSE(state->is_argmax());
  constexpr int kDraws = 40000;
  std::vector<int> count(logits.size());
  for (uint64_t i = 0; i < kDraws; ++i) ++count[*state->sample(logits, i)];
  EXPECT_EQ(count[3], 0);
  double chi_square = 0;
  for (size_t id = 0; id < logits.size(); ++id) {
    const double expected = kDraws * std::exp(double{logits[id]}) / total;
    if (expected > 0) chi_square += std::pow(count[id] - expected, 2) / expected;
  }
  EXPECT_LT(chi_square, 18.5) << "over the 99.9 % quantile of 4 degrees of freedom";
}

TEST(Sampler, DrawsBySeedChoiceAndPositionOnly) {
  const SamplerChain chain;
  std::vector<float> logits(1000);
  std::mt19937 random(3);
  for (float& l : logits) l = static_cast<float>(random() % 1000) / 250;
  const auto text = [&](uint64_t seed, uint32_t choice) {
    const auto state = begin(chain, seed, choice);
    std::vector<uint32_t> ids;
    for (uint64_t i = 0; i < 20; ++i) ids.push_back(*state->sample(logits, i));
    return ids;
  };
  const std::vector<uint32_t> one = text(42, 0);
  EXPECT_EQ(one, text(42, 0));
  EXPECT_NE(one, text(42, 1));
  EXPECT_NE(one, text(7, 0));
  EXPECT_EQ(text(42, 2), text(42, 2));
  EXPECT_NE(text(0, 0), text(uint64_t{1} << 63, 0));
  // In any order, and after other draws.
  const auto state = begin(chain, 42);
  (void)state->sample(std::vector<float>(3), 500);
  for (size_t i = 20; i-- > 0;) EXPECT_EQ(*state->sample(logits, i), one[i]);
}

TEST(Sampler, ReportsTheSeedThatItDrew) {
  const SamplerChain chain;
  const auto a = std::move(SamplerState::begin(chain, Node(), {}, std::nullopt, 0)).value();
  const auto b = std::move(SamplerState::begin(chain, Node(), {}, std::nullopt, 0)).value();
  EXPECT_NE(a->seed(), b->seed());
  const std::vector<float> logits(500);
  const auto again = begin(chain, a->seed());
  for (uint64_t i = 0; i < 10; ++i) EXPECT_EQ(*a->sample(logits, i), *again->sample(logits, i));
  EXPECT_EQ(begin(chain, 0)->seed(), 0u);
  for (int i = 0; i < 64; ++i) {  // a config can hold what was drawn
    const auto drawn = std::move(SamplerState::begin(chain, Node(), {}, std::nullopt, 0)).value();
    EXPECT_LE(drawn->seed(), static_cast<uint64_t>(INT64_MAX));
  }
}

TEST(Sampler, MakesNoCandidatesOfNaNOfMinusInfinityOrOfMaskedIds) {
  FakeStage stage;
  std::vector<uint32_t> seen;
  stage.apply = [&](dvt_cands& c) {
    EXPECT_EQ(c.sorted, 2u);
    seen.clear();
    for (uint64_t i = 0; i < c.n; ++i) seen.push_back(c.c[i].id);
  };
  SamplerChain chain;
  add(chain, stage);
  chain.set_n_ids(6);
  const auto state = begin(chain);
  const std::vector<float> logits = {1, kNaN, 2, -kInf, 3, 4, 100, 100};
  ASSERT_TRUE(state->sample(logits, 0));
  EXPECT_EQ(seen, (std::vector<uint32_t>{0, 2, 4, 5}));
  const std::vector<uint32_t> mask = {0b11100111};
  ASSERT_TRUE(state->sample(logits, 0, mask));
  EXPECT_EQ(seen, (std::vector<uint32_t>{0, 2, 5}));
}

TEST(Sampler, MasksByTheRightWord) {
  SamplerChain chain;
  const auto state = begin(chain);
  const std::vector<float> logits(100, 0.5f);
  const std::vector<uint32_t> mask = {0, 0, 1u << 31, 0};
  EXPECT_EQ(*state->sample(logits, 0, mask), 95u);
}

TEST(Sampler, FailsTheRequestWhenNothingIsLeft) {
  FakeStage stage;
  stage.effect = DVT_EFFECT_ARGMAX;
  stage.apply = [](dvt_cands& c) { c.n = 1; };
  SamplerChain empty, greedy;
  add(greedy, stage);
  for (const SamplerChain* chain : {&empty, &greedy}) {
    const auto state = begin(*chain);
    const std::vector<float> all_nan(4, kNaN), none;
    const Result<uint32_t> id = state->sample(all_nan, 17);
    ASSERT_FALSE(id);
    EXPECT_EQ(id.status().code(), Code::kInternal);
    EXPECT_NE(id.status().message().find("every logit at position 17 is NaN"), std::string::npos);
    EXPECT_FALSE(state->sample(none, 0));
    EXPECT_FALSE(state->sample(std::vector<float>(4, 1.0f), 0, std::vector<uint32_t>{0}));
    EXPECT_TRUE(state->sample(std::vector<float>(4, 1.0f), 0))
        << "the next step may be right again";
  }
}

TEST(Sampler, SharesTheProbabilityAmongInfiniteLogits) {
  const SamplerChain chain;
  const auto state = begin(chain);
  const std::vector<float> logits = {0, kInf, 5, kInf};
  std::vector<int> count(4);
  for (uint64_t i = 0; i < 1000; ++i) ++count[*state->sample(logits, i)];
  EXPECT_EQ(count[0] + count[2], 0);
  EXPECT_NEAR(count[1], 500, 60);
}

TEST(Sampler, RunsTheStagesInOrder) {
  FakeStage first, second;
  std::string order;
  first.apply = [&](dvt_cands& c) {
    order += "1";
    c.c[3].logit = 50;
  };
  second.apply = [&](dvt_cands& c) {
    order += "2";
    EXPECT_EQ(c.c[3].logit, 50);
    c.c[0] = c.c[3];
    c.n = 1;
  };
  SamplerChain chain;
  add(chain, first);
  add(chain, second);
  EXPECT_EQ(chain.size(), 2u);
  EXPECT_EQ(*begin(chain)->sample(std::vector<float>(5), 0), 3u);
  EXPECT_EQ(order, "12");
}

// A stage that sorts, or leaves any order, does not change what is drawn.
TEST(Sampler, DrawsTheSameWhateverOrderTheStagesLeave) {
  FakeStage reversing;
  reversing.apply = [](dvt_cands& c) {
    std::reverse(c.c, c.c + c.n);
    c.sorted = 0;
  };
  SamplerChain plain, chain;
  add(chain, reversing);
  std::vector<float> logits(200);
  std::mt19937 random(5);
  for (float& l : logits) l = static_cast<float>(random() % 100) / 20;
  const auto a = begin(plain), b = begin(chain);
  for (uint64_t i = 0; i < 200; ++i) EXPECT_EQ(*a->sample(logits, i), *b->sample(logits, i));
}

TEST(Sampler, TakesTheArgmaxDirectlyWithTheSameResult) {
  FakeStage greedy, keeping;
  greedy.effect = DVT_EFFECT_ARGMAX;
  keeping.effect = DVT_EFFECT_KEEPS_ARGMAX;
  int n_applied = 0;
  greedy.apply = [&](dvt_cands& c) {
    ++n_applied;
    *c.c = *std::min_element(c.c, c.c + c.n, [](const dvt_cand& a, const dvt_cand& b) {
      return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
    });
    c.n = 1;
  };
  // The same table without the last slot: a plugin that says nothing about its effect.
  dvt_sampler_v1 silent_table = *FakeStage::table();
  silent_table.struct_size = offsetof(dvt_sampler_v1, effect);
  SamplerChain fast, slow;
  add(fast, keeping);
  add(fast, greedy);
  ASSERT_TRUE(slow.add("greedy", &silent_table, &greedy, Node::make_map(), 100));
  fast.set_n_ids(60);
  slow.set_n_ids(60);
  const auto a = begin(fast), b = begin(slow);
  EXPECT_TRUE(a->is_argmax());
  EXPECT_FALSE(b->is_argmax());
  std::mt19937 random(11);
  for (int i = 0; i < 3000; ++i) {
    std::vector<float> logits(1 + random() % 64);
    for (float& l : logits) {
      const float special[] = {kNaN, kInf, -kInf, 3.4e38f, -3.4e38f, 0.0f, -0.0f};
      l = random() % 8 == 0 ? special[random() % 7] : static_cast<float>(random() % 7) - 3;
    }
    std::vector<uint32_t> mask(2, 0xffffffff);
    if (i % 3 == 0) mask = {static_cast<uint32_t>(random()), static_cast<uint32_t>(random())};
    const std::span<const uint32_t> allowed =
        i % 2 == 0 ? std::span<const uint32_t>(mask) : std::span<const uint32_t>();
    const int before = n_applied;
    const Result<uint32_t> x = a->sample(logits, 0, allowed);
    EXPECT_EQ(n_applied, before) << "no stage has run";
    const Result<uint32_t> y = b->sample(logits, 0, allowed);
    ASSERT_EQ(x.is_ok(), y.is_ok());
    if (x.is_ok()) {
      ASSERT_EQ(*x, *y);
    }
  }
}

TEST(Sampler, GoesTheLongWayWhenAStageMayChangeTheArgmax) {
  FakeStage greedy, penalty;
  greedy.effect = DVT_EFFECT_ARGMAX;
  SamplerChain chain;
  add(chain, penalty);
  add(chain, greedy);
  EXPECT_FALSE(begin(chain)->is_argmax());
  SamplerChain no_argmax;
  penalty.effect = DVT_EFFECT_KEEPS_ARGMAX;
  add(no_argmax, penalty);
  EXPECT_FALSE(begin(no_argmax)->is_argmax());
}

// B070: beside a random request, a hundred times.
TEST(Sampler, GivesTheLowestIdOfATieBesideARandomRequest) {
  FakeStage greedy;
  greedy.effect = DVT_EFFECT_ARGMAX;
  SamplerChain chain, random;
  add(chain, greedy);
  const std::vector<float> logits = {1.0f, 1.0f, 0.0f};
  const auto a = begin(chain), b = begin(random);
  for (uint64_t i = 0; i < 100; ++i) {
    EXPECT_EQ(*a->sample(logits, i), 0u);
    EXPECT_LT(*b->sample(logits, i), 3u);
  }
}

TEST(Sampler, TellsStagesWhatWasAcceptedAndTakenBack) {
  FakeStage stage;
  SamplerChain chain;
  add(chain, stage);
  {
    const std::vector<uint32_t> prompt = {4, 5};
    const auto state = std::move(SamplerState::begin(chain, Node(), prompt, 1, 0)).value();
    EXPECT_EQ(stage.prompt, prompt);
    EXPECT_EQ(stage.n_begun, 1);
    for (uint32_t id : {7u, 8u, 9u}) EXPECT_TRUE(state->accept(id));
    EXPECT_TRUE(state->rewind(2));
    EXPECT_EQ(stage.accepted, (std::vector<uint32_t>{7}));
  }
  EXPECT_EQ(stage.n_begun, 0);
  SamplerChain moved = std::move(chain);
  EXPECT_EQ(stage.n_open, 1);
  moved = SamplerChain();
  EXPECT_EQ(stage.n_open, 0);
}

TEST(Sampler, ReportsAStagesFailureWithItsName) {
  FakeStage good, stage;
  SamplerChain chain;
  add(chain, good, "good");
  add(chain, stage, "temperature");
  const auto state = begin(chain);
  stage.failure = "it broke";
  EXPECT_EQ(state->sample(std::vector<float>(3), 0).status().message(),
            "sampler temperature: it broke");
  const auto failed = SamplerState::begin(chain, Node(), {}, 1, 0);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.status().message(), "sampler temperature: it broke");
  EXPECT_EQ(good.n_begun, 1) << "only the first request is left";
}

TEST(Sampler, RefusesWhatAStageMustNotLeave) {
  FakeStage stage;
  SamplerChain chain;
  add(chain, stage);
  const auto state = begin(chain);
  const std::vector<float> logits(3);
  stage.apply = [](dvt_cands& c) { c.n = 0; };
  EXPECT_EQ(state->sample(logits, 0).status().message(),
            "sampler fake left 0 of 3 candidates, expected at least one of them");
  stage.apply = [](dvt_cands& c) { c.n = 4; };
  EXPECT_FALSE(state->sample(logits, 0));
  stage.apply = [](dvt_cands& c) { c.c[1].logit = kNaN; };
  EXPECT_FALSE(state->sample(logits, 0));
  stage.apply = [](dvt_cands& c) {
    for (uint64_t i = 0; i < c.n; ++i) c.c[i].logit = -kInf;
  };
  EXPECT_FALSE(state->sample(logits, 0));
}

TEST(Sampler, ChecksWhatARequestSets) {
  FakeStage stage;
  ParamSpec temperature;
  temperature.name = "temperature";
  temperature.type = ParamSpec::Type::kFloat;
  temperature.min = 0;
  SamplerChain chain;
  add(chain, stage, "temperature", {temperature});
  const auto message = [&](const char* key, Node value) {
    Node overrides = Node::make_map();
    overrides.set(key, std::move(value));
    const auto s = SamplerState::begin(chain, overrides, {}, 1, 0);
    return s ? std::string() : s.status().message();
  };
  EXPECT_EQ(message("temperature", Node::make_float(0.5)), "");
  EXPECT_EQ(message("temperature", Node::make_int(1)), "");
  EXPECT_EQ(message("temperature", Node()), "") << "null: the stage's own";
  EXPECT_EQ(message("temperature", Node::make_int(-1)),
            "request: temperature: got -1, expected a number of at least 0");
  EXPECT_NE(message("temperature", Node::make_string("x")), "");
  EXPECT_EQ(message("temprature", Node::make_int(1)),
            "no sampler stage of this model has a parameter \"temprature\", did you mean "
            "\"temperature\"?; add its stage "
            "to `sampler` in the config");
  EXPECT_FALSE(SamplerState::begin(chain, Node::make_list(), {}, 1, 0));
}

}  // namespace
}  // namespace dovetail::core
