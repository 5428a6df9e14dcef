// Softmax over rows.
#pragma once

#include <cstdint>

namespace dovetail::kernels {

/// Turns each row of scores into probabilities:
///   out[r, i] = exp(x[r, i] - max_i x[r, i]) / sum_i exp(x[r, i] - max_i x[r, i])
///
/// shapes    x, out [n_rows, row_len], dense. out may be x.
/// numerics  float throughout; relative error within (max - x[r, i] + row_len + 8) * 2^-23: the
///           difference is rounded before the exponential. -inf gives 0. A row that holds NaN or
///           +inf, or only -inf, becomes NaN throughout.
/// threads   reentrant; allocates nothing, reads no globals.
/// errors    none. n_rows == 0 or row_len == 0 does nothing.
using SoftmaxFn = void(float* out, const float* x, int64_t n_rows, int64_t row_len);

namespace ref {
SoftmaxFn softmax;
}  // namespace ref

}  // namespace dovetail::kernels
