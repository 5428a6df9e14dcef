// temperature: divides every logit; 0 keeps the argmax (the lowest id on ties).
#include <dovetail/sampler.hpp>

namespace dovetail::temperature {

// Below this the quotient of a usual logit leaves the range of float.
constexpr double kGreedyBelow = 1e-5;

class Temperature {
 public:
  static constexpr std::array params = {number_param(
      "temperature", "1.0", "divides the logits; below 1 sharpens, above 1 flattens, 0 is greedy",
      0.0, 100.0)};

  explicit Temperature(const StageOpen& in) : value_(in.defaults.number("temperature")) {}

  struct Request {
    Request(const Temperature& stage, const RequestOpen& in)
        : value(in.overrides.number("temperature", stage.value_)) {}

    void apply(Candidates& c) {
      if (value < kGreedyBelow) return c.keep_likeliest(1);
      if (value == 1.0) return;
      for (dvt_cand& x : c.all()) x.logit = static_cast<float>(x.logit / value);
      c.logits_changed();  // two logits may have become one: then the lower id comes first
    }
    uint32_t effect() const {
      if (value < kGreedyBelow) return DVT_EFFECT_ARGMAX;
      return value == 1.0 ? DVT_EFFECT_KEEPS_ARGMAX : DVT_EFFECT_ANY;  // rounding may make a tie
    }

    double value;
  };

 private:
  double value_;
};

}  // namespace dovetail::temperature
DVT_EXPORT_SAMPLER(dovetail::temperature::Temperature)
