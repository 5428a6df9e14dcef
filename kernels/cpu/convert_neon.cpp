// f32_to_bf16 and f16_to_f32 for NEON; contract in kernels/convert.hpp, oracle in
// kernels/ref/convert.cpp. Bound by memory.
#include "kernels/cpu/neon.hpp"
#include "kernels/cpu/neon_math.hpp"

namespace dovetail::kernels::neon {
namespace {

uint16x4_t round4(float32x4_t value) {
  const uint32x4_t bits = vreinterpretq_u32_f32(value);
  const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
  const uint32x4_t rounded = vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7FFF)));
  const uint32x4_t quiet_nan = vorrq_u32(bits, vdupq_n_u32(0x00400000));
  const uint32x4_t is_number = vceqq_f32(value, value);
  return vshrn_n_u32(vbslq_u32(is_number, rounded, quiet_nan), 16);
}

uint16x8_t round8(Float8 value) {
  return vcombine_u16(round4(value.low), round4(value.high));
}

Float8 widen_half(uint16x8_t bits) {
  return {vcvt_f32_f16(vreinterpret_f16_u16(vget_low_u16(bits))),
          vcvt_f32_f16(vreinterpret_f16_u16(vget_high_u16(bits)))};
}

}  // namespace

void f32_to_bf16(uint16_t* out, const float* x, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) vst1q_u16(out + i, round8(load(x + i)));
  if (i < n) {
    uint16_t rest[kLanes];
    vst1q_u16(rest, round8(load_first(x + i, n - i)));
    std::memcpy(out + i, rest, static_cast<size_t>(n - i) * sizeof(uint16_t));
  }
}

void f16_to_f32(float* out, const uint16_t* x, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(out + i, widen_half(vld1q_u16(x + i)));
  if (i < n) {
    uint16_t rest[kLanes] = {};
    std::memcpy(rest, x + i, static_cast<size_t>(n - i) * sizeof(uint16_t));
    store_first(out + i, widen_half(vld1q_u16(rest)), n - i);
  }
}

}  // namespace dovetail::kernels::neon
