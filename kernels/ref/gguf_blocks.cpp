// Oracle of gguf_blocks.hpp: one block at a time, field by field.
#include <cmath>
#include <cstring>

#include <kernels/convert.hpp>
#include <kernels/gguf_blocks.hpp>

namespace dovetail::kernels {
namespace ref {
namespace {

constexpr int64_t kSmall = 32, kLarge = 256;

// The levels of iq4_nl and iq4_xs.
constexpr int8_t kGrid[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                              1,    13,   25,  38,  53,  69,  89,  113};
// E2M1, doubled.
constexpr int8_t kE2m1[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

float half_at(const uint8_t* p) {
  uint16_t bits = 0;
  std::memcpy(&bits, p, sizeof bits);
  float out = 0;
  f16_to_f32(&out, &bits, 1);
  return out;
}

// Level i of 32 in 16 bytes.
int32_t nibble(const uint8_t* q, int64_t i) {
  return i < 16 ? q[i] & 15 : q[i - 16] >> 4;
}
int32_t bit(const uint8_t* bits, int64_t i) {
  return bits[i / 8] >> (i % 8) & 1;
}

// Six-bit scale and offset of part i of q4_k and q5_k.
struct Scale {
  int32_t scale, offset;
};
Scale scale_of_part(const uint8_t* s, int64_t i) {
  if (i < 4) return {s[i] & 63, s[i + 4] & 63};
  return {(s[i + 4] & 15) | (s[i - 4] >> 6 << 4), (s[i + 4] >> 4) | (s[i] >> 6 << 4)};
}

template <int64_t kBytes, int64_t kLen, class Block>
void each_block(float* out, const void* blocks, int64_t n_blocks, Block block) {
  const auto* p = static_cast<const uint8_t*>(blocks);
  for (int64_t b = 0; b < n_blocks; ++b) block(out + b * kLen, p + b * kBytes);
}

}  // namespace

void unpack_q4_0(float* out, const void* blocks, int64_t n_blocks) {
  each_block<18, kSmall>(out, blocks, n_blocks, [](float* w, const uint8_t* b) {
    const float d = half_at(b);
    for (int64_t i = 0; i < kSmall; ++i) w[i] = d * static_cast<float>(nibble(b + 2, i) - 8);
  });
}

void unpack_q4_1(float* out, const void* blocks, int64_t n_blocks) {
  each_block<20, kSmall>(out, blocks, n_blocks, [](float* w, const uint8_t* b) {
    const float d = half_at(b), m = half_at(b + 2);
    for (int64_t i = 0; i < kSmall; ++i) w[i] = d * static_cast<float>(nibble(b + 4, i)) + m;
  });
}

void unpack_q5_0(float* out, const void* blocks, int64_t n_blocks) {
  each_block<22, kSmall>(out, blocks, n_blocks, [](float* w, const uint8_t* b) {
    const float d = half_at(b);
    for (int64_t i = 0; i < kSmall; ++i)
      w[i] = d * static_cast<float>((nibble(b + 6, i) | bit(b + 2, i) << 4) - 16);
  });
}

void unpack_q5_1(float* out, const void* blocks, int64_t n_blocks) {
  each_block<24, kSmall>(out, blocks, n_blocks, [](float* w, const uint8_t* b) {
    const float d = half_at(b), m = half_at(b + 2);
    for (int64_t i = 0; i < kSmall; ++i)
      w[i] = d * static_cast<float>(nibble(b + 8, i) | bit(b + 4, i) << 4) + m;
  });
}

void unpack_q8_0(float* out, const void* blocks, int64_t n_blocks) {
  each_block<34, kSmall>(out, blocks, n_blocks, [](float* w, const uint8_t* b) {
    const float d = half_at(b);
    for (int64_t i = 0; i < kSmall; ++i)
      w[i] = d * static_cast<float>(static_cast<int8_t>(b[2 + i]));
  });
}

void unpack_q2_k(float* out, const void* blocks, int64_t n_blocks) {
  each_block<84, kLarge>(out, blocks, n_blocks, [](float* w, const uint8_t* b) {
    const uint8_t* q = b + 16;
    const float d = half_at(b + 80), m = half_at(b + 82);
    for (int64_t i = 0; i < kLarge; ++i) {
      const float scale = d * static_cast<float>(b[i / 16] & 15),
                  offset = m * static_cast<float>(b[i / 16] >> 4);
      const int32_t level = q[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
      w[i] = scale * static_cast<float>(level) - offset;
    }
  });
}

void unpack_q3_k(float* out, const void* blocks, int64_t n_blocks) {
  each_block<110, kLarge>(out, blocks, n_blocks, [](float* w, const uint8_t* b) {
    const uint8_t *h = b, *q = b + 32, *s = b + 96;
    const float d = half_at(b + 108);
    for (int64_t i = 0; i < kLarge; ++i) {
      const int64_t part = i / 16;
      const int32_t low = part < 8 ? s[part] & 15 : s[part - 8] >> 4;
      const int32_t high = s[8 + part % 4] >> (part / 4 * 2) & 3;
      const int32_t level =
          (q[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3) | (h[i % 32] >> (i / 32) & 1) << 2;
      w[i] = d * static_cast<float>((low | high << 4) - 32) * static_cast<float>(level - 4);
    }
  });
}

void unpack_q4_k(float* out, const void* blocks, int64_t n_blocks) {
  each_block<144, kLarge>(out, blocks, n_blocks, [](float* w, const uint8_t* b) {
    const float d = half_at(b), m = half_at(b + 2);
    const uint8_t* q = b + 16;
    for (int64_t i = 0; i < kLarge; ++i) {
      const Scale s = scale_of_part(b + 4, i / 32);
      const int32_t level = q[i / 64 * 32 + i % 32] >> (i % 64 / 32 * 4) & 15;
      w[i] = d * static_cast<float>(s.scale) * static_cast<float>(level) -
             m * static_cast<float>(s.offset);
    }
  });
}

void unpack_q5_k(float* out, const void* blocks, int64_t n_blocks) {
  each_block<176, kLarge>(out, blocks, n_blocks, [](float* w, const uint8_t* b) {
    const float d = half_at(b), m = half_at(b + 2);
    const uint8_t *h = b + 16, *q = b + 48;
    for (int64_t i = 0; i < kLarge; ++i) {
      const Scale s = scale_of_part(b + 4, i / 32);
      const int32_t level =
          (q[i / 64 * 32 + i % 32] >> (i % 64 / 32 * 4) & 15) | (h[i % 32] >> (i / 32) & 1) << 4;
      w[i] = d * static_cast<float>(s.scale) * static_cast<float>(level) -
             m * static_cast<float>(s.offset);
    }
  });
}

void unpack_q6_k(float* out, const void* blocks, int64_t n_blocks) {
  each_block<210, kLarge>(out, blocks, n_blocks, [](float* w, const uint8_t* b) {
    const uint8_t *q = b, *h = b + 128;
    const float d = half_at(b + 208);
    for (int64_t i = 0; i < kLarge; ++i) {
      const int32_t scale = static_cast<int8_t>(b[192 + i / 16]);
      const int32_t low = q[i / 128 * 64 + i % 64] >> (i % 128 / 64 * 4) & 15;
      const int32_t high = h[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
      w[i] = d * static_cast<float>(scale) * static_cast<float>((low | high << 4) - 32);
    }
  });
}

void unpack_iq4_nl(float* out, const void* blocks, int64_t n_blocks) {
  each_block<18, kSmall>(out, blocks, n_blocks, [](float* w, const uint8_t* b) {
    const float d = half_at(b);
    for (int64_t i = 0; i < kSmall; ++i) w[i] = d * static_cast<float>(kGrid[nibble(b + 2, i)]);
  });
}

void unpack_iq4_xs(float* out, const void* blocks, int64_t n_blocks) {
  each_block<136, kLarge>(out, blocks, n_blocks, [](float* w, const uint8_t* b) {
    const float d = half_at(b);
    const uint8_t *l = b + 4, *q = b + 8;
    for (int64_t part = 0; part < 8; ++part) {
      const int32_t low = l[part / 2] >> (part % 2 * 4) & 15;
      const int32_t high = b[2 + part / 4] >> (part % 4 * 2) & 3;
      const float scale = d * static_cast<float>((low | high << 4) - 32);
      for (int64_t i = 0; i < 32; ++i)
        w[part * 32 + i] = scale * static_cast<float>(kGrid[nibble(q + part * 16, i)]);
    }
  });
}

void unpack_mxfp4(float* out, const void* blocks, int64_t n_blocks) {
  each_block<17, kSmall>(out, blocks, n_blocks, [](float* w, const uint8_t* b) {
    const float half_scale = std::ldexp(1.0F, b[0] - 128);  // the values are doubled
    for (int64_t i = 0; i < kSmall; ++i)
      w[i] = half_scale * static_cast<float>(kE2m1[nibble(b + 1, i)]);
  });
}

}  // namespace ref

const GgufFormat* find_gguf_format(std::string_view name) {
  static constexpr GgufFormat kFormats[] = {
      {"q4_0", 32, 18, ref::unpack_q4_0},     {"q4_1", 32, 20, ref::unpack_q4_1},
      {"q5_0", 32, 22, ref::unpack_q5_0},     {"q5_1", 32, 24, ref::unpack_q5_1},
      {"q8_0", 32, 34, ref::unpack_q8_0},     {"q2_k", 256, 84, ref::unpack_q2_k},
      {"q3_k", 256, 110, ref::unpack_q3_k},   {"q4_k", 256, 144, ref::unpack_q4_k},
      {"q5_k", 256, 176, ref::unpack_q5_k},   {"q6_k", 256, 210, ref::unpack_q6_k},
      {"iq4_nl", 32, 18, ref::unpack_iq4_nl}, {"iq4_xs", 256, 136, ref::unpack_iq4_xs},
      {"mxfp4", 32, 17, ref::unpack_mxfp4}};
  for (const GgufFormat& f : kFormats)
    if (name == f.name) return &f;
  return nullptr;
}

}  // namespace dovetail::kernels
