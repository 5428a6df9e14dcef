// After its first draw a request allocates nothing: counted by this program's own operator new.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "core/sampling/sampler.hpp"
#include "tests/core/sampling/fake_stage.hpp"

extern std::atomic<uint64_t> n_allocations;  // of this program; counting_new.cpp

namespace dovetail::core {
namespace {

TEST(SamplerAllocation, IsNoneAfterTheFirstDraw) {
  test::FakeStage stage;
  stage.apply = [](dvt_cands& c) {
    std::reverse(c.c, c.c + c.n);
    c.sorted = 0;
    c.n -= c.n / 3;
  };
  SamplerChain chain;
  const std::string long_name(100, 'x');
  ASSERT_TRUE(chain.add(long_name, test::FakeStage::table(), &stage, Node::make_map(), 5000));
  const auto state = std::move(SamplerState::begin(chain, Node(), {}, 1, 0)).value();
  const std::vector<float> logits(5000, 1.0f);
  ASSERT_TRUE(state->sample(logits, 0));
  const uint64_t before = n_allocations;
  for (uint64_t i = 1; i < 50; ++i) (void)state->sample(logits, i);
  EXPECT_EQ(n_allocations, before);
}

}  // namespace
}  // namespace dovetail::core
