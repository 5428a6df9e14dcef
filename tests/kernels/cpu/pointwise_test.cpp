#include <kernels/pointwise.hpp>

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "tests/kernels/variants.hpp"

namespace dovetail::kernels {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(Exp, IsWithinTwoUlpsOverItsWholeRange) {
  std::vector<float> x;
  for (uint32_t bits = 0; bits < 0x42C00000U; bits += 9973) {  // 0 up to 96
    x.push_back(std::bit_cast<float>(bits));
    x.push_back(-std::bit_cast<float>(bits));
  }
  for (float value = -104.5F; value < -86.0F; value += 0.0007F) x.push_back(value);  // denormals
  for (const CpuKernels* row : variants()) {
    std::vector<float> out(x.size());
    row->exp(out.data(), x.data(), static_cast<int64_t>(x.size()));
    int64_t worst = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const auto exact = static_cast<float>(std::exp(static_cast<double>(x[i])));
      const int64_t ulps = ulps_between(out[i], exact);
      worst = std::max(worst, ulps);
      ASSERT_LE(ulps, 2) << row->name << " exp(" << x[i] << ") = " << out[i];
    }
    RecordProperty(row->name, static_cast<int>(worst));
  }
}

TEST(Exp, HasExactEnds) {
  const std::vector<float> x = {0.0F, -0.0F, kInf, -kInf, 88.8F, 1e30F, -103.98F, -1e30F};
  const std::vector<float> expected = {1.0F, 1.0F, kInf, 0.0F, kInf, kInf, 0.0F, 0.0F};
  for (const CpuKernels* row : variants()) {
    std::vector<float> out(x.size());
    row->exp(out.data(), x.data(), static_cast<int64_t>(x.size()));
    for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(out[i], expected[i]) << row->name << x[i];
    float nan = kNan;
    row->exp(&nan, &nan, 1);
    EXPECT_TRUE(std::isnan(nan)) << row->name;
  }
}

TEST(Silu, MatchesReference) {
  std::vector<float> x;
  for (float value = -90.0F; value < 90.0F; value += 0.013F) x.push_back(value);
  const std::vector<float> b = noise(static_cast<int64_t>(x.size()), 1);
  std::vector<float> silu(x.size());
  std::vector<float> silu_mul(x.size());
  const auto n = static_cast<int64_t>(x.size());
  ref::silu(silu.data(), x.data(), n);
  ref::silu_mul(silu_mul.data(), x.data(), b.data(), n);
  for (const CpuKernels* row : variants()) {
    std::vector<float> out(x.size());
    row->silu(out.data(), x.data(), n);
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_NEAR(out[i], silu[i], 1e-6F * std::abs(silu[i]) + 1e-37F) << row->name << " " << x[i];
    }
    row->silu_mul(out.data(), x.data(), b.data(), n);
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_NEAR(out[i], silu_mul[i], 2e-6F * std::abs(silu_mul[i]) + 1e-37F)
          << row->name << " " << x[i];
    }
  }
}

TEST(GeluTanh, MatchesReference) {
  std::vector<float> x = {0.0F, -0.0F, 1e13F, -1e13F, 1e30F, -1e30F, kInf};
  for (float value = -12.0F; value < 12.0F; value += 0.0017F) x.push_back(value);
  const auto n = static_cast<int64_t>(x.size());
  std::vector<float> expected(x.size());
  ref::gelu_tanh(expected.data(), x.data(), n);
  for (const CpuKernels* row : variants()) {
    std::vector<float> out(x.size());
    row->gelu_tanh(out.data(), x.data(), n);
    for (size_t i = 0; i < x.size(); ++i) {
      if (x[i] == kInf)
        EXPECT_EQ(out[i], kInf) << row->name;
      else
        ASSERT_NEAR(out[i], expected[i], 1e-6F * std::abs(x[i])) << row->name << " " << x[i];
    }
  }
}

TEST(GeluTanh, IsHalfOfXTimesOnePlusTanh) {
  for (double x = -5.0; x < 5.0; x += 0.01) {
    const auto in = static_cast<float>(x);
    float out = 0.0F;
    ref::gelu_tanh(&out, &in, 1);
    const double v = in;
    const double want =
        0.5 * v * (1.0 + std::tanh(0.7978845608028654 * (v + 0.044715 * v * v * v)));
    EXPECT_NEAR(out, want, 1e-6) << x;
  }
}

TEST(Pointwise, GivesTheSameBitsAtAnyPlaceAndInPlace) {
  constexpr int64_t kLen = 19;
  std::vector<float> a = noise(kLen, 1);
  for (float& value : a) value *= 9.0F;
  const std::vector<float> b = noise(kLen, 2);
  for (const CpuKernels* row : variants()) {
    const auto check_unary = [&](const char* op, UnaryFn* fn) {
      std::vector<float> whole = a;
      fn(whole.data(), whole.data(), kLen);
      for (int64_t i = 0; i < kLen; ++i) {
        float alone = 0.0F;
        fn(&alone, a.data() + i, 1);
        EXPECT_TRUE(same_bits(&alone, whole.data() + i, 1)) << row->name << " " << op << " " << i;
      }
    };
    const auto check_binary = [&](const char* op, BinaryFn* fn) {
      std::vector<float> over_a = a;
      fn(over_a.data(), over_a.data(), b.data(), kLen);
      std::vector<float> over_b = b;
      fn(over_b.data(), a.data(), over_b.data(), kLen);
      EXPECT_TRUE(same_bits(over_a.data(), over_b.data(), kLen)) << row->name << " " << op;
      for (int64_t i = 0; i < kLen; ++i) {
        float alone = 0.0F;
        fn(&alone, a.data() + i, b.data() + i, 1);
        EXPECT_TRUE(same_bits(&alone, over_a.data() + i, 1)) << row->name << " " << op << " " << i;
      }
    };
    check_unary("exp", row->exp);
    check_unary("silu", row->silu);
    check_unary("gelu_tanh", row->gelu_tanh);
    check_binary("silu_mul", row->silu_mul);
    check_binary("add", row->add);
    check_binary("mul", row->mul);
  }
}

TEST(Pointwise, WritesNothingPastTheEnd) {
  for (int64_t n = 0; n < 20; ++n) {
    const std::vector<float> a = noise(n, 1);
    for (const CpuKernels* row : variants()) {
      for (UnaryFn* fn : {row->exp, row->silu, row->gelu_tanh}) {
        std::vector<float> out(static_cast<size_t>(n) + 8, -7.0F);
        fn(out.data(), a.data(), n);
        for (size_t i = static_cast<size_t>(n); i < out.size(); ++i) ASSERT_EQ(out[i], -7.0F);
      }
      std::vector<float> out(static_cast<size_t>(n) + 8, -7.0F);
      row->silu_mul(out.data(), a.data(), a.data(), n);
      for (size_t i = static_cast<size_t>(n); i < out.size(); ++i) ASSERT_EQ(out[i], -7.0F);
    }
  }
}

}  // namespace
}  // namespace dovetail::kernels
