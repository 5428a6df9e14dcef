// frequency_penalty: subtracts a number from every generated id, times how often it was generated.
// Source: the OpenAI API reference, "frequency_penalty".
#include <dovetail/token_counts.hpp>

namespace dovetail::frequency_penalty {

class FrequencyPenalty {
 public:
  static constexpr std::array params = {number_param(
      "frequency_penalty", "0.0",
      "subtracted from the logit of an id for each time it was generated; 0 is off", -2.0, 2.0)};

  explicit FrequencyPenalty(const StageOpen& in)
      : penalty_(in.defaults.number("frequency_penalty")) {}

  struct Request : TokenCounts {
    Request(const FrequencyPenalty& stage, const RequestOpen& in)
        : penalty(in.overrides.number("frequency_penalty", stage.penalty_)) {}

    void apply(Candidates& c) {
      if (penalty == 0.0) return;
      c.change(counts(), [this](dvt_cand& x, uint64_t count) {
        x.logit = static_cast<float>(x.logit - penalty * static_cast<double>(count));
      });
    }
    uint32_t effect() const { return penalty == 0.0 ? DVT_EFFECT_KEEPS_ARGMAX : DVT_EFFECT_ANY; }

    double penalty;
  };

 private:
  double penalty_;
};

}  // namespace dovetail::frequency_penalty
DVT_EXPORT_SAMPLER(dovetail::frequency_penalty::FrequencyPenalty)
