// Products with packed weights of GGUF for AVX2 + FMA + F16C: the formats of the walk in
// packed_tiles_avx2.hpp. Contract in kernels/linear_gguf.hpp, oracle in kernels/ref/linear_gguf.cpp.
//   q4_0, q4_k   vpmaddubsw, summed in 16 bits over the whole block
//   q8_0, q6_k   vpmaddwd of weights widened to 16 bits and activations of 16 bits
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

/// Levels of 8 bits and more, multiplied with activations in kFineStep.
template <class At>
struct FinePlaces : Places<At> {
  static __m256 finished(const uint8_t* /*group*/, int /*h*/, __m256 total) {
    return _mm256_mul_ps(total, _mm256_set1_ps(kFineStep));
  }
};

struct Q8_0 : FinePlaces<PlacesQ8_0> {
  static Pair words(const uint8_t* block, int s, int h) {
    return widened(load_bytes(block + 64 * s + 32 * h));
  }
};

/// Levels times the scales of their half blocks: 32 * 128 at most.
struct Q6_K : FinePlaces<PlacesQ6_K> {
  static Pair words(const uint8_t* block, int s, int h) {
    const int part = s / (kSteps / 2);
    const __m256i scale = paired_bytes(block + part * kPackedRows + kLanes * h);
    // Of 256 * level and 256 * scale the upper 16 bits are their product.
    const __m256i by = _mm256_slli_epi16(scale, 8);
    const Pair upper = upper_bytes(load_bytes(block + kScaleBytes + 64 * s + 32 * h));
    return {_mm256_mulhi_epi16(upper.even, by), _mm256_mulhi_epi16(upper.odd, by)};
  }
};

}  // namespace

DVT_LINEAR_OF_FORMAT(q4_0, LevelFormat<Q4_0>)
DVT_LINEAR_OF_FORMAT(q8_0, WordFormat<Q8_0>)
DVT_LINEAR_OF_FORMAT(q4_k, LevelFormat<Q4_K>)
DVT_LINEAR_OF_FORMAT(q6_k, WordFormat<Q6_K>)

}  // namespace dovetail::kernels::avx2
