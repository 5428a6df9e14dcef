// must(): a promise that, broken, is a find.
//
// A target is one LLVMFuzzerTestOneInput(): it takes the bytes the way that Dovetail takes such a file, and what it
// finds is a crash, a sanitizer's report, a must() that does not hold, too much time or too much memory.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

#include "core/base/status.hpp"

namespace dovetail::core::fuzz {

inline void must(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", what.c_str());
  std::abort();
}

/// What every refusal has: words, and no blame on Dovetail itself.
inline void must_explain(const Status& refusal) {
  must(!refusal.is_ok() && !refusal.message().empty(), "a refusal without a message");
  must(refusal.code() != Code::kInternal, "an internal error: " + refusal.message());
}

}  // namespace dovetail::core::fuzz
