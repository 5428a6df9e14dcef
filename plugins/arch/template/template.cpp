// template: the plugin to copy for a new architecture. A real one-layer decoder, small enough to read
// in a minute: RMSNorm, grouped-query attention with rotary positions, a SwiGLU feed-forward.
// Shapes: T tokens, D d_model, F d_ff, H n_heads, G n_kv_heads, E head_dim, V vocab_size.
#include <dovetail/arch.hpp>

#include <cmath>

namespace dovetail::arch_template {

struct Config {  // 1. what the model's own config.json says
  int32_t d_model, d_ff, n_heads, n_kv_heads, head_dim;
  int64_t vocab_size, max_seq_len;
  double norm_eps;
  RopeTable rope;
};

Config read_config(ConfigReader& in) {  // ours on the left, the model file's key on the right
  Config c{};
  c.d_model = in.i32("hidden_size");
  c.d_ff = in.i32("intermediate_size");
  c.n_heads = in.i32("num_attention_heads");
  c.n_kv_heads = in.i32_or("num_key_value_heads", c.n_heads);
  c.head_dim = in.i32_or("head_dim", c.d_model / c.n_heads);
  c.vocab_size = in.i64("vocab_size");
  c.max_seq_len = in.i64_or("max_position_embeddings", 2048);
  c.norm_eps = in.f64_or("rms_norm_eps", 1e-6, 0.0);
  c.rope = read_rope(in, c.head_dim);
  return c;
}

class Template {
 public:
  // 2. the tensors it needs, with their shapes
  Template(ConfigReader& in, Weights& w) : c_(read_config(in)) {
    if (!in.problems().empty()) return;
    const Dim v{c_.vocab_size, "vocab_size"}, d{c_.d_model, "d_model"}, f{c_.d_ff, "d_ff"};
    const Dim q{int64_t{c_.n_heads} * c_.head_dim, "n_heads * head_dim"};
    const Dim kv{int64_t{c_.n_kv_heads} * c_.head_dim, "n_kv_heads * head_dim"};
    embed_ = w.tensor("embed.weight", {v, d});
    attn_norm_ = w.tensor("attn_norm.weight", {d});
    wq_ = w.tensor("q_proj.weight", {q, d});
    wk_ = w.tensor("k_proj.weight", {kv, d});
    wv_ = w.tensor("v_proj.weight", {kv, d});
    wo_ = w.tensor("o_proj.weight", {d, q});
    ffn_norm_ = w.tensor("ffn_norm.weight", {d});
    w_gate_ = w.tensor("gate_proj.weight", {f, d});
    w_up_ = w.tensor("up_proj.weight", {f, d});
    w_down_ = w.tensor("down_proj.weight", {d, f});
    head_norm_ = w.tensor("norm.weight", {d});
  }

  ModelInfo info() const { return {1, c_.vocab_size, c_.max_seq_len, c_.d_model}; }

  std::vector<StateSpec> states() const {  // 3. what a sequence carries
    return kv_states(1, c_.n_kv_heads, c_.head_dim);
  }

  Tensor forward(Ops& op, const Step& step) const {  // 4. the steps; nothing is computed here
    Tensor x = op.embed(step.tokens, embed_);        // [T, D]
    op.scope("layers.0.attn");
    const Tensor a = op.rms_norm(x, attn_norm_, c_.norm_eps);                        // [T, D]
    const Tensor q = heads(op, step, op.linear(a, wq_), c_.n_heads);                 // [T, H, E]
    const Tensor k = heads(op, step, op.linear(a, wk_), c_.n_kv_heads);              // [T, G, E]
    const Tensor v = op.split_heads(op.linear(a, wv_), c_.n_kv_heads, c_.head_dim);  // [T, G, E]
    const Tensor y = op.attention(q, k, v, step.kv(0), step.positions,
                                  1.0 / std::sqrt(static_cast<double>(c_.head_dim)));
    x = op.add(x, op.linear(op.merge_heads(y), wo_));  // [T, D]
    op.scope("layers.0.ffn");
    const Tensor b = op.rms_norm(x, ffn_norm_, c_.norm_eps);                     // [T, D]
    const Tensor gated = op.swiglu(op.linear(b, w_gate_), op.linear(b, w_up_));  // [T, F]
    x = op.add(x, op.linear(gated, w_down_));                                    // [T, D]
    op.observe("layer_out.0", x);
    op.scope("head");
    x = op.take_rows(x, step.logit_rows);  // [R, D]
    x = op.rms_norm(x, head_norm_, c_.norm_eps);
    return op.linear(x, embed_);  // [R, V]; the head is the embedding
  }

 private:
  Tensor heads(Ops& op, const Step& step, Tensor x, int32_t n) const {
    return op.rope_half_split(op.split_heads(x, n, c_.head_dim), step.positions, c_.rope);
  }

  Config c_;
  Tensor embed_, attn_norm_, wq_, wk_, wv_, wo_, ffn_norm_, w_gate_, w_up_, w_down_, head_norm_;
};

}  // namespace dovetail::arch_template
DVT_EXPORT_ARCHITECTURE(dovetail::arch_template::Template, "template")
