// What attend does with the scores of a tile, on the vectors of any x86-64: the softmax of each row, and
// the values that it weighs. How the scores come about is each ISA's own: attend_avx2.cpp,
// attend_avx512.cpp. Contract in kernels/attend.hpp, oracle in kernels/ref/attend.cpp.
//
// An Isa is the Vectors of avx2_math.hpp or avx512_math.hpp with kTileRows, the rows that share each
// read of a value: with them its sums fill the registers.
// A row's own arithmetic is the same whatever it is grouped with; the row of out is its running
// sum. Rows of int8 are read as whole numbers: their scales meet the scores and weights.
// The namespace is unnamed and everything included is C, as in avx2_math.hpp.
#pragma once

#include <immintrin.h>
#include <math.h>

#include <kernels/cached_rows.hpp>

#include "kernels/cpu/attend_rows.hpp"
#include "kernels/cpu/vector_math.hpp"

namespace dovetail::kernels {
namespace {

int64_t min_of(int64_t a, int64_t b) {
  return a < b ? a : b;
}
int64_t max_of(int64_t a, int64_t b) {
  return a > b ? a : b;
}

/// A number that is known when this is compiled.
template <int kValue>
struct Count {
  static constexpr int value = kValue;
};

/// Calls fn for n of something, at most kMost, with their number as a type; not at all for none.
template <int kMost, class Fn>
void with_count(int64_t n, const Fn& fn) {
  if (n <= 0) return;
  if constexpr (kMost > 1) {
    if (n < kMost) return with_count<kMost - 1>(n, fn);
  }
  fn(Count<kMost>());
}

/// The scales of n rows, where rows have them.
template <class Element>
void read_scales(float* scales, const Element* const* rows, int64_t n, int64_t head_dim) {
  if constexpr (kHasScale<Element>) {
    for (int64_t j = 0; j < n; ++j) scales[j] = row_scale(rows[j], head_dim);
  }
}

/// Bytes of a row of keys or values.
template <class Element>
int64_t row_bytes(int64_t head_dim) {
  return cached_row_len<Element>(head_dim) * int64_t{sizeof(Element)};
}

/// Starts to fetch rows of keys or values, while others are at work.
template <class Element>
void fetch(const Element* const* rows, int64_t n_rows, int64_t head_dim) {
  constexpr int64_t kLine = 64;  // bytes
  for (int64_t j = 0; j < n_rows; ++j) {
    const char* row = reinterpret_cast<const char*>(rows[j]);
    for (int64_t at = 0; at < row_bytes<Element>(head_dim); at += kLine) {
      _mm_prefetch(row + at, _MM_HINT_T0);
    }
  }
}

/// Fetches the keys of the next tile, a line or two at every call: they lie in other pages, where the
/// processor does not look by itself.
template <class Element, int64_t kColumns>
class KeyFetch {
 public:
  KeyFetch(const AttendTile<Element>& tile, int64_t head_dim)
      : row_(tile.key),
        last_(tile.key + (tile.end - tile.begin - 1)),
        row_bytes_(row_bytes<Element>(head_dim)) {}
  void some() {
    for (int line = 0; line < kLines; ++line) {
      _mm_prefetch(reinterpret_cast<const char*>(*row_) + at_, _MM_HINT_T0);
      at_ += kLine;
      const bool done = at_ >= row_bytes_;
      row_ += done && row_ < last_ ? 1 : 0;
      at_ = done ? 0 : at_;
    }
  }

 private:
  static constexpr int64_t kLine = 64;  // bytes
  // As many as the columns are of which a value is merged meanwhile.
  static constexpr int kLines = kColumns * sizeof(Element) > kLine
                                    ? kColumns * sizeof(Element) / kLine
                                    : 1;
  const Element* const* row_;
  const Element* const* last_;
  int64_t row_bytes_;
  int64_t at_ = 0;
};
struct NoFetch {
  void some() {}
};

template <class Isa>
class AttendTiles {
 public:
  using Row = AttendRow;
  template <class Element>
  using Tile = AttendTile<Element>;
  using Vec = typename Isa::Vec;
  static constexpr int64_t kLanes = Isa::kLanes;
  static constexpr int kTileRows = Isa::kTileRows;
  static constexpr int kDirectRows = 3;  // so few rows gain nothing from widened values
  static constexpr int kVectors = 4;     // of columns of values at once
  static constexpr int64_t kColumns = kVectors * kLanes;
  static constexpr int64_t kWideFloats =
      kColumns * kAttendTile;  // of values that are widened at once

  static float exp(float x) { return Isa::first(exp_of<Isa>(Isa::all(x))); }

  /// Calls fn with kMost rows at a time, as an integral constant, and with what is left.
  template <int kMost = kTileRows, class Fn>
  static void by_rows(int64_t n_rows, const Fn& fn) {
    int64_t r = 0;
    for (; r + kMost <= n_rows; r += kMost) fn(Count<kMost>(), r);
    with_count<kMost>(n_rows - r, [&](auto count) { fn(count, r); });
  }

  /// Turns the scores of all rows that see keys of a tile (by position - tile.start) into weights.
  template <class Element>
  static void weigh_rows(float* p, Row* rows, int64_t n_rows, const Tile<Element>& tile,
                         int64_t head_dim) {
    float value_scales[kAttendTile] = {};  // by position - tile.start
    read_scales(value_scales + (tile.begin - tile.start), tile.value, tile.end - tile.begin,
                head_dim);
    for (int64_t r = 0; r < n_rows; ++r) {
      if (rows[r].begin < tile.end && tile.begin < rows[r].end) {
        weigh<Element>(p + r * kAttendTile, rows[r], tile.start, value_scales, head_dim);
      }
    }
  }

  /// Adds the weighed values of a tile to out for up to kDirectRows rows, as they are stored: kColumns
  /// at a time, then one vector, then what is left. Meanwhile it fetches the keys of the tile that
  /// comes next, if there is one.
  template <int kRows, class Element>
  static void merge_values(const Row* rows, const float* p, const Tile<Element>& tile,
                           const Tile<Element>* next, int64_t head_dim) {
    int64_t i = 0;
    const int64_t skipped = tile.begin - tile.start;
    const auto value_at = [&](int64_t j) { return tile.value[j - skipped] + i; };
    KeyFetch<Element, kColumns> ahead(next != nullptr ? *next : tile, head_dim);
    NoFetch nothing;
    for (; i + kColumns <= head_dim; i += kColumns) {
      merge_vectors<kRows, kVectors>(rows, i, p, tile, value_at, ahead);
    }
    for (; i + kLanes <= head_dim; i += kLanes) {
      merge_vectors<kRows, 1>(rows, i, p, tile, value_at, nothing);
    }
    if (i == head_dim) return;
    const int64_t rest = head_dim - i;
    merge_columns<kRows, 1>(
        rows, i, p, tile, value_at, nothing,
        [&](const auto* from, int) { return Isa::load_first(from, rest); },
        [&](float* to, int, Vec sum) { Isa::store_first(to, sum, rest); });
  }

  /// The same for any number of rows, which share what is widened into `wide`, of kWideFloats floats.
  /// head_dim is a multiple of kLanes.
  template <class Element>
  static void merge_wide_values(const Row* rows, int64_t n_rows, const float* p, float* wide,
                                const Tile<Element>& tile, const Tile<Element>* next,
                                int64_t head_dim) {
    KeyFetch<Element, kColumns> ahead(next != nullptr ? *next : tile, head_dim);
    NoFetch nothing;
    int64_t i = 0;
    const auto merge = [&](auto n_vectors) {
      constexpr int64_t kWidth = n_vectors.value * kLanes;
      widen_values(wide, tile.value, tile.end - tile.begin, i, kWidth, ahead);
      by_rows(n_rows, [&](auto count, int64_t r) {
        merge_vectors<count.value, n_vectors.value>(
            rows + r, i, p + r * kAttendTile, tile,
            [&](int64_t j) { return wide + (j - (tile.begin - tile.start)) * kWidth; }, nothing);
      });
      i += kWidth;
    };
    while (i + kColumns <= head_dim) merge(Count<kVectors>());
    while (i < head_dim) merge(Count<1>());
  }

 private:
  // The least exponent of a weight: beside the greatest one, which is 1, e^-64 is nothing to a sum of
  // floats. Denormal weights would each cost hundreds of cycles.
  static constexpr float kLeast = -64.0F;

  /// Turns a row's scores of one tile into weights, times the values' own scales, and scales the row's
  /// sums to the tile's greatest score. Keys that the row does not see get the least weight.
  template <class Element>
  static void weigh(float* p, Row& row, int64_t tile_start, const float* value_scales,
                    int64_t head_dim) {
    for (int64_t j = 0; j < row.begin - tile_start; ++j) p[j] = -INFINITY;
    for (int64_t j = max_of(0, row.end - tile_start); j < kAttendTile; ++j) p[j] = -INFINITY;

    Vec top = Isa::load(p);
    for (int64_t j = kLanes; j < kAttendTile; j += kLanes) top = Isa::max(top, Isa::load(p + j));
    const float tile_greatest = Isa::greatest(top);
    const float merged = tile_greatest > row.greatest ? tile_greatest : row.greatest;

    Vec acc = Isa::zero();
    for (int64_t j = 0; j < kAttendTile; j += kLanes) {
      Vec weight = exp_of<Isa>(Isa::sub(Isa::load(p + j), Isa::all(merged)), kLeast);
      acc = Isa::add(acc, weight);
      if constexpr (kHasScale<Element>) weight = Isa::mul(weight, Isa::load(value_scales + j));
      Isa::store(p + j, weight);
    }
    const bool is_first = row.sum == 0.0F;
    if (is_first || row.greatest == merged) {
      row.greatest = merged;
      row.sum += Isa::reduce(acc);
      return;
    }
    const Vec keep = exp_of<Isa>(Isa::all(row.greatest - merged));
    row.sum = row.sum * Isa::first(keep) + Isa::reduce(acc);
    row.greatest = merged;
    int64_t i = 0;
    for (; i + kLanes <= head_dim; i += kLanes) {
      Isa::store(row.out + i, Isa::mul(Isa::load(row.out + i), keep));
    }
    if (i < head_dim) {
      const int64_t rest = head_dim - i;
      Isa::store_first(row.out + i, Isa::mul(Isa::load_first(row.out + i, rest), keep), rest);
    }
  }

  /// Widens columns [column, column + n_columns) of n values into [value][n_columns].
  template <class Element, class Ahead>
  static void widen_values(float* wide, const Element* const* values, int64_t n, int64_t column,
                           int64_t n_columns, Ahead& ahead) {
    for (int64_t j = 0; j < n; ++j) {
      ahead.some();
      for (int64_t i = 0; i < n_columns; i += kLanes, wide += kLanes) {
        Isa::store_aligned(wide, Isa::load(values[j] + column + i));
      }
    }
  }

  /// out[r][columns] += sum over keys [begin, end), ascending, of p[r][key] * value_at(key)[columns],
  /// keys counted from the tile's start; load_from(p, c) and store_to(p, c, value) reach vector c of
  /// kCount. Meanwhile it fetches what comes next.
  template <int kRows, int kCount, class ValueAt, class Ahead, class Load, class Save>
  static void add_columns(const Row* rows, int64_t column, const float* p, int64_t begin,
                          int64_t end, const ValueAt& value_at, Ahead& ahead, const Load& load_from,
                          const Save& store_to) {
    if (begin >= end) return;
    Vec acc[kRows][kCount];
    for (int r = 0; r < kRows; ++r) {
      for (int c = 0; c < kCount; ++c) acc[r][c] = load_from(rows[r].out + column, c);
    }
#pragma GCC unroll 4
    for (int64_t j = begin; j < end; ++j) {
      const auto* from = value_at(j);
      ahead.some();
      Vec weight[kRows];
      for (int r = 0; r < kRows; ++r) weight[r] = Isa::broadcast(p + r * kAttendTile + j);
      for (int c = 0; c < kCount; ++c) {
        const Vec value = load_from(from, c);
        for (int r = 0; r < kRows; ++r) acc[r][c] = Isa::fma(weight[r], value, acc[r][c]);
      }
    }
    for (int r = 0; r < kRows; ++r) {
      for (int c = 0; c < kCount; ++c) store_to(rows[r].out + column, c, acc[r][c]);
    }
  }

  /// The same for the keys of a tile that each row sees. Later rows begin and end no earlier: what a
  /// row sees before the last row begins or after the first row ends it takes alone, the part between
  /// together with the others, ascending for each.
  template <int kRows, int kCount, class Element, class ValueAt, class Ahead, class Load,
            class Save>
  static void merge_columns(const Row* rows, int64_t column, const float* p,
                            const Tile<Element>& tile, const ValueAt& value_at, Ahead& ahead,
                            const Load& load_from, const Save& store_to) {
    const int64_t all_begin = min_of(max_of(rows[kRows - 1].begin, tile.begin), tile.end);
    const int64_t all_end = max_of(all_begin, min_of(rows[0].end, tile.end));
    const auto alone = [&](int r, int64_t begin, int64_t end) {
      add_columns<1, kCount>(
          rows + r, column, p + r * kAttendTile, max_of(rows[r].begin, begin) - tile.start,
          min_of(rows[r].end, end) - tile.start, value_at, ahead, load_from, store_to);
    };
    for (int r = 0; r < kRows; ++r) alone(r, tile.begin, all_begin);
    add_columns<kRows, kCount>(rows, column, p, all_begin - tile.start, all_end - tile.start,
                               value_at, ahead, load_from, store_to);
    for (int r = 0; r < kRows; ++r) alone(r, all_end, tile.end);
  }

  /// kCount whole vectors of columns.
  template <int kRows, int kCount, class Element, class ValueAt, class Ahead>
  static void merge_vectors(const Row* rows, int64_t column, const float* p,
                            const Tile<Element>& tile, const ValueAt& value_at, Ahead& ahead) {
    merge_columns<kRows, kCount>(
        rows, column, p, tile, value_at, ahead,
        [](const auto* from, int c) { return Isa::load(from + c * kLanes); },
        [](float* to, int c, Vec sum) { Isa::store(to + c * kLanes, sum); });
  }
};

}  // namespace
}  // namespace dovetail::kernels
