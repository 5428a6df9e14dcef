// quantize_activations for NEON; contract in kernels/linear_quantized.hpp, oracle in
// kernels/ref/linear_quantized.cpp.
// Bound by arithmetic, and small beside the products that read its result.
#include <bit>

#include "kernels/cpu/neon.hpp"
#include "kernels/cpu/neon_math.hpp"

namespace dovetail::kernels::neon {
namespace {

constexpr int kVectors = 8;  // of four floats in a block

struct Row {
  int8_t* q;
  int16_t* q16;
  float* scale;
  int32_t* sum;
};

/// Eight numbers to the nearest.
int16x8_t words(float32x4_t first, float32x4_t second) {
  return vcombine_s16(vmovn_s32(vcvtnq_s32_f32(first)), vmovn_s32(vcvtnq_s32_f32(second)));
}

void quantize_block(const Row& row, int64_t b, const float* from) {
  float32x4_t x[kVectors];
  for (int v = 0; v < kVectors; ++v) x[v] = vld1q_f32(from + 4 * v);
  uint32x4_t most = vdupq_n_u32(0);
  for (const float32x4_t part : x) most = vmaxq_u32(most, magnitude_bits(part));
  const uint32_t bits = vmaxvq_u32(most);
  const float greatest = std::bit_cast<float>(bits);
  row.scale[b] = bits < kLeastQuantized ? 0.0F : greatest / 127.0F;

  float inverse = 127.0F / greatest;
  if (bits < kLeastQuantized || bits >= kInfinityBits) {
    inverse = 0.0F;
    for (float32x4_t& part : x) part = vdupq_n_f32(0.0F);  // of infinities as well
  }
  int32x4_t sum = vdupq_n_s32(0);
  for (int v = 0; v < kVectors; v += 2) {
    const float32x4_t first = vmulq_n_f32(x[v], inverse);
    const float32x4_t second = vmulq_n_f32(x[v + 1], inverse);
    vst1q_s16(row.q16 + b * kQuantBlock + 4 * v,
              words(vmulq_n_f32(first, kFineSteps), vmulq_n_f32(second, kFineSteps)));
    const int16x8_t both = words(first, second);
    sum = vpadalq_s16(sum, both);
    vst1_s8(row.q + b * kQuantBlock + 4 * v, vmovn_s16(both));
  }
  row.sum[b] = vaddvq_s32(sum);
}

}  // namespace

void quantize_activations(void* xq, const float* x, int64_t x_stride, int64_t n_tokens,
                          int64_t k_len) {
  const int64_t row_bytes = quantized_row_bytes(k_len);
  const int64_t n_blocks = k_len / kQuantBlock;
  for (int64_t t = 0; t < n_tokens; ++t) {
    uint8_t* bytes = static_cast<uint8_t*>(xq) + t * row_bytes;
    const Row row = {reinterpret_cast<int8_t*>(bytes), reinterpret_cast<int16_t*>(bytes + k_len),
                     reinterpret_cast<float*>(bytes + 3 * k_len),
                     reinterpret_cast<int32_t*>(bytes + 3 * k_len + 4 * n_blocks)};
    for (int64_t b = 0; b < n_blocks; ++b) {
      quantize_block(row, b, x + t * x_stride + b * kQuantBlock);
    }
    for (int64_t i = 3 * k_len + 8 * n_blocks; i < row_bytes; ++i) bytes[i] = 0;
  }
}

}  // namespace dovetail::kernels::neon
