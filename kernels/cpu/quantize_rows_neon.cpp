// quantize_rows for NEON; contract in kernels/weight_formats.hpp, oracle in
// kernels/ref/weight_formats.cpp.
// Bound by arithmetic. Four rows at once, one in each lane: a block of them is turned round, so
// that every step of the oracle's search is one instruction and sums keep its order. The search
// keeps only scale and z of the best try; its levels are found once more at the end.
#include <algorithm>
#include <cmath>

#include "kernels/cpu/neon.hpp"
#include "kernels/cpu/neon_math.hpp"

namespace dovetail::kernels::neon {
namespace {

// As in the oracle.
constexpr float kGreatestScale = 8064.0F;
constexpr float kLeastRow = 1e-30F;
constexpr float kHeadroom = 1.0625F;
constexpr int kCodesUp = 2;
constexpr int kCodesDown = 3;
constexpr float kPhases[] = {-5.0F, 0.0F, 5.0F};

constexpr int64_t kRows = 4;

/// One block of four rows, turned round: x[k] holds k of every row.
using Block = float32x4_t[kQuantBlock];

void load_block(Block& x, const float* const (&rows)[kRows], int64_t k) {
  for (int64_t i = 0; i < kQuantBlock; i += kRows) {
    const float32x4_t r0 = vld1q_f32(rows[0] + k + i);
    const float32x4_t r1 = vld1q_f32(rows[1] + k + i);
    const float32x4_t r2 = vld1q_f32(rows[2] + k + i);
    const float32x4_t r3 = vld1q_f32(rows[3] + k + i);
    const float32x4_t low02 = vzip1q_f32(r0, r2);
    const float32x4_t low13 = vzip1q_f32(r1, r3);
    const float32x4_t high02 = vzip2q_f32(r0, r2);
    const float32x4_t high13 = vzip2q_f32(r1, r3);
    x[i] = vzip1q_f32(low02, low13);
    x[i + 1] = vzip2q_f32(low02, low13);
    x[i + 2] = vzip1q_f32(high02, high13);
    x[i + 3] = vzip2q_f32(high02, high13);
  }
}

float32x4_t clamp(float32x4_t x, float low, float high) {
  return vminq_f32(vmaxq_f32(x, vdupq_n_f32(low)), vdupq_n_f32(high));
}

int32x4_t clamp_code(int32x4_t code) {
  return vminq_s32(vmaxq_s32(code, vdupq_n_s32(0)), vdupq_n_s32(255));
}

int32x4_t code_spanning(float32x4_t s) {
  const int32x4_t bits = vaddq_s32(vreinterpretq_s32_f32(s), vdupq_n_s32((1 << 18) - 1));
  return clamp_code(vsubq_s32(vshrq_n_s32(bits, 18), vdupq_n_s32(132 << 5)));
}

float32x4_t scale_of_code(int32x4_t code) {
  return vreinterpretq_f32_s32(vaddq_s32(vshlq_n_s32(code, 18), vdupq_n_s32(132 << 23)));
}

float32x4_t reciprocal(float32x4_t x) {
  return vdivq_f32(vdupq_n_f32(1.0F), x);
}

struct Level {
  int32x4_t q;
  float32x4_t worth;
};

struct Int4 {
  static constexpr float kTop = 240.0F;  // what level 15 is worth
  static Level nearest(float32x4_t t) {
    const float32x4_t q = clamp(vrndnq_f32(vmulq_n_f32(t, 0.0625F)), 0.0F, 15.0F);
    return {vcvtq_s32_f32(q), vmulq_n_f32(q, 16.0F)};
  }
};

/// The middle between levels i and i + 1 of int4q.
constexpr uint8_t middle_of(int i) {
  return static_cast<uint8_t>(2 * (kInt4qGrid[i] + kInt4qGrid[i + 1]));
}

struct Int4q {
  static constexpr float kTop = 4.0F * kInt4qGrid[15];
  /// A binary search over the fifteen middles, which lie as in a heap: those below and above
  /// entry i are entries 2 i and 2 i + 1. Look-ups are by byte, and entry 0 is 0, so that the
  /// empty upper bytes of a lane stay empty.
  static Level nearest(float32x4_t t) {
    static constexpr uint8_t kMiddles[16] = {0,
                                             middle_of(7),
                                             middle_of(3),
                                             middle_of(11),
                                             middle_of(1),
                                             middle_of(5),
                                             middle_of(9),
                                             middle_of(13),
                                             middle_of(0),
                                             middle_of(2),
                                             middle_of(4),
                                             middle_of(6),
                                             middle_of(8),
                                             middle_of(10),
                                             middle_of(12),
                                             middle_of(14)};
    static_assert(kInt4qGrid[0] == 0, "what the upper bytes of a lane find");
    const uint8x16_t middles = vld1q_u8(kMiddles);
    uint32x4_t at = vdupq_n_u32(1);
    for (int depth = 0; depth < 4; ++depth) {
      const float32x4_t middle = look_up(middles, at);
      at = vsubq_u32(vaddq_u32(at, at), vcgtq_f32(t, middle));  // a lane that is true is -1
    }
    const uint32x4_t q = vsubq_u32(at, vdupq_n_u32(16));
    return {vreinterpretq_s32_u32(q), vmulq_n_f32(look_up(vld1q_u8(kInt4qGrid), q), 4.0F)};
  }

 private:
  static float32x4_t look_up(uint8x16_t table, uint32x4_t at) {
    return vcvtq_f32_u32(vreinterpretq_u32_u8(vqtbl1q_u8(table, vreinterpretq_u8_u32(at))));
  }
};

/// The best try so far, for each of four rows.
struct Best {
  float32x4_t lost = vdupq_n_f32(INFINITY);
  int32x4_t code = vdupq_n_s32(0);
  float32x4_t zero = vdupq_n_f32(0.0F);

  void offer(float32x4_t squares, float32x4_t s, int32x4_t tried_code, float32x4_t tried_zero) {
    const float32x4_t tried = vmulq_f32(squares, vmulq_f32(s, s));
    const uint32x4_t better = vcltq_f32(tried, lost);
    lost = vbslq_f32(better, tried, lost);
    zero = vbslq_f32(better, tried_zero, zero);
    code = vbslq_s32(better, tried_code, code);
  }
};

/// The codes and levels of one block of four rows, as the layout wants them.
struct Found {
  int32x4_t code;
  int32x4_t zero;
  int32x4_t q[kQuantBlock];
};

/// The formats without z: their least and greatest level, the scales that are tried, and what is
/// added to a level to store it.
struct Int8 {
  static constexpr float kLow = -127.0F;
  static constexpr float kHigh = 127.0F;
  static constexpr int kUp = 0;
  static constexpr int kDown = 2;
  static constexpr int kZero = 0;
};
struct Int6 {
  static constexpr float kLow = -32.0F;
  static constexpr float kHigh = 31.0F;
  static constexpr int kUp = kCodesUp;
  static constexpr int kDown = kCodesDown;
  static constexpr int kZero = kInt6Zero;
};

template <class Format>
void search_centred(Found& found, const Block& x) {
  float32x4_t greatest = vdupq_n_f32(0.0F);
  for (const float32x4_t value : x) greatest = vmaxq_f32(vabsq_f32(value), greatest);
  const int32x4_t spanning = code_spanning(vdivq_f32(greatest, vdupq_n_f32(Format::kHigh)));

  const auto nearest = [](float32x4_t t) {
    return clamp(vrndnq_f32(t), Format::kLow, Format::kHigh);
  };
  Best best;
  for (int step = Format::kUp; step >= -Format::kDown; --step) {
    const int32x4_t code = clamp_code(vaddq_s32(spanning, vdupq_n_s32(step)));
    const float32x4_t s = scale_of_code(code);
    const float32x4_t inverse = reciprocal(s);
    float32x4_t lost = vdupq_n_f32(0.0F);
    for (const float32x4_t value : x) {
      const float32x4_t t = vmulq_f32(value, inverse);
      const float32x4_t error = vsubq_f32(t, nearest(t));
      lost = vaddq_f32(lost, vmulq_f32(error, error));
    }
    best.offer(lost, s, code, vdupq_n_f32(0.0F));
  }
  const float32x4_t inverse = reciprocal(scale_of_code(best.code));
  for (int64_t i = 0; i < kQuantBlock; ++i) {
    found.q[i] =
        vaddq_s32(vcvtq_s32_f32(nearest(vmulq_f32(x[i], inverse))), vdupq_n_s32(Format::kZero));
  }
  found.code = best.code;
  found.zero = vdupq_n_s32(0);
}

/// z by least squares for the levels that it has at the start, and the squared errors that it
/// leaves, in units of the scale.
struct Tried {
  float32x4_t zero;
  float32x4_t lost;
};

template <class Format>
Tried try_from(const Block& x, float32x4_t inverse, float32x4_t start) {
  float32x4_t zero = clamp(vrndnq_f32(start), 0.0F, 255.0F);
  float32x4_t shift = vdupq_n_f32(0.0F);
  for (const float32x4_t value : x) {
    const float32x4_t t = vmulq_f32(value, inverse);
    shift = vaddq_f32(shift, vsubq_f32(Format::nearest(vaddq_f32(t, zero)).worth, t));
  }
  zero = clamp(vrndnq_f32(vmulq_n_f32(shift, 1.0F / kQuantBlock)), 0.0F, 255.0F);
  float32x4_t lost = vdupq_n_f32(0.0F);
  for (const float32x4_t value : x) {
    const float32x4_t t = vaddq_f32(vmulq_f32(value, inverse), zero);
    const float32x4_t error = vsubq_f32(t, Format::nearest(t).worth);
    lost = vaddq_f32(lost, vmulq_f32(error, error));
  }
  return {zero, lost};
}

/// The least and the greatest of a block and zero.
struct Range {
  float32x4_t low = vdupq_n_f32(0.0F);
  float32x4_t high = vdupq_n_f32(0.0F);
};

Range range_of(const Block& x) {
  Range range;
  for (const float32x4_t value : x) {
    range.low = vminq_f32(value, range.low);
    range.high = vmaxq_f32(value, range.high);
  }
  return range;
}

template <class Format>
void search4(Found& found, const Block& x) {
  const Range range = range_of(x);
  const float32x4_t width = vsubq_f32(range.high, range.low);
  const int32x4_t spanning = code_spanning(vdivq_f32(width, vdupq_n_f32(Format::kTop)));
  const float32x4_t middle = vmulq_n_f32(vaddq_f32(range.low, range.high), 0.5F);

  Best best;
  for (int step = kCodesUp; step >= -kCodesDown; --step) {
    const int32x4_t code = clamp_code(vaddq_s32(spanning, vdupq_n_s32(step)));
    const float32x4_t s = scale_of_code(code);
    const float32x4_t inverse = reciprocal(s);
    for (const float phase : kPhases) {
      const float32x4_t start =
          vsubq_f32(vdupq_n_f32(Format::kTop * 0.5F + phase), vmulq_f32(middle, inverse));
      const Tried tried = try_from<Format>(x, inverse, start);
      best.offer(tried.lost, s, code, tried.zero);
    }
  }
  const float32x4_t inverse = reciprocal(scale_of_code(best.code));
  for (int64_t i = 0; i < kQuantBlock; ++i) {
    found.q[i] = Format::nearest(vaddq_f32(vmulq_f32(x[i], inverse), best.zero)).q;
  }
  found.code = best.code;
  found.zero = vcvtq_s32_f32(best.zero);
}

/// The low byte of every lane.
void store_bytes(uint8_t* to, int32x4_t lanes) {
  int32_t values[kRows];
  vst1q_s32(values, lanes);
  for (int64_t j = 0; j < kRows; ++j) to[j] = static_cast<uint8_t>(values[j]);
}

/// The low bytes of four vectors, side by side in every lane.
uint8x16_t four_bytes(const int32x4_t* q) {
  uint32x4_t bytes = vreinterpretq_u32_s32(q[0]);
  bytes = vsliq_n_u32(bytes, vreinterpretq_u32_s32(q[1]), 8);
  bytes = vsliq_n_u32(bytes, vreinterpretq_u32_s32(q[2]), 16);
  bytes = vsliq_n_u32(bytes, vreinterpretq_u32_s32(q[3]), 24);
  return vreinterpretq_u8_u32(bytes);
}

/// Each format: its search, its d from the rows' greatest magnitudes and widest blocks, its store.
template <class Format>
struct PackCentred {
  static constexpr int kEmpty = Format::kZero;  // what a row of zeros has for its levels
  static void search(Found& found, const Block& x) { search_centred<Format>(found, x); }
  static float32x4_t row_scale(float32x4_t greatest, float32x4_t /*widest*/) {
    return vdivq_f32(greatest, vdupq_n_f32(Format::kHigh * kGreatestScale));
  }
};

struct PackInt8 : PackCentred<Int8> {
  static constexpr int64_t kBlockBytes = kInt8BlockBytes;
  static void store(uint8_t* block, int64_t lane, const Found& found) {
    store_bytes(block + lane, found.code);
    uint8_t* to = block + kPackedRows + 4 * lane;
    for (int64_t k = 0; k < kQuantBlock; k += 4, to += 64) vst1q_u8(to, four_bytes(found.q + k));
  }
};

/// The low halves of the levels' bytes, two steps in each vector.
void store_nibbles(uint8_t* to, const int32x4_t (&q)[kQuantBlock]) {
  for (int64_t k = 0; k < kQuantBlock; k += 8, to += 64) {
    vst1q_u8(to, vsliq_n_u8(four_bytes(q + k), four_bytes(q + k + 4), 4));
  }
}

struct PackInt6 : PackCentred<Int6> {
  static constexpr int64_t kBlockBytes = kInt6BlockBytes;
  static void store(uint8_t* block, int64_t lane, const Found& found) {
    store_bytes(block + lane, found.code);
    uint8_t* to = block + kPackedRows + 4 * lane;
    store_nibbles(to, found.q);
    to += kPackedRows * kQuantBlock / 2;
    for (int64_t k = 0; k < kQuantBlock; k += 16, to += 64) {
      uint8x16_t four = vshrq_n_u8(four_bytes(found.q + k), 4);
      four = vsliq_n_u8(four, vshrq_n_u8(four_bytes(found.q + k + 4), 4), 2);
      four = vsliq_n_u8(four, vshrq_n_u8(four_bytes(found.q + k + 8), 4), 4);
      vst1q_u8(to, vsliq_n_u8(four, vshrq_n_u8(four_bytes(found.q + k + 12), 4), 6));
    }
  }
};

template <class Format>
struct PackNibbles {
  static constexpr int64_t kBlockBytes = kInt4BlockBytes;
  static constexpr int kEmpty = 0;
  static void search(Found& found, const Block& x) { search4<Format>(found, x); }
  static float32x4_t row_scale(float32x4_t /*greatest*/, float32x4_t widest) {
    return vdivq_f32(vmulq_n_f32(widest, kHeadroom), vdupq_n_f32(Format::kTop * kGreatestScale));
  }
  static void store(uint8_t* block, int64_t lane, const Found& found) {
    store_bytes(block + lane, found.code);
    store_bytes(block + kPackedRows + lane, found.zero);
    store_nibbles(block + 2 * kPackedRows + 4 * lane, found.q);
  }
};

/// d of four rows; zero for rows that count as zeros.
template <class Format>
float32x4_t row_scales(const float* const (&rows)[kRows], int64_t k_len) {
  float32x4_t greatest = vdupq_n_f32(0.0F);
  float32x4_t widest = vdupq_n_f32(0.0F);
  for (int64_t k = 0; k < k_len; k += kQuantBlock) {
    Block x;
    load_block(x, rows, k);
    const Range range = range_of(x);
    greatest = vmaxq_f32(vmaxq_f32(range.high, vnegq_f32(range.low)), greatest);
    widest = vmaxq_f32(vsubq_f32(range.high, range.low), widest);
  }
  const uint32x4_t counts = vcgeq_f32(greatest, vdupq_n_f32(kLeastRow));
  return vbslq_f32(counts, Format::row_scale(greatest, widest), vdupq_n_f32(0.0F));
}

/// Rows `lane` to lane + 4 of a group. Of the n rows at src, those past the fourth are not read;
/// lanes past n are rows of zeros.
template <class Format>
void pack_rows(uint8_t* group, int64_t lane, const float* src, int64_t n, int64_t k_len) {
  const int32_t kPlaces[kRows] = {0, 1, 2, 3};
  const float* rows[kRows];
  for (int64_t j = 0; j < kRows; ++j) rows[j] = src + (j < n ? j * k_len : 0);
  const auto n_present = static_cast<int32_t>(std::clamp<int64_t>(n, 0, kRows));
  const uint32x4_t is_present = vcltq_s32(vld1q_s32(kPlaces), vdupq_n_s32(n_present));
  const float32x4_t zero = vdupq_n_f32(0.0F);
  const float32x4_t d = vbslq_f32(is_present, row_scales<Format>(rows, k_len), zero);
  const uint32x4_t is_used = vcgtq_f32(d, zero);
  const float32x4_t inverse = vbslq_f32(is_used, reciprocal(d), zero);
  const int32x4_t used = vreinterpretq_s32_u32(is_used);
  vst1q_f32(reinterpret_cast<float*>(group) + lane, d);

  uint8_t* block = group + kPackedRows * 4;
  for (int64_t k = 0; k < k_len; k += kQuantBlock, block += Format::kBlockBytes) {
    Block x;
    load_block(x, rows, k);
    for (float32x4_t& value : x) value = vmulq_f32(value, inverse);
    Found found;
    Format::search(found, x);
    found.code = vandq_s32(found.code, used);
    found.zero = vandq_s32(found.zero, used);
    for (int32x4_t& q : found.q) q = vbslq_s32(is_used, q, vdupq_n_s32(Format::kEmpty));
    Format::store(block, lane, found);
  }
}

template <class Format>
void quantize_rows(void* packed, const float* src, int64_t row0, int64_t n, int64_t k_len) {
  const int64_t group_bytes = kPackedRows * 4 + k_len / kQuantBlock * Format::kBlockBytes;
  uint8_t* group = static_cast<uint8_t*>(packed) + row0 / kPackedRows * group_bytes;
  for (int64_t r = 0; r < n; r += kPackedRows, group += group_bytes) {
    for (int64_t lane = 0; lane < kPackedRows; lane += kRows) {
      const int64_t first = std::min(r + lane, n - 1);  // where no row is left: any that is there
      pack_rows<Format>(group, lane, src + first * k_len, n - r - lane, k_len);
    }
  }
}

}  // namespace

void quantize_rows_int8(void* packed, const float* src, int64_t row0, int64_t n, int64_t /*n_rows*/,
                        int64_t k_len) {
  quantize_rows<PackInt8>(packed, src, row0, n, k_len);
}

void quantize_rows_int4(void* packed, const float* src, int64_t row0, int64_t n, int64_t /*n_rows*/,
                        int64_t k_len) {
  quantize_rows<PackNibbles<Int4>>(packed, src, row0, n, k_len);
}

void quantize_rows_int4q(void* packed, const float* src, int64_t row0, int64_t n,
                         int64_t /*n_rows*/, int64_t k_len) {
  quantize_rows<PackNibbles<Int4q>>(packed, src, row0, n, k_len);
}

void quantize_rows_int6(void* packed, const float* src, int64_t row0, int64_t n, int64_t /*n_rows*/,
                        int64_t k_len) {
  quantize_rows<PackInt6>(packed, src, row0, n, k_len);
}

}  // namespace dovetail::kernels::neon
