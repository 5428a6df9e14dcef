// Qwen2 and Qwen2.5 dense decoder: grouped-query attention with biases on q, k and v, then SwiGLU.
// Source: arXiv:2407.10671, arXiv:2412.15115. Held to tests/golden/qwen2* (their README names the
// reference). The steps are those of dovetail/decoder.hpp.
#include <dovetail/decoder.hpp>

namespace dovetail::qwen2 {

struct Config {
  DecoderSizes sizes;
  LayerWindows windows;
  RopeTable rope;
};

Config read_config(ConfigReader& in) {  // ours on the left, the model file's key on the right
  Config c{};
  c.sizes = read_decoder_sizes(in, {.max_seq_len = 32768});
  in.require_string("hidden_act", "silu", "silu");
  c.windows = read_optional_windows(in, c.sizes.n_layers);
  c.rope = read_head_rope(in, c.sizes.head_dim, 10000.0);
  return c;
}

class Qwen2 {
 public:
  Qwen2(ConfigReader& in, Weights& w) : c_(read_config(in)) {
    if (!in.problems().empty()) return;
    decoder_ = Decoder(in, w, c_.sizes, {.qkv_bias = true});
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

}  // namespace dovetail::qwen2
DVT_EXPORT_ARCHITECTURE(dovetail::qwen2::Qwen2, "qwen2")
