// attend for AVX2 + FMA; contract in kernels/attend.hpp, oracle in kernels/ref/attend.cpp.
// Decode is bound by memory: a tile of keys and values is read once for all heads of the group.
// Prefill is bound by arithmetic: up to kMaxRows (token, head) rows share each tile, three at a
// time, as tiles of 3 rows x 4 keys for the scores and of 3 rows x 32 columns for the values.
// A row's own arithmetic is the same whatever it is grouped with; the row of out is its running
// sum. Built with -mavx2 -mfma: C headers and intrinsics only (a test finds no weak symbols here).
#include <math.h>

#include "kernels/cpu/avx2.hpp"
#include "kernels/cpu/avx2_math.hpp"

namespace dovetail::kernels::avx2 {
namespace {

constexpr int kTileRows = 3;
constexpr int kTileKeys = 4;
constexpr int64_t kMaxRows = 48;

int64_t min_of(int64_t a, int64_t b) {
  return a < b ? a : b;
}
int64_t max_of(int64_t a, int64_t b) {
  return a > b ? a : b;
}

/// One (token, head) pair: its operands, the keys [begin, end) that it sees, its running softmax.
struct Row {
  const float* q;
  float* out;
  int64_t begin;
  int64_t end;
  float greatest;
  float sum;
};

/// The keys [begin, end) of one tile that some row of the block sees. Row pointers past the end
/// repeat the last key, so that four can always be read.
template <class Element>
struct Tile {
  int64_t start;
  int64_t begin;
  int64_t end;
  const Element* key[kAttendTile + kTileKeys];  // by position - begin
  const Element* value[kAttendTile];
};

template <class Element>
void find_tile(Tile<Element>& tile, const KvLayout& layout, const Element* k, const Element* v,
               const uint32_t* page_table, int64_t kv_head) {
  const int64_t n = tile.end - tile.begin;
  for (int64_t j = 0; j < n; ++j) {
    const int64_t pos = tile.begin + j;
    const int64_t row = kv_head * layout.page_len + pos % layout.page_len;
    const int64_t at =
        page_table[pos / layout.page_len] * layout.page_stride + row * layout.head_dim;
    tile.key[j] = k + at;
    tile.value[j] = v + at;
  }
  for (int64_t j = n; j < n + kTileKeys; ++j) tile.key[j] = tile.key[n - 1];
}

/// scores[r * kAttendTile + 0..3] = scale * q of row r times four keys (or n_keys, when fewer). One
/// (row, key) pair adds in eight lanes over head_dim, as linear does.
template <int kRows, class Element>
void score_keys(float* scores, const Row* rows, const Element* const* keys, int64_t n_keys,
                int64_t head_dim, float scale) {
  __m256 acc[kRows][kTileKeys];
  for (int r = 0; r < kRows; ++r) {
    for (int j = 0; j < kTileKeys; ++j) acc[r][j] = _mm256_setzero_ps();
  }
  const auto step = [&](const auto& load_from) {
    __m256 q[kRows];
    for (int r = 0; r < kRows; ++r) q[r] = load_from(rows[r].q);
    for (int j = 0; j < kTileKeys; ++j) {
      const __m256 key = load_from(keys[j]);
      for (int r = 0; r < kRows; ++r) acc[r][j] = _mm256_fmadd_ps(q[r], key, acc[r][j]);
    }
  };
  int64_t i = 0;
  for (; i + kLanes <= head_dim; i += kLanes) step([&](const auto* p) { return load(p + i); });
  if (i < head_dim) step([&](const auto* p) { return load_first(p + i, head_dim - i); });

  const __m128i mask = _mm256_castsi256_si128(first_lanes(min_of(n_keys, kTileKeys)));
  for (int r = 0; r < kRows; ++r) {
    const __m128 sum = reduce4(acc[r][0], acc[r][1], acc[r][2], acc[r][3]);
    _mm_maskstore_ps(scores + r * kAttendTile, mask, _mm_mul_ps(sum, _mm_set1_ps(scale)));
  }
}

/// Turns a row's scores of one tile (by position - tile.start) into weights, and scales the row's
/// sums to the tile's greatest score. Keys that the row does not see get weight 0.
template <class Element>
void weigh(float* p, Row& row, const Tile<Element>& tile, int64_t head_dim) {
  for (int64_t j = 0; j < row.begin - tile.start; ++j) p[j] = -INFINITY;
  for (int64_t j = max_of(0, row.end - tile.start); j < kAttendTile; ++j) p[j] = -INFINITY;

  __m256 top = load(p);
  for (int64_t j = kLanes; j < kAttendTile; j += kLanes) top = _mm256_max_ps(top, load(p + j));
  const float tile_greatest = greatest(top);
  const float merged = tile_greatest > row.greatest ? tile_greatest : row.greatest;

  __m256 acc = _mm256_setzero_ps();
  for (int64_t j = 0; j < kAttendTile; j += kLanes) {
    const __m256 weight = exp8(_mm256_sub_ps(load(p + j), _mm256_set1_ps(merged)));
    _mm256_storeu_ps(p + j, weight);
    acc = _mm256_add_ps(acc, weight);
  }
  const __m256 keep = exp8(_mm256_set1_ps(row.greatest - merged));
  row.sum = row.sum * _mm256_cvtss_f32(keep) + reduce(acc);
  if (row.greatest == merged) return;  // keep is exactly 1
  row.greatest = merged;
  int64_t i = 0;
  for (; i + kLanes <= head_dim; i += kLanes) {
    _mm256_storeu_ps(row.out + i, _mm256_mul_ps(load(row.out + i), keep));
  }
  if (i < head_dim) {
    const int64_t rest = head_dim - i;
    store_first(row.out + i, _mm256_mul_ps(load_first(row.out + i, rest), keep), rest);
  }
}

/// out[r][columns] += sum over positions [begin, end), ascending, of p[r][pos] *
/// value[pos][columns]; load_from(p, c) and store_to(p, c, value) reach vector c of kVectors in a
/// row of head_dim columns.
template <int kRows, int kVectors, class Element, class Load, class Save>
void add_columns(const Row* rows, const float* p, const Tile<Element>& tile, int64_t begin,
                 int64_t end, const Load& load_from, const Save& store_to) {
  __m256 acc[kRows][kVectors];
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < kVectors; ++c) acc[r][c] = load_from(rows[r].out, c);
  }
  for (int64_t pos = begin; pos < end; ++pos) {
    const Element* from = tile.value[pos - tile.begin];
    const float* weights = p + (pos - tile.start);
    __m256 value[kVectors];
    for (int c = 0; c < kVectors; ++c) value[c] = load_from(from, c);
    for (int r = 0; r < kRows; ++r) {
      const __m256 weight = _mm256_set1_ps(weights[r * kAttendTile]);
      for (int c = 0; c < kVectors; ++c) acc[r][c] = _mm256_fmadd_ps(weight, value[c], acc[r][c]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < kVectors; ++c) store_to(rows[r].out, c, acc[r][c]);
  }
}

/// All columns: 32 at a time, then 8, then what is left.
template <int kRows, class Element>
void add_values(const Row* rows, const float* p, const Tile<Element>& tile, int64_t begin,
                int64_t end, int64_t head_dim) {
  if (begin >= end) return;
  int64_t i = 0;
  const auto load_eight = [&](const auto* from, int c) { return load(from + i + c * kLanes); };
  const auto store_eight = [&](float* to, int c, __m256 sum) {
    _mm256_storeu_ps(to + i + c * kLanes, sum);
  };
  for (; i + 4 * kLanes <= head_dim; i += 4 * kLanes) {
    add_columns<kRows, 4>(rows, p, tile, begin, end, load_eight, store_eight);
  }
  for (; i + kLanes <= head_dim; i += kLanes) {
    add_columns<kRows, 1>(rows, p, tile, begin, end, load_eight, store_eight);
  }
  if (i == head_dim) return;
  const auto load_rest = [&](const auto* from, int) { return load_first(from + i, head_dim - i); };
  const auto store_rest = [&](float* to, int, __m256 sum) {
    store_first(to + i, sum, head_dim - i);
  };
  add_columns<kRows, 1>(rows, p, tile, begin, end, load_rest, store_rest);
}

/// Later rows begin and end no earlier. What a row sees before the last row begins or after the
/// first row ends it takes alone, the part between together with the others: ascending for each.
template <int kRows, class Element>
void merge_values(const Row* rows, const float* p, const Tile<Element>& tile, int64_t head_dim) {
  const int64_t begin = max_of(rows[kRows - 1].begin, tile.begin);
  const int64_t end = max_of(begin, min_of(rows[0].end, tile.end));
  for (int r = 0; r < kRows; ++r) {
    add_values<1>(rows + r, p + r * kAttendTile, tile, max_of(rows[r].begin, tile.begin),
                  min_of(min_of(rows[r].end, tile.end), begin), head_dim);
  }
  add_values<kRows>(rows, p, tile, begin, min_of(end, tile.end), head_dim);
  for (int r = 0; r < kRows; ++r) {
    add_values<1>(rows + r, p + r * kAttendTile, tile, end, min_of(rows[r].end, tile.end),
                  head_dim);
  }
}

/// Starts to fetch four value rows (or n_rows, when fewer), which lie elsewhere than the keys that
/// are at work meanwhile.
template <class Element>
void fetch_values(const Element* const* values, int64_t n_rows, int64_t head_dim) {
  const int64_t n_bytes = head_dim * static_cast<int64_t>(sizeof(Element));
  for (int64_t j = 0; j < kTileKeys && j < n_rows; ++j) {
    const char* row = reinterpret_cast<const char*>(values[j]);
    for (int64_t at = 0; at < n_bytes; at += 64) _mm_prefetch(row + at, _MM_HINT_T0);
  }
}

template <int kRows, class Element>
void attend_tile(Row* rows, const Tile<Element>& tile, int64_t head_dim, float scale,
                 bool fetches) {
  float p[kRows * kAttendTile];  // scores, then weights, by position - tile.start

  const int64_t n_keys = tile.end - tile.begin;
  for (int64_t j = 0; j < n_keys; j += kTileKeys) {
    if (fetches) fetch_values(tile.value + j, n_keys - j, head_dim);
    score_keys<kRows>(p + (tile.begin - tile.start) + j, rows, tile.key + j,
                      tile.end - tile.begin - j, head_dim, scale);
  }
  for (int r = 0; r < kRows; ++r) {
    if (rows[r].begin < tile.end && tile.begin < rows[r].end) {
      weigh(p + r * kAttendTile, rows[r], tile, head_dim);
    }
  }
  merge_values<kRows>(rows, p, tile, head_dim);
}

/// Rows of one block, tile after tile.
template <class Element>
void attend_block(Row* rows, int64_t n_rows, const AttendTask& task, const KvLayout& layout,
                  const Element* k, const Element* v, const uint32_t* page_table) {
  int64_t begin = rows[0].begin;  // later rows begin and end no earlier
  const int64_t end = rows[n_rows - 1].end;
  Tile<Element> tile;
  while (begin < end) {
    tile.start = begin - begin % kAttendTile;
    tile.begin = begin;
    tile.end = min_of(end, tile.start + kAttendTile);
    find_tile(tile, layout, k, v, page_table, task.kv_head);
    for (int64_t r = 0; r < n_rows; r += kTileRows) {
      const int64_t left = n_rows - r;
      if (left >= 3)
        attend_tile<3>(rows + r, tile, layout.head_dim, task.scale, r == 0);
      else if (left == 2)
        attend_tile<2>(rows + r, tile, layout.head_dim, task.scale, r == 0);
      else
        attend_tile<1>(rows + r, tile, layout.head_dim, task.scale, r == 0);
    }
    begin = tile.end;
  }
}

Row start_row(const AttendTask& task, const KvLayout& layout, int64_t index) {
  const int64_t t = index / task.n_group_heads;
  const int64_t head = task.kv_head * task.n_group_heads + index % task.n_group_heads;
  const int64_t pos = task.first_pos + t;
  Row row;
  row.q = task.q + t * task.q_stride + head * layout.head_dim;
  row.out = task.out + t * task.out_stride + head * layout.head_dim;
  row.begin = max_of(0, pos + 1 - task.window);
  row.end = pos + 1;
  row.greatest = -INFINITY;
  row.sum = 0.0F;
  for (int64_t i = 0; i < layout.head_dim; ++i) row.out[i] = 0.0F;
  return row;
}

template <class Element>
void attend(const AttendTask& task, const KvLayout& layout, const Element* k, const Element* v,
            const uint32_t* page_table) {
  const int64_t n_rows = task.n_tokens * task.n_group_heads;
  Row rows[kMaxRows];
  for (int64_t first = 0; first < n_rows; first += kMaxRows) {
    const int64_t n = min_of(kMaxRows, n_rows - first);
    for (int64_t r = 0; r < n; ++r) rows[r] = start_row(task, layout, first + r);
    attend_block(rows, n, task, layout, k, v, page_table);
    for (int64_t r = 0; r < n; ++r) {
      const float inverse = 1.0F / rows[r].sum;
      for (int64_t i = 0; i < layout.head_dim; ++i) rows[r].out[i] *= inverse;
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

}  // namespace dovetail::kernels::avx2
