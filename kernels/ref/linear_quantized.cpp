// Oracle of linear_quantized.hpp: one output at a time, block by block.
#include <cmath>
#include <cstring>

#include <kernels/int8_levels.hpp>
#include <kernels/linear_quantized.hpp>
#include <kernels/packed_rows.hpp>

namespace dovetail::kernels {

int64_t quantized_row_bytes(int64_t k_len) {
  return (3 * k_len + 8 * (k_len / kQuantBlock) + 63) / 64 * 64;
}

namespace ref {
namespace {

void quantize_row(uint8_t* row, const float* x, int64_t k_len) {
  if (k_len == 0) return;  // the row may be null
  std::memset(row, 0, static_cast<size_t>(quantized_row_bytes(k_len)));
  auto* q = reinterpret_cast<int8_t*>(row);
  auto* q16 = reinterpret_cast<int16_t*>(row + k_len);
  auto* scale = reinterpret_cast<float*>(row + 3 * k_len);
  auto* sum = reinterpret_cast<int32_t*>(scale + k_len / kQuantBlock);
  for (int64_t b = 0; b < k_len / kQuantBlock; ++b) {
    const int64_t begin = b * kQuantBlock;
    const Int8Scale of = int8_scale(x + begin, kQuantBlock);
    scale[b] = of.scale;
    if (of.inverse == 0.0F) continue;
    for (int64_t k = begin; k < begin + kQuantBlock; ++k) {
      const float level = x[k] * of.inverse;
      q[k] = static_cast<int8_t>(nearest_level(level));
      q16[k] = static_cast<int16_t>(nearest_level(level * kFineSteps));
      sum[b] += q[k];
    }
  }
}

float output(WeightFormat format, const uint8_t* xq, const uint8_t* packed, int64_t row,
             int64_t k_len) {
  const auto* q = reinterpret_cast<const int8_t*>(xq);
  const auto* q16 = reinterpret_cast<const int16_t*>(xq + k_len);
  const auto* scale = reinterpret_cast<const float*>(xq + 3 * k_len);
  const bool fine = format == WeightFormat::kInt8;
  const uint8_t* group = packed + row / kPackedRows * group_bytes(format, k_len);
  const int64_t lane = row % kPackedRows;
  const float d = row_scale(group, lane);
  const uint8_t* block = group + kPackedRows * static_cast<int64_t>(sizeof d);

  float total = 0.0F;
  for (int64_t b = 0; b < k_len / kQuantBlock; ++b, block += block_bytes(format)) {
    int32_t inner = 0;
    for (int64_t i = 0; i < kQuantBlock; ++i) {
      const int64_t k = b * kQuantBlock + i;
      inner += packed_value(format, block, lane, i) * (fine ? q16[k] : q[k]);
    }
    const float factor = scale_of_code(block[lane]) * scale[b];
    total = std::fma(static_cast<float>(inner), factor, total);
  }
  return d * (fine ? total * kFineStep : total);
}

template <class Store>
void linear(WeightFormat format, Store store, float* y, int64_t y_stride, const void* xq,
            const void* packed, int64_t n_tokens, int64_t k_len, int64_t n_begin, int64_t n_end) {
  for (int64_t t = 0; t < n_tokens; ++t) {
    const uint8_t* row = static_cast<const uint8_t*>(xq) + t * quantized_row_bytes(k_len);
    for (int64_t n = n_begin; n < n_end; ++n) {
      store(y[t * y_stride + n],
            output(format, row, static_cast<const uint8_t*>(packed), n, k_len));
    }
  }
}

constexpr auto kSet = [](float& y, float sum) { y = sum; };
constexpr auto kAdd = [](float& y, float sum) { y += sum; };

}  // namespace

void quantize_activations(void* xq, const float* x, int64_t x_stride, int64_t n_tokens,
                          int64_t k_len) {
  for (int64_t t = 0; t < n_tokens; ++t) {
    quantize_row(static_cast<uint8_t*>(xq) + t * quantized_row_bytes(k_len), x + t * x_stride,
                 k_len);
  }
}

void linear_int8(float* y, int64_t y_stride, const void* xq, const void* packed, int64_t n_tokens,
                 int64_t /*n_rows*/, int64_t k_len, int64_t n_begin, int64_t n_end) {
  linear(WeightFormat::kInt8, kSet, y, y_stride, xq, packed, n_tokens, k_len, n_begin, n_end);
}

void linear_add_int8(float* y, int64_t y_stride, const void* xq, const void* packed,
                     int64_t n_tokens, int64_t /*n_rows*/, int64_t k_len, int64_t n_begin,
                     int64_t n_end) {
  linear(WeightFormat::kInt8, kAdd, y, y_stride, xq, packed, n_tokens, k_len, n_begin, n_end);
}

void linear_int4(float* y, int64_t y_stride, const void* xq, const void* packed, int64_t n_tokens,
                 int64_t /*n_rows*/, int64_t k_len, int64_t n_begin, int64_t n_end) {
  linear(WeightFormat::kInt4, kSet, y, y_stride, xq, packed, n_tokens, k_len, n_begin, n_end);
}

void linear_add_int4(float* y, int64_t y_stride, const void* xq, const void* packed,
                     int64_t n_tokens, int64_t /*n_rows*/, int64_t k_len, int64_t n_begin,
                     int64_t n_end) {
  linear(WeightFormat::kInt4, kAdd, y, y_stride, xq, packed, n_tokens, k_len, n_begin, n_end);
}

void linear_int4q(float* y, int64_t y_stride, const void* xq, const void* packed, int64_t n_tokens,
                  int64_t /*n_rows*/, int64_t k_len, int64_t n_begin, int64_t n_end) {
  linear(WeightFormat::kInt4q, kSet, y, y_stride, xq, packed, n_tokens, k_len, n_begin, n_end);
}

void linear_add_int4q(float* y, int64_t y_stride, const void* xq, const void* packed,
                      int64_t n_tokens, int64_t /*n_rows*/, int64_t k_len, int64_t n_begin,
                      int64_t n_end) {
  linear(WeightFormat::kInt4q, kAdd, y, y_stride, xq, packed, n_tokens, k_len, n_begin, n_end);
}

void linear_int6(float* y, int64_t y_stride, const void* xq, const void* packed, int64_t n_tokens,
                 int64_t /*n_rows*/, int64_t k_len, int64_t n_begin, int64_t n_end) {
  linear(WeightFormat::kInt6, kSet, y, y_stride, xq, packed, n_tokens, k_len, n_begin, n_end);
}

void linear_add_int6(float* y, int64_t y_stride, const void* xq, const void* packed,
                     int64_t n_tokens, int64_t /*n_rows*/, int64_t k_len, int64_t n_begin,
                     int64_t n_end) {
  linear(WeightFormat::kInt6, kAdd, y, y_stride, xq, packed, n_tokens, k_len, n_begin, n_end);
}

}  // namespace ref
}  // namespace dovetail::kernels
