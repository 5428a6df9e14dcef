// State move: the states of running sequences go from one backend to another.
//
// A sequence keeps its page table and its slot. Its rows go through host memory a few MiB at a time, in the form that
// every backend exports and imports; where the two caches have other number types, rows are converted on the way.
#pragma once

#include <dovetail/abi/backend.h>

#include <span>

#include "core/base/status.hpp"
#include "core/kv_cache/kv_cache.hpp"
#include "core/plugin/call_frame.hpp"

namespace dovetail::core {

/// A backend whose states are allocated.
struct StateHolder {
  const dvt_backend_v1& table;
  void* context;
  uint32_t kv_dtype;
};

/// What went over.
struct StateMove {
  uint32_t n_sequences = 0;
  uint64_t n_tokens = 0;  // in their caches
  uint64_t n_bytes = 0;   // as the first backend has them
};

/// Copies the states of `sequences`, for which both backends have the same pages and slots. `from` keeps its own.
///
/// threads   no step runs on either backend
/// errors    kUnsupported: a state that cannot move, a backend that does not export or import. kCancelled. What the
///           backends report. Then some of `to` is written.
Result<StateMove> move_states(const StateHolder& from, const StateHolder& to,
                              std::span<const dvt_state_spec> states,
                              std::span<const SequenceCache* const> sequences,
                              std::span<const CacheGroup> groups, uint32_t block_len,
                              const uint32_t* cancel = nullptr, const ProgressFn& progress = {});

}  // namespace dovetail::core
