// How cached keys and values lie in pages, and the op that puts new ones there.
#pragma once

#include <cstdint>

namespace dovetail::kernels {

/// Keys (or values: each has its own base pointer) of one layer. Position `pos` of a sequence is
/// row pos % page_len of page page_table[pos / page_len], and its element i of head g is at
///   base + page * page_stride + (g * page_len + row) * head_dim + i
/// so that one head's rows of a page are one run of memory, which is what attend reads. The
/// canonical export is [row, n_kv_heads, head_dim]: head_dim runs move whole.
///
/// A cache of int8 is counted in bytes. Its rows are longer than head_dim, in whose place the
/// address above has their length:
///   int8 q[head_dim]; zeros to a multiple of 4 bytes; float32 scale
/// Number i of a row is q[i] * scale. Base pointers and page_stride are multiples of 4.
struct KvLayout {
  int64_t n_kv_heads;
  int64_t head_dim;
  int64_t page_len;     // rows in a page; 16 to 64 suits attend, any size is right
  int64_t page_stride;  // elements from a page to the next, >= those of n_kv_heads * page_len rows
};

/// Stores rows of consecutive positions of one sequence into a cache of floats.
///
/// shapes    rows [n_rows, n_kv_heads, head_dim], row r at rows + r * row_stride, heads dense;
///           page_table as in KvLayout, long enough for first_pos + n_rows - 1.
/// numerics  exact for float32; bfloat16 rounds to nearest, ties to even (see f32_to_bf16).
/// threads   reentrant; allocates nothing. Calls for different positions may run at the same time.
/// errors    none. n_rows == 0 does nothing.
using CacheWriteF32Fn = void(float* base, const KvLayout& layout, const uint32_t* page_table,
                             int64_t first_pos, const float* rows, int64_t row_stride,
                             int64_t n_rows);

/// The same into a cache of bfloat16.
using CacheWriteBf16Fn = void(uint16_t* base, const KvLayout& layout, const uint32_t* page_table,
                              int64_t first_pos, const float* rows, int64_t row_stride,
                              int64_t n_rows);

/// The same into a cache of int8, each row (one head's vector of one position) with its own scale:
///   scale = max |x| / 127, q = x * (127 / max |x|) to the nearest, ties to even
///
/// numerics  As quantize_activations, with the row for its block: a row with an infinity or a NaN
///           keeps that as its scale with q = 0, so that all that reads it is NaN; one whose
///           max |x| is below 2^-100 is all zeros. Every variant gives the bytes of kernels/ref.
using CacheWriteInt8Fn = void(int8_t* base, const KvLayout& layout, const uint32_t* page_table,
                              int64_t first_pos, const float* rows, int64_t row_stride,
                              int64_t n_rows);

namespace ref {
CacheWriteF32Fn cache_write_f32;
CacheWriteBf16Fn cache_write_bf16;
CacheWriteInt8Fn cache_write_int8;
}  // namespace ref

}  // namespace dovetail::kernels
