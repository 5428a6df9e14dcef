#include <kernels/rope.hpp>

#include <vector>

#include <gtest/gtest.h>

#include "tests/kernels/variants.hpp"

namespace dovetail::kernels {
namespace {

TEST(Rope, HasTheBitsOfTheReferenceForWholeAndPartialRotation) {
  constexpr int64_t kTokens = 3;
  constexpr int64_t kHeads = 2;
  for (const int64_t head_dim : {2, 10, 16, 64, 128}) {
    for (const int64_t half_len : {head_dim / 2, head_dim / 4, int64_t{1}, int64_t{0}}) {
      const int64_t stride = kHeads * head_dim + 3;
      const std::vector<float> x = noise(kTokens * stride, 1);
      const std::vector<float> cos = noise(kTokens * half_len, 2);
      const std::vector<float> sin = noise(kTokens * half_len, 3);
      std::vector<float> expected = x;
      ref::rope_half_split(expected.data(), stride, x.data(), stride, cos.data(), sin.data(),
                           kTokens, kHeads, head_dim, half_len);
      for (const CpuKernels* row : variants()) {
        std::vector<float> out = x;  // gaps between tokens keep what they had
        row->rope_half_split(out.data(), stride, x.data(), stride, cos.data(), sin.data(), kTokens,
                             kHeads, head_dim, half_len);
        EXPECT_TRUE(same_bits(out.data(), expected.data(), static_cast<int64_t>(x.size())))
            << row->name << " head_dim " << head_dim << " half_len " << half_len;
        std::vector<float> in_place = x;
        row->rope_half_split(in_place.data(), stride, in_place.data(), stride, cos.data(),
                             sin.data(), kTokens, kHeads, head_dim, half_len);
        EXPECT_TRUE(same_bits(in_place.data(), expected.data(), static_cast<int64_t>(x.size())))
            << row->name << " in place, head_dim " << head_dim << " half_len " << half_len;
      }
    }
  }
}

TEST(Rope, CopiesWhatItDoesNotRotate) {
  const std::vector<float> x = noise(12, 1);
  const std::vector<float> quarter_turn_cos(2, 0.0F);
  const std::vector<float> quarter_turn_sin(2, 1.0F);
  for (const CpuKernels* row : variants()) {
    std::vector<float> out(12, -7.0F);
    row->rope_half_split(out.data(), 12, x.data(), 12, quarter_turn_cos.data(),
                         quarter_turn_sin.data(), 1, 1, 12, 2);
    EXPECT_EQ(out[0], -x[2]) << row->name;
    EXPECT_EQ(out[2], x[0]) << row->name;
    EXPECT_TRUE(same_bits(out.data() + 4, x.data() + 4, 8)) << row->name;
  }
}

}  // namespace
}  // namespace dovetail::kernels
