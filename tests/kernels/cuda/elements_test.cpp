// Pointwise functions, rope, rows of tables and stored numbers against kernels/ref.
#include <cuda_emulation/device.hpp>

#include <kernels/bf16.hpp>
#include <kernels/gather_rows.hpp>
#include <kernels/pointwise.hpp>
#include <kernels/rope.hpp>

#include "kernels/cuda/numbers.hpp"
#include "tests/kernels/cuda/device_rig.hpp"

namespace dovetail::kernels::cuda {
namespace {

DeviceVector<float> odd_numbers() {
  auto x = device_noise(600, 1);
  for (size_t i = 0; i < x.size(); ++i) x[i] *= std::pow(10.0F, static_cast<float>(i % 5) - 2);
  x[7] = 0, x[8] = -0.0F, x[9] = 200, x[10] = -200, x[11] = INFINITY, x[12] = NAN, x[13] = -1e20F;
  return x;
}
template <class Fn, class RefFn>
void expect_unary(const Fn& fn, const RefFn& expected_of, double relative_to_result,
                  double relative_to_input) {
  const auto x = odd_numbers();
  const auto got = under_all_schedules([&] {
    DeviceVector<float> out(x.size());
    fn(kStream, out.data(), x.data(), static_cast<int64_t>(x.size()));
    return out;
  });
  std::vector<float> expected(x.size());
  expected_of(expected.data(), x.data(), static_cast<int64_t>(x.size()));
  for (size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(expected[i]) || std::isinf(expected[i])) {
      EXPECT_TRUE(std::isnan(expected[i]) ? std::isnan(got[i]) : got[i] == expected[i]) << x[i];
      continue;
    }
    const auto of = [](double relative, float value) {
      return relative == 0 ? 0 : relative * std::fabs(static_cast<double>(value));
    };
    EXPECT_LE(std::fabs(static_cast<double>(got[i]) - static_cast<double>(expected[i])),
              of(relative_to_result, expected[i]) + of(relative_to_input, x[i]))
        << x[i];
  }
}
TEST(CudaPointwise, MatchesReference) {
  expect_unary([](auto... a) { silu(a...); }, ref::silu, 1e-6, 0);
  expect_unary([](auto... a) { gelu_tanh(a...); }, ref::gelu_tanh, 0, 1e-6);
  expect_unary(
      [](Stream s, float* out, const float* x, int64_t n) { add_scalar(s, out, x, 0.3F, n); },
      [](float* out, const float* x, int64_t n) {
        for (int64_t i = 0; i < n; ++i) out[i] = x[i] + 0.3F;
      },
      0, 0);
  expect_unary(
      [](Stream s, float* out, const float* x, int64_t n) { mul_scalar(s, out, x, 0.3F, n); },
      [](float* out, const float* x, int64_t n) {
        for (int64_t i = 0; i < n; ++i) out[i] = x[i] * 0.3F;
      },
      0, 0);
  expect_unary([](auto... a) { rsqrt(a...); },
               [](float* out, const float* x, int64_t n) {
                 for (int64_t i = 0; i < n; ++i) out[i] = 1.0F / std::sqrt(x[i]);
               },
               0, 0);
}
TEST(CudaPointwise, BroadcastsTheSecondOperand) {
  const auto a = device_noise(4 * 3 * 50, 2), b = device_noise(600, 3);
  const struct {
    Broadcast b;
    size_t (*index)(size_t);
  } cases[] = {{{1, 600}, [](size_t i) { return i; }},
               {{1, 150}, [](size_t i) { return i % 150; }},
               {{50, 12}, [](size_t i) { return i / 50; }}};
  for (const auto& c : cases) {
    const auto run = [&](auto fn) {
      return under_all_schedules([&] {
        DeviceVector<float> out(a.size());
        fn(kStream, out.data(), a.data(), b.data(), static_cast<int64_t>(a.size()), c.b);
        return out;
      });
    };
    const auto sums = run([](auto... x) { add(x...); }),
               products = run([](auto... x) { mul(x...); });
    for (size_t i = 0; i < a.size(); ++i) {
      ASSERT_EQ(sums[i], a[i] + b[c.index(i)]);
      ASSERT_EQ(products[i], a[i] * b[c.index(i)]);
    }
  }
}
TEST(CudaPointwise, GatesBySilu) {
  const auto a = device_noise(333, 4), b = device_noise(333, 5);
  DeviceVector<float> out(333);
  silu_mul(kStream, out.data(), a.data(), b.data(), 333);
  std::vector<float> expected(333);
  ref::silu_mul(expected.data(), a.data(), b.data(), 333);
  expect_within(out, expected,
                [&](size_t i) { return 1e-6 * std::fabs(static_cast<double>(expected[i])); });
}

TEST(CudaRope, GivesTheBitsOfTheReference) {
  constexpr int64_t kTokens = 5, kHeads = 3, kHead = 10;
  for (const int64_t half : {5, 3}) {
    const DeviceVector<int32_t> positions = {0, 1, 17, 40000, 131071};
    const auto inv_freq = device_noise(half, 6);
    const auto x = device_noise(kTokens * (kHeads * kHead + 2), 7);
    const auto got = under_all_schedules([&] {
      DeviceVector<float> cos(static_cast<size_t>(kTokens * half)), sin(cos.size()),
          out(x.size(), -7.0F);
      rope_table(kStream, cos.data(), sin.data(), positions.data(), inv_freq.data(), kTokens, half,
                 1.25F);
      rope_half_split(kStream, out.data(), kHeads * kHead + 2, x.data(), kHeads * kHead + 2,
                      cos.data(), sin.data(), kTokens, kHeads, kHead, half);
      return out;
    });
    std::vector<float> cos(static_cast<size_t>(kTokens * half)), sin(cos.size()),
        expected(x.size(), -7.0F);
    ref::rope_table(cos.data(), sin.data(), positions.data(), inv_freq.data(), kTokens, half,
                    1.25F);
    ref::rope_half_split(expected.data(), kHeads * kHead + 2, x.data(), kHeads * kHead + 2,
                         cos.data(), sin.data(), kTokens, kHeads, kHead, half);
    EXPECT_TRUE(same_bits(got.data(), expected.data(), static_cast<int64_t>(x.size())));
  }
}

TEST(CudaGatherRows, CopiesRowsOfEachFormat) {
  constexpr int64_t kLen = 70;
  const std::vector<float> table = noise(9 * kLen, 8);
  const auto bf16 = to_device(kernels::to_bf16(table));
  const auto f16 = to_device(to_f16(table));
  const auto f32 = to_device(table);
  const DeviceVector<int32_t> ids = {8, 0, 3, 3};
  const auto check = [&](const auto& rows, auto fn) {
    DeviceVector<float> got(4 * kLen);
    gather_rows(kStream, got.data(), rows.data(), ids.data(), 4, kLen);
    std::vector<float> expected(got.size());
    fn(expected.data(), rows.data(), ids.data(), 4, kLen);
    EXPECT_TRUE(same_bits(got.data(), expected.data(), 4 * kLen));
  };
  check(f32, ref::gather_rows_f32);
  check(bf16, ref::gather_rows_bf16);
  check(f16, ref::gather_rows_f16);
}
TEST(CudaGatherRows, UnpacksRowsOfEachPackedFormat) {
  constexpr int64_t kLen = 96, kTable = 37;
  constexpr struct {
    WeightFormat format;
    QuantizeRowsFn* quantize;
    UnpackRowFn* unpack;
  } kFormats[] = {{WeightFormat::kInt8, ref::quantize_rows_int8, ref::unpack_row_int8},
                  {WeightFormat::kInt4, ref::quantize_rows_int4, ref::unpack_row_int4},
                  {WeightFormat::kInt4q, ref::quantize_rows_int4q, ref::unpack_row_int4q},
                  {WeightFormat::kInt6, ref::quantize_rows_int6, ref::unpack_row_int6}};
  const std::vector<float> table = noise(kTable * kLen, 9);
  const DeviceVector<int32_t> ids = {36, 0, 17};
  for (const auto& f : kFormats) {
    DeviceVector<uint8_t> packed(static_cast<size_t>(packed_bytes(f.format, kTable, kLen)));
    f.quantize(packed.data(), table.data(), 0, kTable, kTable, kLen);
    DeviceVector<float> got(3 * kLen);
    gather_packed_rows(kStream, got.data(), packed.data(), f.format, ids.data(), 3, kLen);
    std::vector<float> expected(got.size());
    for (size_t i = 0; i < 3; ++i)
      f.unpack(&expected[i * kLen], packed.data(), ids[i], kTable, kLen);
    EXPECT_TRUE(same_bits(got.data(), expected.data(), 3 * kLen))
        << kWeightFormatNames[static_cast<int>(f.format)];
  }
}

// ---------------------------------------------------------------- numbers.hpp

TEST(CudaNumbers, WidenAndRoundAsTheHostDoes) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float half = widen(F16{static_cast<uint16_t>(bits)}),
                expected = f16_to_float(static_cast<uint16_t>(bits));
    ASSERT_TRUE(same_bits(&half, &expected, 1)) << bits;
    const float wide = widen(static_cast<uint16_t>(bits)),
                bf16 = bf16_to_float(static_cast<uint16_t>(bits));
    ASSERT_TRUE(same_bits(&wide, &bf16, 1));
    for (const uint32_t low : {0U, 1U, 0x7FFFU, 0x8000U, 0x8001U, 0xFFFFU}) {
      const float value = std::bit_cast<float>(bits << 16 | low);
      ASSERT_EQ(to_bf16(value), float_to_bf16(value)) << value;
    }
  }
}
TEST(CudaNumbers, Fp8IsTheNearest) {
  std::vector<float> values;
  for (uint8_t bits = 0; bits < 0x7F; ++bits) values.push_back(widen(Fp8{bits}));
  EXPECT_EQ(values[1], 0x1p-9F);
  EXPECT_EQ(values[8], 0x1p-6F);
  EXPECT_EQ(values[0x38], 1.0F);
  EXPECT_EQ(values[0x7E], 448.0F);
  EXPECT_TRUE(std::isnan(widen(Fp8{0x7F})));
  EXPECT_TRUE(std::isnan(widen(Fp8{0xFF})));
  EXPECT_EQ(to_fp8(NAN).bits & 0x7F, 0x7F);
  EXPECT_EQ(to_fp8(INFINITY).bits, 0x7E);
  EXPECT_EQ(to_fp8(-1e30F).bits, 0xFE);
  for (size_t i = 0; i + 1 < values.size(); ++i) {
    const float middle = (values[i] + values[i + 1]) / 2;
    const auto of = [](float v) { return static_cast<size_t>(to_fp8(v).bits); };
    ASSERT_EQ(of(values[i]), i);
    ASSERT_EQ(of(std::nextafter(middle, 0.0F)), i);
    ASSERT_EQ(of(std::nextafter(middle, 1e9F)), i + 1);
    ASSERT_EQ(of(middle), i % 2 == 0 ? i : i + 1) << "ties to even";
    ASSERT_EQ(of(-values[i + 1]), (i + 1) | 0x80);
  }
}
TEST(CudaNumbers, ThreePartsAreTheNumber) {
  auto x = odd_numbers();
  x.push_back(std::numeric_limits<float>::max());
  for (const float v : x) {
    float parts[3];
    cut_in_parts(v, parts);
    for (const float part : parts) ASSERT_EQ(std::bit_cast<uint32_t>(part) & 0xFFFFU, 0U);
    if (std::isnan(v))
      EXPECT_TRUE(std::isnan(parts[0]));
    else
      EXPECT_EQ(static_cast<double>(parts[0]) + static_cast<double>(parts[1]) +
                    static_cast<double>(parts[2]),
                static_cast<double>(v));
  }
}

}  // namespace
}  // namespace dovetail::kernels::cuda
