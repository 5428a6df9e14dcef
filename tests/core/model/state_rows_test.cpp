// Rows of states between backends: every number type against what the kernels make of it.
#include "core/model/state_rows.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include <kernels/bf16.hpp>
#include <kernels/int8_levels.hpp>

namespace dovetail::core {
namespace {

constexpr uint64_t kHead = 6;  // no multiple of 4: the scale comes after two zeros

dvt_state_spec spec_of(uint32_t kind, std::vector<int64_t> dims, uint32_t dtype = DVT_ACTIVATION) {
  dvt_state_spec spec{};
  spec.struct_size = sizeof spec;
  spec.kind = kind;
  spec.name = {"layers.3.k", 10};
  spec.dtype = dtype;
  spec.ndim = static_cast<uint32_t>(dims.size());
  std::copy(dims.begin(), dims.end(), spec.dim);
  spec.rate = 1;
  return spec;
}

template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  std::vector<std::byte> out(values.size() * sizeof(T));
  std::memcpy(out.data(), values.data(), out.size());
  return out;
}

std::vector<std::byte> converted(uint32_t to, uint32_t from, const std::vector<std::byte>& x,
                                 uint64_t run_len) {
  const RowForm source{from, 1, run_len}, target{to, 1, run_len};
  const uint64_t n = x.size() / source.bytes();
  std::vector<std::byte> out(n * target.bytes());
  EXPECT_TRUE(convert_rows(target, out.data(), source, x.data(), n).is_ok());
  return out;
}

std::vector<float> some_floats(size_t n) {
  std::mt19937 random(7);
  std::vector<float> out(n);
  for (float& x : out) {  // of every exponent
    do x = std::bit_cast<float>(static_cast<uint32_t>(random()));
    while (std::isnan(x));
  }
  return out;
}

std::vector<uint16_t> all_halves() {
  std::vector<uint16_t> out(65536);
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<uint16_t>(i);
  return out;
}

TEST(RowForm, HasTheRunsOfItsCache) {
  const auto form = [](uint32_t kind, std::vector<int64_t> dims, uint32_t kv,
                       uint32_t dtype = DVT_ACTIVATION) {
    return *row_form(spec_of(kind, std::move(dims), dtype), kv);
  };
  EXPECT_EQ(form(DVT_STATE_PAGED, {2, 6}, DVT_F32), (RowForm{DVT_F32, 2, 6}));
  EXPECT_EQ(form(DVT_STATE_PAGED, {2, 6}, DVT_F32).bytes(), 48u);
  EXPECT_EQ(form(DVT_STATE_PAGED, {2, 6}, DVT_BF16).bytes(), 24u);
  EXPECT_EQ(form(DVT_STATE_PAGED, {2, 6}, DVT_I8_SCALED).bytes(), 2 * (8 + 4u));
  EXPECT_EQ(form(DVT_STATE_PAGED, {2, 3, 4}, DVT_F32), (RowForm{DVT_F32, 2, 12}));
  EXPECT_EQ(form(DVT_STATE_PAGED, {6}, DVT_I8_SCALED), (RowForm{DVT_I8_SCALED, 1, 6}));
  EXPECT_EQ(form(DVT_STATE_PAGED, {1}, DVT_BF16, DVT_I32), (RowForm{DVT_I32, 1, 1}));
  EXPECT_EQ(form(DVT_STATE_FIXED, {2, 6}, DVT_I8_SCALED), (RowForm{DVT_F32, 1, 12}))
      << "a block of fixed size has no rows that could carry scales";
}

TEST(RowForm, SaysWhichStateCannotMove) {
  const Status ring = row_form(spec_of(DVT_STATE_RING, {4}), DVT_F32).status();
  EXPECT_EQ(ring.code(), Code::kUnsupported);
  EXPECT_NE(ring.message().find("layers.3.k"), std::string::npos) << ring.message();
  EXPECT_EQ(row_form(spec_of(DVT_STATE_PAGED, {4}), 99).status().code(), Code::kUnsupported);
}

TEST(ConvertRows, KeepsTheBytesOfTheSameType) {
  std::vector<std::byte> x(3 * 2 * 12);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::byte>(i * 37);
  for (uint32_t dtype : {DVT_F32, DVT_I8_SCALED, DVT_I32}) {
    const RowForm form{dtype, 2, dtype == DVT_I8_SCALED ? uint64_t{8} : 3};
    ASSERT_EQ(x.size() % form.bytes(), 0u);
    std::vector<std::byte> out(x.size());
    ASSERT_TRUE(convert_rows(form, out.data(), form, x.data(), x.size() / form.bytes()).is_ok());
    EXPECT_EQ(out, x) << dtype;
  }
}

TEST(ConvertRows, WidensBf16AndHalvesExactlyAndTakesThemBack) {
  const std::vector<std::byte> halves = bytes_of(all_halves());
  for (uint32_t dtype : {DVT_BF16, DVT_F16}) {
    const std::vector<std::byte> wide = converted(DVT_F32, dtype, halves, 16);
    const std::vector<std::byte> back = converted(dtype, DVT_F32, wide, 16);
    for (uint32_t i = 0; i < 65536; ++i) {
      float x = 0;
      uint16_t again = 0;
      std::memcpy(&x, &wide[4 * i], 4);
      std::memcpy(&again, &back[2 * i], 2);
      const auto bits = static_cast<uint16_t>(i);
      const float expected =
          dtype == DVT_BF16 ? kernels::bf16_to_float(bits) : kernels::f16_to_float(bits);
      ASSERT_EQ(std::bit_cast<uint32_t>(x), std::bit_cast<uint32_t>(expected)) << dtype << " " << i;
      if (std::isnan(x)) {
        const float y =
            dtype == DVT_BF16 ? kernels::bf16_to_float(again) : kernels::f16_to_float(again);
        ASSERT_TRUE(std::isnan(y)) << dtype << " " << i;
      } else {
        ASSERT_EQ(again, bits) << dtype;
      }
    }
  }
}

TEST(ConvertRows, RoundsToBf16AsTheKernelsDo) {
  std::vector<float> x = some_floats(1 << 16);
  x[0] = INFINITY, x[1] = -INFINITY, x[2] = std::numeric_limits<float>::max(), x[3] = 0x1.01p0F,
  x[4] = 0x1.03p0F;
  const std::vector<std::byte> out = converted(DVT_BF16, DVT_F32, bytes_of(x), 16);
  for (size_t i = 0; i < x.size(); ++i) {
    uint16_t bits = 0;
    std::memcpy(&bits, &out[2 * i], 2);
    ASSERT_EQ(bits, kernels::float_to_bf16(x[i])) << x[i];
  }
}

// The nearest of all halves, found among the two that a number lies between.
TEST(ConvertRows, RoundsToTheNearestHalfAndTiesToEven) {
  std::vector<float> x;
  for (uint32_t i = 0; i < 0x7C00;
       ++i) {  // every finite half, and what lies between it and the next
    const float low = kernels::f16_to_float(static_cast<uint16_t>(i));
    const float high = i == 0x7BFF ? 65536.0F : kernels::f16_to_float(static_cast<uint16_t>(i + 1));
    const float middle = (low + high) / 2;
    for (float y : {std::nextafter(middle, 0.0F), middle, std::nextafter(middle, high)}) {
      x.push_back(y);
      x.push_back(-y);
    }
  }
  x.resize(x.size() / 16 * 16);
  const std::vector<std::byte> out = converted(DVT_F16, DVT_F32, bytes_of(x), 16);
  for (size_t i = 0; i < x.size(); ++i) {
    uint16_t bits = 0;
    std::memcpy(&bits, &out[2 * i], 2);
    const auto low = static_cast<uint32_t>(i / 6);
    const uint32_t odd = low & 1u;
    const uint32_t up = i % 6 / 2 == 0 ? 0 : i % 6 / 2 == 1 ? odd : 1;
    ASSERT_EQ(bits, (i % 2 == 1 ? 0x8000u : 0u) + low + up) << x[i];
  }
}

TEST(ConvertRows, QuantisesRowsAsTheKernelsDo) {
  std::vector<float> x = some_floats(512 * kHead);
  for (size_t i = 0; i < 256 * kHead; ++i) x[i] = static_cast<float>(std::sin(i) * (1 + i % 7));
  for (size_t i = 0; i < kHead; ++i) x[i] = 0;
  x[kHead] = INFINITY;
  x[2 * kHead + 1] = std::numeric_limits<float>::quiet_NaN();
  for (size_t i = 0; i < kHead; ++i) x[3 * kHead + i] = 0x1p-120F;
  for (size_t i = 0; i < kHead; ++i) x[4 * kHead + i] = static_cast<float>(i) - 2.5F;
  x[4 * kHead] = 127;
  const std::vector<std::byte> out = converted(DVT_I8_SCALED, DVT_F32, bytes_of(x), kHead);
  ASSERT_EQ(out.size(), 512u * 12);
  for (size_t r = 0; r < 512; ++r) {
    std::vector<int8_t> row(8);
    const float scale = kernels::int8_levels(row.data(), &x[r * kHead], kHead);
    std::vector<std::byte> expected = bytes_of(row);
    const std::vector<std::byte> tail = bytes_of(std::vector<float>{scale});
    expected.insert(expected.end(), tail.begin(), tail.end());
    ASSERT_EQ(std::memcmp(&out[r * 12], expected.data(), 12), 0) << "row " << r;
  }
}

TEST(ConvertRows, MultipliesInt8ByItsScale) {
  std::vector<std::byte> x(12);
  for (size_t i = 0; i < kHead; ++i)
    x[i] = static_cast<std::byte>(static_cast<int8_t>(i * 40 - 127));
  const float scale = 0.3F;
  std::memcpy(&x[8], &scale, 4);
  const std::vector<std::byte> out = converted(DVT_F32, DVT_I8_SCALED, x, kHead);
  for (size_t i = 0; i < kHead; ++i) {
    float y = 0;
    std::memcpy(&y, &out[4 * i], 4);
    EXPECT_EQ(y, static_cast<float>(static_cast<int8_t>(i * 40 - 127)) * scale);
  }
}

TEST(ConvertRows, RefusesWhatIsNoFloat) {
  const RowForm whole{DVT_I32, 1, 4}, floats{DVT_F32, 1, 4};
  std::vector<std::byte> x(16), out(16);
  EXPECT_EQ(convert_rows(floats, out.data(), whole, x.data(), 1).code(), Code::kUnsupported);
}

}  // namespace
}  // namespace dovetail::core
