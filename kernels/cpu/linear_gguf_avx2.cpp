// Products with packed weights of GGUF for AVX2 + FMA + F16C: the formats of the walk in
// packed_tiles_avx2.hpp. Contract in kernels/linear_gguf.hpp, oracle in kernels/ref/linear_gguf.cpp.
//   q4_0, q4_k   vpmaddubsw, summed in 16 bits over the whole block
//   q8_0         |w| times x with the sign of w; for many tokens a panel of 16-bit weights
//   q6_k         likewise, in 16 bits over four steps: 2 * 32 * 127 * 4 = 32512; the scale of the half block
//                comes with the widening. In a panel it is multiplied into the levels: 128 * 32 at most
// Built with -mavx2 -mfma -mf16c: C headers and intrinsics only (a test finds no weak symbols here).
#include "kernels/cpu/avx2.hpp"
#include "kernels/cpu/gguf_places.hpp"
#include "kernels/cpu/linear_of_format.hpp"
#include "kernels/cpu/packed_tiles_avx2.hpp"

namespace dovetail::kernels::avx2 {
namespace {

/// Eight halves as floats.
static inline __m256 halves(const uint8_t* p) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
static inline __m256 unsigned_bytes(const uint8_t* p) {
  return _mm256_cvtepi32_ps(widen_bytes(p));
}
/// Eight signed bytes, each in both 16-bit halves of its lane.
static inline __m256i paired_bytes(const uint8_t* p) {
  const __m256i wide = _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
  return _mm256_blend_epi16(wide, _mm256_slli_epi32(wide, 16), 0xAA);
}

/// Blocks that are multiplied with d of their rows, and nothing else.
template <class At>
struct Places : At {
  static __m256 scale(const uint8_t* group, int64_t b, int h) {
    return halves(At::head_at(group, b) + 2 * kLanes * h);
  }
  static __m256 finished(const uint8_t* /*group*/, int /*h*/, __m256 total) { return total; }
};

struct Q4_0 : Places<PlacesQ4_0>, WholeBlock<1> {
  static Pair levels(const uint8_t* block, int s, int h) {
    return nibbles(block + 64 * s + 32 * h);
  }
  /// What comes off every level.
  static __m256i own(const uint8_t* /*group*/, int64_t /*b*/, int /*h*/) {
    return _mm256_set1_epi32(8);
  }
  static __m256 finish(__m256 total, __m256i sum, __m256 scale, __m256i zero, __m256 x_scale,
                       __m256i x_sum) {
    return add_block(total, without(WholeBlock::total(sum), zero, x_sum), scale, x_scale);
  }
};

struct Q4_K : Places<PlacesQ4_K>, WholeBlock<1> {
  static Pair levels(const uint8_t* block, int s, int h) {
    return nibbles(block + kScaleBytes + 64 * s + 32 * h);
  }
  static __m256 scale(const uint8_t* group, int64_t b, int h) {
    return _mm256_mul_ps(Places::scale(group, b, h),
                         unsigned_bytes(block_at(group, b) + kLanes * h));
  }
  /// What comes off the weights.
  static __m256i own(const uint8_t* group, int64_t b, int h) {
    const __m256 m = halves(head_at(group, b) + kHalvesBytes + 2 * kLanes * h);
    const uint8_t* by = block_at(group, b) + kPackedRows + kLanes * h;
    return _mm256_castps_si256(_mm256_mul_ps(m, unsigned_bytes(by)));
  }
  static __m256 finish(__m256 total, __m256i sum, __m256 scale, __m256i offset, __m256 x_scale,
                       __m256i x_sum) {
    total = add_block(total, WholeBlock::total(sum), scale, x_scale);
    const __m256 by = _mm256_mul_ps(_mm256_castsi256_ps(offset), x_scale);
    return _mm256_fnmadd_ps(_mm256_cvtepi32_ps(x_sum), by, total);
  }
};

struct Q8_0 : Places<PlacesQ8_0> {
  static constexpr bool kHasLeast = true;
  static __m256i levels(const uint8_t* block, int s, int h) {
    return load_bytes(block + 64 * s + 32 * h);
  }
};

struct Q6_K : Places<PlacesQ6_K> {
  using Panel = WordPanel;

  /// The scales of a half block and eight rows, each in both 16-bit halves of its lane.
  static __m256i part_scale(const uint8_t* block, int part, int h) {
    return paired_bytes(block + part * kPackedRows + kLanes * h);
  }
  static __m256i levels(const uint8_t* block, int s, int h) {
    return load_bytes(block + kScaleBytes + 64 * s + 32 * h);
  }

  static void fill(uint8_t* panel, const uint8_t* group, int64_t b) {
    const uint8_t* block = block_at(group, b);
    for (int h = 0; h < kHalves; ++h) {
      _mm256_store_ps(reinterpret_cast<float*>(panel) + kLanes * h, scale(group, b, h));
      for (int s = 0; s < kSteps; ++s) {
        // Of 256 * level and 256 * scale the upper 16 bits are their product.
        const __m256i by = _mm256_slli_epi16(part_scale(block, s / (kSteps / 2), h), 8);
        const Pair w = Panel::upper_bytes(levels(block, s, h));
        Panel::store_words(panel, s, h,
                           {_mm256_mulhi_epi16(w.even, by), _mm256_mulhi_epi16(w.odd, by)});
      }
    }
  }

  template <int kTokens>
  [[gnu::always_inline]] static void add_products(Totals<kTokens>& total, const Rows<kTokens>& x,
                                                  const uint8_t* group, int64_t b) {
    const uint8_t* block = block_at(group, b);
    __m256i inner[kTokens][kHalves];
    for (int i = 0; i < kTokens; ++i) inner[i][0] = inner[i][1] = _mm256_setzero_si256();
    for (int part = 0; part < 2; ++part) {
      constexpr int kPartSteps = kSteps / 2;
      __m256i sum[kTokens][kHalves];
      for (int i = 0; i < kTokens; ++i) sum[i][0] = sum[i][1] = _mm256_setzero_si256();
#pragma GCC unroll 4
      for (int at = 0; at < kPartSteps; ++at) {
        const int s = part * kPartSteps + at;
        for (int h = 0; h < kHalves; ++h) {
          const __m256i w = levels(block, s, h);
          const __m256i magnitude = _mm256_abs_epi8(w);
          for (int i = 0; i < kTokens; ++i) {
            const __m256i q = x.four(i, b * kQuantBlock + 4 * s);
            sum[i][h] = _mm256_add_epi16(sum[i][h],
                                         _mm256_maddubs_epi16(magnitude, _mm256_sign_epi8(q, w)));
            settle(sum[i][h]);
          }
        }
      }
      for (int h = 0; h < kHalves; ++h) {
        const __m256i by = part_scale(block, part, h);
        for (int i = 0; i < kTokens; ++i) {
          inner[i][h] = _mm256_add_epi32(inner[i][h], _mm256_madd_epi16(sum[i][h], by));
        }
      }
    }
    for (int h = 0; h < kHalves; ++h) {
      const __m256 d = scale(group, b, h);
      for (int i = 0; i < kTokens; ++i) {
        total[i][h] = add_block(total[i][h], inner[i][h], d, x.scale(i, b));
      }
    }
  }
};

}  // namespace

DVT_LINEAR_OF_FORMAT(q4_0, LevelFormat<Q4_0>)
DVT_LINEAR_OF_FORMAT(q8_0, ByteFormat<Q8_0>)
DVT_LINEAR_OF_FORMAT(q4_k, LevelFormat<Q4_K>)
DVT_LINEAR_OF_FORMAT(q6_k, Q6_K)

}  // namespace dovetail::kernels::avx2
