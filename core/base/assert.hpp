// DVT_ASSERT: a promise between our own lines, never a check of input.
//
// On in debug builds and wherever DVT_ASSERTIONS is defined (dev, asan and tsan presets); otherwise
// the condition is parsed but not evaluated.
#pragma once

#include <cstdio>
#include <cstdlib>

#if defined(DVT_ASSERTIONS) || !defined(NDEBUG)
#define DVT_ASSERT(condition)                                                             \
  do {                                                                                    \
    if (!(condition)) ::dovetail::core::assertion_failed(#condition, __FILE__, __LINE__); \
  } while (false)
#else
#define DVT_ASSERT(condition) static_cast<void>(sizeof(static_cast<bool>(condition)))
#endif

namespace dovetail::core {

[[noreturn]] inline void assertion_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: broken promise: %s\n", file, line, condition);
  std::abort();
}

}  // namespace dovetail::core
