// linear for AVX2 + FMA; contract in kernels/linear.hpp, oracle in kernels/ref/linear.cpp.
// One token is bound by memory: two weight rows at once are enough chains to hide the FMA's latency
// and few enough streams for the processor to follow. More tokens are bound by arithmetic: tiles of
// 3 tokens x 4 rows fill the 16 registers, and from kPackTokens on a panel of weights is widened
// once for all tokens of a block.
// Every path adds an output's products in the same order, in the same eight lanes. Where it stops
// in the middle (a block over K), the lanes are kept whole, so nothing changes.
// Built with -mavx2 -mfma: C headers and intrinsics only (a test finds no weak symbols here).
#include "kernels/cpu/avx2.hpp"
#include "kernels/cpu/avx2_math.hpp"

namespace dovetail::kernels::avx2 {
namespace {

constexpr int kTileTokens = 3;
constexpr int kTileRows = 4;
constexpr int kOneTokenRows = 2;
constexpr int64_t kAheadBytes = 2048;  // rows lie one after another: fetch the next ones meanwhile
constexpr int64_t kPackTokens = 9;     // from here on widening once beats widening in every tile
constexpr int64_t kPanelLen = 1024;    // 4 rows x 1024 floats are 16 KiB: half of a small L1
constexpr int64_t kMaxBlock = 129;     // tokens; 16 KiB of partial sums on the stack
constexpr int64_t kMinBlock = 24;
constexpr int64_t kBlockFloats = 192 * 1024;  // of x, read at 16 bytes a cycle: L2, or a near L3
constexpr int64_t kLine = 64;                 // bytes

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

template <class Store>
void store_tile_row(float* y, __m128 sum, int64_t n_rows) {
  if (n_rows >= kTileRows) {
    _mm_storeu_ps(y, Store::finish(_mm_loadu_ps(y), sum));
    return;
  }
  const __m128i mask = _mm256_castsi256_si128(first_lanes(n_rows));
  _mm_maskstore_ps(y, mask, Store::finish(_mm_maskload_ps(y, mask), sum));
}

/// kTokens tokens against up to kRows weight rows, straight from the matrix. Rows past n_rows are
/// the last one again, and their sums are dropped.
template <class Store, int kTokens, int kRows, class Weight>
void direct_tile(const Operands<Weight>& op, int64_t t, int64_t n, int64_t n_rows) {
  constexpr int kSteps = 4;
  constexpr int kLines = kRows * kSteps * kLanes * static_cast<int>(sizeof(Weight)) / 64;
  const float* x[kTokens];
  for (int i = 0; i < kTokens; ++i) x[i] = op.x + (t + i) * op.x_stride;
  const Weight* w[kRows];
  for (int j = 0; j < kRows; ++j) w[j] = op.w + (n + (j < n_rows ? j : n_rows - 1)) * op.k_len;
  const char* ahead = reinterpret_cast<const char*>(w[0]) + kAheadBytes;

  __m256 acc[kTokens][kTileRows];
  for (int i = 0; i < kTokens; ++i) {
    for (int j = 0; j < kTileRows; ++j) acc[i][j] = _mm256_setzero_ps();
  }
  const auto step = [&](const auto& load_from) {
    __m256 token[kTokens];
    for (int i = 0; i < kTokens; ++i) token[i] = load_from(x[i]);
    for (int j = 0; j < kRows; ++j) {
      const __m256 row = load_from(w[j]);
      for (int i = 0; i < kTokens; ++i) acc[i][j] = _mm256_fmadd_ps(token[i], row, acc[i][j]);
    }
  };
  int64_t k = 0;
  const auto load_eight = [&](const auto* p) { return load(p + k); };
  for (; k + kSteps * kLanes <= op.k_len; ahead += 64 * kLines) {
    for (const int64_t stop = k + kSteps * kLanes; k < stop; k += kLanes) step(load_eight);
    for (int line = 0; line < kLines; ++line) _mm_prefetch(ahead + 64 * line, _MM_HINT_T0);
  }
  for (; k + kLanes <= op.k_len; k += kLanes) step(load_eight);
  if (k < op.k_len) step([&](const auto* p) { return load_first(p + k, op.k_len - k); });

  for (int i = 0; i < kTokens; ++i) {
    store_tile_row<Store>(op.y + (t + i) * op.y_stride + n,
                          reduce4(acc[i][0], acc[i][1], acc[i][2], acc[i][3]),
                          n_rows < kRows ? n_rows : kRows);
  }
}

template <class Store, class Weight>
void one_token_stripe(const Operands<Weight>& op, int64_t n_begin, int64_t n_end) {
  for (int64_t n = n_begin; n < n_end; n += kOneTokenRows) {
    direct_tile<Store, 1, kOneTokenRows>(op, 0, n, n_end - n);
  }
}

template <class Store, class Weight>
void direct_stripe(const Operands<Weight>& op, int64_t n_tokens, int64_t n_begin, int64_t n_end) {
  for (int64_t n = n_begin; n < n_end; n += kTileRows) {
    const int64_t n_rows = n_end - n;
    int64_t t = 0;
    for (; t + kTileTokens <= n_tokens; t += kTileTokens) {
      direct_tile<Store, kTileTokens, kTileRows>(op, t, n, n_rows);
    }
    if (n_tokens - t == 2) direct_tile<Store, 2, kTileRows>(op, t, n, n_rows);
    if (n_tokens - t == 1) direct_tile<Store, 1, kTileRows>(op, t, n, n_rows);
  }
}

/// Widens columns [k, k + n_cols) of four rows (clamped to the last one) into [step of 8 columns]
/// [row][8], filled up with zeros: a tile then reads one run of memory.
template <class Weight>
void pack_panel(float* panel, const Operands<Weight>& op, int64_t n, int64_t n_rows, int64_t k,
                int64_t n_cols) {
  const int64_t n_whole = n_cols / kLanes;
  const int64_t n_rest = n_cols % kLanes;
  for (int64_t row = 0; row < kTileRows; ++row) {
    const Weight* w = op.w + (n + (row < n_rows ? row : n_rows - 1)) * op.k_len + k;
    float* to = panel + row * kLanes;
#pragma GCC unroll 4
    for (int64_t s = 0; s < n_whole; ++s, to += kTileRows * kLanes) {
      _mm256_store_ps(to, load(w + s * kLanes));
    }
    if (n_rest > 0) _mm256_store_ps(to, load_first(w + n_whole * kLanes, n_rest));
  }
}

/// Fetches the panel that pack_panel will read next, a few lines at every call, meanwhile: its rows
/// are too short for the processor to foresee.
template <class Weight>
class PanelFetch {
 public:
  PanelFetch(const Operands<Weight>& op, int64_t n, int64_t k, int64_t n_calls)
      : row_(reinterpret_cast<const char*>(op.w + n * op.k_len + k)),
        row_bytes_(op.k_len * static_cast<int64_t>(sizeof(Weight))) {
    const int64_t n_cols = op.k_len - k < kPanelLen ? op.k_len - k : kPanelLen;
    lines_ = (n_cols * static_cast<int64_t>(sizeof(Weight)) + kLine - 1) / kLine;
    per_call_ = (kTileRows * lines_ + n_calls - 1) / n_calls;
  }
  void some() {
    for (int64_t i = 0; i < per_call_; ++i) {
      _mm_prefetch(row_ + line_ * kLine, _MM_HINT_T1);
      if (++line_ == lines_) line_ = 0, row_ += row_bytes_;
    }
  }

 private:
  const char* row_;
  int64_t row_bytes_;
  int64_t lines_;
  int64_t per_call_;
  int64_t line_ = 0;
};

/// Four packed rows; the first and the last panel of a row may be the same one.
struct Panel {
  const float* values;
  int64_t n_cols;
  bool first, last;
};

/// kTokens tokens' products with a panel. Between a row's first panel and its last one the sums are
/// kept whole, as [kTokens][4][8]; after the last one they are y, for the first n_rows rows.
template <class Store, int kTokens>
void packed_tile(float* y, int64_t y_stride, float* sums, const float* x, int64_t x_stride,
                 const Panel& panel, int64_t n_rows) {
  __m256 acc[kTokens][kTileRows];
  for (int i = 0; i < kTokens; ++i) {
    for (int j = 0; j < kTileRows; ++j) acc[i][j] = _mm256_setzero_ps();
  }
  if (!panel.first) {
    for (int i = 0; i < kTokens; ++i) {
      for (int j = 0; j < kTileRows; ++j) {
        acc[i][j] = _mm256_load_ps(sums + (i * kTileRows + j) * kLanes);
      }
    }
  }
  const float* w = panel.values;
  const auto step = [&](const auto& load_x) {
    __m256 token[kTokens];
    for (int i = 0; i < kTokens; ++i) token[i] = load_x(x + i * x_stride);
    for (int j = 0; j < kTileRows; ++j) {
      const __m256 row = _mm256_load_ps(w + j * kLanes);
      for (int i = 0; i < kTokens; ++i) acc[i][j] = _mm256_fmadd_ps(token[i], row, acc[i][j]);
    }
    x += kLanes;
    w += kTileRows * kLanes;
  };
  const auto load_whole = [](const float* p) { return load(p); };
#pragma GCC unroll 8
  for (int64_t n = panel.n_cols / kLanes; n > 0; --n) step(load_whole);
  const int64_t n_rest = panel.n_cols % kLanes;
  if (n_rest > 0) step([&](const float* p) { return load_first(p, n_rest); });

  for (int i = 0; i < kTokens; ++i) {
    if (panel.last) {
      store_tile_row<Store>(y + i * y_stride, reduce4(acc[i][0], acc[i][1], acc[i][2], acc[i][3]),
                            n_rows);
      continue;
    }
    for (int j = 0; j < kTileRows; ++j) {
      _mm256_store_ps(sums + (i * kTileRows + j) * kLanes, acc[i][j]);
    }
  }
}

/// One block of tokens against four rows.
template <class Store, class Weight>
void packed_block(const Operands<Weight>& op, int64_t t_begin, int64_t n_tokens, int64_t n,
                  int64_t n_rows) {
  alignas(32) float values[kTileRows * kPanelLen];
  alignas(32) float sums[kMaxBlock * kTileRows * kLanes];
  int64_t k = 0;
  do {
    const int64_t n_cols = op.k_len - k < kPanelLen ? op.k_len - k : kPanelLen;
    const Panel panel{values, n_cols, k == 0, k + n_cols == op.k_len};
    pack_panel(values, op, n, n_rows, k, n_cols);
    PanelFetch<Weight> next(op, panel.last ? n + kTileRows : n, panel.last ? 0 : k + n_cols,
                            (n_tokens + kTileTokens - 1) / kTileTokens);
    for (int64_t t = 0; t < n_tokens; t += kTileTokens) {
      const int64_t at = t_begin + t;
      const auto run = [&](auto* tile) {
        tile(op.y + at * op.y_stride + n, op.y_stride, sums + t * kTileRows * kLanes,
             op.x + at * op.x_stride + k, op.x_stride, panel, n_rows);
      };
      next.some();
      if (n_tokens - t >= kTileTokens)
        run(packed_tile<Store, kTileTokens>);
      else if (n_tokens - t == 2)
        run(packed_tile<Store, 2>);
      else
        run(packed_tile<Store, 1>);
    }
    k += n_cols;
  } while (k < op.k_len);
}

/// Tokens of a block: few enough to keep their x near, and blocks about equally long.
int64_t block_len(int64_t n_tokens, int64_t k_len) {
  const int64_t fit = kBlockFloats / (k_len > 0 ? k_len : 1);
  const int64_t most = fit > kMaxBlock ? kMaxBlock : fit < kMinBlock ? kMinBlock : fit;
  const int64_t n_blocks = (n_tokens + most - 1) / most;
  const int64_t even = (n_tokens + n_blocks - 1) / n_blocks;
  return (even + kTileTokens - 1) / kTileTokens * kTileTokens;
}

template <class Store, class Weight>
void stripe(const Operands<Weight>& op, int64_t n_tokens, int64_t n_begin, int64_t n_end) {
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

}  // namespace

void linear_f32(float* y, int64_t y_stride, const float* x, int64_t x_stride, const float* w,
                int64_t n_tokens, int64_t k_len, int64_t n_begin, int64_t n_end) {
  stripe<Set, float>({y, y_stride, x, x_stride, w, k_len}, n_tokens, n_begin, n_end);
}

void linear_add_f32(float* y, int64_t y_stride, const float* x, int64_t x_stride, const float* w,
                    int64_t n_tokens, int64_t k_len, int64_t n_begin, int64_t n_end) {
  stripe<Add, float>({y, y_stride, x, x_stride, w, k_len}, n_tokens, n_begin, n_end);
}

void linear_bf16(float* y, int64_t y_stride, const float* x, int64_t x_stride, const uint16_t* w,
                 int64_t n_tokens, int64_t k_len, int64_t n_begin, int64_t n_end) {
  stripe<Set, uint16_t>({y, y_stride, x, x_stride, w, k_len}, n_tokens, n_begin, n_end);
}

void linear_add_bf16(float* y, int64_t y_stride, const float* x, int64_t x_stride,
                     const uint16_t* w, int64_t n_tokens, int64_t k_len, int64_t n_begin,
                     int64_t n_end) {
  stripe<Add, uint16_t>({y, y_stride, x, x_stride, w, k_len}, n_tokens, n_begin, n_end);
}

void linear_f16(float* y, int64_t y_stride, const float* x, int64_t x_stride, const F16* w,
                int64_t n_tokens, int64_t k_len, int64_t n_begin, int64_t n_end) {
  stripe<Set, F16>({y, y_stride, x, x_stride, w, k_len}, n_tokens, n_begin, n_end);
}

void linear_add_f16(float* y, int64_t y_stride, const float* x, int64_t x_stride, const F16* w,
                    int64_t n_tokens, int64_t k_len, int64_t n_begin, int64_t n_end) {
  stripe<Add, F16>({y, y_stride, x, x_stride, w, k_len}, n_tokens, n_begin, n_end);
}

}  // namespace dovetail::kernels::avx2
