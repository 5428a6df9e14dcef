// typical_p: keeps the ids whose surprise is nearest to the expected one (the entropy), until their
// probabilities sum to p; at least one. 1 keeps all.
// Source: Meister et al. 2022, arXiv:2202.00666.
#include <dovetail/sampler.hpp>

#include <numeric>

namespace dovetail::typical_p {

class TypicalP {
 public:
  static constexpr std::array params = {
      number_param("typical_p", "1.0", "keep ids of typical surprise that together have probability p; 1 keeps all", 0.0, 1.0,
                   DVT_PARAM_MIN_EXCLUSIVE)};

  explicit TypicalP(const StageOpen& in) : p_(in.defaults.number("typical_p")) {}

  struct Request {
    Request(const TypicalP& stage, const RequestOpen& in) : p(in.overrides.number("typical_p", stage.p_)) {}
    void apply(Candidates& c) {
      if (p >= 1.0) return;
      c.sort();  // ties in distance fall to the likelier, then to the lower id
      c.probabilities(probability);
      double entropy = 0;
      for (double q : probability)
        if (q > 0) entropy -= q * std::log(q);
      distance.resize(c.size());
      for (size_t i = 0; i < c.size(); ++i)
        distance[i] = probability[i] > 0 ? std::abs(-std::log(probability[i]) - entropy) : std::numeric_limits<double>::infinity();
      order.resize(c.size());
      std::iota(order.begin(), order.end(), size_t{0});
      std::stable_sort(order.begin(), order.end(), [this](size_t a, size_t b) { return distance[a] < distance[b]; });
      double sum = 0;
      size_t n = 0;
      while (n < order.size() && sum < p) sum += probability[order[n++]];
      kept.clear();
      for (size_t i = 0; i < n; ++i) kept.push_back(c[order[i]]);
      std::sort(kept.begin(), kept.end(), Candidates::likelier);
      std::copy(kept.begin(), kept.end(), c.all().begin());
      c.keep(kept.size());
    }
    double p;
    std::vector<double> probability, distance;
    std::vector<size_t> order;
    std::vector<dvt_cand> kept;
  };

 private:
  double p_;
};

}  // namespace dovetail::typical_p
DVT_EXPORT_SAMPLER(dovetail::typical_p::TypicalP)
