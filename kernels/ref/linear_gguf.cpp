// Oracle of linear_gguf.hpp: into the packed layout, out of it, and one output at a time.
#include <cmath>
#include <cstring>

#include <kernels/gguf_packed_rows.hpp>

namespace dovetail::kernels {

int64_t gguf_packed_bytes(GgufPacked format, int64_t n_rows, int64_t k_len) {
  const int64_t groups = (n_rows + kPackedRows - 1) / kPackedRows;
  switch (format) {
    case GgufPacked::kQ4_0:
      return groups * GgufLayout<GgufPacked::kQ4_0>::group_bytes(k_len);
    case GgufPacked::kQ8_0:
      return groups * GgufLayout<GgufPacked::kQ8_0>::group_bytes(k_len);
    case GgufPacked::kQ4_K:
      return groups * GgufLayout<GgufPacked::kQ4_K>::group_bytes(k_len);
    case GgufPacked::kQ6_K:
      break;
  }
  return groups * GgufLayout<GgufPacked::kQ6_K>::group_bytes(k_len);
}

namespace ref {
namespace {

// ---------------------------------------------------------------- packing

// What a block of a file says of its numbers, by gguf_blocks.hpp.
struct Q4_0 {
  static constexpr GgufPacked kFormat = GgufPacked::kQ4_0;
  static constexpr int64_t kBytes = 18;
  static constexpr int64_t kD = 0;
  static int32_t level(const uint8_t* b, int64_t k) {
    return k < 16 ? b[2 + k] & 15 : b[k - 14] >> 4;
  }
};
struct Q8_0 {
  static constexpr GgufPacked kFormat = GgufPacked::kQ8_0;
  static constexpr int64_t kBytes = 34;
  static constexpr int64_t kD = 0;
  static int32_t level(const uint8_t* b, int64_t k) { return b[2 + k]; }
};
struct Q4_K {
  static constexpr GgufPacked kFormat = GgufPacked::kQ4_K;
  static constexpr int64_t kBytes = 144;
  static constexpr int64_t kD = 0;
  static int32_t level(const uint8_t* b, int64_t k) {
    return b[16 + k / 64 * 32 + k % 32] >> (k % 64 / 32 * 4) & 15;
  }
  /// 0: the scale of the part with k, 1: its offset.
  static uint8_t scale(const uint8_t* b, int64_t part, int64_t which) {
    const uint8_t* s = b + 4;
    if (part < 4) return s[part + 4 * which] & 63;
    const int low = which == 0 ? s[part + 4] & 15 : s[part + 4] >> 4;
    return static_cast<uint8_t>(low | s[which == 0 ? part - 4 : part] >> 6 << 4);
  }
};
struct Q6_K {
  static constexpr GgufPacked kFormat = GgufPacked::kQ6_K;
  static constexpr int64_t kBytes = 210;
  static constexpr int64_t kD = 208;
  static int32_t level(const uint8_t* b, int64_t k) {
    const int32_t low = b[k / 128 * 64 + k % 64] >> (k % 128 / 64 * 4) & 15;
    const int32_t high = b[128 + k / 128 * 32 + k % 32] >> (k % 128 / 32 * 2) & 3;
    return (low | high << 4) - 32;
  }
  /// Of 16 numbers: the two halves of a part.
  static uint8_t scale(const uint8_t* b, int64_t part, int64_t which) {
    return b[192 + 2 * part + which];
  }
};

// One block of the file, or none for a row that fills up the group, into its lane.
template <class Stored>
void pack_block(uint8_t* to, const uint8_t* block, int64_t lane) {
  using Layout = GgufLayout<Stored::kFormat>;
  constexpr int64_t kHalves = Layout::kHeadBytes / kPackedRows / 2;  // d, or d and m
  for (int64_t i = 0; i < kHalves; ++i) {
    uint8_t* half = to + 2 * (i * kPackedRows + lane);
    half[0] = block ? block[Stored::kD + 2 * i] : 0;
    half[1] = block ? block[Stored::kD + 2 * i + 1] : 0;
  }
  to += Layout::kHeadBytes;
  for (int64_t part = 0; part < Layout::kBlocks; ++part, to += Layout::kBlockBytes) {
    if constexpr (Layout::kIsLarge)
      for (int64_t which = 0; which < 2; ++which)
        to[which * kPackedRows + lane] = block ? Stored::scale(block, part, which) : 0;
    uint8_t* levels = to + Layout::kScaleBytes;
    const auto level = [&](int64_t k) {
      return block ? Stored::level(block, part * kQuantBlock + k) : 0;
    };
    if constexpr (Layout::kIsNibbles) {
      for (int64_t s = 0; s < 4; ++s)
        for (int64_t i = 0; i < 4; ++i)
          levels[(s * kPackedRows + lane) * 4 + i] =
              static_cast<uint8_t>(level(8 * s + i) | level(8 * s + 4 + i) << 4);
    } else {
      for (int64_t k = 0; k < kQuantBlock; ++k)
        levels[(k / 4 * kPackedRows + lane) * 4 + k % 4] = static_cast<uint8_t>(level(k));
    }
  }
}

template <class Stored>
void pack_rows(void* packed, const void* blocks, int64_t row0, int64_t n, int64_t k_len) {
  using Layout = GgufLayout<Stored::kFormat>;
  const int64_t n_blocks = k_len / (Layout::kBlocks * kQuantBlock);
  const int64_t end = (n + kPackedRows - 1) / kPackedRows * kPackedRows;
  for (int64_t row = 0; row < end; ++row) {
    const int64_t at = row0 + row;
    uint8_t* group = static_cast<uint8_t*>(packed) + at / kPackedRows * Layout::group_bytes(k_len);
    const uint8_t* from = static_cast<const uint8_t*>(blocks) + row * n_blocks * Stored::kBytes;
    for (int64_t b = 0; b < n_blocks; ++b, group += Layout::kGroupBytes)
      pack_block<Stored>(group, row < n ? from + b * Stored::kBytes : nullptr, at % kPackedRows);
  }
}

// ---------------------------------------------------------------- unpacking and products

template <GgufPacked kFormat>
void unpack_row(float* out, const void* packed, int64_t row, int64_t k_len) {
  const uint8_t* group = static_cast<const uint8_t*>(packed) +
                         row / kPackedRows * GgufLayout<kFormat>::group_bytes(k_len);
  const int64_t lane = row % kPackedRows;
  for (int64_t b = 0; b < k_len / kQuantBlock; ++b) {
    const GgufBlock<kFormat> block(group, b);
    for (int64_t k = 0; k < kQuantBlock; ++k) {
      const float scale = block.d(lane) * static_cast<float>(block.scale(lane, k));
      float w = scale * static_cast<float>(block.level(lane, k));
      if constexpr (kFormat == GgufPacked::kQ4_K) w -= block.offset(lane);
      out[b * kQuantBlock + k] = w;
    }
  }
}

template <GgufPacked kFormat>
float output(const uint8_t* xq, const uint8_t* group, int64_t lane, int64_t k_len) {
  constexpr bool kFine = kFormat == GgufPacked::kQ8_0 || kFormat == GgufPacked::kQ6_K;
  const auto* q = reinterpret_cast<const int8_t*>(xq);
  const auto* q16 = reinterpret_cast<const int16_t*>(xq + k_len);
  const auto* scale = reinterpret_cast<const float*>(xq + 3 * k_len);
  const auto* sum = reinterpret_cast<const int32_t*>(scale + k_len / kQuantBlock);
  float total = 0.0F;
  for (int64_t b = 0; b < k_len / kQuantBlock; ++b) {
    const GgufBlock<kFormat> block(group, b);
    int32_t inner = 0;
    for (int64_t k = 0; k < kQuantBlock; ++k) {
      const int32_t by = kFormat == GgufPacked::kQ6_K ? block.scale(lane, k) : 1;
      const int64_t at = b * kQuantBlock + k;
      inner += by * block.level(lane, k) * (kFine ? q16[at] : q[at]);
    }
    float factor = block.d(lane);
    if constexpr (kFormat == GgufPacked::kQ4_K) factor *= static_cast<float>(block.scale(lane, 0));
    total = std::fma(static_cast<float>(inner), factor * scale[b], total);
    if constexpr (kFormat == GgufPacked::kQ4_K)
      total = std::fma(static_cast<float>(sum[b]), -(block.offset(lane) * scale[b]), total);
  }
  return kFine ? total * kFineStep : total;
}

template <GgufPacked kFormat, bool kAdds>
void linear(float* y, int64_t y_stride, const void* xq, const void* packed, int64_t n_tokens,
            int64_t k_len, int64_t n_begin, int64_t n_end) {
  for (int64_t t = 0; t < n_tokens; ++t) {
    const uint8_t* row = static_cast<const uint8_t*>(xq) + t * quantized_row_bytes(k_len);
    for (int64_t n = n_begin; n < n_end; ++n) {
      const uint8_t* group = static_cast<const uint8_t*>(packed) +
                             n / kPackedRows * GgufLayout<kFormat>::group_bytes(k_len);
      const float sum = output<kFormat>(row, group, n % kPackedRows, k_len);
      float& to = y[t * y_stride + n];
      to = kAdds ? to + sum : sum;
    }
  }
}

}  // namespace

#define DVT_GGUF_FORMAT(name, Stored)                                                          \
  void pack_rows_##name(void* packed, const void* blocks, int64_t row0, int64_t n,             \
                        int64_t /*n_rows*/, int64_t k_len) {                                   \
    pack_rows<Stored>(packed, blocks, row0, n, k_len);                                         \
  }                                                                                            \
  void unpack_row_##name(float* out, const void* packed, int64_t row, int64_t /*n_rows*/,      \
                         int64_t k_len) {                                                      \
    unpack_row<Stored::kFormat>(out, packed, row, k_len);                                      \
  }                                                                                            \
  void linear_##name(float* y, int64_t y_stride, const void* xq, const void* packed,           \
                     int64_t n_tokens, int64_t /*n_rows*/, int64_t k_len, int64_t n_begin,     \
                     int64_t n_end) {                                                          \
    linear<Stored::kFormat, false>(y, y_stride, xq, packed, n_tokens, k_len, n_begin, n_end);  \
  }                                                                                            \
  void linear_add_##name(float* y, int64_t y_stride, const void* xq, const void* packed,       \
                         int64_t n_tokens, int64_t /*n_rows*/, int64_t k_len, int64_t n_begin, \
                         int64_t n_end) {                                                      \
    linear<Stored::kFormat, true>(y, y_stride, xq, packed, n_tokens, k_len, n_begin, n_end);   \
  }

DVT_GGUF_FORMAT(q4_0, Q4_0)
DVT_GGUF_FORMAT(q8_0, Q8_0)
DVT_GGUF_FORMAT(q4_k, Q4_K)
DVT_GGUF_FORMAT(q6_k, Q6_K)
#undef DVT_GGUF_FORMAT

}  // namespace ref
}  // namespace dovetail::kernels
