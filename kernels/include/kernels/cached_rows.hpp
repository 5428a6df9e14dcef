// Where a cached row lies, and the scale of a row of int8: what the writers and readers of
// kv_cache.hpp share.
//
// Everything here is static: an ISA file must define no symbol that the linker could take for a
// file that runs on other machines (a test finds no weak symbols). What is constexpr serves CUDA kernels too.
#pragma once

#include <stdint.h>
#include <string.h>

#include <kernels/kv_cache.hpp>

namespace dovetail::kernels {

/// Whether rows of this element carry a scale.
template <class Element>
constexpr bool kHasScale = false;
template <>
constexpr bool kHasScale<int8_t> = true;

/// Bytes of the levels of a row of int8, the zeros after them included.
static constexpr int64_t int8_level_bytes(int64_t head_dim) {
  return (head_dim + 3) / 4 * 4;
}

/// Bytes of a row of int8.
static constexpr int64_t int8_row_bytes(int64_t head_dim) {
  return int8_level_bytes(head_dim) + static_cast<int64_t>(sizeof(float));
}

/// Elements from a row of a head to its next one in a page.
template <class Element>
static constexpr int64_t cached_row_len(int64_t head_dim) {
  return kHasScale<Element> ? int8_row_bytes(head_dim) : head_dim;
}

/// Elements from the base to the row of one head at one position.
template <class Element>
static constexpr int64_t row_offset(const KvLayout& layout, const uint32_t* page_table,
                                    int64_t kv_head, int64_t pos) {
  const int64_t row = kv_head * layout.page_len + pos % layout.page_len;
  return page_table[pos / layout.page_len] * layout.page_stride +
         row * cached_row_len<Element>(layout.head_dim);
}

/// What the numbers of a row are multiplied with.
template <class Element>
static inline float row_scale(const Element* row, int64_t head_dim) {
  if constexpr (kHasScale<Element>) {
    float scale;
    memcpy(&scale, row + int8_level_bytes(head_dim), sizeof scale);
    return scale;
  } else {
    return 1.0F;
  }
}

/// The walk of every cache_write: store_row(to, from, head_dim) for each head of each position.
template <class Element, class StoreRow>
static inline void write_cached_rows(Element* base, const KvLayout& layout,
                                     const uint32_t* page_table, int64_t first_pos,
                                     const float* rows, int64_t row_stride, int64_t n_rows,
                                     const StoreRow& store_row) {
  for (int64_t r = 0; r < n_rows; ++r) {
    for (int64_t g = 0; g < layout.n_kv_heads; ++g) {
      store_row(base + row_offset<Element>(layout, page_table, g, first_pos + r),
                rows + r * row_stride + g * layout.head_dim, layout.head_dim);
    }
  }
}

}  // namespace dovetail::kernels
