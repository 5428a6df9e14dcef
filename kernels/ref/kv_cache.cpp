// Oracle of cache_write in kv_cache.hpp.
#include <kernels/kv_cache.hpp>

#include <cstring>

#include <kernels/bf16.hpp>
#include <kernels/cached_rows.hpp>
#include <kernels/int8_levels.hpp>

namespace dovetail::kernels::ref {
namespace {

void store_row(float* to, const float* from, int64_t head_dim) {
  for (int64_t i = 0; i < head_dim; ++i) to[i] = from[i];
}
void store_row(uint16_t* to, const float* from, int64_t head_dim) {
  for (int64_t i = 0; i < head_dim; ++i) to[i] = float_to_bf16(from[i]);
}
void store_row(int8_t* to, const float* from, int64_t head_dim) {
  const float scale = int8_levels(to, from, head_dim);
  const int64_t n = int8_level_bytes(head_dim);
  for (int64_t i = head_dim; i < n; ++i) to[i] = 0;
  std::memcpy(to + n, &scale, sizeof scale);
}

template <class Element>
void cache_write(Element* base, const KvLayout& layout, const uint32_t* page_table,
                 int64_t first_pos, const float* rows, int64_t row_stride, int64_t n_rows) {
  for (int64_t r = 0; r < n_rows; ++r) {
    for (int64_t g = 0; g < layout.n_kv_heads; ++g) {
      store_row(base + row_offset<Element>(layout, page_table, g, first_pos + r),
                rows + r * row_stride + g * layout.head_dim, layout.head_dim);
    }
  }
}

}  // namespace

void cache_write_f32(float* base, const KvLayout& layout, const uint32_t* page_table,
                     int64_t first_pos, const float* rows, int64_t row_stride, int64_t n_rows) {
  cache_write(base, layout, page_table, first_pos, rows, row_stride, n_rows);
}

void cache_write_bf16(uint16_t* base, const KvLayout& layout, const uint32_t* page_table,
                      int64_t first_pos, const float* rows, int64_t row_stride, int64_t n_rows) {
  cache_write(base, layout, page_table, first_pos, rows, row_stride, n_rows);
}

void cache_write_int8(int8_t* base, const KvLayout& layout, const uint32_t* page_table,
                      int64_t first_pos, const float* rows, int64_t row_stride, int64_t n_rows) {
  cache_write(base, layout, page_table, first_pos, rows, row_stride, n_rows);
}

}  // namespace dovetail::kernels::ref
