// Causal grouped-query attention over a paged cache.
#pragma once

#include <cstdint>

#include <kernels/kv_cache.hpp>

namespace dovetail::kernels {

/// Keys are taken in tiles of this many, and tiles in chunks; the first ones start at position 0.
/// Chunks can be attended by different threads.
inline constexpr int64_t kAttendTile = 64;
inline constexpr int64_t kAttendChunk = 8 * kAttendTile;

/// The longest row of a head.
inline constexpr int64_t kMaxAttendDim = 12288;

/// Floats of what is kept of one row's attention to one chunk: the greatest score, the sum of the
/// weights (0 where the row sees no key of the chunk) and the sum of weight * value.
constexpr int64_t attend_part_len(int64_t head_dim) {
  return 2 + head_dim;
}

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
  // Where given, out is left alone, and this gets the parts of one chunk alone for attend_merge:
  // [n_tokens, n_group_heads, attend_part_len(head_dim)].
  float* parts = nullptr;
  int64_t chunk = 0;  // the keys from chunk * kAttendChunk on
};

/// For each token and each head h of the group, over the keys j that the token sees:
///   score[j] = scale * sum_i q[t, h, i] * k[j, i]
///   out[t, h, :] = sum_j softmax(score)[j] * v[j, :]
///
/// shapes    see AttendTask and KvLayout. k and v are the bases of one layer's keys and values, the
///           token's own included (cache_write comes first). Pages before the window are not read.
///           q and out do not overlap.
/// numerics  float throughout. Keys go in ascending tiles of kAttendTile at absolute positions; a
///           tile's greatest score and sum are merged into those of its chunk in that order, and
///           the chunks' into the row's. A row's value depends on its q, the keys and values that
///           it sees, its position and the variant: never on n_tokens, on where a prompt was cut,
///           on page_len or on who attended which chunk. Within 1e-5 of kernels/ref, relative to
///           the largest |v|, while |score| <= 30.
/// threads   reentrant; allocates nothing (up to 112 KiB of stack), reads no globals.
/// errors    none. n_tokens == 0 does nothing; window >= 1; head_dim <= kMaxAttendDim. NaN or +inf
///           among the scores gives NaN.
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

/// One row's out from the parts of the chunks that it sees; of the same variant as they are, with the
/// bits that it gives when one call attends to all of them.
///
/// shapes    out [head_dim]; parts: part p at parts + p * part_stride, in the order of their keys. out
///           does not overlap them. Parts without a key may be among them, not alone.
/// numerics  In that order, m being the greater of the two greatest scores:
///             total = total * exp(greatest_total - m) + part * exp(greatest_part - m)
///           for the sums of weights and of weight * value.
/// threads   reentrant; allocates nothing.
/// errors    none: n_parts >= 1.
using AttendMergeFn = void(float* out, const float* parts, int64_t n_parts, int64_t part_stride,
                           int64_t head_dim);

namespace ref {
AttendF32Fn attend_f32;
AttendBf16Fn attend_bf16;
AttendInt8Fn attend_int8;
}  // namespace ref

}  // namespace dovetail::kernels
