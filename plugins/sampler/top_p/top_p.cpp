// top_p: keeps the likeliest ids until their probabilities sum to p; at least one. 1 keeps all.
// Source: Holtzman et al. 2019, arXiv:1904.09751.
#include <dovetail/sampler.hpp>

namespace dovetail::top_p {

class TopP {
 public:
  static constexpr std::array params = {
      number_param("top_p", "1.0", "keep the likeliest ids that together have probability p; 1 keeps all", 0.0, 1.0)};

  explicit TopP(const StageOpen& in) : p_(in.defaults.number("top_p")) {}

  struct Request {
    Request(const TopP& stage, const RequestOpen& in) : p(in.overrides.number("top_p", stage.p_)) {}
    void apply(Candidates& c) {
      if (p >= 1.0) return;
      c.sort();
      c.probabilities(probability);
      double sum = 0;
      size_t n = 0;
      while (n < c.size() && sum < p) sum += probability[n++];
      c.keep(n);
    }
    double p;
    std::vector<double> probability;
  };

 private:
  double p_;
};

}  // namespace dovetail::top_p
DVT_EXPORT_SAMPLER(dovetail::top_p::TopP)
