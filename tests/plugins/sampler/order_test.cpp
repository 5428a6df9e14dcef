// Chains of the real stages: they run in the order of the config. B073 and B070.
#include "core/sampling/sampler.hpp"

#include "tests/plugins/sampler/stage_rig.hpp"

namespace dovetail::core::test {
namespace {

using Stages = std::vector<std::pair<std::string, std::string>>;

SamplerChain chain_of(const Stages& stages) {
  SamplerChain chain;
  for (const auto& [name, value] : stages) {
    const SamplerPlugin& plugin = SamplerPlugin::load(plugin_file(name));
    const Status s =
        chain.add(name, plugin.table, plugin.self, json("{\"" + name + "\": " + value + "}"), 1000);
    EXPECT_TRUE(s) << s.message();
  }
  return chain;
}

// How often each id comes of n draws.
std::vector<int> counts(const Stages& stages, const std::vector<float>& logits, int n) {
  const SamplerChain chain = chain_of(stages);
  const auto state = std::move(SamplerState::begin(chain, Node(), {}, 4, 0)).value();
  std::vector<int> out(logits.size());
  for (int i = 0; i < n; ++i) ++out[*state->sample(logits, static_cast<uint64_t>(i))];
  return out;
}
size_t n_reachable(const Stages& stages, const std::vector<float>& logits) {
  size_t n = 0;
  for (int c : counts(stages, logits, 2000)) n += c > 0 ? 1 : 0;
  return n;
}

TEST(StageOrder, TemperatureBeforeOrAfterAFilterKeepsOtherIds) {
  const std::vector<float> logits = {3, 2, 1};
  EXPECT_EQ(n_reachable({{"top_p", "0.8"}, {"temperature", "0.5"}}, logits), 2u);
  EXPECT_EQ(n_reachable({{"temperature", "0.5"}, {"top_p", "0.8"}}, logits), 1u);
  const std::vector<float> four = logits_of({.5, .25, .15, .1});
  EXPECT_EQ(n_reachable({{"min_p", "0.25"}, {"temperature", "2"}}, four), 3u);
  EXPECT_EQ(n_reachable({{"temperature", "2"}, {"min_p", "0.25"}}, four), 4u);
}

TEST(StageOrder, LeavesTheSoftmaxOfWhatIsLeft) {
  const std::vector<int> count = counts({{"top_k", "2"}}, logits_of({.5, .25, .15, .1}), 30000);
  EXPECT_NEAR(count[0], 20000, 270) << "2/3, within 3.3 standard deviations";
  EXPECT_EQ(count[0] + count[1], 30000);
}

TEST(StageOrder, GivesTheLowestIdOfATieWhateverMakesItGreedy) {
  const std::vector<float> logits = {1.0f, 1.0f, 0.0f};
  for (const Stages& stages :
       {Stages{{"temperature", "0"}}, Stages{{"top_k", "1"}},
        Stages{{"temperature", "0"}, {"top_p", "0.9"}},
        Stages{{"top_p", "0.9"}, {"temperature", "0"}}, Stages{{"greedy", "0"}}})
    EXPECT_EQ(counts(stages, logits, 100), (std::vector<int>{100, 0, 0}));
}

TEST(StageOrder, AppliesBiasAndPenaltiesBeforeTheArgmax) {
  const std::vector<float> logits = {1, 2, 3};
  EXPECT_EQ(counts({{"logit_bias", "{\"2\": -100}"}, {"temperature", "0"}}, logits, 5),
            (std::vector<int>{0, 5, 0}));
  EXPECT_EQ(counts({{"logit_bias", "{\"0\": 100}"}, {"greedy", "0"}}, logits, 5),
            (std::vector<int>{5, 0, 0}));

  const SamplerChain chain = chain_of({{"presence_penalty", "2"}, {"greedy", "0"}});
  const auto state = std::move(SamplerState::begin(chain, Node(), {}, 1, 0)).value();
  EXPECT_FALSE(state->is_argmax());
  EXPECT_EQ(*state->sample(logits, 0), 2u);
  ASSERT_TRUE(state->accept(2));
  EXPECT_EQ(*state->sample(logits, 1), 1u);
  ASSERT_TRUE(state->rewind(1));
  EXPECT_EQ(*state->sample(logits, 1), 2u);
}

TEST(StageOrder, OffMeansAbsent) {
  std::vector<float> logits;
  for (int i = 0; i < 300; ++i) logits.push_back(static_cast<float>((i * 37) % 101) / 25);
  const Stages off = {{"repetition_penalty", "1"},
                      {"presence_penalty", "0"},
                      {"frequency_penalty", "0"},
                      {"temperature", "1"},
                      {"top_k", "0"},
                      {"top_p", "1"},
                      {"min_p", "0"},
                      {"typical_p", "1"},
                      {"logit_bias", "{}"}};
  EXPECT_EQ(counts(off, logits, 3000), counts({}, logits, 3000))
      << "the same draws, not only the same distribution";
}

TEST(StageOrder, TakesTheArgmaxDirectlyWhenEveryStageAllowsIt) {
  const auto is_argmax = [](const Stages& stages) {
    const SamplerChain chain = chain_of(stages);
    return std::move(SamplerState::begin(chain, Node(), {}, 1, 0)).value()->is_argmax();
  };
  EXPECT_TRUE(is_argmax({{"greedy", "0"}}));
  EXPECT_TRUE(is_argmax({{"temperature", "0"}, {"top_k", "40"}, {"top_p", "0.95"}}));
  EXPECT_TRUE(is_argmax({{"top_k", "1"}, {"min_p", "0.1"}, {"presence_penalty", "0"}}));
  EXPECT_FALSE(is_argmax({{"temperature", "0.7"}}));
  EXPECT_FALSE(is_argmax({{"temperature", "0"}, {"frequency_penalty", "1"}}));
  EXPECT_FALSE(is_argmax({{"typical_p", "0.9"}, {"greedy", "0"}}));
}

}  // namespace
}  // namespace dovetail::core::test
