// Products with packed weights of GGUF for NEON with the dot products of ARMv8.2: the formats of the walk
// in packed_tiles_neon.hpp. Contract in kernels/linear_gguf.hpp, oracle in kernels/ref/linear_gguf.cpp.
// Built with +dotprod: C headers and intrinsics only (a test finds no weak symbols here).
#include "kernels/cpu/gguf_places.hpp"
#include "kernels/cpu/linear_of_format.hpp"
#include "kernels/cpu/neon.hpp"
#include "kernels/cpu/packed_tiles_neon.hpp"

namespace dovetail::kernels::neon::dotprod {
namespace {

/// Four halves as floats.
static inline float32x4_t halves(const uint8_t* p) {
  return vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(p)));
}
/// Quad v of sixteen bytes, as floats.
static inline float32x4_t unsigned_bytes(const uint8_t* p, int v) {
  return vcvtq_f32_u32(widen_bytes(vld1q_u8(p), v));
}

/// Blocks that are multiplied with d of their rows, and nothing else.
template <class At>
struct Places : At {
  static constexpr bool kIsFine = false;
  static constexpr bool kHasPartScales = false;
  static float32x4_t scale(const uint8_t* group, int64_t b, int v) {
    return halves(At::head_at(group, b) + 8 * v);
  }
  static int own(const uint8_t* /*group*/, int64_t /*b*/, int /*v*/) { return 0; }
  static float32x4_t finish(float32x4_t total, int32x4_t sum, float32x4_t scale, int /*own*/,
                            float x_scale, int32_t /*x_sum*/) {
    return add_scaled(total, sum, scale, x_scale);
  }
  static float finished(const uint8_t* /*group*/, int64_t /*lane*/, float total) { return total; }
};

/// Four-bit levels less kZero.
template <int8_t kZero>
struct Nibbles {
  static constexpr bool kIsPacked = true;
  static Pair read(const uint8_t* q, int p) {
    const auto level = [](uint8x16_t bits) {
      return vsubq_s8(vreinterpretq_s8_u8(bits), vdupq_n_s8(kZero));
    };
    Pair pair;
    for (int v = 0; v < kQuads; ++v) {
      const uint8x16_t both = vld1q_u8(q + kStepBytes * p + 16 * v);
      pair.even[v] = level(vandq_u8(both, vdupq_n_u8(15)));
      pair.odd[v] = level(vshrq_n_u8(both, 4));
    }
    return pair;
  }
};

struct Q4_0 : Places<PlacesQ4_0>, Nibbles<8> {};

/// Levels of 8 bits and more, multiplied with activations in kFineStep.
template <class At>
struct FinePlaces : Places<At> {
  static constexpr bool kIsFine = true;
  static float finished(const uint8_t* /*group*/, int64_t /*lane*/, float total) {
    return total * kFineStep;
  }
};

struct Q8_0 : FinePlaces<PlacesQ8_0>, ByteLevels {
  static constexpr bool kIsPacked = false;
};

struct Q4_K : Places<PlacesQ4_K>, Nibbles<0> {
  static float32x4_t scale(const uint8_t* group, int64_t b, int v) {
    return vmulq_f32(Places::scale(group, b, v), unsigned_bytes(block_at(group, b), v));
  }
  /// What comes off the weights.
  static float32x4_t own(const uint8_t* group, int64_t b, int v) {
    return vmulq_f32(halves(head_at(group, b) + kHalvesBytes + 8 * v),
                     unsigned_bytes(block_at(group, b) + kPackedRows, v));
  }
  static float32x4_t finish(float32x4_t total, int32x4_t sum, float32x4_t scale, float32x4_t offset,
                            float x_scale, int32_t x_sum) {
    total = add_scaled(total, sum, scale, x_scale);
    return vfmsq_f32(total, vdupq_n_f32(static_cast<float>(x_sum)), vmulq_n_f32(offset, x_scale));
  }
};

struct Q6_K : FinePlaces<PlacesQ6_K>, ByteLevels {
  static constexpr bool kIsPacked = false;
  static constexpr bool kHasPartScales = true;
  static int32x4_t part_scale(const uint8_t* group, int64_t b, int part, int v) {
    const auto* from = reinterpret_cast<const int8_t*>(block_at(group, b)) + part * kPackedRows;
    const int8x16_t bytes = vld1q_s8(from);
    const int16x8_t half = v < 2 ? vmovl_s8(vget_low_s8(bytes)) : vmovl_high_s8(bytes);
    return v % 2 == 0 ? vmovl_s16(vget_low_s16(half)) : vmovl_high_s16(half);
  }
};

}  // namespace

DVT_LINEAR_OF_FORMAT(q4_0, Q4_0)
DVT_LINEAR_OF_FORMAT(q8_0, Q8_0)
DVT_LINEAR_OF_FORMAT(q4_k, Q4_K)
DVT_LINEAR_OF_FORMAT(q6_k, Q6_K)

}  // namespace dovetail::kernels::neon::dotprod
