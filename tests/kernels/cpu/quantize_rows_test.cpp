#include <kernels/weight_formats.hpp>

#include <vector>

#include <gtest/gtest.h>

#include "tests/kernels/variants.hpp"

namespace dovetail::kernels {
namespace {

struct Format {
  const char* name;
  WeightFormat format;
  QuantizeRowsFn* CpuKernels::*quantize;
  UnpackRowFn* CpuKernels::*unpack;
  QuantizeRowsFn* ref_quantize;
  UnpackRowFn* ref_unpack;
};
const Format kFormats[] = {
    {"int8", WeightFormat::kInt8, &CpuKernels::quantize_rows_int8, &CpuKernels::unpack_row_int8,
     ref::quantize_rows_int8, ref::unpack_row_int8},
    {"int4", WeightFormat::kInt4, &CpuKernels::quantize_rows_int4, &CpuKernels::unpack_row_int4,
     ref::quantize_rows_int4, ref::unpack_row_int4},
    {"int4q", WeightFormat::kInt4q, &CpuKernels::quantize_rows_int4q, &CpuKernels::unpack_row_int4q,
     ref::quantize_rows_int4q, ref::unpack_row_int4q},
    {"int6", WeightFormat::kInt6, &CpuKernels::quantize_rows_int6, &CpuKernels::unpack_row_int6,
     ref::quantize_rows_int6, ref::unpack_row_int6},
};

std::vector<uint8_t> room(const Format& f, int64_t n_rows, int64_t k_len) {
  return std::vector<uint8_t>(static_cast<size_t>(packed_bytes(f.format, n_rows, k_len)), 0xAA);
}

/// Rows of many kinds: even, bell-shaped, one-sided, constant, zero, with outliers, tiny and huge.
std::vector<float> mixed_rows(int64_t n_rows, int64_t k_len) {
  std::vector<float> w = noise(n_rows * k_len, 11);
  for (int64_t r = 0; r < n_rows; ++r) {
    for (int64_t k = 0; k < k_len; ++k) {
      float& x = w[static_cast<size_t>(r * k_len + k)];
      switch (r % 9) {
        case 1:
          x = x * x * x;
          break;
        case 2:
          x = 2.0F + x;
          break;
        case 3:
          x = -0.7F;
          break;
        case 4:
          x = 0.0F;
          break;
        case 5:
          x = k % 41 == 7 ? 1000.0F * x : x;
          break;
        case 6:
          x *= 1e-30F;
          break;
        case 7:
          x *= 9e29F;
          break;
        case 8:
          x = k / 32 % 2 == 0 ? x * 1e-9F : -std::abs(x);
          break;
        default:
          break;
      }
    }
  }
  return w;
}

TEST(QuantizeRows, GivesTheBytesOfTheReference) {
  for (const Format& f : kFormats) {
    for (const int64_t n_rows : {1, 15, 16, 17, 50}) {
      for (const int64_t k_len : {0, 32, 64, 96, 320}) {
        const std::vector<float> w = mixed_rows(n_rows, k_len);
        std::vector<uint8_t> expected = room(f, n_rows, k_len);
        f.ref_quantize(expected.data(), w.data(), 0, n_rows, n_rows, k_len);
        for (const CpuKernels* row : variants()) {
          std::vector<uint8_t> packed = room(f, n_rows, k_len);
          (row->*f.quantize)(packed.data(), w.data(), 0, n_rows, n_rows, k_len);
          ASSERT_EQ(packed, expected)
              << row->name << " " << f.name << " N " << n_rows << " K " << k_len;
        }
      }
    }
  }
}

TEST(QuantizeRows, GivesTheSameBytesHoweverRowsAreSplitOverLanes) {
  constexpr int64_t kRows = 53;
  constexpr int64_t kLen = 96;
  const std::vector<float> w = mixed_rows(kRows, kLen);
  for (const Format& f : kFormats) {
    for (const CpuKernels* row : variants()) {
      std::vector<uint8_t> whole = room(f, kRows, kLen);
      (row->*f.quantize)(whole.data(), w.data(), 0, kRows, kRows, kLen);
      std::vector<uint8_t> split = room(f, kRows, kLen);
      for (const auto& [row0, n] : {std::pair{48, 5}, {0, 16}, {16, 32}, {48, 0}}) {
        (row->*f.quantize)(split.data(), w.data() + row0 * kLen, row0, n, kRows, kLen);
      }
      ASSERT_EQ(split, whole) << row->name << " " << f.name;
    }
  }
}

TEST(UnpackRow, GivesTheBitsOfTheReference) {
  constexpr int64_t kRows = 21;
  for (const Format& f : kFormats) {
    for (const int64_t k_len : {0, 32, 160}) {
      const std::vector<float> w = mixed_rows(kRows, k_len);
      std::vector<uint8_t> packed = room(f, kRows, k_len);
      f.ref_quantize(packed.data(), w.data(), 0, kRows, kRows, k_len);
      for (const CpuKernels* row : variants()) {
        for (int64_t r = 0; r < kRows; ++r) {
          std::vector<float> expected(static_cast<size_t>(k_len) + 1, 5.0F);
          std::vector<float> got = expected;
          f.ref_unpack(expected.data(), packed.data(), r, kRows, k_len);
          (row->*f.unpack)(got.data(), packed.data(), r, kRows, k_len);
          ASSERT_TRUE(same_bits(got.data(), expected.data(), k_len + 1))
              << row->name << " " << f.name << " row " << r << " K " << k_len;
        }
      }
    }
  }
}

}  // namespace
}  // namespace dovetail::kernels
