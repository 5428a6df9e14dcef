// Matrices of 8-bit floats (e4m3) with a scale for each block of rows and columns, for each row, or for all.
//   w[r, k] = e4m3(weight[r, k]) * scale[r / block_rows, k / block_len]
// Names: X.weight, and X.weight_scale_inv or X.weight_scale, which are multiplied alike.
// Source: the published configs and tensors of Qwen3-*-FP8 and DeepSeek-V3; e4m3 is the OCP 8-bit Floating Point
// Specification 1.0: bias 7, no infinities, NaN where all other bits are set.
#pragma once

#include <memory>

#include "matrix.hpp"
#include "quantization.hpp"

namespace dovetail::safetensors {

/// The matrix of `weight` and its scales.
/// errors  DVT_EFORMAT: a shape or type that does not fit the other.
std::unique_ptr<Matrix> fp8_matrix(const Quantization& q, const Stored& weight,
                                   const Stored& scale);

}  // namespace dovetail::safetensors
