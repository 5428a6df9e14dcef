// Gemma 3 decoder, text only: norms before and after each step, a norm on each head of q and k, GeGLU,
// and layers that see a window between layers that see everything, each kind with its own rotary base.
// Source: arXiv:2503.19786. Held to tests/golden/gemma3 (its README names the reference). Sizes,
// weights and attention are those of dovetail/decoder.hpp.
#include <dovetail/decoder.hpp>

namespace dovetail::gemma3 {

struct Config {
  DecoderSizes sizes;
  LayerWindows windows;
  int32_t pattern;  // without "layer_types": each pattern-th layer sees everything
  bool attention_bias;
  RopeTable rope, local_rope;  // of layers that see everything, of layers with a window

  int64_t window(int32_t layer) const {
    if (!windows.has_window.empty()) return windows.of(layer);
    return (int64_t{layer} + 1) % pattern == 0 ? 0 : windows.window;
  }
};

// Newer files have both under "rope_parameters"; older ones scale only the layers that see everything.
void read_ropes(ConfigReader& in, Config& c) {
  const Doc both = in.find("rope_parameters");
  if (!both.is_null() && (!both.is_map() || !both["rope_type"].is_null()))
    in.problem(both, "\"rope_parameters\" is " +
                         std::string(both.is_map() ? "one set" : both.kind_name()) +
                         ", expected a map of \"full_attention\" and \"sliding_attention\"");
  const auto read = [&](Doc dict, const char* key, double default_theta) {
    const double theta = rope_detail::value(in, dict, "rope_theta", in.f64_or(key, default_theta));
    if (theta > 0.0) return make_rope(in, dict, theta, c.sizes.head_dim);
    in.problem(in.find(key), ConfigReader::quoted(key) + " is " + std::to_string(theta) +
                                 ", expected a positive number");
    return RopeTable{};
  };
  const Doc full = both.is_map() ? both["full_attention"] : in.find("rope_scaling");
  if (!full.is_null() && !full.is_map())
    in.problem(full, "\"rope_scaling\" is " + std::string(full.kind_name()) + ", expected a map");
  c.rope = read(full, "rope_theta", 1e6);
  c.local_rope = read(both["sliding_attention"], "rope_local_base_freq", 1e4);
}

Config read_config(ConfigReader& in) {  // ours on the left, the model file's key on the right
  Config c{};
  c.sizes = read_decoder_sizes(in, {.max_seq_len = 131072, .head_dim = 256});
  c.sizes.attn_scale = 1.0 / std::sqrt(in.f64_or("query_pre_attn_scalar", 256.0, 1e-6));
  c.sizes.norm_adds_one = !in.flag_or("norm_weights_include_one", false);  // GGUF files do
  c.attention_bias = in.flag_or("attention_bias", false);
  in.require_string("hidden_activation", "gelu_pytorch_tanh", "gelu_pytorch_tanh");
  for (const char* key : {"final_logit_softcapping", "attn_logit_softcapping"})
    if (in.has(key))
      in.problem(in.find(key), ConfigReader::quoted(key) +
                                   " is given, expected null: this "
                                   "architecture caps no logits");
  if (in.flag_or("use_bidirectional_attention", false))
    in.problem(in.find("use_bidirectional_attention"),
               "\"use_bidirectional_attention\" is true, this architecture looks only back");
  c.pattern = in.i32_or("sliding_window_pattern", 6);
  const bool has_window = !in.says_null("sliding_window");
  if (!has_window && !in.has("layer_types"))
    in.problem({},
               "\"sliding_window\" is null and \"layer_types\" is missing, expected one of them");
  c.windows =
      read_layer_windows(in, c.sizes.n_layers, has_window ? in.i64_or("sliding_window", 4096) : 0);
  require_whole_rotary(in);
  read_ropes(in, c);
  return c;
}

Tensor feed_forward(Ops& op, const DecoderLayer& w, Tensor x) {
  const Tensor gate = op.gelu_tanh(op.linear(x, w.w_gate));        // [T, F]
  return op.linear(op.mul(gate, op.linear(x, w.w_up)), w.w_down);  // [T, D]
}

class Gemma3 {
 public:
  Gemma3(ConfigReader& in, Weights& w) : c_(read_config(in)) {
    if (!in.problems().empty()) return;
    decoder_ = Decoder(in, w, c_.sizes,
                       {.qkv_bias = c_.attention_bias,
                        .output_bias = c_.attention_bias,
                        .head_norms = true,
                        .post_norms = true});
  }

  ModelInfo info() const { return decoder_.info(); }
  std::vector<StateSpec> states() const { return decoder_.states(); }

  Tensor forward(Ops& op, const Step& step) const {
    const DecoderSizes& s = c_.sizes;
    Tensor x = op.scale(decoder_.embed(op, step), std::sqrt(static_cast<double>(s.d_model)));
    for (int32_t i = 0; i < s.n_layers; ++i) {
      const DecoderLayer& w = decoder_.layers()[i];
      const int64_t window = c_.window(i);
      const std::string name = "layers." + std::to_string(i);
      op.scope(name + ".attn");
      const Tensor a = rotary_attention(op, s, w, norm(op, s, x, w.attn_norm), step, i,
                                        window > 0 ? c_.local_rope : c_.rope, window);
      x = op.add(x, norm(op, s, a, w.attn_post_norm));
      op.scope(name + ".ffn");
      const Tensor f = feed_forward(op, w, norm(op, s, x, w.ffn_norm));
      x = op.add(x, norm(op, s, f, w.ffn_post_norm));
      op.observe("layer_out." + std::to_string(i), x);
    }
    return decoder_.logits(op, step, x);
  }

 private:
  Config c_;
  Decoder decoder_;
};

}  // namespace dovetail::gemma3
DVT_EXPORT_ARCHITECTURE(dovetail::gemma3::Gemma3, "gemma3_text")
