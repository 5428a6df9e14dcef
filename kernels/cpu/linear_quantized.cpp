// linear over packed weights for any machine; contract in kernels/linear_quantized.hpp, oracle in
// kernels/ref/linear_quantized.cpp.
// Bound by arithmetic. A block of 16 rows is unpacked to 16-bit numbers once for up to eight
// tokens; its sixteen sums are whole vectors to a compiler with SSE2 or NEON.
#include <cmath>
#include <type_traits>

#include <kernels/packed_rows.hpp>

#include "kernels/cpu/portable.hpp"

namespace dovetail::kernels::portable {
namespace {

constexpr int64_t kTileTokens = 8;

template <WeightFormat kFormat>
void unpack_block(int16_t (&v)[kQuantBlock][kPackedRows], const uint8_t* block) {
  for (int64_t k = 0; k < kQuantBlock; ++k) {
    for (int64_t lane = 0; lane < kPackedRows; ++lane) {
      v[k][lane] = static_cast<int16_t>(packed_value(kFormat, block, lane, k));
    }
  }
}

/// Level is that of the activations: int16_t with weights of int8.
template <class Level>
void add_block(float (&total)[kPackedRows], const int16_t (&v)[kQuantBlock][kPackedRows],
               const uint8_t* codes, const Level* q, float x_scale) {
  int32_t inner[kPackedRows] = {};
  for (int64_t k = 0; k < kQuantBlock; ++k) {
    for (int64_t lane = 0; lane < kPackedRows; ++lane) inner[lane] += v[k][lane] * q[k];
  }
  for (int64_t lane = 0; lane < kPackedRows; ++lane) {
    const float factor = scale_of_code(codes[lane]) * x_scale;
    total[lane] = std::fma(static_cast<float>(inner[lane]), factor, total[lane]);
  }
}

template <WeightFormat kFormat, class Store>
void tile(Store store, float* y, int64_t y_stride, const uint8_t* xq, const uint8_t* group,
          int64_t n_tokens, int64_t n_rows, int64_t k_len) {
  constexpr bool kFine = kFormat == WeightFormat::kInt8;
  using Level = std::conditional_t<kFine, int16_t, int8_t>;
  const int64_t levels_at = kFine ? k_len : 0;
  float total[kTileTokens][kPackedRows] = {};
  int16_t v[kQuantBlock][kPackedRows];
  const uint8_t* block = group + kPackedRows * static_cast<int64_t>(sizeof(float));
  for (int64_t b = 0; b < k_len / kQuantBlock; ++b, block += block_bytes(kFormat)) {
    unpack_block<kFormat>(v, block);
    for (int64_t t = 0; t < n_tokens; ++t) {
      const uint8_t* row = xq + t * quantized_row_bytes(k_len);
      const auto* q = reinterpret_cast<const Level*>(row + levels_at);
      const auto* scale = reinterpret_cast<const float*>(row + 3 * k_len);
      add_block(total[t], v, block, q + b * kQuantBlock, scale[b]);
    }
  }
  for (int64_t t = 0; t < n_tokens; ++t) {
    for (int64_t lane = 0; lane < n_rows; ++lane) {
      const float sum = kFine ? total[t][lane] * kFineStep : total[t][lane];
      store(y[t * y_stride + lane], row_scale(group, lane) * sum);
    }
  }
}

template <WeightFormat kFormat, class Store>
void stripe(Store store, float* y, int64_t y_stride, const void* xq, const void* packed,
            int64_t n_tokens, int64_t k_len, int64_t n_begin, int64_t n_end) {
  const auto* x = static_cast<const uint8_t*>(xq);
  const auto* groups = static_cast<const uint8_t*>(packed);
  for (int64_t n = n_begin; n < n_end; n += kPackedRows) {
    const uint8_t* group = groups + n / kPackedRows * group_bytes(kFormat, k_len);
    const int64_t n_rows = n_end - n < kPackedRows ? n_end - n : kPackedRows;
    for (int64_t t = 0; t < n_tokens; t += kTileTokens) {
      const int64_t here = n_tokens - t < kTileTokens ? n_tokens - t : kTileTokens;
      tile<kFormat>(store, y + t * y_stride + n, y_stride, x + t * quantized_row_bytes(k_len),
                    group, here, n_rows, k_len);
    }
  }
}

constexpr auto kSet = [](float& y, float sum) { y = sum; };
constexpr auto kAdd = [](float& y, float sum) { y += sum; };

}  // namespace

void linear_int8(float* y, int64_t y_stride, const void* xq, const void* packed, int64_t n_tokens,
                 int64_t /*n_rows*/, int64_t k_len, int64_t n_begin, int64_t n_end) {
  stripe<WeightFormat::kInt8>(kSet, y, y_stride, xq, packed, n_tokens, k_len, n_begin, n_end);
}

void linear_add_int8(float* y, int64_t y_stride, const void* xq, const void* packed,
                     int64_t n_tokens, int64_t /*n_rows*/, int64_t k_len, int64_t n_begin,
                     int64_t n_end) {
  stripe<WeightFormat::kInt8>(kAdd, y, y_stride, xq, packed, n_tokens, k_len, n_begin, n_end);
}

void linear_int4(float* y, int64_t y_stride, const void* xq, const void* packed, int64_t n_tokens,
                 int64_t /*n_rows*/, int64_t k_len, int64_t n_begin, int64_t n_end) {
  stripe<WeightFormat::kInt4>(kSet, y, y_stride, xq, packed, n_tokens, k_len, n_begin, n_end);
}

void linear_add_int4(float* y, int64_t y_stride, const void* xq, const void* packed,
                     int64_t n_tokens, int64_t /*n_rows*/, int64_t k_len, int64_t n_begin,
                     int64_t n_end) {
  stripe<WeightFormat::kInt4>(kAdd, y, y_stride, xq, packed, n_tokens, k_len, n_begin, n_end);
}

void linear_int4q(float* y, int64_t y_stride, const void* xq, const void* packed, int64_t n_tokens,
                  int64_t /*n_rows*/, int64_t k_len, int64_t n_begin, int64_t n_end) {
  stripe<WeightFormat::kInt4q>(kSet, y, y_stride, xq, packed, n_tokens, k_len, n_begin, n_end);
}

void linear_add_int4q(float* y, int64_t y_stride, const void* xq, const void* packed,
                      int64_t n_tokens, int64_t /*n_rows*/, int64_t k_len, int64_t n_begin,
                      int64_t n_end) {
  stripe<WeightFormat::kInt4q>(kAdd, y, y_stride, xq, packed, n_tokens, k_len, n_begin, n_end);
}

void linear_int6(float* y, int64_t y_stride, const void* xq, const void* packed, int64_t n_tokens,
                 int64_t /*n_rows*/, int64_t k_len, int64_t n_begin, int64_t n_end) {
  stripe<WeightFormat::kInt6>(kSet, y, y_stride, xq, packed, n_tokens, k_len, n_begin, n_end);
}

void linear_add_int6(float* y, int64_t y_stride, const void* xq, const void* packed,
                     int64_t n_tokens, int64_t /*n_rows*/, int64_t k_len, int64_t n_begin,
                     int64_t n_end) {
  stripe<WeightFormat::kInt6>(kAdd, y, y_stride, xq, packed, n_tokens, k_len, n_begin, n_end);
}

}  // namespace dovetail::kernels::portable
