#include <kernels/weight_formats.hpp>

#include <kernels/packed_rows.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

namespace dovetail::kernels {
namespace {

struct Format {
  const char* name;
  WeightFormat format;
  QuantizeRowsFn* quantize;
  UnpackRowFn* unpack;
};
const Format kFormats[] = {
    {"int8", WeightFormat::kInt8, ref::quantize_rows_int8, ref::unpack_row_int8},
    {"int4", WeightFormat::kInt4, ref::quantize_rows_int4, ref::unpack_row_int4},
    {"int4q", WeightFormat::kInt4q, ref::quantize_rows_int4q, ref::unpack_row_int4q},
    {"int6", WeightFormat::kInt6, ref::quantize_rows_int6, ref::unpack_row_int6},
};

std::vector<uint8_t> pack(const Format& f, const std::vector<float>& w, int64_t n_rows,
                          int64_t k_len) {
  std::vector<uint8_t> packed(static_cast<size_t>(packed_bytes(f.format, n_rows, k_len)), 0xAA);
  f.quantize(packed.data(), w.data(), 0, n_rows, n_rows, k_len);
  return packed;
}

std::vector<float> unpack(const Format& f, const std::vector<uint8_t>& packed, int64_t n_rows,
                          int64_t k_len) {
  std::vector<float> out(static_cast<size_t>(n_rows * k_len));
  for (int64_t r = 0; r < n_rows; ++r) {
    f.unpack(out.data() + r * k_len, packed.data(), r, n_rows, k_len);
  }
  return out;
}

/// Weights as models have them (a sum of twelve uniform numbers), and as they should not.
enum class Kind { kBell, kOutliers, kAllPositive, kAllNegative, kConstant, kTiny, kHuge };
constexpr Kind kKinds[] = {Kind::kBell,     Kind::kOutliers, Kind::kAllPositive, Kind::kAllNegative,
                           Kind::kConstant, Kind::kTiny,     Kind::kHuge};

std::vector<float> weights(Kind kind, int64_t n) {
  std::vector<float> w(static_cast<size_t>(n));
  uint32_t state = 7;
  for (size_t i = 0; i < w.size(); ++i) {
    float bell = 0.0F;
    for (int j = 0; j < 12; ++j) {
      state = state * 1664525U + 1013904223U;
      bell += static_cast<float>(state >> 8U) * 0x1p-24F - 0.5F;
    }
    w[i] = bell * 0.02F;
    if (kind == Kind::kOutliers && i % 97 == 5) w[i] *= 300.0F;
    if (kind == Kind::kAllPositive) w[i] = 1.0F + w[i];
    if (kind == Kind::kAllNegative) w[i] = -1.0F - std::abs(w[i]);
    if (kind == Kind::kConstant) w[i] = -0.3F;
    if (kind == Kind::kTiny) w[i] *= 1e-27F;
    if (kind == Kind::kHuge) w[i] *= 1e30F;
  }
  return w;
}

struct Range {
  double greatest = 0;
  double width = 0;
};

Range range_of(const float* x, int64_t n) {
  const double low = std::min(0.0F, *std::min_element(x, x + n));
  const double high = std::max(0.0F, *std::max_element(x, x + n));
  return {std::max(high, -low), high - low};
}

double rms_error(const float* a, const float* b, int64_t n) {
  double squares = 0;
  for (int64_t i = 0; i < n; ++i) {
    squares += (static_cast<double>(a[i]) - b[i]) * (static_cast<double>(a[i]) - b[i]);
  }
  return std::sqrt(squares / static_cast<double>(n));
}

/// What the contract allows a block to lose.
double bound_of(WeightFormat format, const Range& block, double row_greatest, double row_width) {
  switch (format) {
    case WeightFormat::kInt8:
      return block.greatest / 246 + row_greatest / 64000;
    case WeightFormat::kInt4:
      return block.width / 27 + row_width / 6600;
    case WeightFormat::kInt4q:
      return block.width / 19 + row_width / 4800;
    case WeightFormat::kInt6:
      return block.greatest / 60 + row_greatest / 15600;
  }
  return 0;
}

TEST(WeightFormats, LoseNoMoreThanTheContractSaysInAnyBlock) {
  constexpr int64_t kRows = 19;
  constexpr int64_t kLen = 160;
  for (const Format& f : kFormats) {
    for (const Kind kind : kKinds) {
      const std::vector<float> w = weights(kind, kRows * kLen);
      const std::vector<float> back = unpack(f, pack(f, w, kRows, kLen), kRows, kLen);
      for (int64_t r = 0; r < kRows; ++r) {
        double greatest = 0;
        double width = 0;
        for (int64_t k = 0; k < kLen; k += kQuantBlock) {
          const Range block = range_of(w.data() + r * kLen + k, kQuantBlock);
          greatest = std::max(greatest, block.greatest);
          width = std::max(width, block.width);
        }
        for (int64_t k = 0; k < kLen; k += kQuantBlock) {
          const float* block = w.data() + r * kLen + k;
          ASSERT_LE(rms_error(block, back.data() + r * kLen + k, kQuantBlock),
                    bound_of(f.format, range_of(block, kQuantBlock), greatest, width))
              << f.name << " kind " << static_cast<int>(kind) << " row " << r << " k " << k;
        }
      }
    }
  }
}

/// The least and the greatest weight at the ends of an even grid; float scale and minimum.
double min_max_rms(const std::vector<float>& w, int n_levels) {
  double squares = 0;
  for (size_t k = 0; k < w.size(); k += kQuantBlock) {
    const auto [low, high] = std::minmax_element(w.begin() + static_cast<ptrdiff_t>(k),
                                                 w.begin() + static_cast<ptrdiff_t>(k + 32));
    const double step = (static_cast<double>(*high) - *low) / (n_levels - 1);
    for (size_t i = k; i < k + kQuantBlock; ++i) {
      const double off = w[i] - (*low + step * std::nearbyint((w[i] - *low) / step));
      squares += off * off;
    }
  }
  return std::sqrt(squares / static_cast<double>(w.size()));
}

/// Zero in the middle, the greatest weight at an end; float scale.
double greatest_rms(const std::vector<float>& w, int top) {
  double squares = 0;
  for (size_t k = 0; k < w.size(); k += kQuantBlock) {
    const double step = range_of(w.data() + k, kQuantBlock).greatest / top;
    for (size_t i = k; i < k + kQuantBlock; ++i) {
      const double off = w[i] - step * std::nearbyint(w[i] / step);
      squares += off * off;
    }
  }
  return std::sqrt(squares / static_cast<double>(w.size()));
}

TEST(WeightFormats, SearchBeatsTheEndsOfTheRange) {
  constexpr int64_t kRows = 64;
  constexpr int64_t kLen = 1024;
  const std::vector<float> w = weights(Kind::kBell, kRows * kLen);
  double rms[kWeightFormats];
  for (const Format& f : kFormats) {
    const std::vector<float> back = unpack(f, pack(f, w, kRows, kLen), kRows, kLen);
    rms[static_cast<int>(f.format)] = rms_error(w.data(), back.data(), kRows * kLen);
  }
  const double plain = min_max_rms(w, 16);
  EXPECT_LT(rms[1], 0.94 * plain);
  EXPECT_LT(rms[2], 0.98 * rms[1]);  // same bits, better grid
  EXPECT_LT(rms[0], rms[2] / 12);
  EXPECT_LT(rms[3], rms[2] / 3);
  EXPECT_LT(rms[3], 0.95 * greatest_rms(w, 31));
}

TEST(WeightFormats, KeepZerosAndTinyRowsAtZero) {
  constexpr int64_t kLen = 64;
  std::vector<float> w(3 * kLen, 0.0F);
  for (int64_t k = 0; k < 32; ++k) w[static_cast<size_t>(kLen + k)] = 1.0F;  // row 1, block 0 only
  w[2 * kLen + 3] = 9e-31F;
  for (const Format& f : kFormats) {
    const std::vector<float> back = unpack(f, pack(f, w, 3, kLen), 3, kLen);
    for (int64_t i = 0; i < 3 * kLen; ++i) {
      if (i >= kLen && i < kLen + 32) continue;
      EXPECT_EQ(back[static_cast<size_t>(i)], 0.0F) << f.name << " element " << i;
    }
  }
}

TEST(WeightFormats, FillTheLastGroupWithZeros) {
  constexpr int64_t kLen = 96;
  const std::vector<float> w = weights(Kind::kBell, 17 * kLen);
  for (const Format& f : kFormats) {
    const std::vector<uint8_t> packed = pack(f, w, 17, kLen);
    EXPECT_EQ(packed.size(), static_cast<size_t>(packed_bytes(f.format, 32, kLen)));
    const std::vector<float> back = unpack(f, packed, 32, kLen);
    for (size_t i = 17 * kLen; i < back.size(); ++i) ASSERT_EQ(back[i], 0.0F) << f.name;
  }
}

TEST(WeightFormats, TakeTheBitsTheySay) {
  EXPECT_EQ(packed_bytes(WeightFormat::kInt8, 16, 1024), 64 + 16 * 1024 * 33 / 32);
  EXPECT_EQ(packed_bytes(WeightFormat::kInt4, 16, 1024), 64 + 16 * 1024 * 9 / 16);
  EXPECT_EQ(packed_bytes(WeightFormat::kInt4q, 17, 1024), 2 * (64 + 16 * 1024 * 9 / 16));
  EXPECT_EQ(packed_bytes(WeightFormat::kInt6, 16, 1024), 64 + 16 * 1024 * 25 / 32);
  EXPECT_EQ(packed_bytes(WeightFormat::kInt8, 0, 1024), 0);
}

/// Reads the layout as the header describes it, byte by byte.
float by_the_header(WeightFormat format, const uint8_t* packed, int64_t row, int64_t k,
                    int64_t k_len) {
  const bool is_int8 = format == WeightFormat::kInt8;
  const bool is_int6 = format == WeightFormat::kInt6;
  const int64_t block_len = is_int8 ? 16 + 512 : is_int6 ? 16 + 256 + 128 : 32 + 256;
  const uint8_t* group = packed + row / 16 * (64 + k_len / 32 * block_len);
  const uint8_t* block = group + 64 + k / 32 * block_len;
  float d;
  std::memcpy(&d, group + 4 * (row % 16), 4);
  const uint8_t c = block[row % 16];
  const float s = std::ldexp(32.0F + static_cast<float>(c % 32), c / 32);
  const int64_t i = k % 32;
  if (is_int8) {
    return d * (s * static_cast<float>(
                        static_cast<int8_t>(block[16 + (i / 4) * 64 + (row % 16) * 4 + i % 4])));
  }
  const uint8_t pair = block[(is_int6 ? 16 : 32) + (i / 8) * 64 + (row % 16) * 4 + i % 4];
  const int q = i % 8 < 4 ? pair % 16 : pair / 16;
  if (is_int6) {
    const uint8_t four = block[16 + 256 + (i / 16) * 64 + (row % 16) * 4 + i % 4];
    const int upper = four >> (2 * (i / 4 % 4)) & 3;
    return d * (s * static_cast<float>(16 * upper + q - 32));
  }
  const int level = format == WeightFormat::kInt4 ? 16 * q : 4 * kInt4qGrid[q];
  return d * (s * static_cast<float>(level - block[16 + row % 16]));
}

TEST(WeightFormats, LieAsTheHeaderSays) {
  constexpr int64_t kRows = 35;
  constexpr int64_t kLen = 96;
  for (const Format& f : kFormats) {
    std::vector<uint8_t> packed(static_cast<size_t>(packed_bytes(f.format, kRows, kLen)));
    uint32_t state = 3;
    for (uint8_t& byte : packed) {
      state = state * 1664525U + 1013904223U;
      byte = static_cast<uint8_t>(state >> 24U);
    }
    const int64_t group = static_cast<int64_t>(packed.size()) / 3;
    for (int64_t r = 0; r < 48; ++r) {
      const float d = 0.25F + static_cast<float>(r);
      std::memcpy(packed.data() + r / 16 * group + 4 * (r % 16), &d, 4);
    }
    const std::vector<float> back = unpack(f, packed, kRows, kLen);
    for (int64_t r = 0; r < kRows; ++r) {
      for (int64_t k = 0; k < kLen; ++k) {
        ASSERT_EQ(back[static_cast<size_t>(r * kLen + k)],
                  by_the_header(f.format, packed.data(), r, k, kLen))
            << f.name << " row " << r << " k " << k;
      }
    }
  }
}

/// A row whose greatest weight has either sign: the level that one side has more is worth having.
TEST(WeightFormats, Int6UsesTheLevelThatOneSideHasMore) {
  constexpr int64_t kLen = 1024;
  const std::vector<float> w = weights(Kind::kBell, 16 * kLen);
  std::vector<float> turned = w;
  for (float& x : turned) x = -x;
  const Format& f = kFormats[static_cast<int>(WeightFormat::kInt6)];
  int n_least = 0;
  for (const std::vector<float>& rows : {w, turned}) {
    const std::vector<uint8_t> packed = pack(f, rows, 16, kLen);
    for (int64_t lane = 0; lane < 16; ++lane) {
      for (int64_t k = 0; k < kLen; ++k) {
        const uint8_t* block = packed.data() + 64 + k / kQuantBlock * kInt6BlockBytes;
        n_least += packed_value(f.format, block, lane, k % kQuantBlock) == -32;
      }
    }
  }
  EXPECT_GT(n_least, 2 * 16 * kLen / kQuantBlock / 10);  // in a tenth of the blocks
}

TEST(WeightFormats, Int4qLevelsFitTheirKernels) {
  for (int i = 1; i < 16; ++i) EXPECT_LT(kInt4qGrid[i - 1], kInt4qGrid[i]);
  EXPECT_EQ(kInt4qGrid[0], 0);
  EXPECT_LE(4 * 127 * kInt4qGrid[15], 32767);  // four products in an int16
}

}  // namespace
}  // namespace dovetail::kernels
