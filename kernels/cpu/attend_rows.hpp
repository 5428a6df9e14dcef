// The walk of attend, whatever the vectors: rows of a block, chunk by chunk and tile by tile, and how
// chunks are merged. Contract in kernels/attend.hpp, oracle in kernels/ref/attend.cpp.
//
// An Isa has
//   kMaxRows                    rows that share a tile, at most
//   tile(rows, n_rows, tile, next, head_dim, scale)
//                               merges a tile's keys into the softmax and out of each row that sees
//                               some; next is the tile that follows, or null
//   exp(x)                      of one float
// The namespace is unnamed and everything included is C, as in avx2_math.hpp.
#pragma once

#include <math.h>
#include <stdint.h>

#include <kernels/attend.hpp>
#include <kernels/cached_rows.hpp>

namespace dovetail::kernels {
namespace {

/// Keys that a kernel scores at once; row pointers are repeated so that as many can be read.
constexpr int kTileKeys = 4;

/// One (token, head) pair.
struct AttendRow {
  const float* q;
  float* out;    // sum of weight * value over the keys of the chunk so far
  float* total;  // the same of the chunks before it
  int64_t begin;
  int64_t end;  // sees the keys [begin, end)
  float greatest;
  float sum;  // of the chunk's softmax; 0 before it has seen a key
  float total_greatest;
  float total_sum;
};

/// The keys [begin, end) of one tile that some row of the block sees. Pointers to keys past the end
/// repeat the last one.
template <class Element>
struct AttendTile {
  int64_t start;
  int64_t begin;
  int64_t end;
  const Element* key[kAttendTile + kTileKeys];  // by position - begin
  const Element* value[kAttendTile];
};

void scale_row(float* to, const float* from, float factor, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = from[i] * factor;
}

/// Merges a chunk's softmax and its out into those of the chunks before it.
template <class Isa>
void merge_softmax(float* total, float& total_greatest, float& total_sum, const float* out,
                   float greatest, float sum, int64_t head_dim) {
  if (sum == 0.0F) return;  // saw no key of this chunk
  if (total_sum == 0.0F) {
    total_greatest = greatest;
    total_sum = sum;
    return scale_row(total, out, 1.0F, head_dim);
  }
  const float merged = greatest > total_greatest ? greatest : total_greatest;
  const float keep = Isa::exp(total_greatest - merged);
  const float take = Isa::exp(greatest - merged);
  total_greatest = merged;
  total_sum = total_sum * keep + sum * take;
  for (int64_t i = 0; i < head_dim; ++i) total[i] = total[i] * keep + out[i] * take;
}

template <class Isa>
void merge_attend_parts(float* out, const float* parts, int64_t n_parts, int64_t part_stride,
                        int64_t head_dim) {
  float greatest = -INFINITY;
  float sum = 0.0F;
  for (const float* end = parts + n_parts * part_stride; parts < end; parts += part_stride) {
    merge_softmax<Isa>(out, greatest, sum, parts + 2, parts[0], parts[1], head_dim);
  }
  scale_row(out, out, 1.0F / sum, head_dim);
}

template <class Isa, class Element>
class AttendWalk {
 public:
  AttendWalk(const AttendTask& task, const KvLayout& layout, const Element* k, const Element* v,
             const uint32_t* page_table)
      : task_(task), layout_(layout), k_(k), v_(v), page_table_(page_table) {}

  void run() const {
    const int64_t n_rows = task_.n_tokens * task_.n_group_heads;
    const int64_t fit = kTotalFloats / (layout_.head_dim > 0 ? layout_.head_dim : 1);
    const int64_t most = fit < Isa::kMaxRows ? fit : Isa::kMaxRows;
    for (int64_t first = 0; first < n_rows; first += most) {
      attend_block(first, n_rows - first < most ? n_rows - first : most);
    }
  }

 private:
  static constexpr int64_t kTotalFloats = kMaxAttendDim;  // 48 KiB

  AttendRow start_row(int64_t index) const {
    const int64_t t = index / task_.n_group_heads;
    const int64_t head = task_.kv_head * task_.n_group_heads + index % task_.n_group_heads;
    const int64_t pos = task_.first_pos + t;
    AttendRow row = {};
    row.q = task_.q + t * task_.q_stride + head * layout_.head_dim;
    row.out = task_.parts != nullptr ? task_.parts + index * attend_part_len(layout_.head_dim) + 2
                                     : task_.out + t * task_.out_stride + head * layout_.head_dim;
    row.begin = pos + 1 > task_.window ? pos + 1 - task_.window : 0;
    row.end = pos + 1;
    return row;
  }

  void attend_block(int64_t first, int64_t n_rows) const {
    AttendRow rows[Isa::kMaxRows];
    rows[0] = start_row(first);
    for (int64_t r = 1; r < n_rows; ++r) rows[r] = start_row(first + r);
    if (task_.parts != nullptr) {
      attend_chunk(rows, n_rows, task_.chunk);
      for (int64_t r = 0; r < n_rows; ++r) {
        rows[r].out[-2] = rows[r].greatest;
        rows[r].out[-1] = rows[r].sum;
      }
      return;
    }
    const int64_t first_chunk = rows[0].begin / kAttendChunk;
    const int64_t last_chunk = (rows[n_rows - 1].end - 1) / kAttendChunk;
    if (first_chunk == last_chunk) {
      attend_chunk(rows, n_rows, first_chunk);
      for (int64_t r = 0; r < n_rows; ++r) {
        scale_row(rows[r].out, rows[r].out, 1.0F / rows[r].sum, layout_.head_dim);
      }
      return;
    }
    alignas(64) float totals[kTotalFloats];
    for (int64_t r = 0; r < n_rows; ++r) rows[r].total = totals + r * layout_.head_dim;
    for (int64_t chunk = first_chunk; chunk <= last_chunk; ++chunk) {
      attend_chunk(rows, n_rows, chunk);
      for (int64_t r = 0; r < n_rows; ++r) {
        AttendRow& row = rows[r];
        merge_softmax<Isa>(row.total, row.total_greatest, row.total_sum, row.out, row.greatest,
                           row.sum, layout_.head_dim);
      }
    }
    for (int64_t r = 0; r < n_rows; ++r) {
      scale_row(rows[r].out, rows[r].total, 1.0F / rows[r].total_sum, layout_.head_dim);
    }
  }

  /// Softmax and out of each row over the keys of one chunk. Later rows begin and end no earlier.
  void attend_chunk(AttendRow* rows, int64_t n_rows, int64_t chunk) const {
    for (int64_t r = 0; r < n_rows; ++r) {
      rows[r].greatest = -INFINITY;
      rows[r].sum = 0.0F;
      for (int64_t i = 0; i < layout_.head_dim; ++i) rows[r].out[i] = 0.0F;
    }
    const int64_t chunk_begin = chunk * kAttendChunk;
    const int64_t chunk_end = chunk_begin + kAttendChunk;
    const int64_t begin = rows[0].begin > chunk_begin ? rows[0].begin : chunk_begin;
    const int64_t last = rows[n_rows - 1].end;
    const int64_t end = last < chunk_end ? last : chunk_end;
    if (begin >= end) return;
    AttendTile<Element> tiles[2];
    int at = 0;
    find_tile(tiles[at], begin, end);
    for (;;) {
      const AttendTile<Element>& tile = tiles[at];
      const bool is_last = tile.end == end;
      at = 1 - at;
      if (!is_last) find_tile(tiles[at], tile.end, end);
      Isa::tile(rows, n_rows, tile, is_last ? nullptr : &tiles[at], layout_.head_dim, task_.scale);
      if (is_last) return;
    }
  }

  /// The tile that begins at a key, as far as `end`.
  void find_tile(AttendTile<Element>& tile, int64_t begin, int64_t end) const {
    tile.start = begin - begin % kAttendTile;
    tile.begin = begin;
    tile.end = tile.start + kAttendTile < end ? tile.start + kAttendTile : end;
    const int64_t n = tile.end - tile.begin;
    for (int64_t j = 0; j < n;) {  // a run of rows of one page
      const int64_t pos = tile.begin + j;
      const int64_t row_len = cached_row_len<Element>(layout_.head_dim);
      const int64_t rest = layout_.page_len - pos % layout_.page_len;
      int64_t at = row_offset<Element>(layout_, page_table_, task_.kv_head, pos);
      for (const int64_t stop = j + (rest < n - j ? rest : n - j); j < stop; ++j, at += row_len) {
        tile.key[j] = k_ + at;
        tile.value[j] = v_ + at;
      }
    }
    for (int64_t j = n; j < kAttendTile + kTileKeys; ++j) tile.key[j] = tile.key[n - 1];
  }

  const AttendTask& task_;
  const KvLayout& layout_;
  const Element* k_;
  const Element* v_;
  const uint32_t* page_table_;
};

}  // namespace
}  // namespace dovetail::kernels
