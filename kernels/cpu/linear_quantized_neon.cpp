// linear over packed weights for NEON with the dot products of ARMv8.2: the formats of the walk in
// packed_tiles_neon.hpp. Contract in kernels/linear_quantized.hpp, oracle in
// kernels/ref/linear_quantized.cpp.
// Built with +dotprod: C headers and intrinsics only (a test finds no weak symbols here).
#include "kernels/cpu/linear_of_format.hpp"
#include "kernels/cpu/neon.hpp"
#include "kernels/cpu/packed_tiles_neon.hpp"

namespace dovetail::kernels::neon::dotprod {
namespace {

/// s(c) of four scale bytes: their bits are the top of a float's exponent and mantissa.
static inline float32x4_t scales_of(uint32x4_t codes) {
  return vreinterpretq_f32_u32(vaddq_u32(vshlq_n_u32(codes, 18), vdupq_n_u32(132U << 23U)));
}

/// The 16 rows' d, and then blocks of kBlockBytes whose levels come after kCodeBytes.
template <int64_t kBlockBytes, int64_t kCodeBytes>
struct Places {
  static constexpr bool kIsFine = false;
  static constexpr bool kHasPartScales = false;
  static int64_t group_bytes(int64_t k_len) {
    return kPackedRows * 4 + k_len / kQuantBlock * kBlockBytes;
  }
  static const uint8_t* block_at(const uint8_t* group, int64_t b) {
    return group + kPackedRows * 4 + b * kBlockBytes;
  }
  static const uint8_t* levels_at(const uint8_t* group, int64_t b) {
    return block_at(group, b) + kCodeBytes;
  }
  static float32x4_t scale(const uint8_t* group, int64_t b, int v) {
    return scales_of(widen_bytes(vld1q_u8(block_at(group, b)), v));
  }
  static float finished(const uint8_t* group, int64_t lane, float total) {
    return reinterpret_cast<const float*>(group)[lane] * total;
  }
};

/// Levels that have their sign.
struct Signed {
  static int own(const uint8_t* /*group*/, int64_t /*b*/, int /*v*/) { return 0; }
  static float32x4_t finish(float32x4_t total, int32x4_t sum, float32x4_t scale, int /*own*/,
                            float x_scale, int32_t /*x_sum*/) {
    return add_scaled(total, sum, scale, x_scale);
  }
};

struct Int8 : Places<kInt8BlockBytes, kPackedRows>, Signed, ByteLevels {
  static constexpr bool kIsPacked = false;
  static constexpr bool kIsFine = true;
  static float finished(const uint8_t* group, int64_t lane, float total) {
    return Places::finished(group, lane, total * kFineStep);
  }
};

struct Int6 : Places<kInt6BlockBytes, kPackedRows>, Signed {
  static constexpr bool kIsPacked = true;
  static Pair read(const uint8_t* q, int p) {
    const uint8x16_t upper_two = vdupq_n_u8(0x30);
    const auto with_sign = [](uint8x16_t level) {
      return vreinterpretq_s8_u8(vsubq_u8(level, vdupq_n_u8(kInt6Zero)));
    };
    Pair pair;
    for (int v = 0; v < kQuads; ++v) {
      const uint8x16_t both = vld1q_u8(q + kStepBytes * p + 16 * v);
      const uint8x16_t four = vld1q_u8(q + kStepBytes * (4 + p / 2) + 16 * v);  // of four steps
      const uint8x16_t even = p % 2 == 0 ? vshlq_n_u8(four, 4) : four;
      const uint8x16_t odd = p % 2 == 0 ? vshlq_n_u8(four, 2) : vshrq_n_u8(four, 2);
      pair.even[v] = with_sign(vorrq_u8(vandq_u8(both, vdupq_n_u8(15)), vandq_u8(even, upper_two)));
      pair.odd[v] = with_sign(vorrq_u8(vshrq_n_u8(both, 4), vandq_u8(odd, upper_two)));
    }
    return pair;
  }
};

/// Four-bit levels, each worth a power of two, with what comes off for each unit of x.
template <class Level>
struct Nibbles : Places<kInt4BlockBytes, 2 * kPackedRows> {
  static constexpr bool kIsPacked = true;
  static Pair read(const uint8_t* q, int p) {
    Pair pair;
    for (int v = 0; v < kQuads; ++v) {
      const uint8x16_t both = vld1q_u8(q + kStepBytes * p + 16 * v);
      pair.even[v] = vreinterpretq_s8_u8(Level::of(vandq_u8(both, vdupq_n_u8(15))));
      pair.odd[v] = vreinterpretq_s8_u8(Level::of(vshrq_n_u8(both, 4)));
    }
    return pair;
  }
  static int32x4_t own(const uint8_t* group, int64_t b, int v) {
    const uint8x16_t zeros = vld1q_u8(Nibbles::block_at(group, b) + kPackedRows);
    return vreinterpretq_s32_u32(widen_bytes(zeros, v));
  }
  static float32x4_t finish(float32x4_t total, int32x4_t sum, float32x4_t scale, int32x4_t zero,
                            float x_scale, int32_t x_sum) {
    const int32x4_t inner = vmlsq_n_s32(vshlq_n_s32(sum, Level::kShift), zero, x_sum);
    return add_scaled(total, inner, scale, x_scale);
  }
};

struct Int4Level {
  static constexpr int kShift = 4;
  static uint8x16_t of(uint8x16_t q) { return q; }
};
/// A copy of kInt4qGrid of this file's own: reading that one by address would define it here.
struct Grid {
  uint8_t level[16];
};
constexpr Grid copy_grid() {
  Grid grid = {};
  for (int i = 0; i < 16; ++i) grid.level[i] = kInt4qGrid[i];
  return grid;
}
constexpr Grid kGrid = copy_grid();

struct Int4qLevel {
  static constexpr int kShift = 2;
  static uint8x16_t of(uint8x16_t q) { return vqtbl1q_u8(vld1q_u8(kGrid.level), q); }
};
using Int4 = Nibbles<Int4Level>;
using Int4q = Nibbles<Int4qLevel>;

}  // namespace

DVT_LINEAR_OF_FORMAT(int8, Int8)
DVT_LINEAR_OF_FORMAT(int4, Int4)
DVT_LINEAR_OF_FORMAT(int4q, Int4q)
DVT_LINEAR_OF_FORMAT(int6, Int6)

}  // namespace dovetail::kernels::neon::dotprod
