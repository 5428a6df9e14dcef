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

}  // namespace

void cache_write_f32(float* base, const KvLayout& layout, const uint32_t* page_table,
                     int64_t first_pos, const float* rows, int64_t row_stride, int64_t n_rows) {
  write_cached_rows(base, layout, page_table, first_pos, rows, row_stride, n_rows,
                    [](float* to, const float* from, int64_t n) { store_row(to, from, n); });
}

void cache_write_bf16(uint16_t* base, const KvLayout& layout, const uint32_t* page_table,
                      int64_t first_pos, const float* rows, int64_t row_stride, int64_t n_rows) {
  write_cached_rows(base, layout, page_table, first_pos, rows, row_stride, n_rows,
                    [](uint16_t* to, const float* from, int64_t n) { store_row(to, from, n); });
}

void cache_write_int8(int8_t* base, const KvLayout& layout, const uint32_t* page_table,
                      int64_t first_pos, const float* rows, int64_t row_stride, int64_t n_rows) {
  write_cached_rows(base, layout, page_table, first_pos, rows, row_stride, n_rows,
                    [](int8_t* to, const float* from, int64_t n) { store_row(to, from, n); });
}

}  // namespace dovetail::kernels::ref
