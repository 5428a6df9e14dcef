// Products with packed weights of GGUF for AVX-512 with VNNI: the formats of the walk in
// packed_tiles_avx512.hpp. Contract in kernels/linear_gguf.hpp, oracle in kernels/ref/linear_gguf.cpp.
// q4_0 and q4_k take vpdpbusd, q8_0 and q6_k activations of 16 bits and vpdpwssd.
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

struct Q4_0 : Places<PlacesQ4_0> {
  struct Block {
    __m512i w[kSteps];
    __m512 scale;
  };
  static Block load(const uint8_t* group, int64_t b) {
    Block block;
    load_nibbles(block.w, block_at(group, b));
    block.scale = halves(head_at(group, b));
    return block;
  }
  static __m512 add(__m512 total, const Block& block, const XBlock& x) {
    const __m512i start = start_of(minus(8), x.sum());
    return add_scaled(total, dot_bytes(start, block.w, x), block.scale, x);
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

/// Levels of 8 bits and more, multiplied with activations in kFineStep.
template <class At>
struct FinePlaces : At {
  struct Block {
    Words w;
    __m512 scale;
  };
  static __m512 add(__m512 total, const Block& block, const XBlock& x) {
    return add_scaled(total, dot_words(block.w, x), block.scale, x);
  }
  static __m512 finished(const uint8_t* /*group*/, __m512 total) {
    return _mm512_mul_ps(total, _mm512_set1_ps(kFineStep));
  }
};

struct Q8_0 : FinePlaces<PlacesQ8_0> {
  static Block load(const uint8_t* group, int64_t b) {
    Block block;
    load_words(block.w, block_at(group, b));
    block.scale = halves(head_at(group, b));
    return block;
  }
};

/// Levels times the scales of their half blocks: 32 * 128 at most.
struct Q6_K : FinePlaces<PlacesQ6_K> {
  static Block load(const uint8_t* group, int64_t b) {
    const uint8_t* from = block_at(group, b);
    Block block;
    load_words(block.w, from + kScaleBytes);
    for (int v = 0; v < 2 * kSteps; ++v) {
      const int part = v / kSteps;
      block.w[v] = _mm512_mullo_epi16(block.w[v], scales_of(from + part * kPackedRows + v % 2 * 8));
    }
    block.scale = halves(head_at(group, b));
    return block;
  }

 private:
  /// Eight signed bytes, each in the four words of its row.
  static __m512i scales_of(const uint8_t* p) {
    const __m512i wide = _mm512_cvtepi8_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
    return _mm512_shuffle_epi8(wide, _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 0, 1, 0, 1, 0, 1, 8,
                                                                          9, 8, 9, 8, 9, 8, 9)));
  }
};

}  // namespace

DVT_LINEAR_OF_FORMAT(q4_0, Q4_0)
DVT_LINEAR_OF_FORMAT(q8_0, Q8_0)
DVT_LINEAR_OF_FORMAT(q4_k, Q4_K)
DVT_LINEAR_OF_FORMAT(q6_k, Q6_K)

}  // namespace dovetail::kernels::avx512
