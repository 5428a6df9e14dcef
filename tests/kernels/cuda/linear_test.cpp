// Products with plain and packed weights against kernels/ref.
#include <kernels/linear.hpp>

#include "tests/kernels/cuda/device_rig.hpp"

namespace dovetail::kernels::cuda {
namespace {

struct Shape {
  int64_t n_tokens, n_rows, k_len;
};
std::string text_of(const Shape& s) {
  return std::to_string(s.n_tokens) + " tokens, " + std::to_string(s.n_rows) + " rows of " +
         std::to_string(s.k_len);
}
// Tails in every direction, both kernels (up to 8 tokens, more), fewer blocks of k than warps.
constexpr Shape kShapes[] = {{1, 16, 32},  {3, 40, 52},  {8, 33, 136},
                             {9, 21, 260}, {70, 17, 40}, {1, 5, 1}};

DeviceVector<uint8_t> cut(const DeviceVector<float>& x, int64_t n_tokens, int64_t k_len) {
  DeviceVector<uint8_t> out(static_cast<size_t>(cut_bytes(n_tokens, k_len)));
  cut_activations(kStream, out.data(), x.data(), n_tokens, k_len);
  return out;
}

/// What the sum may be off by: k_len * 2^-23 of the sum of magnitudes.
template <class Number>
std::vector<double> exact(const DeviceVector<float>& x, const std::vector<Number>& w,
                          const Shape& s, std::vector<double>& bound) {
  std::vector<double> out;
  for (int64_t t = 0; t < s.n_tokens; ++t)
    for (int64_t n = 0; n < s.n_rows; ++n) {
      double sum = 0, magnitudes = 0;
      for (int64_t k = 0; k < s.k_len; ++k) {
        const double product = static_cast<double>(x[static_cast<size_t>(t * s.k_len + k)]) *
                               static_cast<double>(w[static_cast<size_t>(n * s.k_len + k)]);
        sum += product;
        magnitudes += std::fabs(product);
      }
      out.push_back(sum);
      bound.push_back((static_cast<double>(s.k_len) + 2) * 0x1p-23 * magnitudes + 1e-30);
    }
  return out;
}

Matrix matrix(const DeviceVector<float>& w, int64_t n_rows, int64_t k_len) {
  return {w.data(), MatrixNumbers::kFloat32, n_rows, k_len};
}
Matrix matrix(const DeviceVector<uint16_t>& w, int64_t n_rows, int64_t k_len) {
  return {w.data(), MatrixNumbers::kBf16, n_rows, k_len};
}
Matrix matrix(const DeviceVector<F16>& w, int64_t n_rows, int64_t k_len) {
  return {w.data(), MatrixNumbers::kF16, n_rows, k_len};
}

template <class Weight>
void expect_product(const Shape& s, const DeviceVector<Weight>& w,
                    const std::vector<float>& values) {
  SCOPED_TRACE(text_of(s));
  const auto x = device_noise(s.n_tokens * s.k_len, 21);
  const auto x_cut = cut(x, s.n_tokens, s.k_len);
  const auto got = under_all_schedules([&] {
    DeviceVector<float> y(static_cast<size_t>(s.n_tokens * s.n_rows), -7.0F);
    linear(kStream, y.data(), x_cut.data(), matrix(w, s.n_rows, s.k_len), nullptr, nullptr,
           s.n_tokens);
    return y;
  });
  std::vector<double> bound;
  const std::vector<double> expected = exact(x, values, s, bound);
  expect_within(got, expected, [&](size_t i) { return bound[i]; });
}
TEST(CudaLinear, MatchesTheExactProductForEachFormat) {
  for (const Shape& s : kShapes) {
    const std::vector<float> values = noise(s.n_rows * s.k_len, 22);
    expect_product(s, to_device(values), values);
    const std::vector<uint16_t> bf16 = to_bf16(values);
    std::vector<float> rounded;
    for (const uint16_t bits : bf16) rounded.push_back(bf16_to_float(bits));
    expect_product(s, to_device(bf16), rounded);
    const std::vector<F16> f16 = to_f16(values);
    rounded.clear();
    for (const F16 half : f16) rounded.push_back(f16_to_float(half.bits));
    expect_product(s, to_device(f16), rounded);
  }
}

// The same bits alone and in any batch.
TEST(CudaLinear, ATokensBitsDoNotDependOnItsBatch) {
  const Shape s{75, 24, 200};
  const auto x = device_noise(s.n_tokens * s.k_len, 23);
  const auto w = to_device(to_bf16(noise(s.n_rows * s.k_len, 24)));
  const auto run = [&](int64_t first, int64_t n) {
    const DeviceVector<float> part(x.begin() + first * s.k_len, x.begin() + (first + n) * s.k_len);
    DeviceVector<float> y(static_cast<size_t>(n * s.n_rows));
    linear(kStream, y.data(), cut(part, n, s.k_len).data(), matrix(w, s.n_rows, s.k_len), nullptr,
           nullptr, n);
    return y;
  };
  const auto all = run(0, s.n_tokens);
  for (const int64_t n : {1, 2, 8, 9, 64})
    for (const int64_t first : {int64_t{0}, s.n_tokens - n})
      EXPECT_TRUE(same_bits(run(first, n).data(), &all[static_cast<size_t>(first * s.n_rows)],
                            n * s.n_rows))
          << n << " tokens from " << first;
}

TEST(CudaLinear, AddsBiasAndResidual) {
  const Shape s{2, 20, 64};
  const auto x = device_noise(s.n_tokens * s.k_len, 25);
  const auto w = to_device(to_bf16(noise(s.n_rows * s.k_len, 26)));
  const auto bias = device_noise(s.n_rows, 27), before = device_noise(s.n_tokens * s.n_rows, 28);
  const auto x_cut = cut(x, s.n_tokens, s.k_len);
  DeviceVector<float> plain(before.size()), biased(before.size()), added = before;
  const Matrix m = matrix(w, s.n_rows, s.k_len);
  linear(kStream, plain.data(), x_cut.data(), m, nullptr, nullptr, s.n_tokens);
  linear(kStream, biased.data(), x_cut.data(), m, bias.data(), nullptr, s.n_tokens);
  linear(kStream, added.data(), x_cut.data(), m, bias.data(), added.data(), s.n_tokens);
  for (size_t i = 0; i < plain.size(); ++i) {
    EXPECT_EQ(biased[i], plain[i] + bias[i % 20]);
    EXPECT_EQ(added[i], before[i] + (plain[i] + bias[i % 20]));
  }
}

TEST(CudaLinear, NanStaysWithItsToken) {
  const Shape s{3, 16, 64};
  auto x = device_noise(s.n_tokens * s.k_len, 29);
  x[64 + 5] = NAN;
  const auto w = to_device(to_bf16(noise(s.n_rows * s.k_len, 30)));
  DeviceVector<float> y(48);
  linear(kStream, y.data(), cut(x, 3, 64).data(), matrix(w, 16, 64), nullptr, nullptr, 3);
  for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(std::isnan(y[i]), i / 16 == 1) << i;
}

TEST(CudaLinearPacked, MatchesTheProductWithUnpackedNumbers) {
  constexpr struct {
    WeightFormat format;
    QuantizeRowsFn* quantize;
    UnpackRowFn* unpack;
  } kFormats[] = {{WeightFormat::kInt8, ref::quantize_rows_int8, ref::unpack_row_int8},
                  {WeightFormat::kInt4, ref::quantize_rows_int4, ref::unpack_row_int4},
                  {WeightFormat::kInt4q, ref::quantize_rows_int4q, ref::unpack_row_int4q},
                  {WeightFormat::kInt6, ref::quantize_rows_int6, ref::unpack_row_int6}};
  for (const auto& f : kFormats)
    for (const Shape& s : {Shape{1, 40, 64}, Shape{10, 16, 288}}) {
      SCOPED_TRACE(std::string(kWeightFormatNames[static_cast<int>(f.format)]) + ", " + text_of(s));
      DeviceVector<uint8_t> packed(static_cast<size_t>(packed_bytes(f.format, s.n_rows, s.k_len)));
      f.quantize(packed.data(), noise(s.n_rows * s.k_len, 31).data(), 0, s.n_rows, s.n_rows,
                 s.k_len);
      std::vector<float> values(static_cast<size_t>(s.n_rows * s.k_len));
      for (int64_t row = 0; row < s.n_rows; ++row)
        f.unpack(&values[static_cast<size_t>(row * s.k_len)], packed.data(), row, s.n_rows,
                 s.k_len);
      const auto x = device_noise(s.n_tokens * s.k_len, 32);
      const auto x_cut = cut(x, s.n_tokens, s.k_len);
      const auto got = under_all_schedules([&] {
        DeviceVector<float> y(static_cast<size_t>(s.n_tokens * s.n_rows));
        linear(kStream, y.data(), x_cut.data(),
               {packed.data(), numbers_of(f.format), s.n_rows, s.k_len}, nullptr, nullptr,
               s.n_tokens);
        return y;
      });
      std::vector<double> bound;
      const std::vector<double> expected = exact(x, values, s, bound);
      expect_within(got, expected, [&](size_t i) { return bound[i]; });
    }
}

}  // namespace
}  // namespace dovetail::kernels::cuda
