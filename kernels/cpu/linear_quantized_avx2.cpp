// linear over packed weights for AVX2 + FMA: the formats of the walk in packed_tiles_avx2.hpp. Contract
// in kernels/linear_quantized.hpp, oracle in kernels/ref/linear_quantized.cpp.
//   int4   vpmaddubsw, summed in 16 bits over the whole block
//   int4q  the same after a table look-up, in 16 bits over two steps: 4 * 64 * 127 = 32512
//   int6   the same after two more bits are put to each level: 4 * 63 * 127 = 32004
//   int8   vpmaddwd of weights widened to 16 bits and activations of 16 bits
// Built with -mavx2 -mfma: C headers and intrinsics only (a test finds no weak symbols here).
#include "kernels/cpu/avx2.hpp"
#include "kernels/cpu/linear_of_format.hpp"
#include "kernels/cpu/packed_tiles_avx2.hpp"

namespace dovetail::kernels::avx2 {
namespace {

/// s(c) of eight scale bytes: their bits are the top of a float's exponent and mantissa.
static inline __m256 scales_of(const uint8_t* codes) {
  const __m256i bits = _mm256_slli_epi32(widen_bytes(codes), 18);
  return _mm256_castsi256_ps(_mm256_add_epi32(bits, _mm256_set1_epi32(132 << 23)));
}

/// The 16 rows' d, and then blocks of kBytes that begin with their scales.
template <int64_t kBytes>
struct Places {
  static constexpr int64_t kBlockBytes = kBytes;
  static int64_t group_bytes(int64_t k_len) {
    return kPackedRows * 4 + k_len / kQuantBlock * kBlockBytes;
  }
  static const uint8_t* block_at(const uint8_t* group, int64_t b) {
    return group + kPackedRows * 4 + b * kBlockBytes;
  }
  static __m256 scale(const uint8_t* group, int64_t b, int h) {
    return scales_of(block_at(group, b) + kLanes * h);
  }
  static __m256 finished(const uint8_t* group, int h, __m256 total) {
    return _mm256_mul_ps(_mm256_loadu_ps(reinterpret_cast<const float*>(group) + kLanes * h),
                         total);
  }
};

/// Four-bit levels, with what comes off for each unit of x; Steps says how two steps' products with
/// one token are added.
template <class Steps>
struct Nibbles : Places<kInt4BlockBytes>, Steps {
  static Pair levels(const uint8_t* block, int s, int h) {
    return nibbles(block + 2 * kPackedRows + 64 * s + 32 * h);
  }
  static __m256i own(const uint8_t* group, int64_t b, int h) {
    return widen_bytes(block_at(group, b) + kPackedRows + kLanes * h);
  }
  static __m256 finish(__m256 total, __m256i sum, __m256 scale, __m256i zero, __m256 x_scale,
                       __m256i x_sum) {
    return add_block(total, without(Steps::total(sum), zero, x_sum), scale, x_scale);
  }
};

using Int4 = Nibbles<WholeBlock<16>>;

struct Int4q : Nibbles<TwoSteps<4>> {
  static Pair levels(const uint8_t* block, int s, int h) {
    alignas(16) static const uint8_t kTable[16] = {
        kInt4qGrid[0],  kInt4qGrid[1],  kInt4qGrid[2],  kInt4qGrid[3],
        kInt4qGrid[4],  kInt4qGrid[5],  kInt4qGrid[6],  kInt4qGrid[7],
        kInt4qGrid[8],  kInt4qGrid[9],  kInt4qGrid[10], kInt4qGrid[11],
        kInt4qGrid[12], kInt4qGrid[13], kInt4qGrid[14], kInt4qGrid[15]};
    const __m256i table =
        _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(kTable)));
    const Pair q = Nibbles::levels(block, s, h);
    return {_mm256_shuffle_epi8(table, q.even), _mm256_shuffle_epi8(table, q.odd)};
  }
};

struct Int6 : Places<kInt6BlockBytes>, TwoSteps<1> {
  static Pair levels(const uint8_t* block, int s, int h) {
    const __m256i upper_two = _mm256_set1_epi8(0x30);
    const uint8_t* q = block + kPackedRows + 32 * h;
    const Pair low = nibbles(q + 64 * s);
    const __m256i four = load_bytes(q + 256 + 64 * (s / 2));  // the upper bits of four steps
    const __m256i even = s % 2 == 0 ? _mm256_slli_epi16(four, 4) : four;
    const __m256i odd = s % 2 == 0 ? _mm256_slli_epi16(four, 2) : _mm256_srli_epi16(four, 2);
    return {_mm256_or_si256(low.even, _mm256_and_si256(even, upper_two)),
            _mm256_or_si256(low.odd, _mm256_and_si256(odd, upper_two))};
  }
  static __m256i own(const uint8_t* /*group*/, int64_t /*b*/, int /*h*/) {
    return _mm256_set1_epi32(kInt6Zero);
  }
  static __m256 finish(__m256 total, __m256i sum, __m256 scale, __m256i zero, __m256 x_scale,
                       __m256i x_sum) {
    return add_block(total, without(sum, zero, x_sum), scale, x_scale);
  }
};

struct Int8 : Places<kInt8BlockBytes> {
  static Pair words(const uint8_t* block, int s, int h) {
    return widened(load_bytes(block + kPackedRows + 64 * s + 32 * h));
  }
  static __m256 finished(const uint8_t* group, int h, __m256 total) {
    return Places::finished(group, h, _mm256_mul_ps(total, _mm256_set1_ps(kFineStep)));
  }
};

}  // namespace

DVT_LINEAR_OF_FORMAT(int8, WordFormat<Int8>)
DVT_LINEAR_OF_FORMAT(int4, LevelFormat<Int4>)
DVT_LINEAR_OF_FORMAT(int4q, LevelFormat<Int4q>)
DVT_LINEAR_OF_FORMAT(int6, LevelFormat<Int6>)

}  // namespace dovetail::kernels::avx2
