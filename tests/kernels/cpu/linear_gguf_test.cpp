// Products with packed weights of GGUF: the packed numbers are the file's, and every variant gives the oracle's bits.
#include <kernels/linear_gguf.hpp>

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include <kernels/gguf_blocks.hpp>

#include "tests/kernels/cpu/quantized_row.hpp"
#include "tests/kernels/variants.hpp"

namespace dovetail::kernels {
namespace {

struct Op {
  GgufPacked format;
  PackGgufRowsFn* pack;
  UnpackRowFn* unpack;
  LinearQuantizedFn *CpuKernels::*run, *CpuKernels::*run_add;
  LinearQuantizedFn *ref, *ref_add;
};
const Op kOps[] = {
    {GgufPacked::kQ4_0, ref::pack_rows_q4_0, ref::unpack_row_q4_0, &CpuKernels::linear_q4_0,
     &CpuKernels::linear_add_q4_0, ref::linear_q4_0, ref::linear_add_q4_0},
    {GgufPacked::kQ8_0, ref::pack_rows_q8_0, ref::unpack_row_q8_0, &CpuKernels::linear_q8_0,
     &CpuKernels::linear_add_q8_0, ref::linear_q8_0, ref::linear_add_q8_0},
    {GgufPacked::kQ4_K, ref::pack_rows_q4_k, ref::unpack_row_q4_k, &CpuKernels::linear_q4_k,
     &CpuKernels::linear_add_q4_k, ref::linear_q4_k, ref::linear_add_q4_k},
    {GgufPacked::kQ6_K, ref::pack_rows_q6_k, ref::unpack_row_q6_k, &CpuKernels::linear_q6_k,
     &CpuKernels::linear_add_q6_k, ref::linear_q6_k, ref::linear_add_q6_k},
};
const char* name_of(const Op& op) {
  return kGgufPackedNames[static_cast<int>(op.format)];
}
const GgufFormat& stored(const Op& op) {
  return *find_gguf_format(name_of(op));
}

/// Any bytes as blocks, with ordinary scales; `fill` for all bytes that are no float16, if it is one.
std::vector<uint8_t> file_rows(const Op& op, int64_t n_rows, int64_t k_len, int fill = -1) {
  const GgufFormat& format = stored(op);
  std::vector<uint8_t> out(
      static_cast<size_t>(n_rows * k_len / format.block_len * format.block_bytes));
  uint32_t state = 9;
  for (uint8_t& byte : out) {
    state = state * 1664525U + 1013904223U;
    byte = fill >= 0 ? static_cast<uint8_t>(fill) : static_cast<uint8_t>(state >> 24U);
  }
  for (size_t at = 0; at < out.size(); at += static_cast<size_t>(format.block_bytes)) {
    const bool is_q4_k = op.format == GgufPacked::kQ4_K;
    for (const size_t place : {op.format == GgufPacked::kQ6_K ? size_t{208} : size_t{0},
                               is_q4_k ? size_t{2} : size_t{999}}) {
      if (place == 999) continue;
      state = state * 1664525U + 1013904223U;
      const auto half =
          static_cast<uint16_t>(0x1000U | (state >> 20U & 0x8FFFU));  // at most 2^-10 * 2
      out[at + place] = static_cast<uint8_t>(half);
      out[at + place + 1] = static_cast<uint8_t>(half >> 8U);
    }
  }
  return out;
}

struct Case {
  Case(const Op& o, int64_t tokens, int64_t rows, int64_t k, int fill = -1)
      : op(o),
        n_tokens(tokens),
        n_rows(rows),
        k_len(k),
        blocks(file_rows(o, rows, k, fill)),
        packed(static_cast<size_t>(gguf_packed_bytes(o.format, rows, k)), 0xEE),
        xq(static_cast<size_t>(tokens * quantized_row_bytes(k))),
        y(noise(tokens * stride(), 3)) {
    op.pack(packed.data(), blocks.data(), 0, n_rows, n_rows, k_len);
    const std::vector<float> x = noise(n_tokens * k_len, 1);
    ref::quantize_activations(xq.data(), x.data(), k_len, n_tokens, k_len);
  }
  int64_t stride() const { return n_rows + 5; }
  void run(LinearQuantizedFn* linear, std::vector<float>& out, int64_t t, int64_t n, int64_t begin,
           int64_t end) const {
    linear(out.data() + t * stride(), stride(), xq.data() + t * quantized_row_bytes(k_len),
           packed.data(), n, n_rows, k_len, begin, end);
  }

  const Op& op;
  int64_t n_tokens, n_rows, k_len;
  std::vector<uint8_t> blocks, packed, xq;
  std::vector<float> y;
};

void expect_bits_of_reference(const Case& c) {
  for (const bool adds : {false, true}) {
    std::vector<float> expected = c.y;
    c.run(adds ? c.op.ref_add : c.op.ref, expected, 0, c.n_tokens, 0, c.n_rows);
    for (const CpuKernels* row : variants()) {
      std::vector<float> got = c.y;
      c.run(row->*(adds ? c.op.run_add : c.op.run), got, 0, c.n_tokens, 0, c.n_rows);
      for (size_t i = 0; i < got.size(); ++i)
        ASSERT_TRUE(same_bits(&got[i], &expected[i], 1))
            << row->name << " " << name_of(c.op) << " T " << c.n_tokens << " N " << c.n_rows
            << " K " << c.k_len << ": t " << static_cast<int64_t>(i) / c.stride() << " n "
            << static_cast<int64_t>(i) % c.stride() << " is " << got[i] << ", expected "
            << expected[i];
    }
  }
}

TEST(LinearGguf, PacksTheNumbersOfTheFile) {
  for (const Op& op : kOps)
    for (const int64_t n_rows : {1, 16, 37}) {
      const Case c(op, 0, n_rows, 512);
      const int64_t row_bytes = 512 / stored(op).block_len * stored(op).block_bytes;
      for (int64_t row = 0; row < n_rows; ++row) {
        std::vector<float> expected(512), got(512);
        stored(op).unpack(expected.data(), c.blocks.data() + row * row_bytes,
                          512 / stored(op).block_len);
        op.unpack(got.data(), c.packed.data(), row, n_rows, 512);
        ASSERT_TRUE(same_bits(got.data(), expected.data(), 512)) << name_of(op) << " row " << row;
      }
    }
}

TEST(LinearGguf, PacksRangesOfRowsToTheSameBytes) {
  for (const Op& op : kOps) {
    const Case c(op, 0, 55, 256);
    std::vector<uint8_t> parts(c.packed.size(), 0x77);
    const int64_t row_bytes = 256 / stored(op).block_len * stored(op).block_bytes;
    for (const auto& [begin, end] : {std::pair{32, 55}, {0, 16}, {16, 32}})
      op.pack(parts.data(), c.blocks.data() + begin * row_bytes, begin, end - begin, 55, 256);
    EXPECT_EQ(parts, c.packed) << name_of(op);
  }
}

TEST(LinearGguf, GivesTheBitsOfTheReferenceOnOddShapes) {
  for (const Op& op : kOps)
    for (const int64_t n_tokens : {0, 1, 2, 3, 4, 5, 7, 8, 9, 130})
      for (const int64_t n_rows : {0, 1, 7, 8, 9, 16, 17, 40})
        for (const int64_t blocks : {0, 1, 2})
          expect_bits_of_reference({op, n_tokens, n_rows, blocks * stored(op).block_len});
}

TEST(LinearGguf, GivesTheBitsOfTheReferenceForLongPrompts) {
  for (const Op& op : kOps)
    for (const int64_t n_tokens : {11, 12, 13, 14, 15, 131, 259})
      for (const int64_t n_rows : {16, 23})
        for (const int64_t k_len : {256, 512, 768, 1280})
          expect_bits_of_reference({op, n_tokens, n_rows, k_len});
}

TEST(LinearGguf, HoldsTheGreatestSumsThatABlockCanHave) {
  for (const Op& op : kOps)
    for (const int fill : {0xFF, 0x00, 0x80, 0x7F, 0x0F, 0xF0})
      for (const float sign : {1.0F, -1.0F})
        for (const int64_t n_tokens : {6, 15}) {
          Case c(op, n_tokens, 18, 256, fill);
          // every q is 127 or -127
          const std::vector<float> x(static_cast<size_t>(n_tokens * 256), sign);
          ref::quantize_activations(c.xq.data(), x.data(), 256, n_tokens, 256);
          expect_bits_of_reference(c);
        }
}

// The sum of a block of q6_k nearly fills 32 bits: all levels -32, all scales -128, all q16 127 * 128.
TEST(LinearGguf, HoldsTheGreatestSumsOfQ6_K) {
  constexpr int64_t kHead = 32, kScales = 32, kBlock = kScales + 512, kGroup = kHead + 8 * kBlock;
  for (const float sign : {1.0F, -1.0F})
    for (const int64_t n_tokens : {1, 6, 15}) {
      Case c(kOps[3], n_tokens, 18, 256, 0);  // bytes of zeros are levels of -32
      const std::vector<float> x(static_cast<size_t>(n_tokens * 256), sign);
      ref::quantize_activations(c.xq.data(), x.data(), 256, n_tokens, 256);
      for (int64_t at = 0; at < 2 * kGroup; at += kGroup)
        for (int64_t b = 0; b < 8; ++b)
          std::memset(c.packed.data() + at + kHead + b * kBlock, 0x80, kScales);
      expect_bits_of_reference(c);
      std::vector<float> y = c.y, w(256);
      c.run(c.op.ref, y, 0, n_tokens, 0, 18);
      ref::unpack_row_q6_k(w.data(), c.packed.data(), 17, 18, 256);
      ASSERT_NE(w[0], 0.0F);
      EXPECT_NEAR(y[17], 256 * sign * w[0], 256 * std::abs(w[0]) * 1e-6F);
    }
}

TEST(LinearGguf, GivesTheSameBitsInAnyBatchAndStripe) {
  for (const Op& op : kOps) {
    const Case c(op, 131, 75, 256);
    for (const CpuKernels* row : variants()) {
      std::vector<float> whole = c.y, alone = c.y, split = c.y;
      c.run(row->*op.run, whole, 0, 131, 0, 75);
      for (int64_t t = 0; t < 131; ++t) c.run(row->*op.run, alone, t, 1, 0, 75);
      for (const auto& [begin, end] : {std::pair{16, 32}, {0, 16}, {64, 75}, {32, 32}, {32, 64}})
        c.run(row->*op.run, split, 0, 131, begin, end);
      ASSERT_TRUE(same_bits(whole.data(), alone.data(), static_cast<int64_t>(whole.size())))
          << row->name << name_of(op);
      ASSERT_TRUE(same_bits(whole.data(), split.data(), static_cast<int64_t>(whole.size())))
          << row->name << name_of(op);
    }
  }
}

TEST(LinearGguf, StaysWithinTheBoundOfItsContract) {
  constexpr int64_t kLen = 768;
  for (const Op& op : kOps) {
    const Case c(op, 2, 9, kLen);
    std::vector<float> y = c.y;
    c.run(op.ref, y, 0, 2, 0, 9);
    for (int64_t n = 0; n < 9; ++n) {
      std::vector<float> w(kLen);
      op.unpack(w.data(), c.packed.data(), n, 9, kLen);
      for (int64_t t = 0; t < 2; ++t) {
        const uint8_t* row = c.xq.data() + t * quantized_row_bytes(kLen);
        const bool fine = op.format == GgufPacked::kQ8_0 || op.format == GgufPacked::kQ6_K;
        double exact = 0, size = 0;
        for (int64_t k = 0; k < kLen; ++k) {
          const double x = activation(row, kLen, k, fine);
          exact += static_cast<double>(w[static_cast<size_t>(k)]) * x;
          // Of q4_k both terms: a level times the scale is at most 16 times as much as their difference may be.
          size += (std::abs(static_cast<double>(w[static_cast<size_t>(k)])) +
                   (op.format == GgufPacked::kQ4_K ? 0.25 : 0)) *
                  std::abs(x);
        }
        ASSERT_NEAR(y[static_cast<size_t>(t * c.stride() + n)], exact,
                    (kLen / 16 + 5) * 0x1p-24 * size)
            << name_of(op);
      }
    }
  }
}

TEST(LinearGguf, SpreadsNanAndInfinity) {
  for (const Op& op : kOps)
    for (const float bad :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()})
      for (const CpuKernels* row : variants())
        for (const int64_t n_tokens : {5, 14}) {
          Case c(op, n_tokens, 18, 256);
          std::vector<float> x = noise(n_tokens * 256, 1);
          x[3 * 256 + 40] = bad;
          row->quantize_activations(c.xq.data(), x.data(), 256, n_tokens, 256);
          std::vector<float> y = c.y;
          c.run(row->*op.run, y, 0, n_tokens, 0, 18);
          for (int64_t t = 0; t < n_tokens; ++t)
            for (int64_t n = 0; n < 18; ++n)
              ASSERT_EQ(std::isnan(y[static_cast<size_t>(t * c.stride() + n)]), t == 3)
                  << row->name << name_of(op);
        }
}

}  // namespace
}  // namespace dovetail::kernels
