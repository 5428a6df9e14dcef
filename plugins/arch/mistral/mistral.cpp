// Mistral decoder: grouped-query attention, in a sliding window where the config has one, then SwiGLU.
// Source: arXiv:2310.06825. Held to tests/golden/mistral (its README names the reference). The steps
// are those of dovetail/decoder.hpp.
#include <dovetail/decoder.hpp>

namespace dovetail::mistral {

struct Config {
  DecoderSizes sizes;
  int64_t window;  // of every layer; 0 = none
  RopeTable rope;
};

Config read_config(ConfigReader& in) {  // ours on the left, the model file's key on the right
  Config c{};
  c.sizes = read_decoder_sizes(in, {.max_seq_len = 131072});
  in.require_string("hidden_act", "silu", "silu");
  c.window = in.i64_or("sliding_window", in.says_null("sliding_window") ? 0 : 4096);
  if (in.has("layer_types"))
    in.problem(
        in.find("layer_types"),
        "\"layer_types\" is given, but all layers of this architecture are alike; a model of "
        "another \"model_type\"?");
  c.rope = read_head_rope(in, c.sizes.head_dim, 10000.0);
  return c;
}

class Mistral {
 public:
  Mistral(ConfigReader& in, Weights& w) : c_(read_config(in)) {
    if (!in.problems().empty()) return;
    decoder_ = Decoder(in, w, c_.sizes, {});
  }

  ModelInfo info() const { return decoder_.info(); }
  std::vector<StateSpec> states() const { return decoder_.states(); }

  Tensor forward(Ops& op, const Step& step) const {
    return decoder_.forward(op, step, [&](const DecoderLayer& w, Tensor x, int32_t layer) {
      return rotary_attention(op, c_.sizes, w, x, step, layer, c_.rope, c_.window);
    });
  }

 private:
  Config c_;
  Decoder decoder_;
};

}  // namespace dovetail::mistral
DVT_EXPORT_ARCHITECTURE(dovetail::mistral::Mistral, "mistral")
