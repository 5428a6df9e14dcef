// Oracle of cache_write in kv_cache.hpp.
#include <kernels/bf16.hpp>
#include <kernels/kv_cache.hpp>

namespace dovetail::kernels::ref {
namespace {

void store(float* to, float value) {
  *to = value;
}
void store(uint16_t* to, float value) {
  *to = float_to_bf16(value);
}

template <class Element>
void cache_write(Element* base, const KvLayout& layout, const uint32_t* page_table,
                 int64_t first_pos, const float* rows, int64_t row_stride, int64_t n_rows) {
  for (int64_t r = 0; r < n_rows; ++r) {
    const int64_t pos = first_pos + r;
    Element* page = base + page_table[pos / layout.page_len] * layout.page_stride;
    for (int64_t g = 0; g < layout.n_kv_heads; ++g) {
      const float* from = rows + r * row_stride + g * layout.head_dim;
      Element* to = page + (g * layout.page_len + pos % layout.page_len) * layout.head_dim;
      for (int64_t i = 0; i < layout.head_dim; ++i) store(to + i, from[i]);
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

}  // namespace dovetail::kernels::ref
