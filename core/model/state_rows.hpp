// State rows: what a row of a state looks like between backends, and how its numbers change their type.
//
// Backends keep states as they like and export and import them in one form (dvt_state_spec): rows in the order of
// positions. A scaled type has a scale for each run of numbers, so a row is runs: [rows, n_runs, run_len].
#pragma once

#include <dovetail/abi/graph.h>

#include <cstddef>
#include <cstdint>

#include "core/base/status.hpp"

namespace dovetail::core {

struct RowForm {
  uint32_t dtype = DVT_F32;
  uint64_t n_runs = 1, run_len = 1;  // numbers

  uint64_t run_bytes() const;
  uint64_t bytes() const { return n_runs * run_bytes(); }
  bool operator==(const RowForm&) const = default;
};

/// Of a state whose cache is of kv_dtype; of a FIXED one the whole block is a row.
/// errors   kUnsupported: a dtype without a size, a kind whose rows do not follow from the tokens (RING, TOKENS).
Result<RowForm> row_form(const dvt_state_spec& spec, uint32_t kv_dtype);

/// Writes n_rows rows in another type. float32, bf16, f16 and int8 with scales go into one another:
///
/// shapes    both forms have the same runs; out [n_rows * to.bytes()], x [n_rows * from.bytes()], apart.
/// numerics  The same type: the same bytes. To float32: exact. To bf16 and f16: the nearest, ties to even; NaN stays NaN,
///           what is too large becomes infinity. To int8: scale = max |x| / 127, numbers to the nearest, ties to
///           even, the bits of kernels/ref; a run with an infinity or a NaN has that as its scale.
/// errors    kUnsupported: a type that is none of these and not the same.
Status convert_rows(const RowForm& to, std::byte* out, const RowForm& from, const std::byte* x,
                    uint64_t n_rows);

}  // namespace dovetail::core
