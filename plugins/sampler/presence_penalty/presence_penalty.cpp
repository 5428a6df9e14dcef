// presence_penalty: subtracts a number once from every id that was generated (not from the prompt's).
// Source: the OpenAI API reference, "presence_penalty".
#include <dovetail/token_counts.hpp>

namespace dovetail::presence_penalty {

class PresencePenalty {
 public:
  static constexpr std::array params = {
      number_param("presence_penalty", "0.0",
                   "subtracted from the logit of ids generated before; 0 is off", -2.0, 2.0)};

  explicit PresencePenalty(const StageOpen& in)
      : penalty_(in.defaults.number("presence_penalty")) {}

  struct Request : TokenCounts {
    Request(const PresencePenalty& stage, const RequestOpen& in)
        : penalty(in.overrides.number("presence_penalty", stage.penalty_)) {}

    void apply(Candidates& c) {
      if (penalty == 0.0) return;
      c.change(counts(),
               [this](dvt_cand& x, uint64_t) { x.logit = static_cast<float>(x.logit - penalty); });
    }
    uint32_t effect() const { return penalty == 0.0 ? DVT_EFFECT_KEEPS_ARGMAX : DVT_EFFECT_ANY; }

    double penalty;
  };

 private:
  double penalty_;
};

}  // namespace dovetail::presence_penalty
DVT_EXPORT_SAMPLER(dovetail::presence_penalty::PresencePenalty)
