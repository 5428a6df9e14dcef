// Causal grouped-query attention over a paged cache.
#pragma once

#include <cstdint>

#include <kernels/kv_cache.hpp>

namespace dovetail::kernels {

/// Keys are taken in tiles of this many, the first tile starting at position 0.
inline constexpr int64_t kAttendTile = 64;

/// One unit of work: consecutive tokens of one sequence, and the query heads that share one kv
/// head. Give a kernel several tokens at once where there are several: they share each read of the
/// cache.
struct AttendTask {
  float* out;  // [n_tokens, n_heads, head_dim], token t at out + t * out_stride
  int64_t out_stride;
  const float* q;  // [n_tokens, n_heads, head_dim], token t at q + t * q_stride
  int64_t q_stride;
  int64_t n_tokens;
  int64_t first_pos;  // token t stands at position first_pos + t
  int64_t kv_head;    // reads and writes heads kv_head * n_group_heads + [0, n_group_heads)
  int64_t n_group_heads;
  int64_t window;  // a token at pos sees keys (pos - window, pos]; INT64_MAX sees them all
  float scale;     // of the scores, as a rule 1 / sqrt(head_dim)
};

/// For each token and each head h of the group, over the keys j that the token sees:
///   score[j] = scale * sum_i q[t, h, i] * k[j, i]
///   out[t, h, :] = sum_j softmax(score)[j] * v[j, :]
///
/// shapes    see AttendTask and KvLayout. k and v are the bases of one layer's keys and values, the
///           token's own included (cache_write comes first). Pages before the window are not read.
///           q and out do not overlap.
/// numerics  float throughout. Keys go in ascending tiles of kAttendTile at absolute positions; a
///           tile's greatest score and sum are merged into the running ones in that order. A row's
///           value depends on its q, the keys and values that it sees, its position and the
///           variant: never on n_tokens, on where a prompt was cut or on page_len. Within 1e-5 of
///           kernels/ref, relative to the largest |v|, while |score| <= 30.
/// threads   reentrant; allocates nothing (up to 64 KiB of stack), reads no globals.
/// errors    none. n_tokens == 0 does nothing; window >= 1. NaN or +inf among the scores gives NaN.
/// source    online softmax: Milakov and Gimelshein 2018, arXiv:1805.02867, algorithm 3.
using AttendF32Fn = void(const AttendTask& task, const KvLayout& layout, const float* k,
                         const float* v, const uint32_t* page_table);

/// The same over a cache of bfloat16, widened as it is read.
using AttendBf16Fn = void(const AttendTask& task, const KvLayout& layout, const uint16_t* k,
                          const uint16_t* v, const uint32_t* page_table);

/// The same over a cache of int8 with a scale a row, each product rounded:
///   score[j] = ((sum_i q[t, h, i] * k[j, i]) * scale) * k_scale[j]
///   out[t, h, :] = sum_j (weight[j] * v_scale[j]) * v[j, :], with the weights of the softmax
/// in the order of the other caches, which are this one with scales of 1.
using AttendInt8Fn = void(const AttendTask& task, const KvLayout& layout, const int8_t* k,
                          const int8_t* v, const uint32_t* page_table);

namespace ref {
AttendF32Fn attend_f32;
AttendBf16Fn attend_bf16;
AttendInt8Fn attend_int8;
}  // namespace ref

}  // namespace dovetail::kernels
