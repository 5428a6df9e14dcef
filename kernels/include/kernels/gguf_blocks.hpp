// Block formats of GGUF files: how numbers lie in them, and float32 out of them.
//
// Each format cuts a row into blocks of block_len numbers in block_bytes bytes. d, m (float16) are scale and
// offset of a block, q its levels; sc, mn are small integers that scale them for a part of it. All little-endian,
// the fields in this order, without gaps:
//
//   q4_0    32 in 18    d; q[16]                 w = d * (q - 8)
//   q4_1    32 in 20    d; m; q[16]              w = d * q + m
//   q5_0    32 in 22    d; h[4]; q[16]           w = d * (q - 16), bit i of h is the fifth bit of number i
//   q5_1    32 in 24    d; m; h[4]; q[16]        w = d * q + m
//   q8_0    32 in 34    d; int8 q[32]            w = d * q
//   q2_k   256 in 84    s[16]; q[64]; d; m       w = d * sc * q - m * mn: 16 parts of 16, sc the low half of s, mn
//                                                the high half
//   q3_k   256 in 110   h[32]; q[64]; s[12]; d   w = d * (sc - 32) * (q - 4), the third bit of q in h; 16 parts of 16
//   q4_k   256 in 144   d; m; s[12]; q[128]      w = d * sc * q - m * mn: 8 parts of 32
//   q5_k   256 in 176   d; m; s[12]; h[32]; q[128]   likewise, the fifth bit of q in h
//   q6_k   256 in 210   q[128]; h[64]; int8 sc[16]; d    w = d * sc * (q - 32), two high bits in h; 16 parts of 16
//   iq4_nl  32 in 18    d; q[16]                 w = d * grid[q]
//   iq4_xs 256 in 136   d; uint16 h; l[4]; q[128]    w = d * (sc - 32) * grid[q]: 8 parts of 32
//   mxfp4   32 in 17    e; q[16]                 w = 2^(e - 127) * v[q], v the sixteen values of E2M1
//
// Where 4-bit levels of 32 numbers lie in 16 bytes, number i is the low half of byte i, and number 16 + i its high
// half. The formats of 256 (but iq4_xs) have runs of 32 numbers in the same bits of 32 bytes.
// Source: ggml-org/llama.cpp, ggml/src/ggml-common.h and gguf-py/gguf/quants.py; of mxfp4 the OCP Microscaling
// Formats specification 1.0.
#pragma once

#include <cstdint>
#include <string_view>

namespace dovetail::kernels {

/// Blocks to float32.
///
/// shapes    blocks: n_blocks of them, at any address; out [n_blocks * block_len].
/// numerics  float32, each product and each sum rounded once, in the order of the formulas above from the left:
///           the bits of gguf-py's dequantisers. A d, m that is infinite or NaN gives such numbers.
/// threads   reentrant; allocates nothing, reads no globals.
/// errors    none. n_blocks == 0 does nothing.
using UnpackBlocksFn = void(float* out, const void* blocks, int64_t n_blocks);

struct GgufFormat {
  const char* name;  // as files call it: "q4_k"
  int64_t block_len, block_bytes;
  UnpackBlocksFn* unpack;
};

/// Null if there is none of that name.
const GgufFormat* find_gguf_format(std::string_view name);

namespace ref {
UnpackBlocksFn unpack_q4_0, unpack_q4_1, unpack_q5_0, unpack_q5_1, unpack_q8_0;
UnpackBlocksFn unpack_q2_k, unpack_q3_k, unpack_q4_k, unpack_q5_k, unpack_q6_k;
UnpackBlocksFn unpack_iq4_nl, unpack_iq4_xs, unpack_mxfp4;
}  // namespace ref

}  // namespace dovetail::kernels
