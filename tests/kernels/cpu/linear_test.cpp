#include <kernels/linear.hpp>

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "tests/kernels/variants.hpp"

namespace dovetail::kernels {
namespace {

constexpr int64_t kManyTokens[] = {1, 2, 3, 4, 5, 7, 16, 33};

struct Shape {
  int64_t n_tokens;
  int64_t n_rows;
  int64_t k_len;
};

/// Operands whose strides are wider than their rows and whose weights start at an odd element.
struct Case {
  explicit Case(const Shape& shape)
      : s(shape),
        x(noise(s.n_tokens * x_stride(), 1)),
        w(noise(s.n_rows * s.k_len + 1, 2)),
        w16(to_bf16(w)),
        half(to_f16(w)),
        y(noise(s.n_tokens * y_stride(), 3)) {}
  int64_t x_stride() const { return s.k_len + 3; }
  int64_t y_stride() const { return s.n_rows + 5; }
  const float* weights() const { return w.data() + 1; }
  const uint16_t* weights16() const { return w16.data() + 1; }
  const F16* halves() const { return half.data() + 1; }

  Shape s;
  std::vector<float> x;
  std::vector<float> w;
  std::vector<uint16_t> w16;
  std::vector<F16> half;
  std::vector<float> y;  // what was there before
};

/// The six ops of a row through one signature, so that each test covers all of them.
enum class Op { kF32, kAddF32, kBf16, kAddBf16, kF16, kAddF16 };
constexpr Op kOps[] = {Op::kF32, Op::kAddF32, Op::kBf16, Op::kAddBf16, Op::kF16, Op::kAddF16};

bool adds(Op op) {
  return op == Op::kAddF32 || op == Op::kAddBf16 || op == Op::kAddF16;
}
bool is_bf16(Op op) {
  return op == Op::kBf16 || op == Op::kAddBf16;
}
bool is_f16(Op op) {
  return op == Op::kF16 || op == Op::kAddF16;
}

double weight(const Case& c, Op op, size_t at) {
  if (is_bf16(op)) return bf16_to_float(c.weights16()[at]);
  return is_f16(op) ? f16_to_float(c.halves()[at].bits) : c.weights()[at];
}

void call(const CpuKernels& row, Op op, const Case& c, float* y, const float* x, int64_t n_tokens,
          int64_t n_begin, int64_t n_end) {
  if (is_bf16(op)) {
    LinearBf16Fn* linear = adds(op) ? row.linear_add_bf16 : row.linear_bf16;
    linear(y, c.y_stride(), x, c.x_stride(), c.weights16(), n_tokens, c.s.k_len, n_begin, n_end);
  } else if (is_f16(op)) {
    LinearF16Fn* linear = adds(op) ? row.linear_add_f16 : row.linear_f16;
    linear(y, c.y_stride(), x, c.x_stride(), c.halves(), n_tokens, c.s.k_len, n_begin, n_end);
  } else {
    LinearF32Fn* linear = adds(op) ? row.linear_add_f32 : row.linear_f32;
    linear(y, c.y_stride(), x, c.x_stride(), c.weights(), n_tokens, c.s.k_len, n_begin, n_end);
  }
}

/// The reference as a row of the table, so that its bound is tested like the others'.
CpuKernels reference_row() {
  CpuKernels row = cpu_kernels(Isa::kPortable);
  row.name = "ref";
  row.linear_f32 = ref::linear_f32;
  row.linear_add_f32 = ref::linear_add_f32;
  row.linear_bf16 = ref::linear_bf16;
  row.linear_add_bf16 = ref::linear_add_bf16;
  row.linear_f16 = ref::linear_f16;
  row.linear_add_f16 = ref::linear_add_f16;
  return row;
}

void expect_within_contract(const CpuKernels& row, Op op, const Case& c) {
  std::vector<float> y = c.y;
  call(row, op, c, y.data(), c.x.data(), c.s.n_tokens, 0, c.s.n_rows);
  for (int64_t t = 0; t < c.s.n_tokens; ++t) {
    for (int64_t n = 0; n < c.y_stride(); ++n) {
      const auto at = static_cast<size_t>(t * c.y_stride() + n);
      if (n >= c.s.n_rows) {
        ASSERT_EQ(y[at], c.y[at]) << row.name << ": wrote past the stripe";
        continue;
      }
      double exact = adds(op) ? c.y[at] : 0.0;
      double size = std::abs(exact) * 2;  // the last addition rounds too
      for (int64_t k = 0; k < c.s.k_len; ++k) {
        const auto w_at = static_cast<size_t>(n * c.s.k_len + k);
        const double product = c.x[static_cast<size_t>(t * c.x_stride() + k)] * weight(c, op, w_at);
        exact += product;
        size += std::abs(product);
      }
      const double bound = static_cast<double>(c.s.k_len + 1) * 0x1p-23 * size;
      ASSERT_NEAR(y[at], exact, bound) << row.name << " op " << static_cast<int>(op) << " t " << t
                                       << " n " << n << " K " << c.s.k_len;
    }
  }
}

TEST(Linear, StaysWithinTheBoundOfItsContractOnOddTails) {
  std::vector<CpuKernels> rows = {reference_row()};
  for (const CpuKernels* row : variants()) rows.push_back(*row);
  for (const int64_t n_tokens : {0, 1, 2, 5, 8, 11}) {
    for (const int64_t n_rows : {0, 1, 3, 4, 7, 8, 13}) {
      for (const int64_t k_len : {0, 1, 7, 8, 9, 31, 64, 515}) {
        const Case c({n_tokens, n_rows, k_len});
        for (const CpuKernels& row : rows) {
          for (const Op op : kOps) expect_within_contract(row, op, c);
        }
      }
    }
  }
}

TEST(Linear, GivesEachTokenTheSameBitsInAnyBatch) {
  for (const int64_t k_len : {5, 64, 100, 1100, 4100}) {
    for (const int64_t n_tokens : kManyTokens) {
      const Case c({n_tokens, 11, k_len});
      for (const CpuKernels* row : variants()) {
        for (const Op op : kOps) {
          std::vector<float> batch = c.y;
          call(*row, op, c, batch.data(), c.x.data(), n_tokens, 0, 11);
          std::vector<float> alone = c.y;
          for (int64_t t = 0; t < n_tokens; ++t) {
            call(*row, op, c, alone.data() + t * c.y_stride(), c.x.data() + t * c.x_stride(), 1, 0,
                 11);
          }
          ASSERT_TRUE(same_bits(batch.data(), alone.data(), static_cast<int64_t>(batch.size())))
              << row->name << " op " << static_cast<int>(op) << " K " << k_len << " T " << n_tokens;
        }
      }
    }
  }
}

TEST(Linear, GivesTheSameBitsAcrossTheBlocksOfALongPrompt) {
  const Case c({200, 9, 520});  // more tokens than any block holds
  for (const CpuKernels* row : variants()) {
    std::vector<float> batch = c.y;
    call(*row, Op::kBf16, c, batch.data(), c.x.data(), 200, 0, 9);
    std::vector<float> alone = c.y;
    for (int64_t t = 0; t < 200; ++t) {
      call(*row, Op::kBf16, c, alone.data() + t * c.y_stride(), c.x.data() + t * c.x_stride(), 1, 0,
           9);
    }
    ASSERT_TRUE(same_bits(batch.data(), alone.data(), static_cast<int64_t>(batch.size())))
        << row->name;
  }
}

TEST(Linear, GivesTheSameBitsHoweverRowsAreSplitOverLanes) {
  for (const int64_t n_tokens : {1, 4, 16}) {
    const Case c({n_tokens, 29, 72});
    for (const CpuKernels* row : variants()) {
      for (const Op op : kOps) {
        std::vector<float> whole = c.y;
        call(*row, op, c, whole.data(), c.x.data(), n_tokens, 0, 29);
        std::vector<float> split = c.y;
        for (const auto& [begin, end] : {std::pair{7, 8}, {0, 7}, {20, 29}, {8, 8}, {8, 20}}) {
          call(*row, op, c, split.data(), c.x.data(), n_tokens, begin, end);
        }
        ASSERT_TRUE(same_bits(whole.data(), split.data(), static_cast<int64_t>(whole.size())))
            << row->name << " op " << static_cast<int>(op) << " T " << n_tokens;
      }
    }
  }
}

TEST(Linear, WidensBf16WeightsExactly) {
  const Case c({7, 13, 75});
  std::vector<float> widened(c.w16.size());
  ref::bf16_to_f32(widened.data(), c.w16.data(), static_cast<int64_t>(widened.size()));
  for (const CpuKernels* row : variants()) {
    std::vector<float> from_bf16 = c.y;
    row->linear_bf16(from_bf16.data(), c.y_stride(), c.x.data(), c.x_stride(), c.weights16(), 7, 75,
                     0, 13);
    std::vector<float> from_f32 = c.y;
    row->linear_f32(from_f32.data(), c.y_stride(), c.x.data(), c.x_stride(), widened.data() + 1, 7,
                    75, 0, 13);
    EXPECT_TRUE(same_bits(from_bf16.data(), from_f32.data(), static_cast<int64_t>(c.y.size())))
        << row->name;
  }
}

TEST(Linear, WidensHalvesExactly) {
  const Case c({7, 13, 75});
  std::vector<float> widened;
  for (const F16 value : c.half) widened.push_back(f16_to_float(value.bits));
  for (const CpuKernels* row : variants()) {
    std::vector<float> from_f16 = c.y;
    row->linear_f16(from_f16.data(), c.y_stride(), c.x.data(), c.x_stride(), c.halves(), 7, 75, 0,
                    13);
    std::vector<float> from_f32 = c.y;
    row->linear_f32(from_f32.data(), c.y_stride(), c.x.data(), c.x_stride(), widened.data() + 1, 7,
                    75, 0, 13);
    EXPECT_TRUE(same_bits(from_f16.data(), from_f32.data(), static_cast<int64_t>(c.y.size())))
        << row->name;
  }
}

}  // namespace
}  // namespace dovetail::kernels
