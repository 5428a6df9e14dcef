#include <kernels/convert.hpp>

#include <vector>

#include <gtest/gtest.h>

#include "tests/kernels/variants.hpp"

namespace dovetail::kernels {
namespace {

TEST(Convert, RoundsToBf16WithTheBitsOfTheReference) {
  std::vector<float> x;
  for (uint64_t bits = 0; bits <= 0xFFFFFFFFU; bits += 65521) {  // NaN, infinity, denormals too
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  }
  for (const uint32_t bits : {0x7F7FFFFFU, 0x7F800001U, 0xFF800001U, 0x3F808000U, 0x3F818000U}) {
    x.push_back(std::bit_cast<float>(bits));
  }
  std::vector<uint16_t> expected(x.size());
  ref::f32_to_bf16(expected.data(), x.data(), static_cast<int64_t>(x.size()));
  for (const CpuKernels* row : variants()) {
    std::vector<uint16_t> out(x.size());
    row->f32_to_bf16(out.data(), x.data(), static_cast<int64_t>(x.size()));
    ASSERT_EQ(out, expected) << row->name;
  }
}

TEST(Convert, WidensEverySixteenBitPattern) {
  std::vector<uint16_t> x(65536);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<uint16_t>(i);
  std::vector<float> from_f16(x.size());
  std::vector<float> from_bf16(x.size());
  ref::f16_to_f32(from_f16.data(), x.data(), 65536);
  ref::bf16_to_f32(from_bf16.data(), x.data(), 65536);
  for (const CpuKernels* row : variants()) {
    std::vector<float> out(x.size());
    row->f16_to_f32(out.data(), x.data(), 65536);
    EXPECT_TRUE(same_bits(out.data(), from_f16.data(), 65536)) << row->name;
    row->bf16_to_f32(out.data(), x.data(), 65536);
    EXPECT_TRUE(same_bits(out.data(), from_bf16.data(), 65536)) << row->name;
  }
}

TEST(Convert, HandlesTailsAndWritesNothingPastThem) {
  for (int64_t n = 0; n < 20; ++n) {
    const std::vector<float> x = noise(n, 1);
    const std::vector<uint16_t> halves(static_cast<size_t>(n), 0x3C00);
    for (const CpuKernels* row : variants()) {
      std::vector<uint16_t> rounded(static_cast<size_t>(n) + 8, 0x1234);
      row->f32_to_bf16(rounded.data(), x.data(), n);
      std::vector<float> ones(static_cast<size_t>(n) + 8, -7.0F);
      row->f16_to_f32(ones.data(), halves.data(), n);
      for (size_t i = 0; i < rounded.size(); ++i) {
        const bool inside = i < static_cast<size_t>(n);
        ASSERT_EQ(rounded[i], inside ? float_to_bf16(x[i]) : 0x1234) << row->name;
        ASSERT_EQ(ones[i], inside ? 1.0F : -7.0F) << row->name;
      }
    }
  }
}

}  // namespace
}  // namespace dovetail::kernels
