// typical_p: keeps the ids whose surprise is nearest to the expected one (the entropy), until their
// probability reaches p; at least one. 1 keeps all. Of equally typical ids the likelier comes first.
// Source: Meister et al. 2022, arXiv:2202.00666.
#include <dovetail/sampler.hpp>

#include <numeric>

namespace dovetail::typical_p {

class TypicalP {
 public:
  static constexpr std::array params = {number_param(
      "typical_p", "1.0",
      "keep ids of typical surprise that together have probability p; 1 keeps all", 0.0, 1.0)};

  explicit TypicalP(const StageOpen& in) : p_(in.defaults.number("typical_p")) {}

  struct Request {
    Request(const TypicalP& stage, const RequestOpen& in)
        : p(in.overrides.number("typical_p", stage.p_)) {}

    void apply(Candidates& c) {
      if (p >= 1.0) return;
      const double total = c.weights(weights);
      double entropy = 0;
      for (double w : weights)
        if (w > 0) entropy -= w / total * std::log(w / total);
      distance.resize(c.size());
      for (size_t i = 0; i < c.size(); ++i)
        distance[i] = std::abs(-std::log(weights[i] / total) - entropy);

      order.resize(c.size());
      std::iota(order.begin(), order.end(), size_t{0});
      std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
        return distance[a] != distance[b] ? distance[a] < distance[b]
                                          : Candidates::likelier(c[a], c[b]);
      });
      double sum = 0;
      size_t n = 0;
      while (n < order.size() && (n == 0 || sum < p * total)) sum += weights[order[n++]];

      kept.assign(c.size(), 0);
      for (size_t i = 0; i < n; ++i) kept[order[i]] = 1;
      c.keep_if_at([&](size_t i) { return kept[i] != 0; });
    }
    uint32_t effect() const { return p >= 1.0 ? DVT_EFFECT_KEEPS_ARGMAX : DVT_EFFECT_ANY; }

    double p;
    std::vector<double> weights, distance;
    std::vector<size_t> order;
    std::vector<uint8_t> kept;
  };

 private:
  double p_;
};

}  // namespace dovetail::typical_p
DVT_EXPORT_SAMPLER(dovetail::typical_p::TypicalP)
