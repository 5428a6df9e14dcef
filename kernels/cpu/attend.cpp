// attend for any machine; contract in kernels/attend.hpp, oracle in kernels/ref/attend.cpp.
// Bound by arithmetic. One token and one head at a time, tile by tile with an online softmax; the
// row of out is the running sum of values.
#include <algorithm>
#include <cmath>

#include <kernels/cached_rows.hpp>

#include "kernels/cpu/attend_rows.hpp"
#include "kernels/cpu/portable.hpp"
#include "kernels/cpu/portable_math.hpp"

namespace dovetail::kernels::portable {
namespace {

/// As attend_rows.hpp wants it.
struct Portable {
  static constexpr int64_t kMaxRows = 32;

  template <class Element>
  static void tile(AttendRow* rows, int64_t n_rows, const AttendTile<Element>& tile,
                   const AttendTile<Element>* /*next*/, int64_t head_dim, float scale) {
    for (int64_t r = 0; r < n_rows; ++r) {
      const int64_t begin = std::max(rows[r].begin, tile.begin);
      const int64_t end = std::min(rows[r].end, tile.end);
      if (begin < end) merge_tile(rows[r], tile, begin, end, head_dim, scale);
    }
  }
  static float exp(float x) { return exp_of(x); }

 private:
  /// Keys [begin, end) of the tile, all of which the row sees.
  template <class Element>
  static void merge_tile(AttendRow& row, const AttendTile<Element>& tile, int64_t begin,
                         int64_t end, int64_t head_dim, float scale) {
    float p[kAttendTile] = {};  // by position - tile.start; keys that are not seen weigh nothing
    float greatest = row.greatest;
    for (int64_t j = begin; j < end; ++j) {
      const Element* key = tile.key[j - tile.begin];
      const float score = (dot(row.q, key, head_dim) * scale) * row_scale(key, head_dim);
      p[j - tile.start] = score;
      greatest = std::max(greatest, score);
    }
    for (int64_t j = begin; j < end; ++j) p[j - tile.start] = exp_of(p[j - tile.start] - greatest);

    const float keep = exp_of(row.greatest - greatest);
    row.sum = row.sum * keep + sum(p, kAttendTile);
    row.greatest = greatest;
    for (int64_t i = 0; i < head_dim; ++i) row.out[i] *= keep;
    for (int64_t j = begin; j < end; ++j) {
      const Element* value = tile.value[j - tile.begin];
      const float weight = p[j - tile.start] * row_scale(value, head_dim);
      for (int64_t i = 0; i < head_dim; ++i) row.out[i] += weight * widen(value[i]);
    }
  }
};

}  // namespace

void attend_f32(const AttendTask& task, const KvLayout& layout, const float* k, const float* v,
                const uint32_t* page_table) {
  AttendWalk<Portable, float>(task, layout, k, v, page_table).run();
}

void attend_bf16(const AttendTask& task, const KvLayout& layout, const uint16_t* k,
                 const uint16_t* v, const uint32_t* page_table) {
  AttendWalk<Portable, uint16_t>(task, layout, k, v, page_table).run();
}

void attend_int8(const AttendTask& task, const KvLayout& layout, const int8_t* k, const int8_t* v,
                 const uint32_t* page_table) {
  AttendWalk<Portable, int8_t>(task, layout, k, v, page_table).run();
}

void attend_merge(float* out, const float* parts, int64_t n_parts, int64_t part_stride,
                  int64_t head_dim) {
  merge_attend_parts<Portable>(out, parts, n_parts, part_stride, head_dim);
}

}  // namespace dovetail::kernels::portable
