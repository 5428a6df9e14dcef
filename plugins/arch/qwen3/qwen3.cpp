// Qwen3 dense decoder: grouped-query attention with a per-head RMSNorm on q and k, then SwiGLU.
// Source: arXiv:2505.09388. Held to tests/golden/qwen3* (their README names the reference).
// Shapes: T tokens, D d_model, F d_ff, H n_heads, G n_kv_heads, E head_dim, V vocab_size.
#include <dovetail/arch.hpp>

#include <cmath>

namespace dovetail::qwen3 {

struct Config {
  int32_t n_layers, d_model, d_ff, n_heads, n_kv_heads, head_dim;
  int64_t vocab_size, max_seq_len;
  int32_t first_window_layer;    // this layer and those after it see only `window` keys
  int64_t window;                // 0 = no sliding window
  std::vector<bool> has_window;  // one a layer, instead of first_window_layer; empty if not given
  double norm_eps;
  bool attention_bias, tied_head;
  RopeTable rope;
};

// Faults between keys that are right one by one.
void check_heads(ConfigReader& in, const Config& c) {
  const std::string heads = "\"num_attention_heads\" " + std::to_string(c.n_heads);
  if (!in.has("head_dim") && c.d_model % c.n_heads != 0)
    in.problem(in.find("hidden_size"), "\"head_dim\" is missing and \"hidden_size\" " +
                                           std::to_string(c.d_model) + " is not a multiple of " +
                                           heads);
  else if (c.head_dim % 2 != 0)
    in.problem(in.find("head_dim"),
               "\"head_dim\" is " + std::to_string(c.head_dim) + ", expected an even number");
  if (c.n_heads % c.n_kv_heads != 0)
    in.problem(
        in.find("num_attention_heads"),
        heads + " is not a multiple of \"num_key_value_heads\" " + std::to_string(c.n_kv_heads));
}

// Newer files name each layer's kind; the index decides in those that do not.
std::vector<bool> read_layer_types(ConfigReader& in, int32_t n_layers, int64_t window) {
  const Doc types = in.find("layer_types");
  if (types.is_null()) return {};
  std::vector<bool> has_window;
  if (!types.is_list() || types.size() != static_cast<uint64_t>(n_layers)) {
    in.problem(
        types,
        "\"layer_types\" is " +
            (types.is_list() ? "a list of " + std::to_string(types.size()) : types.kind_name()) +
            ", expected a list of \"num_hidden_layers\" " + std::to_string(n_layers) + " names");
    return has_window;
  }
  for (uint64_t i = 0; i < types.size(); ++i) {
    const Doc type = types.at(i);
    const std::string name = type.is_string() ? std::string(type.as_string()) : type.kind_name();
    has_window.push_back(window > 0 && name == "sliding_attention");
    if (has_window.back() || name == "full_attention") continue;
    in.problem(type, "\"layer_types\" has \"" + name + "\" for layer " + std::to_string(i) +
                         ", expected \"full_attention\", or \"sliding_attention\" with "
                         "\"use_sliding_window\" true");
    break;
  }
  return has_window;
}

Config read_config(ConfigReader& in) {  // ours on the left, the model file's key on the right
  Config c{};
  c.n_layers = in.i32("num_hidden_layers");
  c.d_model = in.i32("hidden_size");
  c.d_ff = in.i32("intermediate_size");
  c.n_heads = in.i32("num_attention_heads");
  c.n_kv_heads = in.i32_or("num_key_value_heads", c.n_heads);
  c.head_dim = in.i32_or("head_dim", c.d_model / c.n_heads);
  c.vocab_size = in.i64("vocab_size");
  c.max_seq_len = in.i64_or("max_position_embeddings", 32768);
  c.norm_eps = in.f64_or("rms_norm_eps", 1e-6, 0.0);
  c.attention_bias = in.flag_or("attention_bias", false);
  c.tied_head = in.flag_or("tie_word_embeddings", false);
  c.window = in.flag_or("use_sliding_window", false) ? in.i64_or("sliding_window", 4096) : 0;
  c.first_window_layer = in.i32_or("max_window_layers", c.n_layers, 0);
  in.require_string("hidden_act", "silu", "silu");
  if (in.problems().empty()) {
    c.has_window = read_layer_types(in, c.n_layers, c.window);
    check_heads(in, c);
  }
  c.rope = read_rope(in, c.head_dim, 1e6);
  return c;
}

struct Layer {
  Tensor attn_norm, q_norm, k_norm, ffn_norm;  // [D], [E], [E], [D]
  Tensor wq, wk, wv, wo;                       // [H*E, D], [G*E, D], [G*E, D], [D, H*E]
  Tensor bq, bk, bv, bo;                       // [H*E], [G*E], [G*E], [D]; only with attention_bias
  Tensor w_gate, w_up, w_down;                 // [F, D], [F, D], [D, F]
};

Layer bind_layer(Weights& w, const Config& c, const std::string& at) {
  const Dim d{c.d_model, "d_model"}, f{c.d_ff, "d_ff"}, e{c.head_dim, "head_dim"};
  const Dim q{int64_t{c.n_heads} * c.head_dim, "n_heads * head_dim"};
  const Dim kv{int64_t{c.n_kv_heads} * c.head_dim, "n_kv_heads * head_dim"};
  Layer l;
  l.attn_norm = w.tensor(at + "input_layernorm.weight", {d});
  l.wq = w.tensor(at + "self_attn.q_proj.weight", {q, d});
  l.wk = w.tensor(at + "self_attn.k_proj.weight", {kv, d});
  l.wv = w.tensor(at + "self_attn.v_proj.weight", {kv, d});
  l.wo = w.tensor(at + "self_attn.o_proj.weight", {d, q});
  if (c.attention_bias) {
    l.bq = w.tensor(at + "self_attn.q_proj.bias", {q});
    l.bk = w.tensor(at + "self_attn.k_proj.bias", {kv});
    l.bv = w.tensor(at + "self_attn.v_proj.bias", {kv});
    l.bo = w.tensor(at + "self_attn.o_proj.bias", {d});
  }
  l.q_norm = w.tensor(at + "self_attn.q_norm.weight", {e});
  l.k_norm = w.tensor(at + "self_attn.k_norm.weight", {e});
  l.ffn_norm = w.tensor(at + "post_attention_layernorm.weight", {d});
  l.w_gate = w.tensor(at + "mlp.gate_proj.weight", {f, d});
  l.w_up = w.tensor(at + "mlp.up_proj.weight", {f, d});
  l.w_down = w.tensor(at + "mlp.down_proj.weight", {d, f});
  return l;
}

Tensor attention(Ops& op, const Config& c, const Layer& w, Tensor x, const Step& step,
                 int32_t layer) {
  Tensor q = op.split_heads(op.linear(x, w.wq, w.bq), c.n_heads, c.head_dim);     // [T, H, E]
  Tensor k = op.split_heads(op.linear(x, w.wk, w.bk), c.n_kv_heads, c.head_dim);  // [T, G, E]
  Tensor v = op.split_heads(op.linear(x, w.wv, w.bv), c.n_kv_heads, c.head_dim);  // [T, G, E]
  q = op.rope_half_split(op.rms_norm(q, w.q_norm, c.norm_eps), step.positions, c.rope);
  k = op.rope_half_split(op.rms_norm(k, w.k_norm, c.norm_eps), step.positions, c.rope);
  const double scale = 1.0 / std::sqrt(static_cast<double>(c.head_dim));
  const bool has_window =
      c.has_window.empty() ? layer >= c.first_window_layer : c.has_window[layer];
  Tensor y = op.attention(q, k, v, step.kv(layer), step.positions, scale,
                          has_window ? c.window : 0);  // [T, H, E]
  return op.linear(op.merge_heads(y), w.wo, w.bo);     // [T, D]
}

Tensor feed_forward(Ops& op, const Layer& w, Tensor x) {
  return op.linear(op.swiglu(op.linear(x, w.w_gate), op.linear(x, w.w_up)), w.w_down);  // [T, D]
}

class Qwen3 {
 public:
  Qwen3(ConfigReader& in, Weights& w) : config_(read_config(in)) {
    if (!in.problems().empty()) return;
    const Dim v{config_.vocab_size, "vocab_size"}, d{config_.d_model, "d_model"};
    // Base exports have no prefix.
    const std::string root = w.has("embed_tokens.weight") ? "" : "model.";
    embed_ = w.tensor(root + "embed_tokens.weight", {v, d});
    for (int32_t i = 0; i < config_.n_layers; ++i)
      layers_.push_back(bind_layer(w, config_, root + "layers." + std::to_string(i) + "."));
    final_norm_ = w.tensor(root + "norm.weight", {d});
    if (config_.tied_head && w.has("lm_head.weight"))
      in.note(
          "\"tie_word_embeddings\" is true: the embedding is the head, the checkpoint's "
          "lm_head.weight is not used");
    head_ = config_.tied_head ? embed_ : w.tensor("lm_head.weight", {v, d});
  }

  ModelInfo info() const {
    return {config_.n_layers, config_.vocab_size, config_.max_seq_len, config_.d_model};
  }
  std::vector<StateSpec> states() const {
    return kv_states(config_.n_layers, config_.n_kv_heads, config_.head_dim);
  }

  Tensor forward(Ops& op, const Step& step) const {
    Tensor x = op.embed(step.tokens, embed_);  // [T, D]
    for (int32_t i = 0; i < config_.n_layers; ++i) {
      const Layer& w = layers_[i];
      const std::string name = "layers." + std::to_string(i);
      op.scope(name + ".attn");
      x = op.add(x,
                 attention(op, config_, w, op.rms_norm(x, w.attn_norm, config_.norm_eps), step, i));
      op.scope(name + ".ffn");
      x = op.add(x, feed_forward(op, w, op.rms_norm(x, w.ffn_norm, config_.norm_eps)));
      op.observe("layer_out." + std::to_string(i), x);
    }
    op.scope("head");
    x = op.take_rows(x, step.logit_rows);  // only the rows that will be sampled
    return op.linear(op.rms_norm(x, final_norm_, config_.norm_eps), head_);
  }

 private:
  Config config_;
  Tensor embed_, final_norm_, head_;
  std::vector<Layer> layers_;
};

}  // namespace dovetail::qwen3
DVT_EXPORT_ARCHITECTURE(dovetail::qwen3::Qwen3, "qwen3")
