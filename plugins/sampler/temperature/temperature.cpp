// temperature: divides every logit; 0 keeps the argmax (the lowest id on ties).
#include <dovetail/sampler.hpp>

namespace dovetail::temperature {

class Temperature {
 public:
  static constexpr std::array params = {
      number_param("temperature", "1.0", "divides the logits; below 1 sharpens, above 1 flattens, 0 is greedy", 0.0, 100.0)};

  explicit Temperature(const StageOpen& in) : value_(in.defaults.number("temperature")) {}

  struct Request {
    Request(const Temperature& stage, const RequestOpen& in) : value(in.overrides.number("temperature", stage.value_)) {}
    void apply(Candidates& c) {
      if (value == 0.0) return c.keep_likeliest(1);
      if (value == 1.0) return;
      for (dvt_cand& x : c.all()) x.logit = static_cast<float>(x.logit / value);  // the order stays
    }
    double value;
  };

 private:
  double value_;
};

}  // namespace dovetail::temperature
DVT_EXPORT_SAMPLER(dovetail::temperature::Temperature)
