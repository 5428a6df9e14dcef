// greedy, temperature, top_k, top_p, min_p, typical_p. The kept ids were computed with transformers
// 5.24 (TopPLogitsWarper, MinPLogitsWarper, TypicalLogitsWarper) and with plain formulas in numpy.
#include "tests/plugins/sampler/stage_rig.hpp"

namespace dovetail::core::test {
namespace {

using Ids = std::vector<uint32_t>;

const std::vector<float> kNine = {-1.375f, -1.5f,  1.375f, 3.625f, 4.5f,
                                  -1.5f,   -4.75f, 1.75f,  4.625f};
const std::vector<float> kTwelve = {-1.625f, -4.125f, -4.125f, -2.5f, -0.875f, 1.0f,
                                    -0.25f,  -1.875f, 3.5f,    2.5f,  -2.875f, 4.125f};

std::string of(const char* name, const char* value) {
  return std::string("{\"") + name + "\": " + value + "}";
}

TEST(Greedy, KeepsTheLikeliestAndTheLowestIdOnTies) {
  Stage greedy("greedy", "{}");
  EXPECT_EQ(greedy.kept({1, 3, 2}), (Ids{1}));
  EXPECT_EQ(greedy.kept({1, 1, 0}), (Ids{0}));
  EXPECT_EQ(greedy.kept({0, 7, 7, 7}), (Ids{1}));
  EXPECT_EQ(greedy.effect(), uint32_t{DVT_EFFECT_ARGMAX});
}

TEST(Temperature, DividesTheLogits) {
  Stage half("temperature", of("temperature", "0.5"));
  EXPECT_EQ(half.logits({3, -2, 0}), (std::vector<float>{6, -4, 0}));
  EXPECT_EQ(Stage("temperature", of("temperature", "2")).logits({3, -2}),
            (std::vector<float>{1.5f, -1}));
  EXPECT_EQ(Stage("temperature", of("temperature", "1")).logits({3, -2}),
            (std::vector<float>{3, -2}));
  EXPECT_EQ(half.effect(), uint32_t{DVT_EFFECT_ANY});
}

// B070
TEST(Temperature, OfZeroIsTheArgmax) {
  for (const char* zero : {"0", "0.0", "1e-6"}) {
    Stage t("temperature", of("temperature", zero));
    EXPECT_EQ(t.kept({1, 1, 0}), (Ids{0})) << zero;
    EXPECT_EQ(t.kept({1, 2, 3e38f}), (Ids{2})) << zero;
    EXPECT_EQ(t.effect(), uint32_t{DVT_EFFECT_ARGMAX});
  }
  Stage by_request("temperature", of("temperature", "1"), of("temperature", "0"));
  EXPECT_EQ(by_request.kept({1, 2, 2}), (Ids{1}));
}

// B071
TEST(TopK, KeepsAllForZeroMinusOneAndMoreThanThereAre) {
  const std::vector<float> logits = logits_of({.5, .25, .15, .1});
  for (const char* off : {"0", "-1", "1000000000", "4", "9223372036854775807"})
    EXPECT_EQ(Stage("top_k", of("top_k", off)).kept(logits), (Ids{0, 1, 2, 3})) << off;
  EXPECT_EQ(Stage("top_k", of("top_k", "1")).kept(logits), (Ids{0}));
  EXPECT_EQ(Stage("top_k", of("top_k", "3")).kept(kNine), (Ids{3, 4, 8}));
  EXPECT_EQ(Stage("top_k", of("top_k", "1")).kept({1, 1, 0}), (Ids{0}));
  EXPECT_EQ(Stage("top_k", of("top_k", "2")).kept({0, 5, 5, 5}), (Ids{1, 2})) << "exactly k";
}

// Many ids, many of them equal: what is kept is what sorting all of them puts first.
TEST(TopK, KeepsTheSameOfManyIdsAsSortingAllOfThem) {
  for (const int n_values : {3, 1000, 1000000}) {
    std::vector<float> logits;
    for (int64_t i = 0; i < 20001; ++i)
      logits.push_back(static_cast<float>(i * 7919 % 1000003 % n_values) - 2);
    Ids order(logits.size());
    for (uint32_t id = 0; id < order.size(); ++id) order[id] = id;
    std::stable_sort(order.begin(), order.end(),
                     [&](uint32_t a, uint32_t b) { return logits[a] > logits[b]; });
    for (const size_t k : {size_t{1}, size_t{2}, size_t{20}, size_t{64}, size_t{9000}}) {
      Ids expected(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(k));
      std::sort(expected.begin(), expected.end());
      EXPECT_EQ(Stage("top_k", of("top_k", std::to_string(k).c_str())).kept(logits), expected)
          << k << " of " << n_values << " values";
    }
  }
}

TEST(TopP, KeepsTheSmallestSetThatReachesP) {
  const auto kept = [](const char* p, const std::vector<float>& logits) {
    return Stage("top_p", of("top_p", p)).kept(logits);
  };
  EXPECT_EQ(kept("0.3", kNine), (Ids{8}));
  EXPECT_EQ(kept("0.8", kNine), (Ids{4, 8}));
  EXPECT_EQ(kept("0.95", kNine), (Ids{3, 4, 8}));
  EXPECT_EQ(kept("0.3", kTwelve), (Ids{11}));
  EXPECT_EQ(kept("0.8", kTwelve), (Ids{8, 11}));
  EXPECT_EQ(kept("0.95", kTwelve), (Ids{8, 9, 11}));
  EXPECT_EQ(kept("1", kNine).size(), 9u);
  EXPECT_EQ(kept("0", kNine), (Ids{8})) << "at least one";
  EXPECT_EQ(kept("0.9", {1, 1, 0}), (Ids{0, 1, 2})) << "0.42 + 0.42 is less";
  EXPECT_EQ(kept("0.9", std::vector<float>(10, 2.0f)), (Ids{0, 1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST(TopP, KeepsTheSameOfAWideDistributionAsSortingAllOfIt) {
  std::vector<float> logits;
  for (int i = 0; i < 20000; ++i) logits.push_back(static_cast<float>((i * 7919) % 20011) / 4000);
  std::vector<std::pair<double, uint32_t>> order;
  double total = 0;
  for (uint32_t id = 0; id < logits.size(); ++id) {
    order.emplace_back(-std::exp(double{logits[id]}), id);
    total += std::exp(double{logits[id]});
  }
  std::sort(order.begin(), order.end());
  for (const double p : {0.001, 0.05, 0.5, 0.99}) {
    double sum = 0;
    Ids expected;
    for (const auto& [minus_weight, id] : order) {
      expected.push_back(id);
      sum -= minus_weight;
      if (sum >= p * total) break;
    }
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(Stage("top_p", of("top_p", std::to_string(p).c_str())).kept(logits), expected) << p;
  }
}

TEST(MinP, DropsWhatIsLessLikelyThanAShareOfTheLikeliest) {
  const auto kept = [](const char* p, const std::vector<float>& logits) {
    return Stage("min_p", of("min_p", p)).kept(logits);
  };
  EXPECT_EQ(kept("0.02", kNine), (Ids{2, 3, 4, 7, 8}));
  EXPECT_EQ(kept("0.1", kNine), (Ids{3, 4, 8}));
  EXPECT_EQ(kept("0.5", kNine), (Ids{4, 8}));
  EXPECT_EQ(kept("0.02", kTwelve), (Ids{5, 8, 9, 11}));
  EXPECT_EQ(kept("0.1", kTwelve), (Ids{8, 9, 11}));
  EXPECT_EQ(kept("0.5", kTwelve), (Ids{8, 11}));
  EXPECT_EQ(kept("0", kNine).size(), 9u);
  EXPECT_EQ(kept("1", {3, 5, 5, 4}), (Ids{1, 2}));
}

// Next to the bound the probability itself decides.
TEST(MinP, DecidesByTheProbabilityNextToTheBound) {
  const double p = 0.1;
  std::vector<float> logits = {20};
  const float bound = static_cast<float>(20 + std::log(p));
  for (int i = -40; i <= 40; ++i) logits.push_back(bound + static_cast<float>(i) * 1e-6f);
  Ids expected;
  for (uint32_t id = 0; id < logits.size(); ++id)
    if (std::exp(double{logits[id]} - 20) >= p) expected.push_back(id);
  EXPECT_GT(expected.size(), 2u);
  EXPECT_LT(expected.size(), logits.size() - 1);
  EXPECT_EQ(Stage("min_p", of("min_p", "0.1")).kept(logits), expected);
}

TEST(TypicalP, KeepsTheIdsNearestToTheExpectedSurprise) {
  const auto kept = [](const char* p, const std::vector<float>& logits) {
    return Stage("typical_p", of("typical_p", p)).kept(logits);
  };
  EXPECT_EQ(kept("0.2", kNine), (Ids{4})) << "not the likeliest, which is 8";
  EXPECT_EQ(kept("0.5", kNine), (Ids{4, 8}));
  EXPECT_EQ(kept("0.9", kNine), (Ids{3, 4, 8}));
  EXPECT_EQ(kept("0.2", kTwelve), (Ids{8}));
  EXPECT_EQ(kept("0.5", kTwelve), (Ids{8, 11}));
  EXPECT_EQ(kept("0.9", kTwelve), (Ids{8, 9, 11}));
  EXPECT_EQ(kept("1", kNine).size(), 9u);
  EXPECT_EQ(kept("0", kNine), (Ids{4})) << "at least one";
  EXPECT_EQ(kept("0.3", {2, 2, 2, 2}), (Ids{0, 1})) << "the lower ids of equally typical ones";
}

TEST(Filters, TakeTheirParameterFromTheRequest) {
  EXPECT_EQ(Stage("top_k", of("top_k", "0"), of("top_k", "2")).kept(kNine), (Ids{4, 8}));
  EXPECT_EQ(Stage("top_p", of("top_p", "1"), of("top_p", "0.8")).kept(kNine), (Ids{4, 8}));
  EXPECT_EQ(Stage("min_p", of("min_p", "0"), of("min_p", "0.5")).kept(kNine), (Ids{4, 8}));
  EXPECT_EQ(Stage("typical_p", of("typical_p", "1"), of("typical_p", "0.5")).kept(kNine),
            (Ids{4, 8}));
  EXPECT_EQ(Stage("top_k", of("top_k", "2"), of("top_k", "null")).kept(kNine), (Ids{4, 8}))
      << "null: the stage's own";
  EXPECT_EQ(Stage("top_k", of("top_k", "2"), of("top_p", "0.1")).kept(kNine), (Ids{4, 8}))
      << "another stage's";
}

TEST(Filters, SurviveInfiniteLogits) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const std::vector<float> logits = {0, kInf, -kInf, kInf, 3};
  EXPECT_EQ(Stage("top_k", of("top_k", "1")).kept(logits), (Ids{1}));
  EXPECT_EQ(Stage("top_p", of("top_p", "0.9")).kept(logits), (Ids{1, 3}));
  EXPECT_EQ(Stage("min_p", of("min_p", "0.1")).kept(logits), (Ids{1, 3}));
  EXPECT_EQ(Stage("typical_p", of("typical_p", "0.9")).kept(logits), (Ids{1, 3}));
}

}  // namespace
}  // namespace dovetail::core::test
