// repetition_penalty: ids of the prompt and of what was generated become less likely: a positive
// logit is divided by the penalty, a negative one multiplied; once, however often the id occurred.
// Source: Keskar et al. 2019, arXiv:1909.05858; counts as transformers does.
#include <dovetail/token_counts.hpp>

namespace dovetail::repetition_penalty {

class RepetitionPenalty {
 public:
  static constexpr std::array params = {
      number_param("repetition_penalty", "1.0",
                   "over 1 makes ids of the prompt and the text so far less likely; 1 is off", 0.0,
                   100.0, DVT_PARAM_MIN_EXCLUSIVE)};

  explicit RepetitionPenalty(const StageOpen& in)
      : penalty_(in.defaults.number("repetition_penalty")) {}

  struct Request : TokenCounts {
    Request(const RepetitionPenalty& stage, const RequestOpen& in)
        : penalty(in.overrides.number("repetition_penalty", stage.penalty_)) {
      if (penalty != 1.0) start(in.prompt);
    }
    void apply(Candidates& c) {
      if (penalty == 1.0) return;
      c.change(counts(), [this](dvt_cand& x, uint64_t) {
        x.logit = static_cast<float>(x.logit > 0 ? x.logit / penalty : x.logit * penalty);
      });
    }
    uint32_t effect() const { return penalty == 1.0 ? DVT_EFFECT_KEEPS_ARGMAX : DVT_EFFECT_ANY; }

    double penalty;
  };

 private:
  double penalty_;
};

}  // namespace dovetail::repetition_penalty
DVT_EXPORT_SAMPLER(dovetail::repetition_penalty::RepetitionPenalty)
