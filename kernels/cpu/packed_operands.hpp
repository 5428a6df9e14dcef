// The operands of a product with packed weights, for the files of one ISA each. Contracts in
// kernels/linear_quantized.hpp and kernels/linear_gguf.hpp.
// The namespace is unnamed and everything included is C, as in avx2_math.hpp.
#pragma once

#include <stdint.h>

#include <kernels/linear_quantized.hpp>

namespace dovetail::kernels {
namespace {

/// The operands of one call, as in the contract.
struct PackedOperands {
  float* y;
  int64_t y_stride;
  const uint8_t* xq;
  int64_t x_bytes;  // of a row of xq
  const uint8_t* packed;
  int64_t k_len;

  static PackedOperands of(float* y, int64_t y_stride, const void* xq, const void* packed,
                           int64_t k_len) {
    return {y,
            y_stride,
            static_cast<const uint8_t*>(xq),
            quantized_row_bytes(k_len),
            static_cast<const uint8_t*>(packed),
            k_len};
  }

  /// A token's row of xq, its q first.
  const uint8_t* x(int64_t t) const { return xq + t * x_bytes; }
  // Where a row has its other parts, in bytes.
  int64_t x16_at() const { return k_len; }
  int64_t scales_at() const { return 3 * k_len; }
  int64_t sums_at() const { return scales_at() + k_len / kQuantBlock * 4; }
};

}  // namespace
}  // namespace dovetail::kernels
