// Oracle of attend.hpp: the textbook softmax over all visible keys, in three passes. It stores no
// scores (a kernel allocates nothing): each pass computes them again, with the same result.
#include <kernels/attend.hpp>

#include <algorithm>
#include <cmath>

#include <kernels/bf16.hpp>
#include <kernels/cached_rows.hpp>

namespace dovetail::kernels::ref {
namespace {

float widen(float value) {
  return value;
}
float widen(uint16_t bits) {
  return bf16_to_float(bits);
}
float widen(int8_t level) {
  return level;
}

template <class Element>
float dot(const float* q, const Element* k, int64_t head_dim) {
  float sum = 0.0F;
  for (int64_t i = 0; i < head_dim; ++i) sum += q[i] * widen(k[i]);
  return sum;
}

template <class Element>
void attend_row(float* out, const float* q, int64_t pos, const AttendTask& task,
                const KvLayout& layout, const Element* k, const Element* v,
                const uint32_t* page_table) {
  const int64_t begin = std::max<int64_t>(0, pos + 1 - task.window);
  const auto score = [&](int64_t j) {
    const Element* key = k + row_offset<Element>(layout, page_table, task.kv_head, j);
    return (dot(q, key, layout.head_dim) * task.scale) * row_scale(key, layout.head_dim);
  };

  float greatest = -INFINITY;
  for (int64_t j = begin; j <= pos; ++j) greatest = std::max(greatest, score(j));

  float sum = 0.0F;
  for (int64_t j = begin; j <= pos; ++j) sum += std::exp(score(j) - greatest);

  for (int64_t i = 0; i < layout.head_dim; ++i) out[i] = 0.0F;
  for (int64_t j = begin; j <= pos; ++j) {
    const Element* value = v + row_offset<Element>(layout, page_table, task.kv_head, j);
    const float p = std::exp(score(j) - greatest) / sum * row_scale(value, layout.head_dim);
    for (int64_t i = 0; i < layout.head_dim; ++i) out[i] += p * widen(value[i]);
  }
}

template <class Element>
void attend(const AttendTask& task, const KvLayout& layout, const Element* k, const Element* v,
            const uint32_t* page_table) {
  for (int64_t t = 0; t < task.n_tokens; ++t) {
    for (int64_t i = 0; i < task.n_group_heads; ++i) {
      const int64_t head = (task.kv_head * task.n_group_heads + i) * layout.head_dim;
      attend_row(task.out + t * task.out_stride + head, task.q + t * task.q_stride + head,
                 task.first_pos + t, task, layout, k, v, page_table);
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

}  // namespace dovetail::kernels::ref
