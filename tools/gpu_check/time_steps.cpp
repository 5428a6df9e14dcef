// Whole steps of Qwen3-0.6B from these kernels, in the order and number in which plugins/backend/cuda launches them
// (fused_ops.cpp, docs/gpu/budget.md): as launches, and recorded. Every layer has weights and a cache of its own.
#include <kernels/attend.hpp>

#include <algorithm>

#include "tools/gpu_check/session.hpp"

namespace dovetail::gpu_check {
namespace {

namespace k = kernels::cuda;

struct Model {
  int64_t n_layers, d_model, d_ff, n_heads, n_kv_heads, head_dim, vocab_size;
};
constexpr Model kQwen3Of06B{28, 1024, 3072, 16, 8, 128, 151936};
constexpr Model kQwen3Of8B{36, 4096, 12288, 32, 8, 128, 151936};
constexpr Model kTiny{2, 64, 96, 4, 2, 16, 300};
constexpr float kEps = 1e-6F;

struct Layer {
  Matrix wq, wk, wv, wo, gate, up, down;
  const float *attn_norm, *ffn_norm, *q_norm, *k_norm;
  void *keys, *values;
};

/// A step and all that it reads; launch() launches it.
class ModelStep {
 public:
  ModelStep(Lab& lab, const Model& model, const std::vector<Part>& parts)
      : m_(model),
        stream_(lab.stream()),
        cached_(cached_step(lab, parts, CacheNumbers::kBf16, m_.n_kv_heads,
                            m_.n_heads / m_.n_kv_heads, m_.head_dim, 16)),
        n_(cached_.rows.n_tokens),
        n_rows_(static_cast<int64_t>(parts.size())) {
    const auto matrix = [&](int64_t rows, int64_t k_len) {
      n_bytes_ += static_cast<double>(matrix_bytes(MatrixNumbers::kBf16, rows, k_len));
      return lab.matrix(MatrixNumbers::kBf16, rows, k_len);
    };
    const int64_t q_rows = m_.n_heads * m_.head_dim, kv_rows = m_.n_kv_heads * m_.head_dim;
    for (int64_t i = 0; i < m_.n_layers; ++i) {
      Layer layer{matrix(q_rows, m_.d_model),
                  matrix(kv_rows, m_.d_model),
                  matrix(kv_rows, m_.d_model),
                  matrix(m_.d_model, q_rows),
                  matrix(m_.d_ff, m_.d_model),
                  matrix(m_.d_ff, m_.d_model),
                  matrix(m_.d_model, m_.d_ff),
                  lab.noise(m_.d_model),
                  lab.noise(m_.d_model),
                  lab.noise(m_.head_dim),
                  lab.noise(m_.head_dim),
                  noise_cache(lab, cached_, CacheNumbers::kBf16, static_cast<uint32_t>(2 * i)),
                  noise_cache(lab, cached_, CacheNumbers::kBf16, static_cast<uint32_t>(2 * i + 1))};
      layers_.push_back(layer);
    }
    embed_ = matrix(m_.vocab_size, m_.d_model);
    norm_ = lab.noise(m_.d_model);
    for (const Part& part : parts) {
      const auto seen = static_cast<double>(part.n_cached + part.n_tokens);
      n_bytes_ += seen * static_cast<double>(2 * 2 * m_.n_layers * kv_rows);
    }
    std::vector<int32_t> last;
    int32_t n_before = 0;
    for (const Part& part : parts)
      last.push_back((n_before += static_cast<int32_t>(part.n_tokens)) - 1);
    g_last_ = lab.copied(last);
    g_from_ = lab.copied(std::vector<int32_t>(static_cast<size_t>(n_), n_ == n_rows_ ? 0 : -1));
    g_tokens_ = lab.zeros<int32_t>(n_);
    g_sampled_ = lab.zeros<int32_t>(2 * n_rows_);
    const int64_t half_len = m_.head_dim / 2;
    std::vector<float> freq;
    for (int64_t i = 0; i < half_len; ++i) freq.push_back(1.0F / static_cast<float>(1 + i * i));
    g_freq_ = lab.copied(freq);
    cos_ = lab.floats(n_ * half_len), sin_ = lab.floats(n_ * half_len);
    for (float*& x : x_) x = lab.floats(n_ * m_.d_model);
    const int64_t widest = std::max(q_rows, m_.d_ff);
    for (float** p : {&q_, &attended_, &product_, &gate_, &up_}) *p = lab.floats(n_ * widest);
    normed_ = lab.floats(n_ * m_.d_model);
    cut_ = lab.bytes(k::cut_bytes(n_, widest));
    out_ = lab.floats(n_rows_ * m_.d_model), logits_ = lab.floats(n_rows_ * m_.vocab_size);
    products_ = lab.floats(k::decode_qkv_products_len(m_.n_heads, m_.n_kv_heads, m_.head_dim));
    arrived_ = lab.zeros<uint32_t>(m_.n_heads + 2 * m_.n_kv_heads);
    attend_ = {attended_, q_, cached_.g_tiles, cached_.n_tiles, m_.n_heads, INT64_MAX, 0.088F};
    const int64_t n_chunks = (cached_.longest + kernels::kAttendChunk - 1) / kernels::kAttendChunk;
    if (n_chunks > 1 && n_ <= kMostSplitTokens && n_ * n_chunks <= kMostParts) {
      attend_.n_chunks = n_chunks;
      attend_.g_parts = lab.floats(k::attend_parts_len(n_, m_.n_heads, m_.head_dim, n_chunks));
      attend_.g_arrived = lab.zeros<uint32_t>(cached_.n_tiles * m_.n_heads);
    }
  }

  double n_bytes() const { return n_bytes_; }
  int64_t n_tokens() const { return n_; }
  int64_t n_launches() const {
    return (n_ <= k::kDecodeTokens ? 5 : 21) * m_.n_layers + (n_rows_ <= k::kDecodeTokens ? 6 : 8);
  }

  void launch() {
    const int64_t d = m_.d_model;
    k::take_tokens(stream_, g_tokens_, g_from_, g_sampled_, n_, n_rows_);
    k::rope_table(stream_, cos_, sin_, cached_.rows.g_positions, g_freq_, n_, m_.head_dim / 2,
                  1.0F);
    k::gather_rows(stream_, x_[0], static_cast<const uint16_t*>(embed_.g_w), g_tokens_, n_, d);
    for (const Layer& layer : layers_)
      n_ <= k::kDecodeTokens ? launch_fused(layer) : launch_ops(layer);
    k::gather_rows(stream_, out_, x_[0], g_last_, n_rows_, d);
    if (n_rows_ <= k::kDecodeTokens) {
      k::decode_linear(stream_, logits_, out_, {norm_, kEps, 0.0F}, embed_, nullptr, nullptr,
                       n_rows_);
    } else {
      k::rms_norm(stream_, out_, out_, norm_, n_rows_, d, kEps, 0.0F);
      k::cut_activations(stream_, cut_, out_, n_rows_, d);
      k::linear(stream_, logits_, cut_, embed_, nullptr, nullptr, n_rows_);
    }
    k::argmax(stream_, g_sampled_, logits_, nullptr, n_rows_, m_.vocab_size);
  }

 private:
  // As ops.cpp of the backend splits attention.
  static constexpr int64_t kMostSplitTokens = 64, kMostParts = 1024;

  void attend(const Layer& layer) {
    attend_of(stream_, attend_, CacheNumbers::kBf16, cached_.layout, cached_.rows, layer.keys,
              layer.values);
  }
  void launch_fused(const Layer& w) {
    k::decode_qkv(stream_, {x_[0],
                            {w.attn_norm, kEps, 0.0F},
                            {w.wq.g_w, nullptr, {w.q_norm, kEps, 0.0F}},
                            {w.wk.g_w, nullptr, {w.k_norm, kEps, 0.0F}},
                            {w.wv.g_w, nullptr, {}},
                            MatrixNumbers::kBf16,
                            m_.d_model,
                            m_.n_heads,
                            cos_,
                            sin_,
                            m_.head_dim / 2,
                            q_,
                            cached_.layout,
                            CacheNumbers::kBf16,
                            w.keys,
                            w.values,
                            cached_.rows,
                            products_,
                            arrived_});
    attend(w);
    k::decode_linear(stream_, x_[1], attended_, {}, w.wo, nullptr, x_[0], n_);
    k::decode_gate_up(stream_, gate_, x_[1], {w.ffn_norm, kEps, 0.0F}, w.gate, w.up, nullptr,
                      nullptr, n_);
    k::decode_linear(stream_, x_[0], gate_, {}, w.down, nullptr, x_[1], n_);
  }
  void cut_normed(const float* x, const float* norm) {
    k::rms_norm(stream_, normed_, x, norm, n_, m_.d_model, kEps, 0.0F);
    k::cut_activations(stream_, cut_, normed_, n_, m_.d_model);
  }
  void launch_heads(const Matrix& w, const float* norm, float* out) {
    k::linear(stream_, product_, cut_, w, nullptr, nullptr, n_);
    const int64_t n_heads = w.n_rows / m_.head_dim;
    k::rms_norm(stream_, product_, product_, norm, n_ * n_heads, m_.head_dim, kEps, 0.0F);
    k::rope_half_split(stream_, out, w.n_rows, product_, w.n_rows, cos_, sin_, n_, n_heads,
                       m_.head_dim, m_.head_dim / 2);
  }
  void write(void* g_base, const float* rows) {
    cache_write_of(stream_, g_base, CacheNumbers::kBf16, cached_.layout, cached_.rows, rows);
  }
  void add_product(float* out, const float* x, const Matrix& w, const float* residual) {
    k::cut_activations(stream_, cut_, x, n_, w.k_len);
    k::linear(stream_, out, cut_, w, nullptr, residual, n_);
  }
  void launch_ops(const Layer& w) {
    cut_normed(x_[0], w.attn_norm);
    launch_heads(w.wq, w.q_norm, q_);
    launch_heads(w.wk, w.k_norm, up_);
    write(w.keys, up_);
    k::linear(stream_, product_, cut_, w.wv, nullptr, nullptr, n_);
    write(w.values, product_);
    attend(w);
    add_product(x_[1], attended_, w.wo, x_[0]);
    cut_normed(x_[1], w.ffn_norm);
    k::linear(stream_, gate_, cut_, w.gate, nullptr, nullptr, n_);
    k::linear(stream_, up_, cut_, w.up, nullptr, nullptr, n_);
    k::silu_mul(stream_, product_, gate_, up_, n_ * m_.d_ff);
    add_product(x_[0], product_, w.down, x_[1]);
  }

  Model m_;
  Stream stream_;
  CachedStep cached_;
  int64_t n_, n_rows_;
  std::vector<Layer> layers_;
  Matrix embed_{};
  double n_bytes_ = 0;
  const float *norm_, *g_freq_;
  const int32_t *g_last_, *g_from_;
  int32_t *g_tokens_, *g_sampled_;
  float *cos_, *sin_, *x_[2], *q_, *attended_, *product_, *gate_, *up_, *normed_, *out_, *logits_,
      *products_;
  void* cut_;
  uint32_t* arrived_;
  k::AttendArgs attend_{};
};

double median_of_launches_us(Machine& machine, ModelStep& step) {
  std::vector<double> us;
  for (int i = 0; i < 5; ++i) us.push_back(machine.microseconds_of([&] { step.launch(); }));
  std::sort(us.begin(), us.end());
  return us[us.size() / 2];
}

}  // namespace

void time_steps(Session& s) {
  const auto time = [&](const Model& model, const std::string& name, const std::vector<Part>& parts,
                        const std::string& target) {
    const int64_t context = parts[0].n_cached + parts[0].n_tokens;
    s.measure("step", name, [&](Lab& lab) {
      ModelStep step(lab, model, parts);
      step.launch();
      lab.machine().wait();
      const double launches = median_of_launches_us(lab.machine(), step);
      const double graph = median_us(lab.machine(), 1, [&](int64_t) { step.launch(); });
      s.steps.push_back({name, step.n_tokens(), context, step.n_launches(), launches, graph,
                         step.n_bytes(), target});
    });
  };
  const auto decode = [&](const Model& model, const std::string& name, int64_t n, int64_t context,
                          const std::string& target) {
    time(model, name + "decode of " + std::to_string(n) + " at " + std::to_string(context),
         std::vector<Part>(static_cast<size_t>(n), {context - 1, 1}), target);
  };
  if (s.is_tiny()) {
    for (const int64_t n : {1, 8, 9}) decode(kTiny, "tiny ", n, 20, "");
    decode(kTiny, "tiny ", 1, 520, "");
    time(kTiny, "tiny prefill of 20", {{0, 20}}, "");
    return;
  }
  decode(kQwen3Of06B, "0.6B ", 1, 128, ">= 1,500 (aim 2,500)");
  decode(kQwen3Of06B, "0.6B ", 256, 576, ">= 30,000 (aim 48,000)");
  for (int64_t n = 2; n <= 256; n *= 2) decode(kQwen3Of06B, "0.6B ", n, 128, "");
  time(kQwen3Of06B, "0.6B prefill of 2048", {{0, 2048}}, "");
  decode(kQwen3Of8B, "8B ", 1, 128, ">= 213 (aim 250)");
  // 45 % of 788 TFLOP/s, at 2 * 6.95e9 flops a token beside the head.
  time(kQwen3Of8B, "8B prefill of 2048", {{0, 2048}}, ">= 25,500 (aim 40,800)");
}

}  // namespace dovetail::gpu_check
