// The arithmetic that NEON kernels share: eight lanes in two registers, loads that widen, tails,
// the reduction tree and the exponential.
#pragma once

#include <arm_neon.h>

#include <cstdint>
#include <cstring>

#include <kernels/f16.hpp>

namespace dovetail::kernels::neon {

inline constexpr int64_t kLanes = 8;

/// Lanes 0 to 3 and 4 to 7.
struct Float8 {
  float32x4_t low;
  float32x4_t high;
};

inline Float8 all(float value) {
  return {vdupq_n_f32(value), vdupq_n_f32(value)};
}

/// Four elements as floats.
inline float32x4_t load4(const float* p) {
  return vld1q_f32(p);
}
inline float32x4_t load4(const uint16_t* bf16) {
  const uint16x8_t bits = vcombine_u16(vld1_u16(bf16), vdup_n_u16(0));
  return vreinterpretq_f32_u16(vzip1q_u16(vdupq_n_u16(0), bits));
}

inline float32x4_t load4(const int8_t* p) {
  int32_t bytes;
  std::memcpy(&bytes, p, sizeof bytes);
  const int8x8_t levels = vreinterpret_s8_s32(vdup_n_s32(bytes));
  return vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(levels))));
}

inline float32x4_t load4(const F16* p) {
  float16x4_t half;
  std::memcpy(&half, p, sizeof half);
  return vcvt_f32_f16(half);
}

/// Eight elements as floats.
inline Float8 load(const float* p) {
  return {vld1q_f32(p), vld1q_f32(p + 4)};
}
inline Float8 load(const uint16_t* bf16) {
  const uint16x8_t bits = vld1q_u16(bf16);
  const uint16x8_t zero = vdupq_n_u16(0);
  return {vreinterpretq_f32_u16(vzip1q_u16(zero, bits)),
          vreinterpretq_f32_u16(vzip2q_u16(zero, bits))};
}
inline Float8 load(const int8_t* p) {
  const int16x8_t levels = vmovl_s8(vld1_s8(p));
  return {vcvtq_f32_s32(vmovl_s16(vget_low_s16(levels))),
          vcvtq_f32_s32(vmovl_s16(vget_high_s16(levels)))};
}
inline Float8 load(const F16* p) {
  return {load4(p), load4(p + 4)};
}
inline void store(float* p, Float8 value) {
  vst1q_f32(p, value.low);
  vst1q_f32(p + 4, value.high);
}

/// The first n elements, n in [0, 8], and zeros; reads nothing past them.
template <class Element>
Float8 load_first(const Element* p, int64_t n) {
  Element padded[kLanes] = {};
  std::memcpy(padded, p, static_cast<size_t>(n) * sizeof(Element));
  return load(padded);
}
inline void store_first(float* p, Float8 value, int64_t n) {
  float lanes[kLanes];
  store(lanes, value);
  std::memcpy(p, lanes, static_cast<size_t>(n) * sizeof(float));
}

inline Float8 add(Float8 a, Float8 b) {
  return {vaddq_f32(a.low, b.low), vaddq_f32(a.high, b.high)};
}
inline Float8 sub(Float8 a, Float8 b) {
  return {vsubq_f32(a.low, b.low), vsubq_f32(a.high, b.high)};
}
inline Float8 mul(Float8 a, Float8 b) {
  return {vmulq_f32(a.low, b.low), vmulq_f32(a.high, b.high)};
}
inline Float8 mul(Float8 a, float b) {
  return {vmulq_n_f32(a.low, b), vmulq_n_f32(a.high, b)};
}
inline Float8 div(Float8 a, Float8 b) {
  return {vdivq_f32(a.low, b.low), vdivq_f32(a.high, b.high)};
}
inline Float8 negate(Float8 a) {
  return {vnegq_f32(a.low), vnegq_f32(a.high)};
}

/// sum + a * b, rounded once.
inline Float8 fma(Float8 sum, Float8 a, Float8 b) {
  return {vfmaq_f32(sum.low, a.low, b.low), vfmaq_f32(sum.high, a.high, b.high)};
}
inline Float8 fma(Float8 sum, Float8 a, float b) {
  return {vfmaq_n_f32(sum.low, a.low, b), vfmaq_n_f32(sum.high, a.high, b)};
}

/// The greater of each lane; NaN where either is NaN.
inline Float8 max(Float8 a, Float8 b) {
  return {vmaxq_f32(a.low, b.low), vmaxq_f32(a.high, b.high)};
}

/// The one reduction tree of every eight-lane sum, for four sums at once:
///   ((0+1)+(2+3)) + ((4+5)+(6+7))
inline float32x4_t reduce4(Float8 a, Float8 b, Float8 c, Float8 d) {
  const float32x4_t low = vpaddq_f32(vpaddq_f32(a.low, b.low), vpaddq_f32(c.low, d.low));
  const float32x4_t high = vpaddq_f32(vpaddq_f32(a.high, b.high), vpaddq_f32(c.high, d.high));
  return vaddq_f32(low, high);
}
inline float reduce(Float8 a) {
  return vgetq_lane_f32(reduce4(a, a, a, a), 0);
}

/// The greatest lane; NaN where one is NaN.
inline float greatest(Float8 a) {
  return vmaxvq_f32(vmaxq_f32(a.low, a.high));
}

/// |x| as bits: so ordered, an infinity or a NaN is above every number.
inline uint32x4_t magnitude_bits(float32x4_t x) {
  return vreinterpretq_u32_f32(vabsq_f32(x));
}
inline constexpr uint32_t kLeastQuantized = 0x0D800000U;  // of 2^-100: see int8_levels.hpp
inline constexpr uint32_t kInfinityBits = 0x7F800000U;

/// 2^n for n in [-126, 127].
inline float32x4_t power_of_two(int32x4_t n) {
  return vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(n, vdupq_n_s32(127)), 23));
}

/// e^x in every lane, within 2 units in the last place; the ends are those of pointwise.hpp.
///
/// x = n ln 2 + r with |r| <= ln 2 / 2, where the Taylor series to r^7 is within 0.1 ulp; 2^n is
/// applied in two halves, so that both ends of the range come out of ordinary rounding.
inline float32x4_t exp4(float32x4_t x) {
  x = vminq_f32(x, vdupq_n_f32(89.0F));    // e^89 rounds to infinity; NaN passes
  x = vmaxq_f32(x, vdupq_n_f32(-104.0F));  // e^-104 rounds to zero
  const float32x4_t whole = vrndnq_f32(vmulq_n_f32(x, 0x1.715476p+0F));
  const float32x4_t r =
      vfmsq_f32(vfmsq_f32(x, whole, vdupq_n_f32(0x1.63p-1F)), whole, vdupq_n_f32(-0x1.bd0106p-13F));

  constexpr float kTaylor[] = {1.0F / 720.0F, 1.0F / 120.0F, 1.0F / 24.0F, 1.0F / 6.0F, 0.5F};
  float32x4_t p = vdupq_n_f32(1.0F / 5040.0F);
  for (const float term : kTaylor) p = vfmaq_f32(vdupq_n_f32(term), p, r);
  p = vfmaq_f32(r, vmulq_f32(p, r), r);
  p = vaddq_f32(p, vdupq_n_f32(1.0F));

  const int32x4_t n = vcvtq_s32_f32(whole);
  const int32x4_t half = vshrq_n_s32(n, 1);
  return vmulq_f32(vmulq_f32(p, power_of_two(half)), power_of_two(vsubq_s32(n, half)));
}
inline Float8 exp8(Float8 x) {
  return {exp4(x.low), exp4(x.high)};
}

}  // namespace dovetail::kernels::neon
