// Llama decoder: grouped-query attention with rotary positions, then SwiGLU. Llama 2 and 3.x with its
// rope scaling, and models of the same steps, as SmolLM2.
// Source: arXiv:2302.13971, arXiv:2407.21783. Held to tests/golden/llama* (their README names the
// reference). The steps are those of dovetail/decoder.hpp.
#include <dovetail/decoder.hpp>

namespace dovetail::llama {

struct Config {
  DecoderSizes sizes;
  LayerWindows windows;
  bool attention_bias, mlp_bias;
  RopeTable rope;
};

Config read_config(ConfigReader& in) {  // ours on the left, the model file's key on the right
  Config c{};
  c.sizes = read_decoder_sizes(in, {.max_seq_len = 2048});
  c.attention_bias = in.flag_or("attention_bias", false);
  c.mlp_bias = in.flag_or("mlp_bias", false);
  in.require_string("hidden_act", "silu", "silu");
  if (in.flag_or("rope_interleaved", false))
    in.problem(in.find("rope_interleaved"),
               "\"rope_interleaved\" is true, this architecture rotates halves of a head");
  // GGUF files of Mistral models say "llama"; Hugging Face's have no window here.
  const int64_t window = in.i64_or("sliding_window", 0, 0);
  c.windows = read_layer_windows(in, c.sizes.n_layers, window);
  c.rope = read_head_rope(in, c.sizes.head_dim, 10000.0);
  return c;
}

class Llama {
 public:
  Llama(ConfigReader& in, Weights& w) : c_(read_config(in)) {
    if (!in.problems().empty()) return;
    decoder_ = Decoder(
        in, w, c_.sizes,
        {.qkv_bias = c_.attention_bias, .output_bias = c_.attention_bias, .ffn_bias = c_.mlp_bias});
  }

  ModelInfo info() const { return decoder_.info(); }
  std::vector<StateSpec> states() const { return decoder_.states(); }

  Tensor forward(Ops& op, const Step& step) const {
    return decoder_.forward(op, step, [&](const DecoderLayer& w, Tensor x, int32_t layer) {
      return rotary_attention(op, c_.sizes, w, x, step, layer, c_.rope, c_.windows.of(layer));
    });
  }

 private:
  Config c_;
  Decoder decoder_;
};

}  // namespace dovetail::llama
DVT_EXPORT_ARCHITECTURE(dovetail::llama::Llama, "llama")
