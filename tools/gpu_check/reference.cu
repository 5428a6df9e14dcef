// The plain ops that gpu_check holds the kernels to; what each is: reference.hpp.
// grid, block  one thread an output, 256 in a block. No shared memory. Occupancy: not limited.
#include "tools/gpu_check/reference.hpp"

#include "kernels/cuda/device.hpp"
#include "kernels/cuda/instructions.hpp"

namespace dovetail::gpu_check {

using kernels::cuda::blocks_for;

namespace {

constexpr int kThreads = 256;

template <class Fn>
__global__ void __launch_bounds__(kThreads) each_kernel(int64_t n, Fn fn) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < n) fn(i);
}
template <class Fn>
void each(Stream stream, int64_t n, Fn fn) {
  if (n == 0) return;
  DVT_LAUNCH(each_kernel<Fn>, static_cast<unsigned>(blocks_for(n, kThreads)), kThreads, 0, stream,
             n, fn);
}

__device__ inline uint32_t hash(int64_t i, uint32_t seed) {
  uint32_t x = static_cast<uint32_t>(i) ^ static_cast<uint32_t>(i >> 32) * 0x9E3779B9U;
  for (int round = 0; round < 3; ++round) {
    x = (x ^ (seed + static_cast<uint32_t>(round) * 0x68E31DA4U)) * 0xB5297A4DU;
    x ^= x >> 15;
  }
  return x;
}
__device__ inline float even(int64_t i, uint32_t seed) {
  return static_cast<float>(hash(i, seed) >> 8) * 0x1p-23F - 1.0F;
}

__device__ inline float of_bf16(uint16_t bits) {
  return __uint_as_float(static_cast<uint32_t>(bits) << 16);
}
__device__ inline float of_f16(uint16_t bits) {
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  const float magnitude = exponent == 0
                              ? ldexpf(static_cast<float>(mantissa), -24)
                              : ldexpf(static_cast<float>(1024 + mantissa), exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

/// One weight, as weight_formats.hpp has it.
struct Weights {
  const void* g_w;
  MatrixNumbers numbers;
  int64_t k_len;

  explicit Weights(const Matrix& m) : g_w(m.g_w), numbers(m.numbers), k_len(m.k_len) {}

  __device__ float at(int64_t row, int64_t k) const {
    const int64_t i = row * k_len + k;
    if (numbers == MatrixNumbers::kFloat32) return static_cast<const float*>(g_w)[i];
    if (numbers == MatrixNumbers::kBf16) return of_bf16(static_cast<const uint16_t*>(g_w)[i]);
    if (numbers == MatrixNumbers::kF16) return of_f16(static_cast<const uint16_t*>(g_w)[i]);
    return packed_at(row, k);
  }

 private:
  __device__ float packed_at(int64_t row, int64_t k) const {
    const bool is_int8 = numbers == MatrixNumbers::kInt8, is_int6 = numbers == MatrixNumbers::kInt6;
    const int64_t block_len = 16 * (is_int8 ? 33 : is_int6 ? 25 : 18);
    const uint8_t* g_group =
        static_cast<const uint8_t*>(g_w) + row / 16 * (64 + k_len / 32 * block_len);
    const int64_t lane = row % 16, i = k % 32;
    const float d = reinterpret_cast<const float*>(g_group)[lane];
    const uint8_t* g_block = g_group + 64 + k / 32 * block_len;
    const int code = g_block[lane];
    const auto scale = static_cast<float>((32 + code % 32) << code / 32);
    int value;
    if (is_int8) {
      value = static_cast<int8_t>(g_block[16 + (i / 4 * 16 + lane) * 4 + i % 4]);
    } else {
      const uint8_t* g_levels = g_block + (is_int6 ? 16 : 32);
      const int byte = g_levels[(i / 8 * 16 + lane) * 4 + i % 4];
      const int level = i % 8 < 4 ? byte % 16 : byte / 16;
      if (is_int6) {
        const int upper = g_levels[256 + (i / 16 * 16 + lane) * 4 + i % 4] >> i % 16 / 4 * 2 & 3;
        value = level + 16 * upper - 32;
      } else if (numbers == MatrixNumbers::kInt4) {
        value = 16 * level - g_block[16 + lane];
      } else {
        const int grid[16] = {0, 6, 12, 17, 21, 25, 28, 31, 34, 37, 40, 44, 48, 53, 58, 64};
        value = 4 * grid[level] - g_block[16 + lane];
      }
    }
    return d * (scale * static_cast<float>(value));
  }
};

}  // namespace

// ---------------------------------------------------------------- comparing

void compare(Stream stream, Found* g_found, const float* g_got, const Expected& expected,
             int64_t n) {
  each(stream, n, [=] __device__(int64_t i) {
    const float bound = expected.g_bounds[i];
    const float error = fabsf(g_got[i] - expected.g_values[i]);
    const bool is_same = __float_as_uint(g_got[i]) == __float_as_uint(expected.g_values[i]);
    if (!is_same && !(error <= bound)) {
      atomicAdd(&g_found->n_beyond, 1U);
      atomicMax(&g_found->first_beyond, static_cast<uint32_t>(n - i));
    }
    if (is_same || !(error > 0.0F)) return;
    // As bits, floats that are not negative have the order of their values.
    const uint32_t bits = __float_as_uint(error), share = __float_as_uint(error / bound);
    if (bits > g_found->greatest_error) atomicMax(&g_found->greatest_error, bits);
    if (share > g_found->greatest_share) atomicMax(&g_found->greatest_share, share);
  });
}
void compare_bytes(Stream stream, Found* g_found, const uint8_t* g_got, const uint8_t* g_expected,
                   int64_t n) {
  each(stream, n, [=] __device__(int64_t i) {
    if (g_got[i] == g_expected[i]) return;
    atomicAdd(&g_found->n_beyond, 1U);
    atomicMax(&g_found->first_beyond, static_cast<uint32_t>(n - i));
    const int apart = static_cast<int>(g_got[i]) - static_cast<int>(g_expected[i]);
    atomicMax(&g_found->greatest_error, __float_as_uint(fabsf(static_cast<float>(apart))));
    atomicMax(&g_found->greatest_share, __float_as_uint(INFINITY));
  });
}
void expect_same(Stream stream, const Expected& out, const float* g_from, int64_t n) {
  each(stream, n, [=] __device__(int64_t i) {
    out.g_values[i] = g_from[i];
    out.g_bounds[i] = 0.0F;
  });
}
void as_floats(Stream stream, float* g_out, const int32_t* g_from, int64_t n) {
  each(stream, n, [=] __device__(int64_t i) { g_out[i] = static_cast<float>(g_from[i]); });
}

// ---------------------------------------------------------------- numbers from a counter

void fill(Stream stream, float* g_out, int64_t n, uint32_t seed, float scale) {
  each(stream, n, [=] __device__(int64_t i) { g_out[i] = scale * even(i, seed); });
}
void fill_levels(Stream stream, float* g_out, int64_t n, uint32_t seed, uint32_t n_levels) {
  each(stream, n,
       [=] __device__(int64_t i) { g_out[i] = static_cast<float>(hash(i, seed) % n_levels); });
}
void fill_bytes(Stream stream, void* g_out, int64_t n_bytes, uint32_t seed) {
  auto* g_bytes = static_cast<uint8_t*>(g_out);
  each(stream, n_bytes,
       [=] __device__(int64_t i) { g_bytes[i] = static_cast<uint8_t>(hash(i, seed) >> 11); });
}
void fill_int8_rows(Stream stream, void* g_out, int64_t n_rows, int64_t row_bytes, uint32_t seed) {
  fill_bytes(stream, g_out, n_rows * row_bytes, seed);
  auto* g_bytes = static_cast<uint8_t*>(g_out);
  each(stream, n_rows, [=] __device__(int64_t r) {
    *reinterpret_cast<float*>(g_bytes + (r + 1) * row_bytes - 4) =
        (1.5F + 0.5F * even(r, seed + 1)) * 0x1p-8F;
  });
}

int64_t matrix_bytes(MatrixNumbers numbers, int64_t n_rows, int64_t k_len) {
  if (numbers == MatrixNumbers::kFloat32) return n_rows * k_len * 4;
  if (numbers == MatrixNumbers::kBf16 || numbers == MatrixNumbers::kF16) return n_rows * k_len * 2;
  const int64_t per_row = numbers == MatrixNumbers::kInt8   ? 33
                          : numbers == MatrixNumbers::kInt6 ? 25
                                                            : 18;
  return (n_rows + 15) / 16 * (64 + k_len / 32 * 16 * per_row);
}
void fill_matrix(Stream stream, void* g_w, MatrixNumbers numbers, int64_t n_rows, int64_t k_len,
                 uint32_t seed) {
  const int64_t n = n_rows * k_len;
  if (numbers == MatrixNumbers::kFloat32) return fill(stream, static_cast<float*>(g_w), n, seed, 1);
  auto* g_halves = static_cast<uint16_t*>(g_w);
  if (numbers == MatrixNumbers::kBf16) {
    each(stream, n, [=] __device__(int64_t i) {
      g_halves[i] = static_cast<uint16_t>(__float_as_uint(even(i, seed)) >> 16);
    });
    return;
  }
  if (numbers == MatrixNumbers::kF16) {
    each(stream, n, [=] __device__(int64_t i) {  // exponents down to the denormals
      const uint32_t bits = hash(i, seed);
      g_halves[i] = static_cast<uint16_t>((bits & 0x83FFU) | (bits >> 16) % 15U << 10);
    });
    return;
  }
  const int64_t n_bytes = matrix_bytes(numbers, n_rows, k_len), n_groups = (n_rows + 15) / 16;
  fill_bytes(stream, g_w, n_bytes, seed);
  auto* g_bytes = static_cast<uint8_t*>(g_w);
  each(stream, n_groups * 16, [=] __device__(int64_t row) {  // s * v is below 2^21
    auto* g_d = reinterpret_cast<float*>(g_bytes + row / 16 * (n_bytes / n_groups));
    g_d[row % 16] = (1.5F + 0.5F * even(row, seed + 1)) * 0x1p-22F;
  });
}

// ---------------------------------------------------------------- ops

namespace reference {

void rms_norm(Stream stream, const Expected& out, const float* g_x, const float* g_weight,
              int64_t n_rows, int64_t row_len, float eps, float weight_offset) {
  each(stream, n_rows * row_len, [=] __device__(int64_t i) {
    const float* g_row = g_x + i / row_len * row_len;
    double sum = 0;
    for (int64_t k = 0; k < row_len; ++k)
      sum += static_cast<double>(g_row[k]) * static_cast<double>(g_row[k]);
    const double scale = 1.0 / sqrt(sum / static_cast<double>(row_len) + static_cast<double>(eps));
    const double value = static_cast<double>(g_x[i]) * scale *
                         static_cast<double>(g_weight[i % row_len] + weight_offset);
    out.g_values[i] = static_cast<float>(value);
    out.g_bounds[i] = static_cast<float>(2e-6 * fabs(value));
  });
}
void mean_rows(Stream stream, const Expected& out, const float* g_x, int64_t n_rows,
               int64_t row_len) {
  each(stream, n_rows, [=] __device__(int64_t r) {
    double sum = 0, magnitudes = 0;
    for (int64_t k = 0; k < row_len; ++k) {
      const auto x = static_cast<double>(g_x[r * row_len + k]);
      sum += x, magnitudes += fabs(x);
    }
    out.g_values[r] = static_cast<float>(sum / static_cast<double>(row_len));
    out.g_bounds[r] = static_cast<float>(2e-6 * magnitudes / static_cast<double>(row_len));
  });
}
void softmax(Stream stream, const Expected& out, const float* g_x, int64_t n_rows,
             int64_t row_len) {
  // The sum once a row, in the place of its first value; then each value, that one last.
  each(stream, n_rows, [=] __device__(int64_t r) {
    const float* g_row = g_x + r * row_len;
    float greatest = g_row[0];
    for (int64_t k = 1; k < row_len; ++k) greatest = fmaxf(greatest, g_row[k]);
    double sum = 0;
    for (int64_t k = 0; k < row_len; ++k)
      sum += exp(static_cast<double>(g_row[k]) - static_cast<double>(greatest));
    out.g_values[r * row_len] = static_cast<float>(log(sum));
    out.g_bounds[r * row_len] = greatest;
  });
  const auto value_at = [=] __device__(int64_t i) {
    const int64_t first = i / row_len * row_len;
    const auto log_sum = static_cast<double>(out.g_values[first]);
    const auto greatest = static_cast<double>(out.g_bounds[first]);
    const double below = greatest - static_cast<double>(g_x[i]);
    const double value = exp(-below - log_sum);
    out.g_values[i] = static_cast<float>(value);
    // As softmax.hpp says; 8 more for the logarithm here, which is a float below 32.
    out.g_bounds[i] =
        static_cast<float>(value * (below + static_cast<double>(row_len) + 16) * 0x1p-23);
  };
  each(stream, n_rows * row_len, [=] __device__(int64_t i) {
    if (i % row_len != 0) value_at(i);
  });
  each(stream, n_rows, [=] __device__(int64_t r) { value_at(r * row_len); });
}
void argmax(Stream stream, const Expected& out, const float* g_x, const uint32_t* g_mask,
            int64_t n_rows, int64_t row_len) {
  each(stream, n_rows, [=] __device__(int64_t r) {
    int64_t best = -1;
    float greatest = -INFINITY;
    for (int64_t i = 0; i < row_len; ++i) {
      if (g_mask != nullptr && (g_mask[i / 32] >> i % 32 & 1U) == 0) continue;
      if (g_x[r * row_len + i] > greatest) greatest = g_x[r * row_len + i], best = i;
    }
    out.g_values[r] = static_cast<float>(best);
    out.g_bounds[r] = 0.0F;
  });
}

namespace {
__device__ double silu(double x) {
  return x / (1.0 + exp(-x));
}
}  // namespace

void pointwise(Stream stream, Pointwise op, const Expected& out, const float* g_a, const float* g_b,
               float value, int64_t n, int64_t repeat, int64_t period) {
  each(stream, n, [=] __device__(int64_t i) {
    const float a = g_a[i], b = g_b != nullptr ? g_b[i / repeat % period] : value;
    const double x = static_cast<double>(a);
    double result = 0, bound = 0;
    switch (op) {
      case Pointwise::kAdd:
      case Pointwise::kAddScalar:
        result = static_cast<double>(a + b);
        break;
      case Pointwise::kMul:
      case Pointwise::kMulScalar:
        result = static_cast<double>(a * b);
        break;
      case Pointwise::kSilu:
        result = silu(x);
        bound = 1e-6 * fabs(result);
        break;
      case Pointwise::kSiluMul:
        result = silu(x) * static_cast<double>(b);
        bound = 1.1e-6 * fabs(result);
        break;
      case Pointwise::kGeluTanh:  // 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
        result = 0.5 * x * (1.0 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
        bound = 1e-6 * fabs(x);
        break;
      case Pointwise::kRsqrt:
        result = 1.0 / sqrt(x);
        bound = result * 0x1p-22;
        break;
    }
    out.g_values[i] = static_cast<float>(result);
    out.g_bounds[i] = static_cast<float>(bound);
  });
}

void rope_table(Stream stream, const Expected& cosines, const Expected& sines,
                const int32_t* g_positions, const float* g_inv_freq, int64_t n_tokens,
                int64_t half_len, float attention_factor) {
  each(stream, n_tokens * half_len, [=] __device__(int64_t i) {
    const float angle = static_cast<float>(g_positions[i / half_len]) * g_inv_freq[i % half_len];
    const auto factor = static_cast<double>(attention_factor);
    cosines.g_values[i] = static_cast<float>(cos(static_cast<double>(angle)) * factor);
    sines.g_values[i] = static_cast<float>(sin(static_cast<double>(angle)) * factor);
    cosines.g_bounds[i] = fabsf(cosines.g_values[i]) * 0x1p-22F;
    sines.g_bounds[i] = fabsf(sines.g_values[i]) * 0x1p-22F;
  });
}
void rope_half_split(Stream stream, const Expected& out, const float* g_x, const float* g_cos,
                     const float* g_sin, int64_t n_tokens, int64_t n_heads, int64_t head_dim,
                     int64_t half_len) {
  each(stream, n_tokens * n_heads * head_dim, [=] __device__(int64_t i) {
    const int64_t e = i % head_dim, token = i / (n_heads * head_dim);
    double value = static_cast<double>(g_x[i]), magnitude = 0;
    if (e < 2 * half_len) {
      const int64_t pair = e % half_len;
      const auto c = static_cast<double>(g_cos[token * half_len + pair]);
      const auto s = static_cast<double>(g_sin[token * half_len + pair]);
      const auto first = static_cast<double>(g_x[i - e + pair]);
      const auto second = static_cast<double>(g_x[i - e + pair + half_len]);
      value = e < half_len ? first * c - second * s : second * c + first * s;
      magnitude =
          e < half_len ? fabs(first * c) + fabs(second * s) : fabs(second * c) + fabs(first * s);
    }
    out.g_values[i] = static_cast<float>(value);
    out.g_bounds[i] = static_cast<float>(magnitude * 0x1p-22);
  });
}
void gather_rows(Stream stream, const Expected& out, const Matrix& table, const int32_t* g_ids,
                 int64_t n_ids) {
  const Weights weights(table);
  const int64_t row_len = table.k_len;
  each(stream, n_ids * row_len, [=] __device__(int64_t i) {
    out.g_values[i] = weights.at(g_ids[i / row_len], i % row_len);
    out.g_bounds[i] = 0.0F;
  });
}
void sum_parts(Stream stream, float* g_out, const void* g_cut, int64_t n_tokens, int64_t k_len) {
  const auto* g_parts = static_cast<const uint16_t*>(g_cut);
  const int64_t n = n_tokens * ((k_len + 31) / 32 * 32);
  each(stream, n, [=] __device__(int64_t i) {
    g_out[i] = (of_bf16(g_parts[i]) + of_bf16(g_parts[n + i])) + of_bf16(g_parts[2 * n + i]);
  });
}
void filled_rows(Stream stream, const Expected& out, const float* g_x, int64_t n_tokens,
                 int64_t k_len) {
  const int64_t row_len = (k_len + 31) / 32 * 32;
  each(stream, n_tokens * row_len, [=] __device__(int64_t i) {
    const int64_t k = i % row_len;
    out.g_values[i] = k < k_len ? g_x[i / row_len * k_len + k] : 0.0F;
    out.g_bounds[i] = 0.0F;
  });
}
void linear(Stream stream, const Expected& out, const float* g_x, const float* g_x_bounds,
            const Matrix& w, const float* g_bias, const float* g_residual, int64_t n_tokens) {
  const Weights weights(w);
  const int64_t n_rows = w.n_rows, k_len = w.k_len;
  each(stream, n_tokens * n_rows, [=] __device__(int64_t i) {
    const int64_t token = i / n_rows, row = i % n_rows;
    double sum = 0, magnitudes = 0, of_x = 0;
    for (int64_t k = 0; k < k_len; ++k) {
      const auto weight = static_cast<double>(weights.at(row, k));
      const double product = static_cast<double>(g_x[token * k_len + k]) * weight;
      sum += product;
      magnitudes += fabs(product);
      if (g_x_bounds != nullptr)
        of_x += static_cast<double>(g_x_bounds[token * k_len + k]) * fabs(weight);
    }
    if (g_bias != nullptr) sum += static_cast<double>(g_bias[row]);
    if (g_residual != nullptr) sum += static_cast<double>(g_residual[i]);
    out.g_values[i] = static_cast<float>(sum);
    // Tensor cores round once for 16 k, of each part, towards zero: a sixth of what linear.hpp allows or less.
    const double steps = static_cast<double>(k_len) / 16 + 8;
    out.g_bounds[i] =
        static_cast<float>(steps * 0x1p-23 * magnitudes + of_x + 0x1p-22 * fabs(sum) + 1e-30);
  });
}
void silu_mul(Stream stream, const Expected& out, const Expected& gate, const Expected& up,
              int64_t n) {
  each(stream, n, [=] __device__(int64_t i) {
    const double g = silu(static_cast<double>(gate.g_values[i]));
    const auto u = static_cast<double>(up.g_values[i]);
    out.g_values[i] = static_cast<float>(g * u);
    // The slope of silu is below 1.1.
    out.g_bounds[i] = static_cast<float>(1.1 * static_cast<double>(gate.g_bounds[i]) * fabs(u) +
                                         static_cast<double>(up.g_bounds[i]) * (fabs(g) + 1e-3) +
                                         2e-6 * fabs(g * u));
  });
}
void finish_heads(Stream stream, const Expected& out, const Expected& rows, const float* g_weight,
                  float eps, float weight_offset, const float* g_cos, const float* g_sin,
                  int64_t n_tokens, int64_t n_heads, int64_t head_dim, int64_t half_len) {
  each(stream, n_tokens * n_heads * head_dim, [=] __device__(int64_t i) {
    const int64_t e = i % head_dim, first_at = i - e, token = i / (n_heads * head_dim);
    double squares = 0, bound = 0;
    for (int64_t k = 0; k < head_dim; ++k) {
      const auto x = static_cast<double>(rows.g_values[first_at + k]);
      squares += x * x;
      bound = fmax(bound, static_cast<double>(rows.g_bounds[first_at + k]));
    }
    const double scale =
        g_weight == nullptr
            ? 1.0
            : 1.0 / sqrt(squares / static_cast<double>(head_dim) + static_cast<double>(eps));
    const auto normed = [&](int64_t k) {
      const auto x = static_cast<double>(rows.g_values[first_at + k]);
      if (g_weight == nullptr) return x;
      return x * scale * static_cast<double>(g_weight[k] + weight_offset);
    };
    // Both numbers of a pair: an error of x, and what the scale is off by for it, where x is up to sqrt(head_dim)
    // times as great as the root of the mean square.
    const auto bound_of = [&](int64_t k) {
      if (g_weight == nullptr) return bound;
      const double weight = fabs(static_cast<double>(g_weight[k] + weight_offset));
      return scale * bound * weight + fabs(normed(k)) * (scale * bound + 4e-6);
    };
    double value = normed(e), allowed = bound_of(e);
    if (g_cos != nullptr && e < 2 * half_len) {
      const int64_t pair = e % half_len;
      const auto c = static_cast<double>(g_cos[token * half_len + pair]);
      const auto s = static_cast<double>(g_sin[token * half_len + pair]);
      const double first = normed(pair), second = normed(pair + half_len);
      value = e < half_len ? first * c - second * s : second * c + first * s;
      allowed = bound_of(pair) + bound_of(pair + half_len) + 0x1p-22 * (fabs(first) + fabs(second));
    }
    out.g_values[i] = static_cast<float>(value);
    out.g_bounds[i] = static_cast<float>(allowed + 0x1p-23 * fabs(value));
  });
}

// ---------------------------------------------------------------- the cache

namespace {

__host__ __device__ inline int64_t level_bytes(int64_t head_dim) {
  return (head_dim + 3) / 4 * 4;
}
/// Where a row begins, in elements (of int8: bytes), as kv_cache.hpp has it.
__device__ inline int64_t place(const KvLayout& l, CacheNumbers cache, const uint32_t* g_pages,
                                int64_t head, int64_t pos) {
  const int64_t row_len = cache == CacheNumbers::kInt8 ? level_bytes(l.head_dim) + 4 : l.head_dim;
  const int64_t page = g_pages[pos / l.page_len];
  return page * l.page_stride + (head * l.page_len + pos % l.page_len) * row_len;
}
__device__ inline float number_at(const void* g_base, CacheNumbers cache, int64_t row, int64_t i,
                                  int64_t head_dim) {
  if (cache == CacheNumbers::kFloat32) return static_cast<const float*>(g_base)[row + i];
  if (cache == CacheNumbers::kBf16) return of_bf16(static_cast<const uint16_t*>(g_base)[row + i]);
  const int8_t* g_row = static_cast<const int8_t*>(g_base) + row;
  return static_cast<float>(g_row[i]) *
         *reinterpret_cast<const float*>(g_row + level_bytes(head_dim));
}

}  // namespace

void cache_write(Stream stream, void* g_base, CacheNumbers cache, const KvLayout& layout,
                 const StepRows& step, const float* g_rows) {
  const KvLayout l = layout;
  const StepRows rows = step;
  each(stream, step.n_tokens * l.n_kv_heads, [=] __device__(int64_t n) {
    const int64_t token = n / l.n_kv_heads;
    const int64_t at = place(l, cache, rows.g_pages + rows.g_page_begin[token], n % l.n_kv_heads,
                             rows.g_positions[token]);
    const float* g_row = g_rows + n * l.head_dim;
    float greatest = 0;
    for (int64_t i = 0; i < l.head_dim; ++i) {
      greatest = fmaxf(greatest, fabsf(g_row[i]));
      if (cache == CacheNumbers::kFloat32) static_cast<float*>(g_base)[at + i] = g_row[i];
      if (cache == CacheNumbers::kBf16) {  // half of the last place, less where the place is even
        const uint32_t bits = __float_as_uint(g_row[i]), low = bits & 0xFFFFU;
        const uint32_t is_up = low > 0x8000U || (low == 0x8000U && (bits & 0x10000U) != 0) ? 1 : 0;
        static_cast<uint16_t*>(g_base)[at + i] = static_cast<uint16_t>((bits >> 16) + is_up);
      }
    }
    if (cache != CacheNumbers::kInt8) return;
    int8_t* g_to = static_cast<int8_t*>(g_base) + at;
    const float inverse = greatest > 0 ? 127.0F / greatest : 0.0F;
    for (int64_t i = 0; i < level_bytes(l.head_dim); ++i)
      g_to[i] = i < l.head_dim ? static_cast<int8_t>(rintf(g_row[i] * inverse)) : int8_t{0};
    *reinterpret_cast<float*>(g_to + level_bytes(l.head_dim)) = greatest / 127.0F;
  });
}
void cache_read(Stream stream, float* g_rows, const void* g_base, CacheNumbers cache,
                const KvLayout& layout, const StepRows& step) {
  const KvLayout l = layout;
  const StepRows rows = step;
  each(stream, step.n_tokens * l.n_kv_heads * l.head_dim, [=] __device__(int64_t i) {
    const int64_t n = i / l.head_dim, token = n / l.n_kv_heads;
    const int64_t at = place(l, cache, rows.g_pages + rows.g_page_begin[token], n % l.n_kv_heads,
                             rows.g_positions[token]);
    g_rows[i] = number_at(g_base, cache, at, i % l.head_dim, l.head_dim);
  });
}
void add_storing(Stream stream, const Expected& rows, CacheNumbers cache, int64_t n_rows,
                 int64_t head_dim) {
  if (cache == CacheNumbers::kFloat32) return;
  each(stream, n_rows, [=] __device__(int64_t r) {
    float greatest = 0;
    for (int64_t i = r * head_dim; i < (r + 1) * head_dim; ++i)
      greatest = fmaxf(greatest, fabsf(rows.g_values[i]) + rows.g_bounds[i]);
    for (int64_t i = r * head_dim; i < (r + 1) * head_dim; ++i)  // half a step
      rows.g_bounds[i] += cache == CacheNumbers::kBf16
                              ? (fabsf(rows.g_values[i]) + rows.g_bounds[i]) * 0x1p-8F
                              : greatest * (0.51F / 127.0F) + rows.g_bounds[i];
  });
}
void attend(Stream stream, const Expected& out, const float* g_q, const void* g_k, const void* g_v,
            CacheNumbers cache, const KvLayout& layout, const StepRows& step, int64_t n_heads,
            int64_t window, float scale, float* g_scores, int64_t max_len) {
  const KvLayout l = layout;
  const StepRows rows = step;
  each(stream, step.n_tokens * n_heads * max_len, [=] __device__(int64_t i) {
    const int64_t key = i % max_len, row = i / max_len;
    const int64_t token = row / n_heads, kv_head = row % n_heads / (n_heads / l.n_kv_heads);
    const int64_t pos = rows.g_positions[token];
    if (key > pos || pos - key >= window) return;
    const int64_t at = place(l, cache, rows.g_pages + rows.g_page_begin[token], kv_head, key);
    double sum = 0;
    for (int64_t e = 0; e < l.head_dim; ++e)
      sum += static_cast<double>(g_q[row * l.head_dim + e]) *
             static_cast<double>(number_at(g_k, cache, at, e, l.head_dim));
    g_scores[i] = static_cast<float>(sum * static_cast<double>(scale));
  });
  each(stream, step.n_tokens * n_heads * l.head_dim, [=] __device__(int64_t i) {
    const int64_t row = i / l.head_dim, e = i % l.head_dim;
    const int64_t token = row / n_heads, kv_head = row % n_heads / (n_heads / l.n_kv_heads);
    const int64_t pos = rows.g_positions[token], first = pos - window < -1 ? 0 : pos - window + 1;
    const uint32_t* g_pages = rows.g_pages + rows.g_page_begin[token];
    const float* g_row = g_scores + row * max_len;
    float greatest = g_row[first];
    for (int64_t key = first; key <= pos; ++key) greatest = fmaxf(greatest, g_row[key]);
    double total = 0, sum = 0, largest = 0;
    for (int64_t key = first; key <= pos; ++key) {
      const double weight = exp(static_cast<double>(g_row[key]) - static_cast<double>(greatest));
      const auto value = static_cast<double>(
          number_at(g_v, cache, place(l, cache, g_pages, kv_head, key), e, l.head_dim));
      sum += weight;
      total += weight * value;
      largest = fmax(largest, fabs(value));
    }
    out.g_values[i] = static_cast<float>(total / sum);
    out.g_bounds[i] = static_cast<float>(1e-5 * largest);
  });
}

}  // namespace reference

// ---------------------------------------------------------------- bandwidth

namespace {

constexpr int kVectors = 4;  // under way together, a thread
__global__ void __launch_bounds__(kThreads)
    read_kernel(uint32_t* g_sum, const uint4* g_from, int64_t n) {
  const int64_t stride = int64_t{gridDim.x} * kThreads;
  uint32_t sum = 0;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < n; i += kVectors * stride) {
    uint4 v[kVectors] = {};
    DVT_UNROLL
    for (int j = 0; j < kVectors; ++j)
      if (i + j * stride < n) v[j] = kernels::cuda::load16(g_from + i + j * stride);
    DVT_UNROLL
    for (int j = 0; j < kVectors; ++j) sum += v[j].x + v[j].y + v[j].z + v[j].w;
  }
  if (sum != 0) atomicAdd(g_sum, sum);
}

}  // namespace

void read_all(Stream stream, uint32_t* g_sum, const void* g_from, int64_t n_bytes) {
  const int64_t n = n_bytes / 16, most = 132 * 8 * 4;
  const int64_t n_blocks = blocks_for(n, kThreads * kVectors);
  DVT_LAUNCH(read_kernel, static_cast<unsigned>(n_blocks < most ? n_blocks : most), kThreads, 0,
             stream, g_sum, static_cast<const uint4*>(g_from), n);
}

}  // namespace dovetail::gpu_check
