// The place of a row's greatest value.
#pragma once

#include <cstdint>

namespace dovetail::kernels {

/// The lowest index that holds the greatest value of x; NaN never wins, not even against -inf.
/// Gives -1 when there is no winner: n == 0, or every value is NaN.
///
/// shapes    x [n].
/// threads   reentrant; allocates nothing, reads no globals.
/// errors    none; -1 is for the caller to report, with the name of what it was looking at.
using ArgmaxFn = int64_t(const float* x, int64_t n);

namespace ref {
ArgmaxFn argmax;
}  // namespace ref

}  // namespace dovetail::kernels
