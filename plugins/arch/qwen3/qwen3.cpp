// Qwen3 dense decoder: grouped-query attention with a per-head RMSNorm on q and k, then SwiGLU.
// Source: arXiv:2505.09388. Held to tests/golden/qwen3* (their README names the reference).
// The steps are those of dovetail/decoder.hpp.
#include <dovetail/decoder.hpp>

namespace dovetail::qwen3 {

struct Config {
  DecoderSizes sizes;
  LayerWindows windows;
  bool attention_bias;
  RopeTable rope;
};

Config read_config(ConfigReader& in) {  // ours on the left, the model file's key on the right
  Config c{};
  c.sizes = read_decoder_sizes(in, {.max_seq_len = 32768});
  c.attention_bias = in.flag_or("attention_bias", false);
  in.require_string("hidden_act", "silu", "silu");
  c.windows = read_optional_windows(in, c.sizes.n_layers);
  c.rope = read_head_rope(in, c.sizes.head_dim, 1e6);
  return c;
}

class Qwen3 {
 public:
  Qwen3(ConfigReader& in, Weights& w) : c_(read_config(in)) {
    if (!in.problems().empty()) return;
    decoder_ = Decoder(
        in, w, c_.sizes,
        {.qkv_bias = c_.attention_bias, .output_bias = c_.attention_bias, .head_norms = true});
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

}  // namespace dovetail::qwen3
DVT_EXPORT_ARCHITECTURE(dovetail::qwen3::Qwen3, "qwen3")
