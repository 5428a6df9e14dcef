// top_p: keeps the smallest set of the likeliest ids whose probability reaches p; at least one. 1
// keeps all.
// Source: Holtzman et al. 2019, arXiv:1904.09751.
#include <dovetail/sampler.hpp>

namespace dovetail::top_p {

class TopP {
 public:
  static constexpr std::array params = {number_param(
      "top_p", "1.0", "keep the likeliest ids that together have probability p; 1 keeps all", 0.0,
      1.0)};

  explicit TopP(const StageOpen& in) : p_(in.defaults.number("top_p")) {}

  struct Request {
    Request(const TopP& stage, const RequestOpen& in) : p(in.overrides.number("top_p", stage.p_)) {}

    void apply(Candidates& c) {
      if (p >= 1.0) return;
      const float top = c.top();
      const double wanted = p * c.weights(weights);
      double sum = 0;
      size_t n = 0;
      // The set is small as a rule: sort no more than it needs.
      for (size_t n_sorted = 64; n < c.size(); n_sorted *= 8) {
        c.sort_first(n_sorted);
        for (const size_t end = std::min(n_sorted, c.size()); n < end; ++n) {
          if (n > 0 && sum >= wanted) return c.keep_sorted(n);
          sum += Candidates::weight(c[n].logit, top);
        }
      }
    }
    uint32_t effect() const { return DVT_EFFECT_KEEPS_ARGMAX; }

    double p;
    std::vector<double> weights;
  };

 private:
  double p_;
};

}  // namespace dovetail::top_p
DVT_EXPORT_SAMPLER(dovetail::top_p::TopP)
