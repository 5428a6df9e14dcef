// Root-mean-square normalisation.
#pragma once

#include <cstdint>

namespace dovetail::kernels {

/// Scales each row to unit root mean square, then by a learned weight:
///   out[r, i] = (x[r, i] / sqrt(mean_i(x[r, i]^2) + eps)) * (weight_offset + weight[i])
///
/// shapes    x, out [n_rows, row_len], row-major and dense; weight [row_len]. out may be x.
///           weight_offset is 0 for most models, 1 for those that store weight - 1 (Gemma,
///           Qwen3-Next). Norm weights are small: a caller with bf16 ones widens them at load.
/// numerics  float throughout; the reciprocal root is rounded once and multiplies x before weight
///           does. Within 2e-6 relative of kernels/ref for row_len <= 16384. A row's value depends
///           on that row alone.
/// threads   reentrant; allocates nothing, reads no globals.
/// errors    none: the caller has checked shapes. n_rows == 0 does nothing; row_len >= 1.
/// source    Zhang and Sennrich 2019, arXiv:1910.07467, eq. 4.
using RmsNormFn = void(float* out, const float* x, const float* weight, int64_t n_rows,
                       int64_t row_len, float eps, float weight_offset);

namespace ref {
RmsNormFn rms_norm;
}  // namespace ref

}  // namespace dovetail::kernels
