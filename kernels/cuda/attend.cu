// Attention over a paged cache for CUDA; contracts in kernels/cuda.hpp and kernels/attend.hpp, oracle in
// kernels/ref/attend.cpp. Bound by reading the cache, which the rows of a block share: up to 16 pairs of a
// token and a query head that read the same kv head.
// grid         x: tiles of tokens; y: kv heads (and each 16 of the query heads that share one); z: chunks of
//              keys, where they have blocks of their own; the last of them brings their parts together
// block        128 threads. Of a tile of 64 keys
//   scores     thread = one key and half of the rows, in ascending element
//   softmax    eight threads a row
//   values     thread = element threadIdx.x of the head (and the one 128 further) of all rows
// shared       q of the rows, 16 * head_dim floats (at most 16 KiB), dynamic; 5.9 KiB besides
// Occupancy is limited by registers (the table of tests/kernels/cuda/resources.txt).
//
// A row's bits come from its own q, keys, values and position: tiles of keys lie at absolute positions,
// a key that the row does not see is left out, and merging a tile without a seen key changes nothing.
#include <kernels/attend.hpp>
#include <kernels/cached_rows.hpp>
#include <kernels/cuda.hpp>

#include "kernels/cuda/device.hpp"
#include "kernels/cuda/instructions.hpp"
#include "kernels/cuda/last_block.hpp"
#include "kernels/cuda/numbers.hpp"

namespace dovetail::kernels::cuda {
namespace {

constexpr int kRows = 16, kThreads = 128, kTileKeys = static_cast<int>(kAttendTile);
constexpr int kWeightStride = kRows + 4;  // floats from a key's weights to the next
constexpr float kUnseen = -1.0F;          // a weight that counts for nothing, not even with NaN

__host__ __device__ constexpr int64_t padded(int64_t head_dim) {
  return (head_dim + 7) / 8 * 8;
}

/// Numbers of a row that one vector load brings: 16 bytes of floats, 4 levels of int8.
template <class Element>
constexpr int kVector = 16 / sizeof(Element);
template <>
constexpr int kVector<int8_t> = 4;

__device__ inline void load_vector(const float* g_from, float (&out)[4]) {
  const uint4 v = load16(g_from);
  out[0] = __uint_as_float(v.x), out[1] = __uint_as_float(v.y);
  out[2] = __uint_as_float(v.z), out[3] = __uint_as_float(v.w);
}
__device__ inline void load_vector(const uint16_t* g_from, float (&out)[8]) {
  const uint4 v = load16(g_from);
  const uint32_t words[4] = {v.x, v.y, v.z, v.w};
  DVT_UNROLL
  for (int i = 0; i < 8; ++i) out[i] = widen(static_cast<uint16_t>(words[i / 2] >> i % 2 * 16));
}
__device__ inline void load_vector(const int8_t* g_from, float (&out)[4]) {
  const uint32_t word = *reinterpret_cast<const uint32_t*>(g_from);
  DVT_UNROLL
  for (int i = 0; i < 4; ++i) out[i] = widen(static_cast<int8_t>(word >> i * 8));
}

template <class Element>
__device__ inline float scale_of_row(const Element* g_row, int64_t head_dim) {
  if constexpr (kHasScale<Element>)
    return *reinterpret_cast<const float*>(g_row + int8_level_bytes(head_dim));
  return 1.0F;
}

/// What a block works on.
struct Work {
  __device__ Work(const AttendArgs& args, const KvLayout& layout, const StepRows& step) {
    const AttendTile tile = args.g_tiles[blockIdx.x];
    const int64_t n_group = args.n_heads / layout.n_kv_heads;
    const int64_t n_head_blocks = (n_group + kRows - 1) / kRows;
    kv_head = blockIdx.y / n_head_blocks;
    const int64_t first_of_group = blockIdx.y % n_head_blocks * kRows;
    first_head = kv_head * n_group + first_of_group;
    n_heads = static_cast<int>(n_group - first_of_group < kRows ? n_group - first_of_group : kRows);
    n_rows = tile.n_tokens * n_heads;
    first_token = tile.first_token;
    first_pos = step.g_positions[first_token];
    last_pos = first_pos + tile.n_tokens - 1;
    window = args.window;
    g_pages = step.g_pages + step.g_page_begin[first_token];
  }
  __device__ int64_t pos(int row) const { return first_pos + row / n_heads; }
  __device__ int64_t begin(int row) const { return begin_at(pos(row), window); }
  static __device__ int64_t begin_at(int64_t pos, int64_t window) {
    return pos + 1 - window > 0 ? pos + 1 - window : 0;
  }
  /// Of [n_tokens, n_heads].
  __device__ int64_t place(int row, int64_t n_all_heads) const {
    return (first_token + row / n_heads) * n_all_heads + first_head + row % n_heads;
  }

  int64_t kv_head, first_head, first_token, first_pos, last_pos, window;
  int n_heads, n_rows;  // heads of each token; rows in all
  const uint32_t* g_pages;
};

/// The running softmax of each row of a block.
struct Softmax {
  float *greatest, *sum, *keep;  // keep: what the sums so far are multiplied by
};

/// Scores of 64 keys from key0 on: s_weights[key][row], -inf where the row does not see the key.
template <class Element>
__device__ void score_tile(const Work& work, const AttendArgs& args, const KvLayout& layout,
                           const Element* g_k, bool is_vector, int64_t key0, const float* s_q,
                           float* s_weights, int64_t* s_offset) {
  constexpr int kRowsOfThread = kRows / 2;
  const int key = static_cast<int>(threadIdx.x) % kTileKeys;
  const int first_row = static_cast<int>(threadIdx.x) / kTileKeys * kRowsOfThread;
  const int64_t pos = key0 + key, q_len = padded(layout.head_dim);
  const bool is_read = pos <= work.last_pos && pos >= work.begin(0);
  float sums[kRowsOfThread] = {};
  float key_scale = 1.0F;
  if (is_read) {
    const int64_t offset = row_offset<Element>(layout, work.g_pages, work.kv_head, pos);
    if (first_row == 0) s_offset[key] = offset;
    const Element* g_key = g_k + offset;
    key_scale = scale_of_row(g_key, layout.head_dim);
    int64_t i = 0;
    if (is_vector)
      for (; i + kVector<Element> <= layout.head_dim; i += kVector<Element>) {
        float numbers[kVector<Element>];
        load_vector(g_key + i, numbers);
        DVT_UNROLL
        for (int r = 0; r < kRowsOfThread; ++r) {
          if (first_row + r >= work.n_rows) break;
          DVT_UNROLL
          for (int e = 0; e < kVector<Element>; ++e)
            sums[r] = fmaf(s_q[(first_row + r) * q_len + i + e], numbers[e], sums[r]);
        }
      }
    for (; i < layout.head_dim; ++i) {
      const float number = widen(g_key[i]);
      DVT_UNROLL
      for (int r = 0; r < kRowsOfThread; ++r) {
        if (first_row + r >= work.n_rows) break;
        sums[r] = fmaf(s_q[(first_row + r) * q_len + i], number, sums[r]);
      }
    }
  }
  DVT_UNROLL
  for (int r = 0; r < kRowsOfThread; ++r) {
    const int row = first_row + r;
    const bool is_seen = row < work.n_rows && pos <= work.pos(row) && pos >= work.begin(row);
    s_weights[key * kWeightStride + row] = is_seen ? (sums[r] * args.scale) * key_scale : -INFINITY;
  }
}

/// Scores to weights relative to the greatest score so far; unseen keys get kUnseen.
__device__ inline void weigh_tile(const Work& work, int64_t key0, float* s_weights,
                                  const Softmax& s) {
  constexpr int kLanes = kThreads / kRows;
  const int row = static_cast<int>(threadIdx.x) / kLanes;
  const int first = static_cast<int>(threadIdx.x) % kLanes;
  float greatest = -INFINITY;
  for (int key = first; key < kTileKeys; key += kLanes)
    greatest = fmaxf(greatest, s_weights[key * kWeightStride + row]);
  greatest = lanes_max<kLanes>(greatest);
  const float before = s.greatest[row];
  const float now = fmaxf(before, greatest);
  const bool is_row = row < work.n_rows;
  const int64_t end = is_row ? work.pos(row) : -1, begin = is_row ? work.begin(row) : 0;
  float sum = 0.0F;
  for (int key = first; key < kTileKeys; key += kLanes) {
    float& weight = s_weights[key * kWeightStride + row];
    const bool is_seen = key0 + key <= end && key0 + key >= begin;
    if (is_seen) {
      weight = expf(weight - now);
      sum += weight;
    } else {
      weight = kUnseen;
    }
  }
  sum = lanes_sum<kLanes>(sum);
  if (first == 0) {
    const bool has_key = end >= key0 && begin < key0 + kTileKeys;
    s.keep[row] = has_key ? expf(before - now) : 1.0F;
    if (has_key) {
      s.greatest[row] = now;
      s.sum[row] = fmaf(s.sum[row], s.keep[row], sum);
    }
  }
}

/// sums[row] = sums[row] * keep + weights * values.
template <class Element, int kDims>
__device__ void add_values(const Work& work, const KvLayout& layout, const Element* g_v,
                           int64_t key0, const float* s_weights, const int64_t* s_offset,
                           const Softmax& s, float (&sums)[kDims][kRows]) {
  DVT_UNROLL
  for (int d = 0; d < kDims; ++d) DVT_UNROLL
  for (int r = 0; r < kRows; ++r)
    if (r < work.n_rows) sums[d][r] *= s.keep[r];
  const int64_t first = work.begin(0) > key0 ? work.begin(0) - key0 : 0;
  const int64_t end = work.last_pos + 1 - key0 < kTileKeys ? work.last_pos + 1 - key0 : kTileKeys;
  for (int64_t key = first; key < end; ++key) {
    const Element* g_row = g_v + s_offset[key];
    const float scale = scale_of_row(g_row, layout.head_dim);
    DVT_UNROLL
    for (int d = 0; d < kDims; ++d) {
      const int64_t i = int64_t{threadIdx.x} + d * kThreads;
      if (i >= layout.head_dim) break;
      const float value = widen(g_row[i]);
      DVT_UNROLL
      for (int r = 0; r < kRows; ++r) {
        if (r >= work.n_rows) break;
        const float weight = s_weights[key * kWeightStride + r];
        if (weight == kUnseen) continue;
        sums[d][r] = fmaf(kHasScale<Element> ? weight * scale : weight, value, sums[d][r]);
      }
    }
  }
}

/// What two sums are multiplied by where they come together; of one without a key by nothing.
struct Merge {
  __device__ Merge(float a, float b)
      : greatest(fmaxf(a, b)), of_a(expf(a - greatest)), of_b(expf(b - greatest)) {}
  __device__ float operator()(float a, float b) const { return fmaf(b, of_b, a * of_a); }

  float greatest, of_a, of_b;
};

/// A block's rows from their parts, once the blocks of all chunks have stored them.
__device__ inline void merge_parts(const AttendArgs& args, const Work& work, int64_t head_dim) {
  const int64_t part_len = attend_part_len(head_dim);
  for (int row = 0; row < work.n_rows; ++row) {
    const int64_t first = work.begin(row) / kAttendChunk, last = work.pos(row) / kAttendChunk;
    const int64_t place = work.place(row, args.n_heads);
    for (int64_t i = threadIdx.x; i < head_dim; i += kThreads) {
      const float* g_part = args.g_parts + (place * args.n_chunks + first) * part_len;
      float greatest = load_fresh(g_part), sum = load_fresh(g_part + 1);
      float total = load_fresh(g_part + 2 + i);
      for (int64_t chunk = first + 1; chunk <= last; ++chunk) {
        g_part += part_len;
        const Merge merge(greatest, load_fresh(g_part));
        total = merge(total, load_fresh(g_part + 2 + i));
        sum = merge(sum, load_fresh(g_part + 1));
        greatest = merge.greatest;
      }
      args.g_out[place * head_dim + i] = total / sum;
    }
  }
}

template <class Element, int kDims, bool kInParts>
__global__ void __launch_bounds__(kThreads, kDims == 1 ? 5 : 3)
    attend_kernel(AttendArgs args, KvLayout layout, StepRows step, const Element* g_k,
                  const Element* g_v, bool is_vector) {
  DVT_SHARED_DYNAMIC(s_dynamic);
  auto* const s_q = reinterpret_cast<float*>(s_dynamic);
  DVT_SHARED(float, s_weights, [kTileKeys * kWeightStride]);
  DVT_SHARED(int64_t, s_offset, [kTileKeys]);
  DVT_SHARED(float, s_greatest, [kRows]);
  DVT_SHARED(float, s_sum, [kRows]);
  DVT_SHARED(float, s_keep, [kRows]);
  DVT_SHARED(float, s_total_greatest, [kRows]);
  DVT_SHARED(float, s_total_sum, [kRows]);
  const Work work(args, layout, step);
  const Softmax softmax{s_greatest, s_sum, s_keep};
  const int thread = static_cast<int>(threadIdx.x);

  const int64_t first_chunk = work.begin(0) / kAttendChunk;
  const int64_t last_chunk = work.last_pos / kAttendChunk;
  const int64_t chunk_begin = kInParts ? int64_t{blockIdx.z} : first_chunk;
  const int64_t chunk_end = kInParts ? chunk_begin + 1 : last_chunk + 1;
  if (chunk_begin < first_chunk || chunk_begin > last_chunk) return;  // all threads alike

  const int64_t q_len = padded(layout.head_dim);
  for (int64_t i = thread; i < work.n_rows * layout.head_dim; i += kThreads) {
    const int row = static_cast<int>(i / layout.head_dim);
    const int64_t e = i % layout.head_dim;
    s_q[row * q_len + e] = args.g_q[work.place(row, args.n_heads) * layout.head_dim + e];
  }
  if (thread < kRows) s_total_greatest[thread] = -INFINITY, s_total_sum[thread] = 0.0F;

  float totals[kDims][kRows] = {};
  for (int64_t chunk = chunk_begin; chunk < chunk_end; ++chunk) {
    float sums[kDims][kRows] = {};
    if (thread < kRows) s_greatest[thread] = -INFINITY, s_sum[thread] = 0.0F;
    __syncthreads();
    const int64_t first_key = work.begin(0) / kTileKeys * kTileKeys;
    const int64_t chunk_key = chunk * kAttendChunk;
    const int64_t end_key =
        work.last_pos + 1 < chunk_key + kAttendChunk ? work.last_pos + 1 : chunk_key + kAttendChunk;
    for (int64_t key0 = first_key > chunk_key ? first_key : chunk_key; key0 < end_key;
         key0 += kTileKeys) {
      score_tile(work, args, layout, g_k, is_vector, key0, s_q, s_weights, s_offset);
      __syncthreads();
      weigh_tile(work, key0, s_weights, softmax);
      __syncthreads();
      add_values(work, layout, g_v, key0, s_weights, s_offset, softmax, sums);
      __syncthreads();
    }
    DVT_UNROLL
    for (int r = 0; r < kRows; ++r) {
      if (r >= work.n_rows) break;
      const bool has_key = work.pos(r) >= chunk_key && work.begin(r) < chunk_key + kAttendChunk;
      if (!has_key) continue;
      const float greatest = s_greatest[r];
      if constexpr (kInParts) {
        float* g_part = args.g_parts + (work.place(r, args.n_heads) * args.n_chunks + chunk) *
                                           attend_part_len(layout.head_dim);
        if (thread == 0) g_part[0] = greatest, g_part[1] = s_sum[r];
        DVT_UNROLL
        for (int d = 0; d < kDims; ++d)
          if (thread + d * kThreads < layout.head_dim)
            g_part[2 + thread + d * kThreads] = sums[d][r];
      } else {
        const bool is_first = chunk == work.begin(r) / kAttendChunk;
        const Merge merge(s_total_greatest[r], greatest);
        DVT_UNROLL
        for (int d = 0; d < kDims; ++d)
          totals[d][r] = is_first ? sums[d][r] : merge(totals[d][r], sums[d][r]);
      }
    }
    if constexpr (!kInParts) {
      __syncthreads();
      if (thread < work.n_rows && work.pos(thread) >= chunk_key &&
          work.begin(thread) < chunk_key + kAttendChunk) {
        const Merge merge(s_total_greatest[thread], s_greatest[thread]);
        const bool is_first = chunk == work.begin(thread) / kAttendChunk;
        s_total_sum[thread] = is_first ? s_sum[thread] : merge(s_total_sum[thread], s_sum[thread]);
        s_total_greatest[thread] = is_first ? s_greatest[thread] : merge.greatest;
      }
      __syncthreads();
    }
  }
  if constexpr (kInParts) {
    DVT_SHARED(uint32_t, s_is_last, [1]);
    uint32_t* g_arrived = args.g_arrived + int64_t{blockIdx.x} * gridDim.y + blockIdx.y;
    if (is_last_block(g_arrived, static_cast<uint32_t>(last_chunk - first_chunk + 1), s_is_last[0]))
      merge_parts(args, work, layout.head_dim);
  } else {
    DVT_UNROLL
    for (int r = 0; r < kRows; ++r) {
      if (r >= work.n_rows) break;
      DVT_UNROLL
      for (int d = 0; d < kDims; ++d)
        if (thread + d * kThreads < layout.head_dim)
          args.g_out[work.place(r, args.n_heads) * layout.head_dim + thread + d * kThreads] =
              totals[d][r] / s_total_sum[r];
    }
  }
}

/// Whether every row of the cache lies where vectors can be loaded.
template <class Element>
bool has_vectors(const KvLayout& layout) {
  constexpr int64_t kBytes = kHasScale<Element> ? 4 : 16;
  const auto row = cached_row_len<Element>(layout.head_dim) * static_cast<int64_t>(sizeof(Element));
  const auto page = layout.page_stride * static_cast<int64_t>(sizeof(Element));
  return row % kBytes == 0 && page % kBytes == 0;
}

template <class Element>
void attend_of(Stream stream, const AttendArgs& args, const KvLayout& layout, const StepRows& step,
               const Element* g_k, const Element* g_v) {
  if (args.n_tiles == 0 || step.n_tokens == 0) return;
  const bool in_parts = args.g_parts != nullptr, is_short = layout.head_dim <= kThreads;
  const int64_t n_group = args.n_heads / layout.n_kv_heads;
  const dim3 grid(static_cast<unsigned>(args.n_tiles),
                  static_cast<unsigned>(layout.n_kv_heads * blocks_for(n_group, kRows)),
                  static_cast<unsigned>(in_parts ? args.n_chunks : 1));
  const size_t q_bytes = kRows * static_cast<size_t>(padded(layout.head_dim)) * sizeof(float);
  const bool is_vector = has_vectors<Element>(layout);
  const auto launch = [&](auto attend_kernel_of) {
    DVT_LAUNCH(attend_kernel_of, grid, kThreads, q_bytes, stream, args, layout, step, g_k, g_v,
               is_vector);
  };
  if (in_parts)
    launch(is_short ? attend_kernel<Element, 1, true> : attend_kernel<Element, 2, true>);
  else
    launch(is_short ? attend_kernel<Element, 1, false> : attend_kernel<Element, 2, false>);
}

}  // namespace

int64_t attend_tile_len(int64_t n_group_heads) {
  return n_group_heads >= kRows ? 1 : kRows / n_group_heads;
}
int64_t attend_parts_len(int64_t n_tokens, int64_t n_heads, int64_t head_dim, int64_t n_chunks) {
  return n_tokens * n_heads * n_chunks * attend_part_len(head_dim);
}

void attend(Stream stream, const AttendArgs& args, const KvLayout& layout, const StepRows& step,
            const float* g_k, const float* g_v) {
  attend_of(stream, args, layout, step, g_k, g_v);
}
void attend(Stream stream, const AttendArgs& args, const KvLayout& layout, const StepRows& step,
            const uint16_t* g_k, const uint16_t* g_v) {
  attend_of(stream, args, layout, step, g_k, g_v);
}
void attend(Stream stream, const AttendArgs& args, const KvLayout& layout, const StepRows& step,
            const int8_t* g_k, const int8_t* g_v) {
  attend_of(stream, args, layout, step, g_k, g_v);
}

}  // namespace dovetail::kernels::cuda
