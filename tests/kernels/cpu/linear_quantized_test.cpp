#include <kernels/linear_quantized.hpp>

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "tests/kernels/cpu/quantized_row.hpp"
#include "tests/kernels/variants.hpp"

namespace dovetail::kernels {
namespace {

struct Op {
  const char* name;
  WeightFormat format;
  LinearQuantizedFn* CpuKernels::*run;
  LinearQuantizedFn* ref;
  UnpackRowFn* unpack;
  bool adds;
};
const Op kOps[] = {
    {"int8", WeightFormat::kInt8, &CpuKernels::linear_int8, ref::linear_int8, ref::unpack_row_int8,
     false},
    {"add_int8", WeightFormat::kInt8, &CpuKernels::linear_add_int8, ref::linear_add_int8,
     ref::unpack_row_int8, true},
    {"int4", WeightFormat::kInt4, &CpuKernels::linear_int4, ref::linear_int4, ref::unpack_row_int4,
     false},
    {"add_int4", WeightFormat::kInt4, &CpuKernels::linear_add_int4, ref::linear_add_int4,
     ref::unpack_row_int4, true},
    {"int4q", WeightFormat::kInt4q, &CpuKernels::linear_int4q, ref::linear_int4q,
     ref::unpack_row_int4q, false},
    {"add_int4q", WeightFormat::kInt4q, &CpuKernels::linear_add_int4q, ref::linear_add_int4q,
     ref::unpack_row_int4q, true},
    {"int6", WeightFormat::kInt6, &CpuKernels::linear_int6, ref::linear_int6, ref::unpack_row_int6,
     false},
    {"add_int6", WeightFormat::kInt6, &CpuKernels::linear_add_int6, ref::linear_add_int6,
     ref::unpack_row_int6, true},
};

struct Shape {
  int64_t n_tokens;
  int64_t n_rows;
  int64_t k_len;
};

/// Any bytes make a packed matrix (save -128 in int8, which no quantiser writes), so these reach
/// every level, scale and z. d is set to something ordinary.
std::vector<uint8_t> random_packed(WeightFormat format, int64_t n_rows, int64_t k_len) {
  std::vector<uint8_t> packed(static_cast<size_t>(packed_bytes(format, n_rows, k_len)));
  uint32_t state = 5;
  for (uint8_t& byte : packed) {
    state = state * 1664525U + 1013904223U;
    byte = static_cast<uint8_t>(state >> 24U);
    if (format == WeightFormat::kInt8 && byte == 0x80) byte = 0x81;
  }
  const int64_t group = packed_bytes(format, kPackedRows, k_len);
  for (int64_t r = 0; r < (n_rows + kPackedRows - 1) / kPackedRows * kPackedRows; ++r) {
    const float d = 1e-6F * static_cast<float>(r + 1);
    std::memcpy(packed.data() + r / kPackedRows * group + r % kPackedRows * 4, &d, sizeof d);
  }
  return packed;
}

struct Case {
  Case(const Op& o, const Shape& shape)
      : op(o),
        s(shape),
        xq(static_cast<size_t>(s.n_tokens * row_bytes())),
        packed(random_packed(o.format, s.n_rows, s.k_len)),
        y(noise(s.n_tokens * y_stride(), 3)) {
    const std::vector<float> x = noise(s.n_tokens * s.k_len, 1);
    ref::quantize_activations(xq.data(), x.data(), s.k_len, s.n_tokens, s.k_len);
  }
  int64_t row_bytes() const { return quantized_row_bytes(s.k_len); }
  int64_t y_stride() const { return s.n_rows + 5; }
  void run(LinearQuantizedFn* linear, std::vector<float>& out, int64_t t, int64_t n_tokens,
           int64_t n_begin, int64_t n_end) const {
    linear(out.data() + t * y_stride(), y_stride(), xq.data() + t * row_bytes(), packed.data(),
           n_tokens, s.n_rows, s.k_len, n_begin, n_end);
  }

  const Op& op;
  Shape s;
  std::vector<uint8_t> xq;
  std::vector<uint8_t> packed;
  std::vector<float> y;  // what was there before
};

void expect_bits_of_reference(const Case& c) {
  std::vector<float> expected = c.y;
  c.run(c.op.ref, expected, 0, c.s.n_tokens, 0, c.s.n_rows);
  for (const CpuKernels* row : variants()) {
    std::vector<float> got = c.y;
    c.run(row->*c.op.run, got, 0, c.s.n_tokens, 0, c.s.n_rows);
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_TRUE(same_bits(&got[i], &expected[i], 1))
          << row->name << " " << c.op.name << " T " << c.s.n_tokens << " N " << c.s.n_rows << " K "
          << c.s.k_len << ": t " << static_cast<int64_t>(i) / c.y_stride() << " n "
          << static_cast<int64_t>(i) % c.y_stride() << " is " << got[i] << ", expected "
          << expected[i];
    }
  }
}

TEST(LinearQuantized, GivesTheBitsOfTheReferenceOnOddShapes) {
  for (const Op& op : kOps) {
    for (const int64_t n_tokens : {0, 1, 2, 3, 4, 5, 7, 8, 31, 33, 70}) {
      for (const int64_t n_rows : {0, 1, 7, 8, 9, 16, 17, 40, 61}) {
        for (const int64_t k_len : {0, 32, 64, 96}) {
          expect_bits_of_reference({op, {n_tokens, n_rows, k_len}});
        }
      }
    }
  }
}

TEST(LinearQuantized, GivesTheBitsOfTheReferenceOnLongRowsAndPrompts) {
  for (const Op& op : kOps) {
    expect_bits_of_reference({op, {3, 20, 4160}});
    expect_bits_of_reference({op, {37, 33, 3072}});
    expect_bits_of_reference({op, {300, 17, 160}});
  }
}

TEST(LinearQuantized, HoldsTheGreatestSumsThatABlockCanHave) {
  for (const Op& op : kOps) {
    for (const uint8_t byte : {0xFF, 0x00, 0x0F, 0xF0, 0x7F, 0x81}) {
      for (const float sign : {1.0F, -1.0F}) {
        Case c(op, {6, 18, 64});
        const std::vector<float> x(6 * 64, sign);  // every q is 127 or -127
        ref::quantize_activations(c.xq.data(), x.data(), 64, 6, 64);
        const int64_t group = packed_bytes(op.format, kPackedRows, 64);
        for (int64_t g = 0; g < 2; ++g) {
          std::memset(c.packed.data() + g * group + 64, byte, static_cast<size_t>(group - 64));
        }
        expect_bits_of_reference(c);
      }
    }
  }
}

TEST(LinearQuantized, GivesEachTokenTheSameBitsInAnyBatch) {
  for (const Op& op : kOps) {
    for (const int64_t n_tokens : {2, 3, 4, 5, 7, 16, 33, 130, 257}) {  // 256 fill a block
      const Case c(op, {n_tokens, 43, 320});
      for (const CpuKernels* row : variants()) {
        std::vector<float> batch = c.y;
        c.run(row->*op.run, batch, 0, n_tokens, 0, 43);
        std::vector<float> alone = c.y;
        for (int64_t t = 0; t < n_tokens; ++t) c.run(row->*op.run, alone, t, 1, 0, 43);
        ASSERT_TRUE(same_bits(batch.data(), alone.data(), static_cast<int64_t>(batch.size())))
            << row->name << " " << op.name << " T " << n_tokens;
      }
    }
  }
}

TEST(LinearQuantized, GivesTheSameBitsHoweverRowsAreSplitOverLanes) {
  for (const Op& op : kOps) {
    for (const int64_t n_tokens : {1, 4, 40}) {
      const Case c(op, {n_tokens, 75, 96});
      for (const CpuKernels* row : variants()) {
        std::vector<float> whole = c.y;
        c.run(row->*op.run, whole, 0, n_tokens, 0, 75);
        std::vector<float> split = c.y;
        for (const auto& [begin, end] :
             {std::pair{16, 32}, {0, 16}, {64, 75}, {32, 32}, {32, 64}}) {
          c.run(row->*op.run, split, 0, n_tokens, begin, end);
        }
        ASSERT_TRUE(same_bits(whole.data(), split.data(), static_cast<int64_t>(whole.size())))
            << row->name << " " << op.name << " T " << n_tokens;
      }
    }
  }
}

TEST(LinearQuantized, StaysWithinTheBoundOfItsContract) {
  for (const Op& op : kOps) {
    const Case c(op, {2, 9, 640});
    std::vector<float> y = c.y;
    c.run(op.ref, y, 0, 2, 0, 9);
    for (int64_t n = 0; n < 9; ++n) {
      std::vector<float> w(640);
      op.unpack(w.data(), c.packed.data(), n, 9, 640);
      for (int64_t t = 0; t < 2; ++t) {
        const auto at = static_cast<size_t>(t * c.y_stride() + n);
        const uint8_t* row = c.xq.data() + t * c.row_bytes();
        const bool fine = op.format == WeightFormat::kInt8;
        double exact = op.adds ? c.y[at] : 0.0;
        double size = std::abs(exact);
        for (int64_t k = 0; k < 640; ++k) {
          const double product =
              static_cast<double>(w[static_cast<size_t>(k)]) * activation(row, 640, k, fine);
          exact += product;
          size += std::abs(product);
        }
        ASSERT_NEAR(y[at], exact, (640 / 32 + 4) * 0x1p-24 * size) << op.name;
      }
    }
  }
}

TEST(LinearQuantized, SpreadsNanAndInfinity) {
  for (const Op& op : kOps) {
    for (const float bad :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      for (const CpuKernels* row : variants()) {
        Case c(op, {5, 18, 96});
        std::vector<float> x = noise(5 * 96, 1);
        x[3 * 96 + 40] = bad;
        row->quantize_activations(c.xq.data(), x.data(), 96, 5, 96);
        std::vector<float> y = c.y;
        c.run(row->*op.run, y, 0, 5, 0, 18);
        for (int64_t t = 0; t < 5; ++t) {
          for (int64_t n = 0; n < 18; ++n) {
            ASSERT_EQ(std::isnan(y[static_cast<size_t>(t * c.y_stride() + n)]), t == 3)
                << row->name << " " << op.name << " t " << t << " n " << n;
          }
        }
      }
    }
  }
}

TEST(QuantizeActivations, GivesTheBytesOfTheReference) {
  for (const int64_t k_len : {0, 32, 64, 160, 1024}) {
    for (const int64_t n_tokens : {0, 1, 3}) {
      const int64_t stride = k_len + 3;
      std::vector<float> x = noise(n_tokens * stride + 1, 8);
      for (size_t i = 0; i < x.size(); ++i) {
        switch (i / 32 % 7) {
          case 1:
            x[i] = 0.0F;
            break;
          case 2:
            x[i] *= 1e-38F;
            break;
          case 3:
            x[i] *= 3e38F;
            break;
          case 4:
            x[i] = 127.0F * x[i];
            break;
          case 5:
            x[i] = i % 32 == 9 ? -std::numeric_limits<float>::infinity() : x[i];
            break;
          case 6:
            x[i] = i % 32 == 4 ? std::numeric_limits<float>::quiet_NaN() : x[i];
            break;
          default:
            break;
        }
      }
      const auto bytes = static_cast<size_t>(n_tokens * quantized_row_bytes(k_len));
      std::vector<uint8_t> expected(bytes, 0xAA);
      ref::quantize_activations(expected.data(), x.data() + 1, stride, n_tokens, k_len);
      for (const CpuKernels* row : variants()) {
        std::vector<uint8_t> got(bytes, 0xBB);
        row->quantize_activations(got.data(), x.data() + 1, stride, n_tokens, k_len);
        ASSERT_EQ(got, expected) << row->name << " K " << k_len << " T " << n_tokens;
      }
    }
  }
}

TEST(QuantizeActivations, RoundsToTheNearestStepAndTheNearestFineStep) {
  std::vector<float> x = noise(64, 2);
  x[5] = -2.54F;  // steps of 0.02
  x[6] = 0.05F;   // 2.5 steps, about
  std::vector<uint8_t> row(static_cast<size_t>(quantized_row_bytes(64)));
  ref::quantize_activations(row.data(), x.data(), 64, 1, 64);
  const auto* q = reinterpret_cast<const int8_t*>(row.data());
  const auto* q16 = reinterpret_cast<const int16_t*>(row.data() + 64);
  const auto* scale = reinterpret_cast<const float*>(row.data() + 192);
  const auto* sum = reinterpret_cast<const int32_t*>(row.data() + 200);
  EXPECT_EQ(q[5], -127);
  EXPECT_EQ(q16[5], -127 * 128);
  for (int64_t b = 0; b < 2; ++b) {
    int32_t total = 0;
    for (int64_t k = b * 32; k < b * 32 + 32; ++k) {
      EXPECT_NEAR(static_cast<float>(q[k]) * scale[b], x[static_cast<size_t>(k)],
                  scale[b] * 0.5001F);
      EXPECT_NEAR(static_cast<float>(q16[k]) * scale[b], 128.0F * x[static_cast<size_t>(k)],
                  scale[b] * 0.502F);
      total += q[k];
    }
    EXPECT_EQ(sum[b], total);
  }
}

}  // namespace
}  // namespace dovetail::kernels
