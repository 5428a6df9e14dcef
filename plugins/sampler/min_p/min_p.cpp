// min_p: drops ids less likely than min_p times the likeliest; 0 keeps all.
// Source: Nguyen et al. 2024, arXiv:2407.01082.
#include <dovetail/sampler.hpp>

namespace dovetail::min_p {

class MinP {
 public:
  static constexpr std::array params = {
      number_param("min_p", "0.0",
                   "drop ids less likely than this share of the likeliest; 0 keeps all", 0.0, 1.0)};

  explicit MinP(const StageOpen& in) : min_p_(in.defaults.number("min_p")) {}

  struct Request {
    Request(const MinP& stage, const RequestOpen& in)
        : min_p(in.overrides.number("min_p", stage.min_p_)) {}

    void apply(Candidates& c) {
      if (min_p <= 0.0) return;
      const float top = c.top();
      // Nearly all ids are far under the bound: these are dropped without an exp() each.
      const double far_under = std::log(min_p) - 1e-6;
      c.keep_if([&](const dvt_cand& x) {
        if (static_cast<double>(x.logit) - static_cast<double>(top) < far_under) return false;
        return Candidates::weight(x.logit, top) >= min_p;
      });
    }
    uint32_t effect() const { return DVT_EFFECT_KEEPS_ARGMAX; }

    double min_p;
  };

 private:
  double min_p_;
};

}  // namespace dovetail::min_p
DVT_EXPORT_SAMPLER(dovetail::min_p::MinP)
