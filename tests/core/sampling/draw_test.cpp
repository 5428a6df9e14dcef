// The passes over a vocabulary against the obvious loops, bit for bit, on one lane and on several.
#include "core/sampling/draw.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace dovetail::core {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr size_t kManyIds = 50'001;  // several pieces of work, and a tail

bool is_allowed(std::span<const uint32_t> allowed, size_t id) {
  return allowed.empty() || (allowed[id / 32] >> (id % 32) & 1u) != 0;
}

std::vector<dvt_cand> plain_candidates(std::span<const float> logits,
                                       std::span<const uint32_t> allowed) {
  std::vector<dvt_cand> out;
  for (size_t id = 0; id < logits.size(); ++id)
    if (logits[id] > -kInf && is_allowed(allowed, id))
      out.push_back({static_cast<uint32_t>(id), logits[id]});
  return out;
}

std::optional<uint32_t> plain_likeliest(std::span<const float> logits,
                                        std::span<const uint32_t> allowed) {
  std::optional<uint32_t> best;
  for (const dvt_cand& c : plain_candidates(logits, allowed))
    if (!best || c.logit > logits[*best]) best = c.id;
  return best;
}

uint32_t plain_draw(const std::vector<dvt_cand>& candidates, double uniform) {
  float top = -kInf;
  for (const dvt_cand& c : candidates) top = std::max(top, c.logit);
  const auto weight = [top](const dvt_cand& c) {
    if (std::isinf(top)) return c.logit == top ? 1.0 : 0.0;
    return std::exp(double{c.logit} - double{top});
  };
  double total = 0, sum = 0;
  for (const dvt_cand& c : candidates) total += weight(c);
  for (const dvt_cand& c : candidates)
    if (weight(c) > 0 && uniform * total < (sum += weight(c))) return c.id;
  return candidates.back().id;
}

// Logits of one kind: all different, a few values only, or with some that may not be drawn.
std::vector<float> random_logits(size_t n, std::mt19937& random, int kind) {
  std::normal_distribution<float> normal(0, 3);
  const float special[] = {kNaN, -kInf, kInf, -0.0f};
  std::vector<float> logits(n);
  for (float& l : logits) {
    l = kind == 1 ? static_cast<float>(random() % 5) : normal(random);
    if (kind == 2 && random() % 50 == 0) l = special[random() % 4];
  }
  return logits;
}

std::vector<uint32_t> random_mask(size_t n, std::mt19937& random) {
  std::vector<uint32_t> mask((n + 31) / 32);
  for (uint32_t& word : mask) word = random() % 3 == 0 ? 0u : static_cast<uint32_t>(random());
  return mask;
}

void expect_same(const std::vector<dvt_cand>& got, const std::vector<dvt_cand>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].id, expected[i].id);
    ASSERT_EQ(got[i].logit, expected[i].logit);
  }
}

TEST(Draw, IsThatOfTheObviousLoopsOnAnyNumberOfLanes) {
  std::mt19937 random(1);
  ThreadPool two(2), five(5);
  for (const size_t n : {size_t{1}, size_t{31}, size_t{97}, size_t{8192}, kManyIds}) {
    for (int kind = 0; kind < 3; ++kind) {
      const std::vector<float> logits = random_logits(n, random, kind);
      const std::vector<uint32_t> mask = random_mask(n, random);
      for (const std::span<const uint32_t> allowed : {std::span<const uint32_t>(), {mask}}) {
        EXPECT_EQ(likeliest_id(logits, allowed), plain_likeliest(logits, allowed));
        const std::vector<dvt_cand> expected = plain_candidates(logits, allowed);
        for (ThreadPool* pool : {static_cast<ThreadPool*>(nullptr), &two, &five}) {
          std::vector<dvt_cand> got(n);
          got.resize(fill_candidates(logits, allowed, pool, got.data()));
          expect_same(got, expected);
          std::vector<double> sums(n);
          for (int i = 0; i < 20 && !got.empty(); ++i) {
            const double uniform = static_cast<double>(random()) * 0x1p-32;
            EXPECT_EQ(draw_id(got, uniform, pool, sums.data()), plain_draw(expected, uniform))
                << n << " ids of kind " << kind << ", uniform " << uniform;
          }
        }
      }
    }
  }
}

TEST(Draw, AtTheEndsOfTheRangeGivesTheFirstAndTheLastThatHaveProbability) {
  const std::vector<dvt_cand> candidates = {{3, -900}, {5, 1}, {7, 2}, {9, 1}, {11, -900}};
  std::vector<double> sums(candidates.size());
  EXPECT_EQ(draw_id(candidates, 0, nullptr, sums.data()), 5u);
  EXPECT_EQ(draw_id(candidates, std::nextafter(1.0, 0.0), nullptr, sums.data()), 9u);
}

TEST(Draw, IsNothingWithoutProbabilities) {
  std::vector<double> sums(2);
  for (const float other : {-kInf, kNaN}) {
    const std::vector<dvt_cand> candidates = {{0, other}, {1, other}};
    EXPECT_EQ(draw_id(candidates, 0.5, nullptr, sums.data()), std::nullopt) << other;
  }
  const std::vector<dvt_cand> one_bad = {{0, kNaN}, {1, 1}};
  EXPECT_EQ(draw_id(one_bad, 0.5, nullptr, sums.data()), std::nullopt);
}

}  // namespace
}  // namespace dovetail::core
