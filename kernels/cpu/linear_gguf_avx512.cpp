// Products with packed weights of GGUF for AVX-512 with VNNI: the formats of the walk in
// packed_tiles_avx512.hpp. Contract in kernels/linear_gguf.hpp, oracle in kernels/ref/linear_gguf.cpp.
// vpdpbusd takes the weights without a sign: q8_0 and q6_k get 128 added, which comes off the sum of a
// block as the 8 of q4_0 does. The half blocks of q6_k have scales of their own; their sums of x, which
// are not among the activations, are products with ones.
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
  struct Block {
    __m512i w[kSteps];
    __m512 scale;
  };
  static __m512 add(__m512 total, const Block& block, const XBlock& x) {
    const __m512i start = start_of(minus(kZero), x.sum());
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
  struct Block {
    __m512i w[kSteps];
    __m512 part_scale[2];
    __m512 scale;
  };
  static Block load(const uint8_t* group, int64_t b) {
    const uint8_t* from = block_at(group, b);
    Block block;
    load_signed(block.w, from + kScaleBytes);
    for (int part = 0; part < 2; ++part) {
      const auto* bytes = reinterpret_cast<const __m128i*>(from + part * kPackedRows);
      block.part_scale[part] = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(bytes)));
    }
    block.scale = halves(head_at(group, b));
    return block;
  }
  static __m512 add(__m512 total, const Block& block, const XBlock& x) {
    constexpr int kHalf = kSteps / 2;
    const __m512i ones = _mm512_set1_epi8(1);
    const __m512i all_ones[kSteps] = {ones, ones, ones, ones, ones, ones, ones, ones};
    const __m512i first_sum = dot_bytes<0, kHalf>(_mm512_setzero_si512(), all_ones, x);
    const __m512i last_sum = _mm512_sub_epi32(x.sum(), first_sum);
    const __m512i first = dot_bytes<0, kHalf>(start_of(minus(128), first_sum), block.w, x);
    const __m512i last = dot_bytes<kHalf, kSteps>(start_of(minus(128), last_sum), block.w, x);
    // |scale * sum| <= 128 * 16 * 32 * 127 < 2^23, so both products and their sum are exact.
    const __m512 inner =
        _mm512_fmadd_ps(block.part_scale[0], _mm512_cvtepi32_ps(first),
                        _mm512_mul_ps(block.part_scale[1], _mm512_cvtepi32_ps(last)));
    return _mm512_fmadd_ps(inner, _mm512_mul_ps(block.scale, x.scale()), total);
  }
};

}  // namespace

DVT_LINEAR_OF_FORMAT(q4_0, Q4_0)
DVT_LINEAR_OF_FORMAT(q8_0, Q8_0)
DVT_LINEAR_OF_FORMAT(q4_k, Q4_K)
DVT_LINEAR_OF_FORMAT(q6_k, Q6_K)

}  // namespace dovetail::kernels::avx512
