#include "config_document.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "json_text.hpp"

namespace dovetail::gguf {
namespace {

constexpr double kDefaultTheta = 10000.0;  // of files that do not say

// Keys of one architecture: "llama.block_count" by "block_count".
class Keys {
 public:
  Keys(const Metadata& metadata, std::string architecture)
      : metadata_(metadata), prefix_(std::move(architecture) + ".") {}

  std::optional<int64_t> integer(std::string_view key) const {
    return metadata_.integer(prefix_ + std::string(key));
  }
  std::optional<double> number(std::string_view key) const {
    return metadata_.number(prefix_ + std::string(key));
  }
  std::optional<std::string_view> string(std::string_view key) const {
    return metadata_.string(prefix_ + std::string(key));
  }
  bool has(std::string_view key) const { return metadata_.has(prefix_ + std::string(key)); }
  bool is_array(std::string_view key) const {
    const Value* v = metadata_.find(prefix_ + std::string(key));
    return v && v->type == ValueType::kArray;
  }
  /// A size: more than 0.
  int64_t size(std::string_view key) const {
    const std::optional<int64_t> v = integer(key);
    if (!v)
      refuse(metadata_.file(),
             "has no key " + quote(prefix_ + std::string(key)) + "; is it a model's file?");
    return checked(key, *v);
  }
  int64_t size_or(std::string_view key, int64_t fallback) const {
    const std::optional<int64_t> v = integer(key);
    return v ? checked(key, *v) : fallback;
  }

 private:
  int64_t checked(std::string_view key, int64_t v) const {
    if (v < 1) metadata_.refuse_value(prefix_ + std::string(key), "a whole number from 1 on");
    return v;
  }

  const Metadata& metadata_;
  std::string prefix_;
};

// Transformers' rule "llama3", which converters write out as a divisor of each frequency.
struct Llama3 {
  double factor, low, high, original;

  double divisor(double frequency) const {
    const double wavelength = 2.0 * std::numbers::pi / frequency;
    if (wavelength < original / high) return 1.0;
    if (wavelength > original / low) return factor;
    const double blend = (original / wavelength - low) / (high - low);
    return 1.0 / ((1.0 - blend) / factor + blend);
  }
};

// The rule whose divisors these are.
std::optional<Llama3> find_llama3(const std::vector<double>& divisors, double theta,
                                  double original) {
  const Llama3 rule{divisors.back(), 1.0, 4.0, original};
  const auto n = static_cast<double>(divisors.size());
  for (size_t i = 0; i < divisors.size(); ++i) {
    const double expected = rule.divisor(std::pow(theta, -static_cast<double>(i) / n));
    if (!(std::fabs(expected - divisors[i]) <= 1e-3 * expected)) return std::nullopt;
  }
  return rule;
}

void write_llama3(const Metadata& metadata, const Keys& keys, const std::vector<double>& divisors,
                  double theta, JsonText& out) {
  const bool is_plain =
      std::all_of(divisors.begin(), divisors.end(), [](double d) { return d == 1.0; });
  if (is_plain) return;
  std::optional<Llama3> rule;
  for (const double original :
       {static_cast<double>(keys.size_or("rope.scaling.original_context_length", 8192)), 8192.0})
    if (!rule) rule = find_llama3(divisors, theta, original);
  if (!rule)
    throw Error(metadata.file().name() +
                    ": tensor \"rope_freqs.weight\" scales the rotary embedding by a rule that is "
                    "not known; expected Llama 3's",
                DVT_EUNSUPPORTED);
  out.key("rope_scaling").begin_map().key("rope_type").string("llama3");
  out.key("factor").number(rule->factor);
  out.key("low_freq_factor").number(rule->low).key("high_freq_factor").number(rule->high);
  out.key("original_max_position_embeddings")
      .integer(static_cast<int64_t>(rule->original))
      .end_map();
}

void write_rope(const Metadata& metadata, const Keys& keys, const TensorFacts& facts,
                JsonText& out) {
  const double theta = keys.number("rope.freq_base").value_or(kDefaultTheta);
  out.key("rope_theta").number(theta);
  if (!facts.rope_factors.empty())
    return write_llama3(metadata, keys, facts.rope_factors, theta, out);

  const std::optional<double> old_factor = keys.number("rope.scale_linear");
  const std::string_view type =
      keys.string("rope.scaling.type").value_or(old_factor ? "linear" : "none");
  const double factor = keys.number("rope.scaling.factor").value_or(old_factor.value_or(1.0));
  if (type == "none" || (type == "linear" && factor == 1.0)) return;
  out.key("rope_scaling").begin_map().key("rope_type").string(type).key("factor").number(factor);
  if (const auto original = keys.integer("rope.scaling.original_context_length"))
    out.key("original_max_position_embeddings").integer(*original);
  if (type == "yarn") {
    if (const auto v = keys.number("rope.scaling.yarn_beta_fast")) out.key("beta_fast").number(*v);
    if (const auto v = keys.number("rope.scaling.yarn_beta_slow")) out.key("beta_slow").number(*v);
    // Here a factor on top of what yarn implies; there the whole of it.
    if (const auto v = keys.number("rope.scaling.attn_factor"); v && *v != 1.0)
      out.key("attention_factor").number(*v * (factor > 1.0 ? 0.1 * std::log(factor) + 1.0 : 1.0));
  }
  out.end_map();
}

struct Sizes {
  int64_t d_model, n_layers, n_heads;
  int64_t head_dim;  // 0: the file does not say, nor do the others
};

Sizes read_sizes(const Metadata& metadata, const Keys& keys) {
  Sizes s{keys.size("embedding_length"), keys.size("block_count"),
          keys.size("attention.head_count"), 0};
  s.head_dim =
      keys.size_or("attention.key_length", s.d_model % s.n_heads == 0 ? s.d_model / s.n_heads : 0);
  const int64_t v_dim = keys.size_or("attention.value_length", s.head_dim);
  if (v_dim != s.head_dim)
    throw Error(metadata.file().name() + ": has heads of " + std::to_string(s.head_dim) +
                    " for keys and of " + std::to_string(v_dim) +
                    " for values, which is not supported",
                DVT_EUNSUPPORTED);
  return s;
}

void write_sizes(const Keys& keys, const Sizes& s, const TensorFacts& facts, JsonText& out) {
  out.key("hidden_size").integer(s.d_model).key("num_hidden_layers").integer(s.n_layers);
  if (keys.has("feed_forward_length"))
    out.key("intermediate_size").integer(keys.size("feed_forward_length"));
  out.key("num_attention_heads").integer(s.n_heads);
  out.key("num_key_value_heads").integer(keys.size_or("attention.head_count_kv", s.n_heads));
  if (s.head_dim > 0) out.key("head_dim").integer(s.head_dim);
  const int64_t vocab_size =
      facts.vocab_size > 0 ? facts.vocab_size : keys.size_or("vocab_size", 0);
  if (vocab_size > 0) out.key("vocab_size").integer(vocab_size);
  if (const auto v = keys.number("attention.layer_norm_rms_epsilon"))
    out.key("rms_norm_eps").number(*v);
  if (keys.has("context_length"))
    out.key("max_position_embeddings").integer(keys.size("context_length"));
  out.key("tie_word_embeddings").flag(!facts.has_head);
  const int64_t rotary = keys.size_or("rope.dimension_count", s.head_dim);
  if (s.head_dim > 0 && rotary != s.head_dim)
    out.key("partial_rotary_factor")
        .number(static_cast<double>(rotary) / static_cast<double>(s.head_dim));
}

// As transformers calls it.
std::string model_type(const std::string& architecture, const Keys& keys) {
  if (architecture == "gemma3") return "gemma3_text";
  const bool has_experts = keys.integer("expert_count").value_or(0) > 0;
  return architecture == "llama" && has_experts ? "mixtral" : architecture;
}

// What the sizes say of gemma3: the file's own runtime takes it from them too.
void write_gemma3(const Keys& keys, const Sizes& s, JsonText& out) {
  constexpr int64_t kLayersOf27B = 62;
  constexpr int64_t kWindowedThenFull = 6;
  out.key("hidden_activation").string("gelu_pytorch_tanh");
  out.key("query_pre_attn_scalar")
      .integer(s.n_layers == kLayersOf27B ? s.d_model / s.n_heads : s.head_dim);
  out.key("rope_local_base_freq").number(keys.number("rope.freq_base_swa").value_or(kDefaultTheta));
  out.key("sliding_window").integer(keys.size_or("attention.sliding_window", 1024));
  out.key("sliding_window_pattern")
      .integer(keys.is_array("attention.sliding_window_pattern")
                   ? kWindowedThenFull
                   : keys.size_or("attention.sliding_window_pattern", kWindowedThenFull));
  if (const auto v = keys.number("final_logit_softcapping"))
    out.key("final_logit_softcapping").number(*v);
  out.key("norm_weights_include_one").flag(true);
}

void write_ids(const Metadata& metadata, JsonText& out) {
  for (const auto& [key, name] : {std::pair("tokenizer.ggml.bos_token_id", "bos_token_id"),
                                  std::pair("tokenizer.ggml.eos_token_id", "eos_token_id"),
                                  std::pair("tokenizer.ggml.padding_token_id", "pad_token_id")})
    if (const auto id = metadata.integer(key)) out.key(name).integer(*id);
}

}  // namespace

std::string architecture_of(const Metadata& metadata) {
  const auto name = metadata.string("general.architecture");
  if (!name || name->empty())
    refuse(metadata.file(),
           "has no key \"general.architecture\", expected the name of one; is it a model's file?");
  return std::string(*name);
}

std::string config_json(const Metadata& metadata, const TensorFacts& facts) {
  const std::string name = architecture_of(metadata);
  const Keys keys(metadata, name);
  const Sizes sizes = read_sizes(metadata, keys);
  JsonText out;
  out.begin_map().key("model_type").string(model_type(name, keys));
  write_sizes(keys, sizes, facts, out);
  write_rope(metadata, keys, facts, out);
  if (name == "gemma3") {
    write_gemma3(keys, sizes, out);
  } else {
    out.key("hidden_act").string("silu");
    if (name == "llama" && keys.has("attention.sliding_window"))
      out.key("sliding_window").integer(keys.size("attention.sliding_window"));
  }
  if (facts.attention_bias && name != "qwen2") out.key("attention_bias").flag(true);
  if (facts.mlp_bias) out.key("mlp_bias").flag(true);
  write_ids(metadata, out);
  return out.end_map().text();
}

}  // namespace dovetail::gguf
