// attend for AVX2 + FMA: its scores; the rest is in attend_tiles.hpp. Contract in kernels/attend.hpp,
// oracle in kernels/ref/attend.cpp.
// Decode is bound by memory: a tile of keys and values is read once for all heads of the group.
// Prefill is bound by arithmetic: up to kMaxRows (token, head) rows share each tile, three at a
// time, as tiles of 3 rows x 4 keys for the scores and of 3 rows x 32 columns for the values; with
// more than three rows a piece of the tile that stays in L1 is widened once for all of them.
// Built with -mavx2 -mfma: C headers and intrinsics only (a test finds no weak symbols here).
#include "kernels/cpu/attend_tiles.hpp"
#include "kernels/cpu/avx2.hpp"
#include "kernels/cpu/avx2_math.hpp"

namespace dovetail::kernels::avx2 {
namespace {

struct Isa : Vectors {
  static constexpr int kTileRows = 3;  // 12 sums, 3 rows and a key are the 16 registers
};
using Tiles = AttendTiles<Isa>;

constexpr int kTileRows = Isa::kTileRows;
constexpr int64_t kMaxRows = 96;
constexpr int64_t kWideKeys = 16;                      // keys that are widened at once
constexpr int64_t kWideDim = 256;                      // longer rows are read as they are stored
constexpr int64_t kWideFloats = kWideKeys * kWideDim;  // of keys, or of values
static_assert(Tiles::kWideFloats <= kWideFloats);

using Row = AttendRow;
template <class Element>
using Tile = AttendTile<Element>;

/// Stores sums of four keys (or n_keys, when fewer), times scale and the keys' own scales, as a
/// row's scores.
template <class Element>
void store_scores(float* scores, const __m256* sums, int64_t n_keys, float scale,
                  const float* key_scales) {
  const __m128 sum = reduce4(sums[0], sums[1], sums[2], sums[3]);
  __m128 scaled = _mm_mul_ps(sum, _mm_set1_ps(scale));
  if constexpr (kHasScale<Element>) scaled = _mm_mul_ps(scaled, _mm_loadu_ps(key_scales));
  if (n_keys >= kTileKeys) return _mm_storeu_ps(scores, scaled);
  _mm_maskstore_ps(scores, _mm256_castsi256_si128(first_lanes(n_keys)), scaled);
}

/// scores[r * kAttendTile + 0..3] = scale * q of row r times four keys (or n_keys, when fewer). One
/// (row, key) pair adds in eight lanes over head_dim, as linear does.
template <int kRows, class Element>
void score_keys(float* scores, const Row* rows, const Element* const* keys, int64_t n_keys,
                int64_t head_dim, float scale) {
  float key_scales[kTileKeys];
  read_scales(key_scales, keys, kTileKeys, head_dim);
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
#pragma GCC unroll 3
  for (int r = 0; r < kRows; ++r) {
    store_scores<Element>(scores + r * kAttendTile, acc[r], n_keys, scale, key_scales);
  }
}

/// The same with keys that widen_keys has laid out, and the scales of four.
template <int kRows, class Element>
void score_wide_keys(float* scores, const Row* rows, const float* keys, const float* key_scales,
                     int64_t n_keys, int64_t head_dim, float scale) {
  __m256 acc[kRows][kTileKeys];
  for (int r = 0; r < kRows; ++r) {
    for (int j = 0; j < kTileKeys; ++j) acc[r][j] = _mm256_setzero_ps();
  }
#pragma GCC unroll 4
  for (int64_t i = 0; i < head_dim; i += kLanes, keys += kTileKeys * kLanes) {
    __m256 q[kRows];
    for (int r = 0; r < kRows; ++r) q[r] = load(rows[r].q + i);
    for (int j = 0; j < kTileKeys; ++j) {
      const __m256 key = _mm256_load_ps(keys + j * kLanes);
      for (int r = 0; r < kRows; ++r) acc[r][j] = _mm256_fmadd_ps(q[r], key, acc[r][j]);
    }
  }
#pragma GCC unroll 3
  for (int r = 0; r < kRows; ++r) {
    store_scores<Element>(scores + r * kAttendTile, acc[r], n_keys, scale, key_scales);
  }
}

/// Widens n keys into [group of 4 keys][step of 8 columns][key][8]; a last group of fewer keys is
/// filled up with the last one. head_dim is a multiple of 8.
template <class Element>
void widen_keys(float* wide, const Element* const* keys, int64_t n, int64_t head_dim) {
  for (int64_t j = 0; j < (n + kTileKeys - 1) / kTileKeys * kTileKeys; ++j) {
    const Element* from = keys[min_of(j, n - 1)];
    float* to = wide + j / kTileKeys * kTileKeys * head_dim + j % kTileKeys * kLanes;
    for (int64_t i = 0; i < head_dim; i += kLanes, to += kTileKeys * kLanes) {
      _mm256_store_ps(to, load(from + i));
    }
  }
}

/// A tile for up to three rows, straight from the cache.
template <int kRows, class Element>
void attend_tile(Row* rows, const Tile<Element>& tile, const Tile<Element>* next, int64_t head_dim,
                 float scale) {
  float p[kRows * kAttendTile];  // scores, then weights, by position - tile.start
  const int64_t n_keys = tile.end - tile.begin;
  for (int64_t j = 0; j < n_keys; j += kTileKeys) {
    fetch(tile.value + j, min_of(kTileKeys, n_keys - j), head_dim);
    score_keys<kRows>(p + (tile.begin - tile.start) + j, rows, tile.key + j, n_keys - j, head_dim,
                      scale);
  }
  Tiles::weigh_rows(p, rows, kRows, tile, head_dim);
  Tiles::merge_values<kRows>(rows, p, tile, next, head_dim);
}

/// A tile for up to kMaxRows rows, which share what is widened of it. head_dim is a multiple of 8
/// and at most kWideDim.
template <class Element>
void attend_wide_tile(Row* rows, int64_t n_rows, const Tile<Element>& tile,
                      const Tile<Element>* next, int64_t head_dim, float scale) {
  float p[kMaxRows * kAttendTile];
  alignas(32) float wide[kWideFloats];
  const int64_t n_keys = tile.end - tile.begin;
  for (int64_t j = 0; j < n_keys; j += kWideKeys) {
    const int64_t n = min_of(kWideKeys, n_keys - j);
    float key_scales[kWideKeys] = {};
    read_scales(key_scales, tile.key + j, n, head_dim);
    widen_keys(wide, tile.key + j, n, head_dim);
    fetch(tile.key + j + n, min_of(kWideKeys, n_keys - j - n), head_dim);
    fetch(tile.value + j, n, head_dim);
    Tiles::by_rows(n_rows, [&](auto count, int64_t r) {
      const int64_t seen = min_of(n, rows[r + count.value - 1].end - tile.begin - j);
      float* scores = p + r * kAttendTile + (tile.begin - tile.start) + j;
      for (int64_t g = 0; g < seen; g += kTileKeys) {
        score_wide_keys<count.value, Element>(scores + g, rows + r, wide + g * head_dim,
                                              key_scales + g, n - g, head_dim, scale);
      }
    });
  }
  Tiles::weigh_rows(p, rows, n_rows, tile, head_dim);
  Tiles::merge_wide_values(rows, n_rows, p, wide, tile, next, head_dim);
}

/// As attend_rows.hpp wants it.
struct Avx2 {
  static constexpr int64_t kMaxRows = avx2::kMaxRows;

  template <class Element>
  static void tile(Row* rows, int64_t n_rows, const Tile<Element>& tile, const Tile<Element>* next,
                   int64_t head_dim, float scale) {
    const bool widens = n_rows > kTileRows && head_dim <= kWideDim && head_dim % kLanes == 0;
    if (widens) return attend_wide_tile(rows, n_rows, tile, next, head_dim, scale);
    Tiles::by_rows(n_rows, [&](auto count, int64_t r) {
      attend_tile<count.value>(rows + r, tile, next, head_dim, scale);
    });
  }
  static float exp(float x) { return Tiles::exp(x); }
};

}  // namespace

void attend_f32(const AttendTask& task, const KvLayout& layout, const float* k, const float* v,
                const uint32_t* page_table) {
  AttendWalk<Avx2, float>(task, layout, k, v, page_table).run();
}

void attend_bf16(const AttendTask& task, const KvLayout& layout, const uint16_t* k,
                 const uint16_t* v, const uint32_t* page_table) {
  AttendWalk<Avx2, uint16_t>(task, layout, k, v, page_table).run();
}

void attend_int8(const AttendTask& task, const KvLayout& layout, const int8_t* k, const int8_t* v,
                 const uint32_t* page_table) {
  AttendWalk<Avx2, int8_t>(task, layout, k, v, page_table).run();
}

void attend_merge(float* out, const float* parts, int64_t n_parts, int64_t part_stride,
                  int64_t head_dim) {
  merge_attend_parts<Avx2>(out, parts, n_parts, part_stride, head_dim);
}

}  // namespace dovetail::kernels::avx2
