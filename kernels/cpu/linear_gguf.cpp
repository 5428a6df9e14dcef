// Products with packed weights of GGUF for any machine; contract in kernels/linear_gguf.hpp, oracle in
// kernels/ref/linear_gguf.cpp.
// Bound by arithmetic. A block of 16 rows is unpacked to 16-bit numbers once for up to eight tokens; its sixteen sums
// are whole vectors to a compiler with SSE2 or NEON.
#include <cmath>
#include <type_traits>

#include <kernels/gguf_packed_rows.hpp>

#include "kernels/cpu/portable.hpp"

namespace dovetail::kernels::portable {
namespace {

constexpr int64_t kTileTokens = 8;

// A block of a group, ready to multiply.
struct Unpacked {
  int16_t v[kQuantBlock][kPackedRows];  // of q6_k with its scales: at most 128 * 32
  float factor[kPackedRows], offset[kPackedRows];
};

template <GgufPacked kFormat>
void unpack(Unpacked& to, const uint8_t* group, int64_t b) {
  const GgufBlock<kFormat> block(group, b);
  for (int64_t k = 0; k < kQuantBlock; ++k)
    for (int64_t lane = 0; lane < kPackedRows; ++lane) {
      const int32_t by = kFormat == GgufPacked::kQ6_K ? block.scale(lane, k) : 1;
      to.v[k][lane] = static_cast<int16_t>(by * block.level(lane, k));
    }
  for (int64_t lane = 0; lane < kPackedRows; ++lane) {
    to.factor[lane] = block.d(lane);
    if constexpr (kFormat == GgufPacked::kQ4_K) {
      to.factor[lane] *= static_cast<float>(block.scale(lane, 0));
      to.offset[lane] = block.offset(lane);
    }
  }
}

/// Whether activations of 16 bits are multiplied.
template <GgufPacked kFormat>
constexpr bool kFine = kFormat == GgufPacked::kQ8_0 || kFormat == GgufPacked::kQ6_K;

template <GgufPacked kFormat>
using Level = std::conditional_t<kFine<kFormat>, int16_t, int8_t>;

template <GgufPacked kFormat>
void add_block(float (&total)[kPackedRows], const Unpacked& w, const Level<kFormat>* q, float scale,
               int32_t sum) {
  int32_t inner[kPackedRows] = {};
  for (int64_t k = 0; k < kQuantBlock; ++k)
    for (int64_t lane = 0; lane < kPackedRows; ++lane) inner[lane] += w.v[k][lane] * q[k];
  for (int64_t lane = 0; lane < kPackedRows; ++lane) {
    total[lane] = std::fma(static_cast<float>(inner[lane]), w.factor[lane] * scale, total[lane]);
    if constexpr (kFormat == GgufPacked::kQ4_K)
      total[lane] = std::fma(static_cast<float>(sum), -(w.offset[lane] * scale), total[lane]);
  }
}

template <GgufPacked kFormat, bool kAdds>
void tile(float* y, int64_t y_stride, const uint8_t* xq, const uint8_t* group, int64_t n_tokens,
          int64_t n_rows, int64_t k_len) {
  float total[kTileTokens][kPackedRows] = {};
  Unpacked w;
  for (int64_t b = 0; b < k_len / kQuantBlock; ++b) {
    unpack<kFormat>(w, group, b);
    for (int64_t t = 0; t < n_tokens; ++t) {
      const uint8_t* row = xq + t * quantized_row_bytes(k_len);
      const auto* q = reinterpret_cast<const Level<kFormat>*>(row + (kFine<kFormat> ? k_len : 0));
      const auto* scale = reinterpret_cast<const float*>(row + 3 * k_len);
      const auto* sum = reinterpret_cast<const int32_t*>(scale + k_len / kQuantBlock);
      add_block<kFormat>(total[t], w, q + b * kQuantBlock, scale[b], sum[b]);
    }
  }
  for (int64_t t = 0; t < n_tokens; ++t)
    for (int64_t lane = 0; lane < n_rows; ++lane) {
      float& to = y[t * y_stride + lane];
      const float sum = kFine<kFormat> ? total[t][lane] * kFineStep : total[t][lane];
      to = kAdds ? to + sum : sum;
    }
}

template <GgufPacked kFormat, bool kAdds>
void stripe(float* y, int64_t y_stride, const void* xq, const void* packed, int64_t n_tokens,
            int64_t k_len, int64_t n_begin, int64_t n_end) {
  const auto* x = static_cast<const uint8_t*>(xq);
  for (int64_t n = n_begin; n < n_end; n += kPackedRows) {
    const uint8_t* group = static_cast<const uint8_t*>(packed) +
                           n / kPackedRows * GgufLayout<kFormat>::group_bytes(k_len);
    const int64_t n_rows = n_end - n < kPackedRows ? n_end - n : kPackedRows;
    for (int64_t t = 0; t < n_tokens; t += kTileTokens) {
      const int64_t here = n_tokens - t < kTileTokens ? n_tokens - t : kTileTokens;
      tile<kFormat, kAdds>(y + t * y_stride + n, y_stride, x + t * quantized_row_bytes(k_len),
                           group, here, n_rows, k_len);
    }
  }
}

}  // namespace

#define DVT_GGUF_FORMAT(name, kFormat)                                                            \
  void linear_##name(float* y, int64_t y_stride, const void* xq, const void* packed,              \
                     int64_t n_tokens, int64_t /*n_rows*/, int64_t k_len, int64_t n_begin,        \
                     int64_t n_end) {                                                             \
    stripe<GgufPacked::kFormat, false>(y, y_stride, xq, packed, n_tokens, k_len, n_begin, n_end); \
  }                                                                                               \
  void linear_add_##name(float* y, int64_t y_stride, const void* xq, const void* packed,          \
                         int64_t n_tokens, int64_t /*n_rows*/, int64_t k_len, int64_t n_begin,    \
                         int64_t n_end) {                                                         \
    stripe<GgufPacked::kFormat, true>(y, y_stride, xq, packed, n_tokens, k_len, n_begin, n_end);  \
  }

DVT_GGUF_FORMAT(q4_0, kQ4_0)
DVT_GGUF_FORMAT(q8_0, kQ8_0)
DVT_GGUF_FORMAT(q4_k, kQ4_K)
DVT_GGUF_FORMAT(q6_k, kQ6_K)
#undef DVT_GGUF_FORMAT

}  // namespace dovetail::kernels::portable
