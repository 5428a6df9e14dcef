// Rows of a table by index, as float: the embedding.
#pragma once

#include <cstdint>

#include <kernels/f16.hpp>

namespace dovetail::kernels {

/// Copies rows of a table:  out[r, i] = table[ids[r], i]
///
/// shapes    out [n_ids, row_len]; table [> max(ids), row_len]; ids [n_ids]; all dense.
/// numerics  exact.
/// threads   reentrant; allocates nothing, reads no globals.
/// errors    none: the caller has checked that 0 <= ids[r] < rows of the table.
using GatherRowsF32Fn = void(float* out, const float* table, const int32_t* ids, int64_t n_ids,
                             int64_t row_len);

/// The same from a bfloat16 table, widened.
using GatherRowsBf16Fn = void(float* out, const uint16_t* table, const int32_t* ids, int64_t n_ids,
                              int64_t row_len);

/// The same from a table of half precision, widened.
using GatherRowsF16Fn = void(float* out, const F16* table, const int32_t* ids, int64_t n_ids,
                             int64_t row_len);

namespace ref {
GatherRowsF32Fn gather_rows_f32;
GatherRowsBf16Fn gather_rows_bf16;
GatherRowsF16Fn gather_rows_f16;
}  // namespace ref

}  // namespace dovetail::kernels
