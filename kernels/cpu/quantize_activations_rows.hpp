// quantize_activations, whatever the vectors: the walk over rows and blocks. Contract in
// kernels/linear_quantized.hpp, oracle in kernels/ref/linear_quantized.cpp.
// Bound by arithmetic, and small beside the products that read its result.
//
// An Isa has
//   Block, load(p)              32 floats in registers
//   greatest_bits(block)        of |x|, as magnitude_bits of avx2_math.hpp orders them
//   store(q, q16, block, inverse)
//                               stores x * inverse to the nearest as bytes and kFineSteps times that as
//                               words, and gives the sum of the bytes
// The namespace is unnamed and everything included is C, as in avx2_math.hpp.
#pragma once

#include <string.h>

#include <kernels/linear_quantized.hpp>

#include "kernels/cpu/avx2_math.hpp"

namespace dovetail::kernels {
namespace {

struct QuantizedRow {
  int8_t* q;
  int16_t* q16;
  float* scale;
  int32_t* sum;
};

template <class Isa>
void quantize_block(const QuantizedRow& row, int64_t b, const float* from) {
  const typename Isa::Block x = Isa::load(from);
  const uint32_t bits = Isa::greatest_bits(x);
  const float greatest = avx2::float_of_bits(bits);
  row.scale[b] = bits < avx2::kLeastQuantized ? 0.0F : greatest / 127.0F;
  int8_t* q = row.q + b * kQuantBlock;
  int16_t* q16 = row.q16 + b * kQuantBlock;
  if (bits < avx2::kLeastQuantized || bits >= avx2::kInfinityBits) {
    memset(q, 0, kQuantBlock);
    memset(q16, 0, 2 * kQuantBlock);
    row.sum[b] = 0;
  } else {
    row.sum[b] = Isa::store(q, q16, x, 127.0F / greatest);
  }
}

template <class Isa>
void quantize_activation_rows(void* xq, const float* x, int64_t x_stride, int64_t n_tokens,
                              int64_t k_len) {
  const int64_t row_bytes = quantized_row_bytes(k_len);
  const int64_t n_blocks = k_len / kQuantBlock;
  for (int64_t t = 0; t < n_tokens; ++t) {
    uint8_t* bytes = static_cast<uint8_t*>(xq) + t * row_bytes;
    const QuantizedRow row = {reinterpret_cast<int8_t*>(bytes),
                              reinterpret_cast<int16_t*>(bytes + k_len),
                              reinterpret_cast<float*>(bytes + 3 * k_len),
                              reinterpret_cast<int32_t*>(bytes + 3 * k_len + 4 * n_blocks)};
    for (int64_t b = 0; b < n_blocks; ++b) {
      quantize_block<Isa>(row, b, x + t * x_stride + b * kQuantBlock);
    }
    for (int64_t i = 3 * k_len + 8 * n_blocks; i < row_bytes; ++i) bytes[i] = 0;
  }
}

}  // namespace
}  // namespace dovetail::kernels
