// rms_norm, mean_rows, softmax and argmax against kernels/ref.
#include <kernels/argmax.hpp>
#include <kernels/rms_norm.hpp>
#include <kernels/softmax.hpp>

#include "tests/kernels/cuda/device_rig.hpp"

namespace dovetail::kernels::cuda {
namespace {

TEST(CudaRmsNorm, MatchesReferenceOnShortAndLongRows) {
  for (const auto& [n_rows, row_len] :
       {std::pair<int64_t, int64_t>{7, 10}, {5, 40}, {3, 128}, {9, 1}, {2, 1500}, {0, 8}}) {
    SCOPED_TRACE(std::to_string(n_rows) + " rows of " + std::to_string(row_len));
    const auto x = device_noise(n_rows * row_len, 1), weight = device_noise(row_len, 2);
    const auto got = under_all_schedules([&, n = n_rows, len = row_len] {
      DeviceVector<float> out(x.size());
      rms_norm(kStream, out.data(), x.data(), weight.data(), n, len, 1e-6F, 1.0F);
      return out;
    });
    std::vector<float> expected(x.size());
    ref::rms_norm(expected.data(), x.data(), weight.data(), n_rows, row_len, 1e-6F, 1.0F);
    expect_within(got, expected,
                  [&](size_t i) { return 2e-6 * std::fabs(static_cast<double>(expected[i])); });
  }
}
TEST(CudaRmsNorm, MayWriteOverItsInput) {
  auto x = device_noise(5 * 200, 3);
  const auto weight = device_noise(200, 4);
  std::vector<float> expected(x.size());
  ref::rms_norm(expected.data(), x.data(), weight.data(), 5, 200, 1e-6F, 0.0F);
  rms_norm(kStream, x.data(), x.data(), weight.data(), 5, 200, 1e-6F, 0.0F);
  expect_within(x, expected,
                [&](size_t i) { return 2e-6 * std::fabs(static_cast<double>(expected[i])); });
}

TEST(CudaMeanRows, IsTheMean) {
  for (const auto& [n_rows, row_len] : {std::pair<int64_t, int64_t>{6, 33}, {2, 1100}}) {
    const auto x = device_noise(n_rows * row_len, 5);
    const auto got = under_all_schedules([&, n = n_rows, len = row_len] {
      DeviceVector<float> out(static_cast<size_t>(n));
      mean_rows(kStream, out.data(), x.data(), n, len);
      return out;
    });
    std::vector<double> expected;
    for (int64_t r = 0; r < n_rows; ++r) {
      double sum = 0;
      for (int64_t i = 0; i < row_len; ++i)
        sum += static_cast<double>(x[static_cast<size_t>(r * row_len + i)]);
      expected.push_back(sum / static_cast<double>(row_len));
    }
    expect_within(got, expected, [](size_t) { return 1e-6; });
  }
}

TEST(CudaSoftmax, MatchesReference) {
  for (const auto& [n_rows, row_len] : {std::pair<int64_t, int64_t>{3, 5}, {2, 257}, {1, 1000}}) {
    auto x = device_noise(n_rows * row_len, 6);
    for (float& v : x) v *= 10;
    x[1] = -INFINITY;
    const auto got = under_all_schedules([&, n = n_rows, len = row_len] {
      DeviceVector<float> out(x.size());
      softmax(kStream, out.data(), x.data(), n, len);
      return out;
    });
    std::vector<float> expected(x.size());
    ref::softmax(expected.data(), x.data(), n_rows, row_len);
    expect_within(got, expected, [&](size_t i) {
      return (20.0 + static_cast<double>(row_len) + 8) * 0x1p-22 * static_cast<double>(expected[i]);
    });
    EXPECT_EQ(got[1], 0.0F);
  }
}
TEST(CudaSoftmax, RowsThatHoldNanOrInfinityAreNan) {
  for (const float odd : {NAN, INFINITY}) {
    auto x = device_noise(300, 7);
    x[270] = odd;
    softmax(kStream, x.data(), x.data(), 1, 300);
    for (const float v : x) ASSERT_TRUE(std::isnan(v));
  }
  DeviceVector<float> none(40, -INFINITY);
  softmax(kStream, none.data(), none.data(), 1, 40);
  for (const float v : none) ASSERT_TRUE(std::isnan(v));
}

TEST(CudaArgmax, IsTheLowestIndexOfTheGreatest) {
  constexpr int64_t kRows = 5, kLen = 1300;
  auto x = device_noise(kRows * kLen, 8);
  x[kLen + 700] = x[kLen + 1201] = x[kLen + 90] = 3.0F;  // a tie
  x[2 * kLen] = NAN;
  for (int64_t i = 3 * kLen; i < 4 * kLen; ++i) x[static_cast<size_t>(i)] = i % 2 ? NAN : -INFINITY;
  const auto got = under_all_schedules([&] {
    DeviceVector<int32_t> ids(kRows);
    argmax(kStream, ids.data(), x.data(), nullptr, kRows, kLen);
    return ids;
  });
  for (const int64_t row : {0, 1, 2, 4})
    EXPECT_EQ(got[static_cast<size_t>(row)],
              ref::argmax(&x[static_cast<size_t>(row * kLen)], kLen));
  EXPECT_EQ(got[1], 90);
  EXPECT_EQ(got[3], -1);
}
TEST(CudaArgmax, TakesOnlyWhatTheMaskAllows) {
  const auto x = device_noise(2 * 70, 9);
  DeviceVector<uint32_t> mask(3, 0);
  for (const int id : {3, 31, 32, 64, 69}) mask[static_cast<size_t>(id) / 32] |= 1U << id % 32;
  DeviceVector<int32_t> ids(2);
  argmax(kStream, ids.data(), x.data(), mask.data(), 2, 70);
  for (size_t row = 0; row < 2; ++row) {
    int32_t best = 3;
    for (const int32_t id : {31, 32, 64, 69})
      if (x[row * 70 + static_cast<size_t>(id)] > x[row * 70 + static_cast<size_t>(best)])
        best = id;
    EXPECT_EQ(ids[row], best);
  }
  mask.assign(3, 0);
  argmax(kStream, ids.data(), x.data(), mask.data(), 2, 70);
  EXPECT_EQ(ids[0], -1);
}

// More tokens and rows than the block has threads.
TEST(CudaTakeTokens, PutsWhatWasSampledInPlaceAndAgesIt) {
  constexpr int64_t kTokens = 300, kRows = 270;
  DeviceVector<int32_t> from(kTokens, -1), sampled(2 * kRows);
  for (int64_t r = 0; r < 2 * kRows; ++r)
    sampled[static_cast<size_t>(r)] = static_cast<int32_t>(1000 + r);
  sampled[7] = -1;  // a row without a winner
  from[1] = 7, from[299] = 269,
  from[2] = 270 + 3;  // the last step's, the last step's, of the one before
  const auto got = under_all_schedules([&] {
    DeviceVector<int32_t> out(kTokens, 5), ids = sampled;
    take_tokens(kStream, out.data(), from.data(), ids.data(), kTokens, kRows);
    out.insert(out.end(), ids.begin(), ids.end());
    return out;
  });
  for (int64_t t = 0; t < kTokens; ++t)
    EXPECT_EQ(got[static_cast<size_t>(t)], t == 1 ? 0 : t == 2 ? 1273 : t == 299 ? 1269 : 5) << t;
  for (int64_t r = 0; r < 2 * kRows; ++r)
    EXPECT_EQ(got[static_cast<size_t>(kTokens + r)], sampled[static_cast<size_t>(r % kRows)]) << r;
}

}  // namespace
}  // namespace dovetail::kernels::cuda
