// The decoder that most language models share, in blocks: sizes from the config, weights by Hugging
// Face's names, attention, gated feed-forward, and the layers around them.
//
// An architecture takes the blocks that its paper has and writes the rest in its own file. Which
// optional weights a layer has is said once, in DecoderParts; a step whose weight is not there is left
// out of the graph.
// Shapes: T tokens, D d_model, F d_ff, H n_heads, G n_kv_heads, E head_dim, V vocab_size.
#pragma once

#include <dovetail/arch.hpp>

#include <cmath>
#include <optional>
#include <string>
#include <vector>

namespace dovetail {

struct DecoderSizes {
  int32_t n_layers, d_model, d_ff, n_heads, n_kv_heads, head_dim;
  int64_t vocab_size, max_seq_len;
  double norm_eps;
  double attn_scale;   // of q . k
  bool norm_adds_one;  // norm weights are offsets from 1
  // The embedding is the output matrix. Where the file does not say, it is if there is no other.
  std::optional<bool> tied_head;
};

/// What a file means that leaves a key out.
struct DecoderDefaults {
  int64_t max_seq_len;
  int32_t head_dim = 0;  // 0 = d_model / n_heads
};

namespace decoder_detail {

// Faults between keys that are right one by one.
inline void check_heads(ConfigReader& in, const DecoderSizes& c, bool has_default) {
  const std::string heads = "\"num_attention_heads\" " + std::to_string(c.n_heads);
  if (!in.has("head_dim") && !has_default && c.d_model % c.n_heads != 0)
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

}  // namespace decoder_detail

/// The sizes, checked against each other. Ours on the left, the model file's key on the right.
inline DecoderSizes read_decoder_sizes(ConfigReader& in, const DecoderDefaults& defaults) {
  DecoderSizes c{};
  c.n_layers = in.i32("num_hidden_layers");
  c.d_model = in.i32("hidden_size");
  c.d_ff = in.i32("intermediate_size");
  c.n_heads = in.i32("num_attention_heads");
  c.n_kv_heads = in.i32_or("num_key_value_heads", c.n_heads);
  c.head_dim =
      in.i32_or("head_dim", defaults.head_dim > 0 ? defaults.head_dim : c.d_model / c.n_heads);
  c.vocab_size = in.i64("vocab_size");
  c.max_seq_len = in.i64_or("max_position_embeddings", defaults.max_seq_len);
  c.norm_eps = in.f64_or("rms_norm_eps", 1e-6, 0.0);
  if (in.has("tie_word_embeddings")) c.tied_head = in.flag_or("tie_word_embeddings", false);
  c.attn_scale = 1.0 / std::sqrt(static_cast<double>(c.head_dim));
  if (in.problems().empty()) decoder_detail::check_heads(in, c, defaults.head_dim > 0);
  return c;
}

/// Refuses a config that turns only a part of each head.
inline void require_whole_rotary(ConfigReader& in) {
  for (const Doc& at :
       {in.find("partial_rotary_factor"), in.find("rope_parameters")["partial_rotary_factor"],
        in.find("rope_scaling")["partial_rotary_factor"]})
    if (!at.is_null() && !(at.is_number() && at.as_float() == 1.0))
      in.problem(at, "\"partial_rotary_factor\" is " +
                         (at.is_number() ? std::to_string(at.as_float()) : at.kind_name()) +
                         ", this architecture has only 1");
}

/// The rotary embedding of whole heads, the same in all layers.
inline RopeTable read_head_rope(ConfigReader& in, int64_t head_dim, double default_theta) {
  require_whole_rotary(in);
  const Doc by_kind = in.find("rope_parameters");
  if (by_kind["full_attention"].is_map() || by_kind["sliding_attention"].is_map())
    in.problem(
        by_kind,
        "\"rope_parameters\" has a map for each kind of layer, this architecture has one for "
        "all layers");
  return read_rope(in, head_dim, default_theta);
}

/// Keys that a query of a layer sees, itself included; 0 = all before it.
struct LayerWindows {
  int64_t window = 0;
  int32_t first = 0;             // this layer and those after it have the window
  std::vector<bool> has_window;  // one a layer, instead of `first`; empty if the file has none

  int64_t of(int32_t layer) const {
    return (has_window.empty() ? layer >= first : has_window[layer]) ? window : 0;
  }
};

/// From "layer_types" where the file names each layer's kind, otherwise from layer `first` on.
inline LayerWindows read_layer_windows(ConfigReader& in, int32_t n_layers, int64_t window,
                                       int32_t first = 0) {
  LayerWindows out{window, first, {}};
  const Doc types = in.find("layer_types");
  if (types.is_null() || !in.problems().empty()) return out;
  if (!types.is_list() || types.size() != static_cast<uint64_t>(n_layers)) {
    in.problem(
        types,
        "\"layer_types\" is " +
            (types.is_list() ? "a list of " + std::to_string(types.size()) : types.kind_name()) +
            ", expected a list of \"num_hidden_layers\" " + std::to_string(n_layers) + " names");
    return out;
  }
  for (uint64_t i = 0; i < types.size(); ++i) {
    const Doc type = types.at(i);
    const std::string name = type.is_string() ? std::string(type.as_string()) : type.kind_name();
    out.has_window.push_back(window > 0 && name == "sliding_attention");
    if (out.has_window.back() || name == "full_attention") continue;
    in.problem(type, "\"layer_types\" has \"" + name + "\" for layer " + std::to_string(i) +
                         ", expected \"full_attention\", or \"sliding_attention\" in a model with "
                         "a sliding window (\"use_sliding_window\", \"sliding_window\")");
    break;
  }
  return out;
}

/// Windows of the models that ask for them: "use_sliding_window" true, from "max_window_layers" on.
inline LayerWindows read_optional_windows(ConfigReader& in, int32_t n_layers) {
  const bool has_window =
      in.flag_or("use_sliding_window", false) && !in.says_null("sliding_window");
  const int64_t window = has_window ? in.i64_or("sliding_window", 4096) : 0;
  const int32_t first = in.i32_or("max_window_layers", n_layers, 0);
  return read_layer_windows(in, n_layers, window, first);
}

/// The weights that some models have and others do not.
struct DecoderParts {
  bool qkv_bias = false, output_bias = false;  // of attention
  bool ffn_bias = false;
  bool head_norms = false;  // an RMSNorm on each head of q and k
  bool post_norms = false;  // an RMSNorm after attention and one after the feed-forward too
};

struct DecoderLayer {
  Tensor attn_norm, ffn_norm;            // [D], [D]
  Tensor attn_post_norm, ffn_post_norm;  // [D], [D]; if there
  Tensor wq, wk, wv, wo;                 // [H*E, D], [G*E, D], [G*E, D], [D, H*E]
  Tensor bq, bk, bv, bo;                 // [H*E], [G*E], [G*E], [D]; if there
  Tensor q_norm, k_norm;                 // [E], [E]; if there
  Tensor w_gate, w_up, w_down;           // [F, D], [F, D], [D, F]
  Tensor b_gate, b_up, b_down;           // [F], [F], [D]; if there
};

inline DecoderLayer bind_decoder_layer(Weights& w, const DecoderSizes& c, const DecoderParts& parts,
                                       const std::string& at) {
  const Dim d{c.d_model, "d_model"}, f{c.d_ff, "d_ff"}, e{c.head_dim, "head_dim"};
  const auto heads = [&c](const char* what, int32_t n) {
    return Dim{int64_t{n} * c.head_dim,
               what + (" " + std::to_string(n)) + " * head_dim " + std::to_string(c.head_dim)};
  };
  const Dim q = heads("n_heads", c.n_heads), kv = heads("n_kv_heads", c.n_kv_heads);
  DecoderLayer l;
  l.attn_norm = w.tensor(at + "input_layernorm.weight", {d});
  l.wq = w.tensor(at + "self_attn.q_proj.weight", {q, d});
  l.wk = w.tensor(at + "self_attn.k_proj.weight", {kv, d});
  l.wv = w.tensor(at + "self_attn.v_proj.weight", {kv, d});
  l.wo = w.tensor(at + "self_attn.o_proj.weight", {d, q});
  if (parts.qkv_bias) {
    l.bq = w.tensor(at + "self_attn.q_proj.bias", {q});
    l.bk = w.tensor(at + "self_attn.k_proj.bias", {kv});
    l.bv = w.tensor(at + "self_attn.v_proj.bias", {kv});
  }
  if (parts.output_bias) l.bo = w.tensor(at + "self_attn.o_proj.bias", {d});
  if (parts.head_norms) {
    l.q_norm = w.tensor(at + "self_attn.q_norm.weight", {e});
    l.k_norm = w.tensor(at + "self_attn.k_norm.weight", {e});
  }
  if (parts.post_norms) {
    l.attn_post_norm = w.tensor(at + "post_attention_layernorm.weight", {d});
    l.ffn_norm = w.tensor(at + "pre_feedforward_layernorm.weight", {d});
    l.ffn_post_norm = w.tensor(at + "post_feedforward_layernorm.weight", {d});
  } else {
    l.ffn_norm = w.tensor(at + "post_attention_layernorm.weight", {d});
  }
  l.w_gate = w.tensor(at + "mlp.gate_proj.weight", {f, d});
  l.w_up = w.tensor(at + "mlp.up_proj.weight", {f, d});
  l.w_down = w.tensor(at + "mlp.down_proj.weight", {d, f});
  if (parts.ffn_bias) {
    l.b_gate = w.tensor(at + "mlp.gate_proj.bias", {f});
    l.b_up = w.tensor(at + "mlp.up_proj.bias", {f});
    l.b_down = w.tensor(at + "mlp.down_proj.bias", {d});
  }
  return l;
}

/// x / rms(x) * weight, the weight as the model means it.
inline Tensor norm(Ops& op, const DecoderSizes& c, Tensor x, Tensor weight) {
  return op.rms_norm(x, weight, c.norm_eps, c.norm_adds_one);
}

/// The steps of one attention: project, norm where the layer has norms, rotate, attend, project back.
inline Tensor rotary_attention(Ops& op, const DecoderSizes& c, const DecoderLayer& w, Tensor x,
                               const Step& step, int32_t layer, const RopeTable& rope,
                               int64_t window) {
  Tensor q = op.split_heads(op.linear(x, w.wq, w.bq), c.n_heads, c.head_dim);     // [T, H, E]
  Tensor k = op.split_heads(op.linear(x, w.wk, w.bk), c.n_kv_heads, c.head_dim);  // [T, G, E]
  Tensor v = op.split_heads(op.linear(x, w.wv, w.bv), c.n_kv_heads, c.head_dim);  // [T, G, E]
  if (w.q_norm) q = norm(op, c, q, w.q_norm);
  q = op.rope_half_split(q, step.positions, rope);
  if (w.k_norm) k = norm(op, c, k, w.k_norm);
  k = op.rope_half_split(k, step.positions, rope);
  Tensor y =
      op.attention(q, k, v, step.kv(layer), step.positions, c.attn_scale, window);  // [T, H, E]
  return op.linear(op.merge_heads(y), w.wo, w.bo);                                  // [T, D]
}

/// SwiGLU: silu(gate) * up, projected back. Source: arXiv:2002.05202.
inline Tensor gated_feed_forward(Ops& op, const DecoderLayer& w, Tensor x) {
  const Tensor gated =
      op.swiglu(op.linear(x, w.w_gate, w.b_gate), op.linear(x, w.w_up, w.b_up));  // [T, F]
  return op.linear(gated, w.w_down, w.b_down);                                    // [T, D]
}

/// A decoder's weights, and what happens before and after its layers.
class Decoder {
 public:
  Decoder() = default;
  Decoder(ConfigReader& in, Weights& w, const DecoderSizes& sizes, const DecoderParts& parts)
      : sizes_(sizes) {
    const Dim v{sizes.vocab_size, "vocab_size"}, d{sizes.d_model, "d_model"};
    // Base exports have no prefix.
    const std::string root = w.has("embed_tokens.weight") ? "" : "model.";
    embed_ = w.tensor(root + "embed_tokens.weight", {v, d});
    for (int32_t i = 0; i < sizes.n_layers; ++i)
      layers_.push_back(
          bind_decoder_layer(w, sizes, parts, root + "layers." + std::to_string(i) + "."));
    final_norm_ = w.tensor(root + "norm.weight", {d});
    const bool tied = sizes.tied_head.value_or(!w.has("lm_head.weight"));
    if (tied && w.has("lm_head.weight"))
      in.note(
          "\"tie_word_embeddings\" is true: the embedding is the head, the checkpoint's "
          "lm_head.weight is not used");
    head_ = tied ? embed_ : w.tensor("lm_head.weight", {v, d});
  }

  ModelInfo info() const {
    return {sizes_.n_layers, sizes_.vocab_size, sizes_.max_seq_len, sizes_.d_model};
  }
  std::vector<StateSpec> states() const {
    return kv_states(sizes_.n_layers, sizes_.n_kv_heads, sizes_.head_dim);
  }

  const std::vector<DecoderLayer>& layers() const { return layers_; }

  Tensor embed(Ops& op, const Step& step) const { return op.embed(step.tokens, embed_); }  // [T, D]
  /// The last norm and the head: [T, D] -> [R, V].
  Tensor logits(Ops& op, const Step& step, Tensor x) const {
    op.scope("head");
    x = op.take_rows(x, step.logit_rows);  // only the rows that will be sampled
    return op.linear(norm(op, sizes_, x, final_norm_), head_);
  }

  /// x += attention(weights, norm(x), layer); x += feed_forward(norm(x)); then the head. Logits [R, V].
  template <class Attention>
  Tensor forward(Ops& op, const Step& step, const Attention& attention) const {
    Tensor x = embed(op, step);
    for (int32_t i = 0; i < sizes_.n_layers; ++i) {
      const DecoderLayer& w = layers_[i];
      const std::string name = "layers." + std::to_string(i);
      op.scope(name + ".attn");
      x = op.add(x, attention(w, norm(op, sizes_, x, w.attn_norm), i));
      op.scope(name + ".ffn");
      x = op.add(x, gated_feed_forward(op, w, norm(op, sizes_, x, w.ffn_norm)));
      op.observe("layer_out." + std::to_string(i), x);
    }
    return logits(op, step, x);
  }

 private:
  DecoderSizes sizes_{};
  Tensor embed_, final_norm_, head_;
  std::vector<DecoderLayer> layers_;
};

}  // namespace dovetail
