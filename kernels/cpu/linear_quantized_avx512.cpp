// linear over packed weights for AVX-512 with VNNI: the formats of the walk in packed_tiles_avx512.hpp.
// Contract in kernels/linear_quantized.hpp, oracle in kernels/ref/linear_quantized.cpp.
// vpdpbusd takes the weights without a sign: those of int6 have 32 added, which comes off the sum of a
// block as z does in the 4-bit formats. int8 takes activations of 16 bits and vpdpwssd.
// Built with -mavx512{f,bw,vl,vnni}: C headers and intrinsics only (a test finds no weak symbols).
#include "kernels/cpu/avx512.hpp"
#include "kernels/cpu/linear_of_format.hpp"
#include "kernels/cpu/packed_tiles_avx512.hpp"

namespace dovetail::kernels::avx512 {
namespace {

/// s(c) of sixteen scale bytes: their bits are the top of a float's exponent and mantissa.
inline __m512 scales_of(const uint8_t* codes) {
  const __m512i bits = _mm512_slli_epi32(widen_bytes(codes), 18);
  return _mm512_castsi512_ps(_mm512_add_epi32(bits, _mm512_set1_epi32(132 << 23)));
}

/// Where blocks of kBytes lie, behind the 16 rows' d.
template <int64_t kBytes>
struct Places {
  static constexpr int64_t kBlockBytes = kBytes;
  static int64_t group_bytes(int64_t k_len) {
    return kPackedRows * 4 + k_len / kQuantBlock * kBlockBytes;
  }
  static const uint8_t* block_at(const uint8_t* group, int64_t b) {
    return group + kPackedRows * 4 + b * kBlockBytes;
  }
  static __m512 finished(const uint8_t* group, __m512 total) {
    return _mm512_mul_ps(_mm512_loadu_ps(group), total);
  }
};

/// As packed_tiles_avx512.hpp wants it. Weights has the weights of a block as bytes without a sign, the
/// factor that makes their sum one of whole numbers v, and what comes off for each unit of x, as
/// start_of takes it.
template <class Weights>
struct Scaled : Places<Weights::kBlockBytes> {
  struct Block {
    __m512i w[kSteps];
    __m512 scale;
    __m512i minus_zero;
  };
  static Block load(const uint8_t* group, int64_t b) {
    const uint8_t* from = Scaled::block_at(group, b);
    Block block;
    Weights::load(block.w, from);
    block.scale = scales_of(from);
    block.minus_zero = Weights::minus_zero(from);
    return block;
  }
  static __m512 add(__m512 total, const Block& block, const XBlock& x) {
    const __m512i start = start_of(block.minus_zero, x.sum());
    return add_scaled(total, Weights::dot(start, block.w, x), block.scale, x);
  }
};

struct Int8 : Places<kInt8BlockBytes> {
  struct Block {
    Words w;
    __m512 scale;
  };
  static Block load(const uint8_t* group, int64_t b) {
    const uint8_t* from = block_at(group, b);
    Block block;
    load_words(block.w, from + kPackedRows);
    block.scale = scales_of(from);
    return block;
  }
  static __m512 add(__m512 total, const Block& block, const XBlock& x) {
    return add_scaled(total, dot_words(block.w, x), block.scale, x);
  }
  static __m512 finished(const uint8_t* group, __m512 total) {
    return Places::finished(group, _mm512_mul_ps(total, _mm512_set1_ps(kFineStep)));
  }
};

/// Weights that are whole numbers as they are.
struct Unscaled {
  static __m512i dot(__m512i start, const __m512i (&w)[kSteps], const XBlock& x) {
    return dot_bytes(start, w, x);
  }
};

struct Int6 : Unscaled {
  static constexpr int64_t kBlockBytes = kInt6BlockBytes;
  static void load(__m512i (&w)[kSteps], const uint8_t* block) {
    load_nibbles(w, block + kPackedRows);
    const __m512i upper_two = _mm512_set1_epi8(0x30);
    for (int64_t s = 0; s < kSteps; s += 4) {
      const __m512i four = _mm512_loadu_si512(block + kPackedRows + 256 + 16 * s);
      const __m512i upper[4] = {_mm512_slli_epi16(four, 4), _mm512_slli_epi16(four, 2), four,
                                _mm512_srli_epi16(four, 2)};
      for (int64_t j = 0; j < 4; ++j) {
        w[s + j] = _mm512_or_si512(w[s + j], _mm512_and_si512(upper[j], upper_two));
      }
    }
  }
  static __m512i minus_zero(const uint8_t* /*block*/) { return minus(kInt6Zero); }
};

struct Zeros {
  static constexpr int64_t kBlockBytes = kInt4BlockBytes;
  static __m512i minus_zero(const uint8_t* block) {
    return _mm512_sub_epi16(_mm512_setzero_si512(), widen_bytes(block + kPackedRows));
  }
};

/// Levels are worth 16 each: they are left in the upper half of their bytes.
struct Int4 : Zeros, Unscaled {
  static void load(__m512i (&w)[kSteps], const uint8_t* block) {
    const __m512i upper_half = _mm512_set1_epi8(static_cast<char>(0xF0));
    for (int64_t s = 0; s < kSteps / 2; ++s) {
      const __m512i both = _mm512_loadu_si512(block + 2 * kPackedRows + 64 * s);
      w[2 * s] = _mm512_and_si512(_mm512_slli_epi16(both, 4), upper_half);
      w[2 * s + 1] = _mm512_and_si512(both, upper_half);
    }
  }
};

/// Numbers of the grid are worth 4 each, which for the greatest is more than a byte holds.
struct Int4q : Zeros {
  static void load(__m512i (&w)[kSteps], const uint8_t* block) {
    alignas(16) static const uint8_t kTable[16] = {
        kInt4qGrid[0],  kInt4qGrid[1],  kInt4qGrid[2],  kInt4qGrid[3],
        kInt4qGrid[4],  kInt4qGrid[5],  kInt4qGrid[6],  kInt4qGrid[7],
        kInt4qGrid[8],  kInt4qGrid[9],  kInt4qGrid[10], kInt4qGrid[11],
        kInt4qGrid[12], kInt4qGrid[13], kInt4qGrid[14], kInt4qGrid[15]};
    const __m128i table = _mm_load_si128(reinterpret_cast<const __m128i*>(kTable));
    load_nibbles(w, block + 2 * kPackedRows);
    for (__m512i& step : w) step = _mm512_shuffle_epi8(_mm512_broadcast_i32x4(table), step);
  }
  static __m512i dot(__m512i start, const __m512i (&w)[kSteps], const XBlock& x) {
    const __m512i sum = dot_bytes(_mm512_setzero_si512(), w, x);
    return _mm512_add_epi32(start, _mm512_slli_epi32(sum, 2));
  }
};

}  // namespace

DVT_LINEAR_OF_FORMAT(int8, Int8)
DVT_LINEAR_OF_FORMAT(int4, Scaled<Int4>)
DVT_LINEAR_OF_FORMAT(int4q, Scaled<Int4q>)
DVT_LINEAR_OF_FORMAT(int6, Scaled<Int6>)

}  // namespace dovetail::kernels::avx512
