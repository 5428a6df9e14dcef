// The two products of one packed format, out of the stripe<Format, Store> of one ISA.
#pragma once

#include <stdint.h>

/// Defines linear_NAME and linear_add_NAME as stripe<Format, Set> and stripe<Format, Add>.
#define DVT_LINEAR_OF_FORMAT(name, ...)                                                        \
  void linear_##name(float* y, int64_t y_stride, const void* xq, const void* packed,           \
                     int64_t n_tokens, int64_t /*n_rows*/, int64_t k_len, int64_t n_begin,     \
                     int64_t n_end) {                                                          \
    stripe<__VA_ARGS__, Set>(y, y_stride, xq, packed, n_tokens, k_len, n_begin, n_end);        \
  }                                                                                            \
  void linear_add_##name(float* y, int64_t y_stride, const void* xq, const void* packed,       \
                         int64_t n_tokens, int64_t /*n_rows*/, int64_t k_len, int64_t n_begin, \
                         int64_t n_end) {                                                      \
    stripe<__VA_ARGS__, Add>(y, y_stride, xq, packed, n_tokens, k_len, n_begin, n_end);        \
  }
