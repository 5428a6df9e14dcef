// Products with packed weights of GGUF for AVX-512 with VNNI: the formats of the walk in
// packed_tiles_avx512.hpp. Contract in kernels/linear_gguf.hpp, oracle in kernels/ref/linear_gguf.cpp.
// vpdpbusd takes the weights without a sign: q8_0 gets 128 added, which comes off the sum of a block as
// the 8 of q4_0 does. The two scales of a block of q6_k are multiplied into its levels, which then are
// 16-bit numbers (128 * 32 at most) for vpdpwssd: the sums of half blocks that would have to come off
// otherwise are not among the activations.
// Built with -mavx512{f,bw,vl,vnni}: C headers and intrinsics only (a test finds no weak symbols).
#include "kernels/cpu/avx512.hpp"
#include "kernels/cpu/gguf_places.hpp"
#include "kernels/cpu/linear_of_format.hpp"
#include "kernels/cpu/packed_tiles_avx512.hpp"

namespace dovetail::kernels::avx512 {
namespace {

/// Sixteen halves as floats.
inline __m512 halves(const uint8_t* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}

template <class At>
struct Places : At {
  static __m512 finished(const uint8_t* /*group*/, __m512 total) { return total; }
};

/// Bytes without a sign, of which kZero comes off.
template <uint16_t kZero>
struct WithZero {
  static constexpr int64_t kXBytes = 1;
  struct Block {
    __m512i w[kSteps];
    __m512 scale;
  };
  static __m512 add(__m512 total, const Block& block, const XBlock& x) {
    const __m512i start = start_of(minus(kZero), x);
    return add_scaled(total, dot_bytes(start, block.w, x), block.scale, x);
  }
};

struct Q4_0 : Places<PlacesQ4_0>, WithZero<8> {
  static Block load(const uint8_t* group, int64_t b) {
    Block block;
    load_nibbles(block.w, block_at(group, b));
    block.scale = halves(head_at(group, b));
    return block;
  }
};

struct Q8_0 : Places<PlacesQ8_0>, WithZero<128> {
  static Block load(const uint8_t* group, int64_t b) {
    Block block;
    load_signed(block.w, block_at(group, b));
    block.scale = halves(head_at(group, b));
    return block;
  }
};

struct Q4_K : Places<PlacesQ4_K> {
  static constexpr int64_t kXBytes = 1;
  struct Block {
    __m512i w[kSteps];
    __m512 scale;
    __m512 offset;
  };
  static Block load(const uint8_t* group, int64_t b) {
    const uint8_t* head = head_at(group, b);
    const uint8_t* from = block_at(group, b);
    Block block;
    load_nibbles(block.w, from + kScaleBytes);
    block.scale = _mm512_mul_ps(halves(head), floats_of(from));
    block.offset = _mm512_mul_ps(halves(head + kHalvesBytes), floats_of(from + kPackedRows));
    return block;
  }
  static __m512 add(__m512 total, const Block& block, const XBlock& x) {
    total = add_scaled(total, dot_bytes(_mm512_setzero_si512(), block.w, x), block.scale, x);
    return _mm512_fnmadd_ps(_mm512_cvtepi32_ps(x.sum()), _mm512_mul_ps(block.offset, x.scale()),
                            total);
  }

 private:
  static __m512 floats_of(const uint8_t* bytes) { return _mm512_cvtepi32_ps(widen_bytes(bytes)); }
};

struct Q6_K : Places<PlacesQ6_K> {
  static constexpr int64_t kXBytes = 2;
  struct Block {
    __m512i w[2 * kSteps];  // two k of sixteen rows each, times their scales
    __m512 scale;
  };
  static Block load(const uint8_t* group, int64_t b) {
    // The first and the last two bytes of each row's four, each in the upper half of 16 bits.
    const __m512i row =
        _mm512_broadcast_i32x4(_mm_setr_epi32(0, 0x04000400, 0x08000800, 0x0C000C00));
    const __m512i first = _mm512_add_epi8(row, _mm512_set1_epi32(0x01800080));
    const __m512i last = _mm512_add_epi8(row, _mm512_set1_epi32(0x03800280));
    const uint8_t* from = block_at(group, b);
    const __m512i scale[2] = {upper_bytes(from), upper_bytes(from + kPackedRows)};
    Block block;
    for (int s = 0; s < kSteps; ++s) {
      const __m512i levels = _mm512_loadu_si512(from + kScaleBytes + 64 * s);
      const __m512i by = scale[s / (kSteps / 2)];
      // Of 256 * level and 256 * scale the upper 16 bits are their product.
      block.w[2 * s] = _mm512_mulhi_epi16(_mm512_shuffle_epi8(levels, first), by);
      block.w[2 * s + 1] = _mm512_mulhi_epi16(_mm512_shuffle_epi8(levels, last), by);
    }
    block.scale = halves(head_at(group, b));
    return block;
  }
  static __m512 add(__m512 total, const Block& block, const XBlock& x) {
    __m512i sum = _mm512_setzero_si512();
    for (int p = 0; p < 2 * kSteps; ++p) {
      sum = _mm512_dpwssd_epi32(sum, block.w[p], broadcast4(x.q16 + 4 * p));
    }
    return add_scaled(total, sum, block.scale, x);
  }

 private:
  /// Each byte in the upper half of both 16-bit halves of its lane.
  static __m512i upper_bytes(const uint8_t* p) {
    const __m512i wide = widen_bytes(p);
    return _mm512_or_si512(_mm512_slli_epi32(wide, 8), _mm512_slli_epi32(wide, 24));
  }
};

}  // namespace

DVT_LINEAR_OF_FORMAT(q4_0, Q4_0)
DVT_LINEAR_OF_FORMAT(q8_0, Q8_0)
DVT_LINEAR_OF_FORMAT(q4_k, Q4_K)
DVT_LINEAR_OF_FORMAT(q6_k, Q6_K)

}  // namespace dovetail::kernels::avx512
