// linear in tiles, for the vectors of one ISA: those of linear_avx2.cpp or of linear_avx512.cpp.
// Contract in kernels/linear.hpp, oracle in kernels/ref/linear.cpp.
// One token is bound by memory: two weight rows at once are enough chains to hide the FMA's latency
// and few enough streams for the processor to follow. More tokens are bound by arithmetic: tiles of
// Isa::kTileTokens tokens x 4 rows fill the registers, and from kPackTokens on a panel of weights is
// widened once for all tokens of a block.
// Every path adds an output's products in the same order, in the same lanes. Where it stops in the
// middle (a panel that is not the last), the lanes are kept whole, so nothing changes.
//
// An Isa is the Vectors of avx2_math.hpp or avx512_math.hpp with kTileTokens.
// The namespace is unnamed and everything included is C, as in avx2_math.hpp.
#pragma once

#include "kernels/cpu/avx2_math.hpp"

namespace dovetail::kernels {
namespace {

struct Set {
  static __m128 finish(__m128 /*y*/, __m128 sum) { return sum; }
};
struct Add {
  static __m128 finish(__m128 y, __m128 sum) { return _mm_add_ps(y, sum); }
};

/// The operands of one call, as in the contract.
template <class Weight>
struct Operands {
  float* y;
  int64_t y_stride;
  const float* x;
  int64_t x_stride;
  const Weight* w;
  int64_t k_len;
};

template <class Isa>
class LinearTiles {
 public:
  /// Rows [n_begin, n_end) of y = x w (Set) or y + x w (Add).
  template <class Store, class Weight>
  static void stripe(const Operands<Weight>& op, int64_t n_tokens, int64_t n_begin, int64_t n_end) {
    if (n_tokens == 1) return one_token_stripe<Store>(op, n_begin, n_end);
    if (n_tokens < kPackTokens) return direct_stripe<Store>(op, n_tokens, n_begin, n_end);
    const int64_t block = block_len(n_tokens, op.k_len);
    for (int64_t t = 0; t < n_tokens; t += block) {
      const int64_t here = n_tokens - t < block ? n_tokens - t : block;
      for (int64_t n = n_begin; n < n_end; n += kTileRows) {
        packed_block<Store>(op, t, here, n, n_end - n);
      }
    }
  }

 private:
  using Vec = typename Isa::Vec;
  static constexpr int kLanes = Isa::kLanes;
  static constexpr int kTileTokens = Isa::kTileTokens;
  static constexpr int kTileRows = 4;
  static constexpr int kPanelSteps = 8;  // of kLanes columns, between two times of fetching ahead
  static constexpr int kOneTokenRows = 2;
  static constexpr int64_t kAheadBytes = 16384;  // into L2: rows lie one after another
  static constexpr int64_t kPackTokens = 9;   // from here on widening once beats widening in a tile
  static constexpr int64_t kPanelLen = 1024;  // 4 rows x 1024 floats are 16 KiB: half of a small L1
  static constexpr int64_t kMaxBlock = 132;   // tokens; a bound of the partial sums on the stack
  static constexpr int64_t kMinBlock = 24;
  static constexpr int64_t kBlockFloats = 192 * 1024;  // of x: three quarters of a MiB
  static constexpr int64_t kLine = 64;                 // bytes
  static_assert(kMaxBlock % kTileTokens == 0 && kMinBlock % kTileTokens == 0, "whole tiles");

  template <int kValue>
  struct Count {
    static constexpr int value = kValue;
  };
  /// Calls fn for n tokens, at most kMost, with their number as a type.
  template <int kMost = kTileTokens, class Fn>
  static void with_count(int64_t n, const Fn& fn) {
    if constexpr (kMost > 1) {
      if (n < kMost) return with_count<kMost - 1>(n, fn);
    }
    fn(Count<kMost>());
  }

  template <int kTokens>
  struct Sums {
    Vec v[kTokens][kTileRows];

    Sums() {
#pragma GCC unroll 16
      for (int i = 0; i < kTokens; ++i) {
#pragma GCC unroll 16
        for (int j = 0; j < kTileRows; ++j) v[i][j] = Isa::zero();
      }
    }
    __m128 reduced(int i) const {
      return Isa::reduce4(v[i][0], v[i][1], v[i][2], v[i][3]);
    }
  };

  template <class Store>
  static void store_tile_row(float* y, __m128 sum, int64_t n_rows) {
    if (n_rows >= kTileRows) {
      _mm_storeu_ps(y, Store::finish(_mm_loadu_ps(y), sum));
      return;
    }
    const __m128i mask = _mm256_castsi256_si128(avx2::first_lanes(n_rows));
    _mm_maskstore_ps(y, mask, Store::finish(_mm_maskload_ps(y, mask), sum));
  }

  /// kTokens tokens against up to kRows weight rows, straight from the matrix. Rows past n_rows are
  /// the last one again, and their sums are dropped.
  template <class Store, int kTokens, int kRows, class Weight>
  static void direct_tile(const Operands<Weight>& op, int64_t t, int64_t n, int64_t n_rows) {
    constexpr int kSteps = 4;
    constexpr int kLines = kRows * kSteps * kLanes * static_cast<int>(sizeof(Weight)) / 64;
    const float* x[kTokens];
    for (int i = 0; i < kTokens; ++i) x[i] = op.x + (t + i) * op.x_stride;
    const Weight* w[kRows];
    for (int j = 0; j < kRows; ++j) w[j] = op.w + (n + (j < n_rows ? j : n_rows - 1)) * op.k_len;
    const char* ahead = reinterpret_cast<const char*>(w[0]) + kAheadBytes;

    Sums<kTokens> sums;
    const auto step = [&](const auto& load_from) {
      Vec token[kTokens];
      for (int i = 0; i < kTokens; ++i) token[i] = load_from(x[i]);
      for (int j = 0; j < kRows; ++j) {
        const Vec row = load_from(w[j]);
        for (int i = 0; i < kTokens; ++i) sums.v[i][j] = Isa::fma(token[i], row, sums.v[i][j]);
      }
    };
    int64_t k = 0;
    const auto load_whole = [&](const auto* p) { return Isa::load(p + k); };
    for (; k + kSteps * kLanes <= op.k_len; ahead += 64 * kLines) {
      for (const int64_t stop = k + kSteps * kLanes; k < stop; k += kLanes) step(load_whole);
      for (int line = 0; line < kLines; ++line) _mm_prefetch(ahead + 64 * line, _MM_HINT_T1);
    }
    for (; k + kLanes <= op.k_len; k += kLanes) step(load_whole);
    if (k < op.k_len) step([&](const auto* p) { return Isa::load_first(p + k, op.k_len - k); });

    for (int i = 0; i < kTokens; ++i) {
      store_tile_row<Store>(op.y + (t + i) * op.y_stride + n, sums.reduced(i),
                            n_rows < kRows ? n_rows : kRows);
    }
  }

  template <class Store, class Weight>
  static void one_token_stripe(const Operands<Weight>& op, int64_t n_begin, int64_t n_end) {
    for (int64_t n = n_begin; n < n_end; n += kOneTokenRows) {
      direct_tile<Store, 1, kOneTokenRows>(op, 0, n, n_end - n);
    }
  }

  template <class Store, class Weight>
  static void direct_stripe(const Operands<Weight>& op, int64_t n_tokens, int64_t n_begin,
                            int64_t n_end) {
    for (int64_t n = n_begin; n < n_end; n += kTileRows) {
      for (int64_t t = 0; t < n_tokens; t += kTileTokens) {
        with_count(n_tokens - t, [&](auto count) {
          direct_tile<Store, count.value, kTileRows>(op, t, n, n_end - n);
        });
      }
    }
  }

  /// Widens columns [k, k + n_cols) of four rows (clamped to the last one) into [step of kLanes
  /// columns][row][kLanes], filled up with zeros: a tile then reads one run of memory.
  template <class Weight>
  static void pack_panel(float* panel, const Operands<Weight>& op, int64_t n, int64_t n_rows,
                         int64_t k, int64_t n_cols) {
    const int64_t n_whole = n_cols / kLanes;
    const int64_t n_rest = n_cols % kLanes;
    for (int64_t row = 0; row < kTileRows; ++row) {
      const Weight* w = op.w + (n + (row < n_rows ? row : n_rows - 1)) * op.k_len + k;
      float* to = panel + row * kLanes;
#pragma GCC unroll 4
      for (int64_t s = 0; s < n_whole; ++s, to += kTileRows * kLanes) {
        Isa::store_aligned(to, Isa::load(w + s * kLanes));
      }
      if (n_rest > 0) Isa::store_aligned(to, Isa::load_first(w + n_whole * kLanes, n_rest));
    }
  }

  /// Fetches the panel that pack_panel will read next, a few lines at every call, meanwhile: its
  /// rows are too short for the processor to foresee, and many lines at once would hold it up.
  template <class Weight>
  class PanelFetch {
   public:
    PanelFetch(const Operands<Weight>& op, int64_t n, int64_t k, int64_t n_calls)
        : row_(reinterpret_cast<const char*>(op.w + n * op.k_len + k)),
          row_bytes_(op.k_len * static_cast<int64_t>(sizeof(Weight))) {
      const int64_t n_cols = op.k_len - k < kPanelLen ? op.k_len - k : kPanelLen;
      lines_ = (n_cols * static_cast<int64_t>(sizeof(Weight)) + kLine - 1) / kLine;
      left_ = kTileRows * lines_;
      per_call_ = (left_ + n_calls - 1) / n_calls;
    }
    void some() {
      for (int64_t i = 0; i < per_call_ && left_ > 0; ++i, --left_) {
        _mm_prefetch(row_ + line_ * kLine, _MM_HINT_T1);
        if (++line_ == lines_) line_ = 0, row_ += row_bytes_;
      }
    }

   private:
    const char* row_;
    int64_t row_bytes_;
    int64_t lines_;
    int64_t left_;
    int64_t per_call_;
    int64_t line_ = 0;
  };

  /// Four packed rows; the first panel of a row may also be its last one.
  struct Panel {
    const float* values;
    int64_t n_cols;
    bool first, last;
  };

  /// kTokens tokens' products with a panel. Between a row's first panel and its last one the sums
  /// are kept whole, as [kTokens][4][kLanes]; after the last one they are y, for n_rows rows.
  template <class Store, int kTokens, class Fetch>
  [[gnu::noinline]] static void packed_tile(float* y, int64_t y_stride, float* kept, const float* x,
                                            int64_t x_stride, const Panel& panel, int64_t n_rows,
                                            Fetch& next) {
    Sums<kTokens> sums;
    if (!panel.first) {
#pragma GCC unroll 16
      for (int i = 0; i < kTokens; ++i) {
#pragma GCC unroll 16
        for (int j = 0; j < kTileRows; ++j) {
          sums.v[i][j] = Isa::load_aligned(kept + (i * kTileRows + j) * kLanes);
        }
      }
    }
    const float* w = panel.values;
    const auto step = [&](int64_t s, const auto& load_x) {
      Vec token[kTokens];
#pragma GCC unroll 16
      for (int i = 0; i < kTokens; ++i) token[i] = load_x(x + i * x_stride + s * kLanes);
#pragma GCC unroll 16
      for (int j = 0; j < kTileRows; ++j) {
        const Vec row = Isa::load_aligned(w + (s * kTileRows + j) * kLanes);
#pragma GCC unroll 16
        for (int i = 0; i < kTokens; ++i) sums.v[i][j] = Isa::fma(token[i], row, sums.v[i][j]);
      }
    };
    const auto load_whole = [](const float* p) { return Isa::load(p); };
    int64_t n = panel.n_cols / kLanes;
    for (; n >= kPanelSteps;
         n -= kPanelSteps, x += kPanelSteps * kLanes, w += kPanelSteps * kTileRows * kLanes) {
      next.some();
#pragma GCC unroll 8
      for (int s = 0; s < kPanelSteps; ++s) step(s, load_whole);
    }
    for (; n > 0; --n, x += kLanes, w += kTileRows * kLanes) step(0, load_whole);
    const int64_t n_rest = panel.n_cols % kLanes;
    if (n_rest > 0) step(0, [&](const float* p) { return Isa::load_first(p, n_rest); });

#pragma GCC unroll 16
    for (int i = 0; i < kTokens; ++i) {
      if (panel.last) {
        store_tile_row<Store>(y + i * y_stride, sums.reduced(i), n_rows);
        continue;
      }
#pragma GCC unroll 16
      for (int j = 0; j < kTileRows; ++j) {
        Isa::store_aligned(kept + (i * kTileRows + j) * kLanes, sums.v[i][j]);
      }
    }
  }

  /// One block of tokens against four rows.
  template <class Store, class Weight>
  static void packed_block(const Operands<Weight>& op, int64_t t_begin, int64_t n_tokens, int64_t n,
                           int64_t n_rows) {
    alignas(64) float values[kTileRows * kPanelLen];
    alignas(64) float kept[kMaxBlock * kTileRows * kLanes];
    static_assert(sizeof values + sizeof kept <= 64 * 1024, "what the contract says of the stack");
    int64_t k = 0;
    do {
      const int64_t n_cols = op.k_len - k < kPanelLen ? op.k_len - k : kPanelLen;
      const Panel panel{values, n_cols, k == 0, k + n_cols == op.k_len};
      pack_panel(values, op, n, n_rows, k, n_cols);
      PanelFetch<Weight> next(
          op, panel.last ? n + kTileRows : n, panel.last ? 0 : k + n_cols,
          (n_tokens + kTileTokens - 1) / kTileTokens * (n_cols / (kPanelSteps * kLanes) + 1));
      for (int64_t t = 0; t < n_tokens; t += kTileTokens) {
        const int64_t at = t_begin + t;
        with_count(n_tokens - t, [&](auto count) {
          packed_tile<Store, count.value>(
              op.y + at * op.y_stride + n, op.y_stride, kept + t * kTileRows * kLanes,
              op.x + at * op.x_stride + k, op.x_stride, panel, n_rows, next);
        });
      }
      k += n_cols;
    } while (k < op.k_len);
  }

  /// Tokens of a block: few enough to keep their x near, and blocks about equally long.
  static int64_t block_len(int64_t n_tokens, int64_t k_len) {
    const int64_t fit = kBlockFloats / (k_len > 0 ? k_len : 1);
    const int64_t most = fit > kMaxBlock ? kMaxBlock : fit < kMinBlock ? kMinBlock : fit;
    const int64_t n_blocks = (n_tokens + most - 1) / most;
    const int64_t even = (n_tokens + n_blocks - 1) / n_blocks;
    return (even + kTileTokens - 1) / kTileTokens * kTileTokens;
  }
};

}  // namespace
}  // namespace dovetail::kernels
