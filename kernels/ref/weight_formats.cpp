// Oracle of weight_formats.hpp: blocks are quantised one by one, in plain float32.
//
// Variants must give these bytes, so the order of every sum and the rounding of every step count:
// sums run over ascending k from zero, nothing is fused, and round_even is what VROUNDPS does.
#include <bit>
#include <cmath>

#include <kernels/packed_rows.hpp>

namespace dovetail::kernels {

int64_t packed_bytes(WeightFormat format, int64_t n_rows, int64_t k_len) {
  return (n_rows + kPackedRows - 1) / kPackedRows * group_bytes(format, k_len);
}

namespace ref {
namespace {

constexpr float kGreatestScale = 8064.0F;  // scale_of_code(255)
constexpr float kLeastRow = 1e-30F;
constexpr int kCodesUp = 2;    // coarser scales than the one that spans the block, and finer ones,
constexpr int kCodesDown = 3;  // which clip the ends and have smaller steps; int8 tries fewer
constexpr float kPhases[] = {-5.0F, 0.0F, 5.0F};  // where z starts: the grid in a third of a step
constexpr float kHeadroom = 1.0625F;              // lets the widest block of a row go up as well

/// The formats without z: their least and greatest level, and the scales that are tried.
struct Centred {
  float low;
  float high;
  int codes_up;
  int codes_down;
};
constexpr Centred kCentred8 = {-127.0F, 127.0F, 0, 2};
constexpr Centred kCentred6 = {-32.0F, 31.0F, kCodesUp, kCodesDown};

Centred centred(WeightFormat format) {
  return format == WeightFormat::kInt8 ? kCentred8 : kCentred6;
}

float at_least(float x, float low) {
  return x > low ? x : low;  // NaN gives low
}
float clamp(float x, float low, float high) {
  const float raised = at_least(x, low);
  return raised < high ? raised : high;
}

/// Nearest whole number, ties to even; |x| < 2^22.
float round_even(float x) {
  constexpr float kRound = 0x1.8p+23F;
  return (x + kRound) - kRound;
}

/// The code of the least scale that is not below s; 0 to 255.
int code_spanning(float s) {
  constexpr int32_t kOfCodeZero = 132 << 5;  // exponent and upper mantissa of 32.0F
  const auto bits = static_cast<int32_t>(std::bit_cast<uint32_t>(s));
  const int32_t code = ((bits + (1 << 18) - 1) >> 18) - kOfCodeZero;
  return code < 0 ? 0 : code > 255 ? 255 : code;
}

int clamp_code(int code) {
  return code < 0 ? 0 : code > 255 ? 255 : code;
}

struct Block {
  uint8_t code = 0;
  uint8_t zero = 0;
  int8_t q[kQuantBlock] = {};
  float lost = INFINITY;  // sum of squared errors, in units of d
};

uint32_t nearest_level(WeightFormat format, float t) {
  if (format == WeightFormat::kInt4) {
    return static_cast<uint32_t>(clamp(round_even(t * 0.0625F), 0.0F, 15.0F));
  }
  uint32_t q = 0;
  for (int i = 0; i < 15; ++i) {
    q += t > static_cast<float>(2 * (kInt4qGrid[i] + kInt4qGrid[i + 1])) ? 1U : 0U;
  }
  return q;
}

/// One scale tried on a block of x in units of d.
Block with_centred_scale(const Centred& levels, const float* x, int code) {
  Block out;
  out.code = static_cast<uint8_t>(code);
  const float s = scale_of_code(out.code);
  const float inverse = 1.0F / s;
  float lost = 0.0F;
  for (int64_t i = 0; i < kQuantBlock; ++i) {
    const float t = x[i] * inverse;
    const float q = clamp(round_even(t), levels.low, levels.high);
    out.q[i] = static_cast<int8_t>(q);
    lost += (t - q) * (t - q);
  }
  out.lost = lost * (s * s);
  return out;
}

Block with_scale4(WeightFormat format, const float* x, int code, float middle, float phase) {
  const float top = static_cast<float>(level_of(format, 15));
  Block out;
  out.code = static_cast<uint8_t>(code);
  const float s = scale_of_code(out.code);
  const float inverse = 1.0F / s;
  float zero = clamp(round_even((top * 0.5F + phase) - middle * inverse), 0.0F, 255.0F);

  float shift = 0.0F;  // levels less weights: its mean is the best z for these levels
  for (int64_t i = 0; i < kQuantBlock; ++i) {
    const float t = x[i] * inverse;
    shift += static_cast<float>(level_of(format, nearest_level(format, t + zero))) - t;
  }
  zero = clamp(round_even(shift * (1.0F / kQuantBlock)), 0.0F, 255.0F);

  float lost = 0.0F;
  for (int64_t i = 0; i < kQuantBlock; ++i) {
    const float t = x[i] * inverse + zero;
    const uint32_t q = nearest_level(format, t);
    out.q[i] = static_cast<int8_t>(q);
    const float error = t - static_cast<float>(level_of(format, q));
    lost += error * error;
  }
  out.zero = static_cast<uint8_t>(zero);
  out.lost = lost * (s * s);
  return out;
}

Block search_centred(const Centred& levels, const float* x) {
  float greatest = 0.0F;
  for (int64_t i = 0; i < kQuantBlock; ++i) greatest = at_least(std::fabs(x[i]), greatest);
  const int spanning = code_spanning(greatest / levels.high);
  Block best;
  for (int step = levels.codes_up; step >= -levels.codes_down; --step) {
    const Block tried = with_centred_scale(levels, x, clamp_code(spanning + step));
    if (tried.lost < best.lost) best = tried;
  }
  return best;
}

Block search4(WeightFormat format, const float* x) {
  float low = 0.0F;
  float high = 0.0F;
  for (int64_t i = 0; i < kQuantBlock; ++i) {
    low = x[i] < low ? x[i] : low;
    high = at_least(x[i], high);
  }
  const int spanning = code_spanning((high - low) / static_cast<float>(level_of(format, 15)));
  const float middle = (low + high) * 0.5F;
  Block best;
  for (int step = kCodesUp; step >= -kCodesDown; --step) {
    for (const float phase : kPhases) {
      const Block tried = with_scale4(format, x, clamp_code(spanning + step), middle, phase);
      if (tried.lost < best.lost) best = tried;
    }
  }
  return best;
}

/// d of a row: the widest block's scale becomes one of the greatest that a code has.
float scale_of_row(WeightFormat format, const float* row, int64_t k_len) {
  float greatest = 0.0F;
  float widest = 0.0F;
  for (int64_t k = 0; k < k_len; k += kQuantBlock) {
    float low = 0.0F;
    float high = 0.0F;
    for (int64_t i = 0; i < kQuantBlock; ++i) {
      low = row[k + i] < low ? row[k + i] : low;
      high = at_least(row[k + i], high);
    }
    greatest = at_least(at_least(high, -low), greatest);
    widest = at_least(high - low, widest);
  }
  if (!(greatest >= kLeastRow)) return 0.0F;
  if (!has_zeros(format)) return greatest / (centred(format).high * kGreatestScale);
  return widest * kHeadroom / (static_cast<float>(level_of(format, 15)) * kGreatestScale);
}

/// The low n_bits of value, in the place of those that the byte has from bit `shift` on.
void put_bits(uint8_t& byte, unsigned n_bits, unsigned shift, uint32_t value) {
  const uint32_t mask = ((1U << n_bits) - 1U) << shift;
  byte = static_cast<uint8_t>((byte & ~mask) | (value << shift & mask));
}

void store(WeightFormat format, uint8_t* block, int64_t lane, const Block& from) {
  block[lane] = from.code;
  if (has_zeros(format)) block[kPackedRows + lane] = from.zero;
  for (int64_t k = 0; k < kQuantBlock; ++k) {
    if (format == WeightFormat::kInt8) {
      block[int8_at(lane, k)] = static_cast<uint8_t>(from.q[k]);
      continue;
    }
    const auto q =
        static_cast<uint32_t>(from.q[k] + (format == WeightFormat::kInt6 ? kInt6Zero : 0));
    put_bits(block[nibble_at(format, lane, k)], 4, nibble_shift(k), q);
    if (format == WeightFormat::kInt6)
      put_bits(block[crumb_at(lane, k)], 2, crumb_shift(k), q >> 4U);
  }
}

/// A row of zeros for row == nullptr.
void pack_row(WeightFormat format, uint8_t* group, int64_t lane, const float* row, int64_t k_len) {
  const float d = row != nullptr ? scale_of_row(format, row, k_len) : 0.0F;
  std::memcpy(group + lane * static_cast<int64_t>(sizeof d), &d, sizeof d);
  uint8_t* block = group + kPackedRows * static_cast<int64_t>(sizeof d);
  for (int64_t k = 0; k < k_len; k += kQuantBlock, block += block_bytes(format)) {
    Block found;
    if (row != nullptr && d > 0.0F) {
      const float inverse = 1.0F / d;
      float x[kQuantBlock];
      for (int64_t i = 0; i < kQuantBlock; ++i) x[i] = row[k + i] * inverse;
      found = has_zeros(format) ? search4(format, x) : search_centred(centred(format), x);
    }
    store(format, block, lane, found);
  }
}

void quantize_rows(WeightFormat format, void* packed, const float* src, int64_t row0, int64_t n,
                   int64_t k_len) {
  for (int64_t r = 0; r < (n + kPackedRows - 1) / kPackedRows * kPackedRows; ++r) {
    uint8_t* group =
        static_cast<uint8_t*>(packed) + (row0 + r) / kPackedRows * group_bytes(format, k_len);
    pack_row(format, group, r % kPackedRows, r < n ? src + r * k_len : nullptr, k_len);
  }
}

void unpack_row(WeightFormat format, float* out, const void* packed, int64_t row, int64_t k_len) {
  const uint8_t* group =
      static_cast<const uint8_t*>(packed) + row / kPackedRows * group_bytes(format, k_len);
  const int64_t lane = row % kPackedRows;
  const float d = row_scale(group, lane);
  const uint8_t* block = group + kPackedRows * static_cast<int64_t>(sizeof d);
  for (int64_t k = 0; k < k_len; k += kQuantBlock, block += block_bytes(format)) {
    for (int64_t i = 0; i < kQuantBlock; ++i) {
      const auto v = static_cast<float>(packed_value(format, block, lane, i));
      out[k + i] = d * (scale_of_code(block[lane]) * v);  // the inner product is exact
    }
  }
}

}  // namespace

void quantize_rows_int8(void* packed, const float* src, int64_t row0, int64_t n, int64_t /*n_rows*/,
                        int64_t k_len) {
  quantize_rows(WeightFormat::kInt8, packed, src, row0, n, k_len);
}

void quantize_rows_int4(void* packed, const float* src, int64_t row0, int64_t n, int64_t /*n_rows*/,
                        int64_t k_len) {
  quantize_rows(WeightFormat::kInt4, packed, src, row0, n, k_len);
}

void quantize_rows_int4q(void* packed, const float* src, int64_t row0, int64_t n,
                         int64_t /*n_rows*/, int64_t k_len) {
  quantize_rows(WeightFormat::kInt4q, packed, src, row0, n, k_len);
}

void quantize_rows_int6(void* packed, const float* src, int64_t row0, int64_t n, int64_t /*n_rows*/,
                        int64_t k_len) {
  quantize_rows(WeightFormat::kInt6, packed, src, row0, n, k_len);
}

void unpack_row_int8(float* out, const void* packed, int64_t row, int64_t /*n_rows*/,
                     int64_t k_len) {
  unpack_row(WeightFormat::kInt8, out, packed, row, k_len);
}

void unpack_row_int4(float* out, const void* packed, int64_t row, int64_t /*n_rows*/,
                     int64_t k_len) {
  unpack_row(WeightFormat::kInt4, out, packed, row, k_len);
}

void unpack_row_int4q(float* out, const void* packed, int64_t row, int64_t /*n_rows*/,
                      int64_t k_len) {
  unpack_row(WeightFormat::kInt4q, out, packed, row, k_len);
}

void unpack_row_int6(float* out, const void* packed, int64_t row, int64_t /*n_rows*/,
                     int64_t k_len) {
  unpack_row(WeightFormat::kInt6, out, packed, row, k_len);
}

}  // namespace ref
}  // namespace dovetail::kernels
