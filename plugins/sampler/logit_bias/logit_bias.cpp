// logit_bias: adds a number to the logits of listed ids. -100 bans an id, 100 leaves only the ids so
// marked, however far apart the logits are; between, it is plain addition.
// Source: the OpenAI API reference, "logit_bias".
#include <dovetail/sampler.hpp>

#include <charconv>

namespace dovetail::logit_bias {

constexpr float kBan = -100;
constexpr float kOnly = 100;
constexpr float kNever = -std::numeric_limits<float>::infinity();

using Bias = std::map<uint32_t, float>;

Bias read(Doc map, uint32_t vocab_size) {
  const auto refuse = [](std::string_view key, const std::string& why, Doc at) {
    throw Error("logit_bias: key \"" + std::string(key) + "\" " + why, DVT_EINVAL, at.where());
  };
  if (!map.is_null() && !map.is_map())
    throw Error(
        std::string("logit_bias: got ") + map.kind_name() + ", expected a map of token id to bias",
        DVT_EINVAL, map.where());
  Bias bias;
  for (uint64_t i = 0; i < map.size(); ++i) {
    const auto [key, value] = map.entry(i);
    uint32_t id = 0;
    const char* const key_end = key.data() + key.size();
    const auto [end, error] = std::from_chars(key.data(), key_end, id);
    if (error != std::errc() || end != key_end || id >= vocab_size)
      refuse(key, "is not a token id, expected 0 to " + std::to_string(vocab_size - 1), value);
    if (!value.is_number())
      refuse(key, std::string("has ") + value.kind_name() + ", expected a number from -100 to 100",
             value);
    const double number = value.as_float();
    if (!(number >= kBan && number <= kOnly))
      refuse(key, "has " + std::to_string(number) + ", expected a number from -100 to 100", value);
    if (!bias.emplace(id, static_cast<float>(number)).second)
      refuse(key, "names an id that another key names too", value);
  }
  return bias;
}

class LogitBias {
 public:
  static constexpr std::array params = {
      param(DVT_PARAM_MAP, "logit_bias", "",
            "map of token id to a number from -100 (never) to 100 (only these)")};

  explicit LogitBias(const StageOpen& in)
      : vocab_size_(in.vocab_size), bias_(read(in.defaults.doc()["logit_bias"], in.vocab_size)) {}

  struct Request {
    Request(const LogitBias& stage, const RequestOpen& in) {
      const Doc own = in.overrides.doc()["logit_bias"];
      bias = own.is_null() ? stage.bias_ : read(own, stage.vocab_size_);
      for (const auto& entry : bias) {
        has_ban |= entry.second == kBan;
        has_only |= entry.second == kOnly;
      }
    }
    void apply(Candidates& c) {
      if (has_only) c.keep_if([this](const dvt_cand& x) { return is_only(x.id); });
      c.change(bias, [](dvt_cand& x, float value) {
        x.logit = value == kBan ? kNever : x.logit + value;
      });
      if (has_ban && !c.keep_if([](const dvt_cand& x) { return x.logit > kNever; }))
        throw Error("logit_bias: -100 bans every token that could come next; allow at least one");
    }
    uint32_t effect() const { return bias.empty() ? DVT_EFFECT_KEEPS_ARGMAX : DVT_EFFECT_ANY; }
    bool is_only(uint32_t id) const {
      const auto it = bias.find(id);
      return it != bias.end() && it->second == kOnly;
    }

    Bias bias;
    bool has_ban = false, has_only = false;
  };

 private:
  uint32_t vocab_size_;
  Bias bias_;
};

}  // namespace dovetail::logit_bias
DVT_EXPORT_SAMPLER(dovetail::logit_bias::LogitBias)
