// attend for any machine; contract in kernels/attend.hpp, oracle in kernels/ref/attend.cpp.
// Bound by arithmetic. One token and one head at a time, tile by tile with an online softmax; the
// row of out is the running sum of values.
#include <algorithm>
#include <cmath>

#include <kernels/cached_rows.hpp>

#include "kernels/cpu/portable.hpp"
#include "kernels/cpu/portable_math.hpp"

namespace dovetail::kernels::portable {
namespace {

/// One kv head's rows in the pages of one sequence.
template <class Element>
struct CachedHead {
  const Element* base;
  const KvLayout& layout;
  const uint32_t* page_table;
  int64_t kv_head;

  const Element* row(int64_t pos) const {
    return base + row_offset<Element>(layout, page_table, kv_head, pos);
  }
};

struct RunningSoftmax {
  float greatest = -INFINITY;
  float sum = 0.0F;
};

/// Merges keys [begin, end) of the tile that starts at `start` into out and `state`.
template <class Element>
void merge_tile(float* out, RunningSoftmax& state, const float* q, float scale, int64_t start,
                int64_t begin, int64_t end, const CachedHead<Element>& k,
                const CachedHead<Element>& v) {
  const int64_t head_dim = k.layout.head_dim;
  float p[kAttendTile] = {};  // keys that are not seen weigh nothing

  float greatest = state.greatest;
  for (int64_t j = begin; j < end; ++j) {
    const Element* key = k.row(j);
    p[j - start] = (dot(q, key, head_dim) * scale) * row_scale(key, head_dim);
    greatest = std::max(greatest, p[j - start]);
  }
  for (int64_t j = begin; j < end; ++j) p[j - start] = exp_of(p[j - start] - greatest);

  const float keep = exp_of(state.greatest - greatest);
  state.sum = state.sum * keep + sum(p, kAttendTile);
  state.greatest = greatest;
  for (int64_t i = 0; i < head_dim; ++i) out[i] *= keep;
  for (int64_t j = begin; j < end; ++j) {
    const Element* value = v.row(j);
    const float weight = p[j - start] * row_scale(value, head_dim);
    for (int64_t i = 0; i < head_dim; ++i) out[i] += weight * widen(value[i]);
  }
}

template <class Element>
void attend_row(float* out, const float* q, int64_t pos, const AttendTask& task,
                const CachedHead<Element>& k, const CachedHead<Element>& v) {
  const int64_t head_dim = k.layout.head_dim;
  const int64_t first = std::max<int64_t>(0, pos + 1 - task.window);
  RunningSoftmax state;
  std::fill_n(out, head_dim, 0.0F);
  for (int64_t start = first - first % kAttendTile; start <= pos; start += kAttendTile) {
    merge_tile(out, state, q, task.scale, start, std::max(first, start),
               std::min(pos + 1, start + kAttendTile), k, v);
  }
  const float inverse = 1.0F / state.sum;
  for (int64_t i = 0; i < head_dim; ++i) out[i] *= inverse;
}

template <class Element>
void attend(const AttendTask& task, const KvLayout& layout, const Element* k, const Element* v,
            const uint32_t* page_table) {
  const CachedHead<Element> keys{k, layout, page_table, task.kv_head};
  const CachedHead<Element> values{v, layout, page_table, task.kv_head};
  for (int64_t t = 0; t < task.n_tokens; ++t) {
    for (int64_t i = 0; i < task.n_group_heads; ++i) {
      const int64_t head = (task.kv_head * task.n_group_heads + i) * layout.head_dim;
      attend_row(task.out + t * task.out_stride + head, task.q + t * task.q_stride + head,
                 task.first_pos + t, task, keys, values);
    }
  }
}

}  // namespace

void attend_f32(const AttendTask& task, const KvLayout& layout, const float* k, const float* v,
                const uint32_t* page_table) {
  attend(task, layout, k, v, page_table);
}

void attend_bf16(const AttendTask& task, const KvLayout& layout, const uint16_t* k,
                 const uint16_t* v, const uint32_t* page_table) {
  attend(task, layout, k, v, page_table);
}

void attend_int8(const AttendTask& task, const KvLayout& layout, const int8_t* k, const int8_t* v,
                 const uint32_t* page_table) {
  attend(task, layout, k, v, page_table);
}

}  // namespace dovetail::kernels::portable
