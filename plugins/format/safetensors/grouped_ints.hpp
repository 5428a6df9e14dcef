// Matrices of small whole numbers with a scale and a zero for each group along k, as GPTQ and AWQ write them.
//   w[n, k] = scales[g, n] * (q[k, n] - z[g, n])        n of n_rows, k of k_len, g the group of k
// Tensors, of X.weight [n_rows, k_len]; an int32 holds P = 32 / bits numbers, the first in its lowest bits:
//   X.scales   float [groups, n_rows]
//   gptq       X.qweight int32 [k_len / P, n_rows]: P numbers along k. X.qzeros int32 [groups, n_rows / P], along n;
//              checkpoint_format "gptq" holds z - 1 in it, "gptq_v2" z. X.g_idx int32 [k_len]: the group of
//              each k, which may be missing where it is k / group_size.
//   awq        X.qweight int32 [k_len, n_rows / 8], X.qzeros int32 [groups, n_rows / 8]: of eight numbers along n
//              number i lies at place (0, 4, 1, 5, 2, 6, 3, 7)[i].
// Source: the files that AutoGPTQ, GPTQModel and AutoAWQ write, and what transformers' loaders make of them.
#pragma once

#include <memory>

#include "matrix.hpp"
#include "quantization.hpp"

namespace dovetail::safetensors {

/// The tensors of one matrix; zeros and g_idx may be null where files may leave them out.
struct IntParts {
  const Stored *levels, *zeros, *scales, *groups;
};

/// Symmetric matrices (every zero in the middle) with f16 scales keep their bits: their form is q4_0 or q8_0.
/// errors  DVT_EFORMAT: shapes or types that do not fit each other, a group that is not there.
std::unique_ptr<Matrix> int_matrix(const Quantization& q, const std::string& name,
                                   const IntParts& parts, Call call);

}  // namespace dovetail::safetensors
