// logit_bias: adds a number to the logits of listed ids, before everything that follows, greedy too.
#include <dovetail/sampler.hpp>

#include <charconv>

namespace dovetail::logit_bias {

constexpr double kLimit = 100.0;

using Bias = std::vector<std::pair<uint32_t, float>>;

Bias read(Doc map, uint32_t vocab_size) {
  Bias bias;
  for (uint64_t i = 0; i < map.size(); ++i) {
    const auto [key, value] = map.entry(i);
    uint32_t id = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc() || end != key.data() + key.size() || id >= vocab_size)
      throw Error("logit_bias: \"" + std::string(key) + "\" is not an id of the vocabulary (0 to " + std::to_string(vocab_size - 1) + ")",
                  DVT_EINVAL, value.where());
    if (!value.is_number() || !(std::abs(value.as_float()) <= kLimit))
      throw Error("logit_bias: the bias of id " + std::string(key) + " is not a number from -100 to 100", DVT_EINVAL, value.where());
    bias.emplace_back(id, static_cast<float>(value.as_float()));
  }
  return bias;
}

class LogitBias {
 public:
  static constexpr std::array params = {param(DVT_PARAM_MAP, "logit_bias", "", "map of id to a number from -100 to 100 added to its logit")};

  explicit LogitBias(const StageOpen& in) : vocab_size_(in.vocab_size), bias_(read(in.defaults.doc()["logit_bias"], in.vocab_size)) {}

  struct Request {
    Request(const LogitBias& stage, const RequestOpen& in) {
      const Doc own = in.overrides.doc()["logit_bias"];
      bias = own.is_null() ? stage.bias_ : read(own, stage.vocab_size_);
    }
    void apply(Candidates& c) {
      for (const auto& [id, value] : bias)
        if (dvt_cand* x = c.find(id)) x->logit += value;
      if (!bias.empty()) c.logits_changed();
    }
    Bias bias;
  };

 private:
  uint32_t vocab_size_;
  Bias bias_;
};

}  // namespace dovetail::logit_bias
DVT_EXPORT_SAMPLER(dovetail::logit_bias::LogitBias)
