// top_n_sigma: keeps the ids whose logit is at most n standard deviations below the highest; 0 keeps
// all. The logits of noise lie like a bell, those of the few ids that make sense far above it; because
// both scale with the temperature, what is kept does not depend on it.
// Source: Tang et al. 2024, arXiv:2411.07641.
#include <dovetail/sampler.hpp>

namespace {

using namespace dovetail;

class TopNSigma {
 public:
  static constexpr std::array params = {number_param(
      "top_n_sigma", "1.0",
      "keep ids within this many standard deviations of the highest logit; 0 keeps all", 0.0)};

  explicit TopNSigma(const StageOpen& in) : n_(in.defaults.number("top_n_sigma")) {}

  struct Request {
    Request(const TopNSigma& stage, const RequestOpen& in)
        : n(in.overrides.number("top_n_sigma", stage.n_)) {}

    void apply(Candidates& c) {
      const double top = c.top();
      if (n <= 0.0 || std::isinf(top)) return;
      const double lowest = top - n * deviation(c);
      c.keep_if([lowest](const dvt_cand& x) { return x.logit >= lowest; });
    }
    uint32_t effect() const { return DVT_EFFECT_KEEPS_ARGMAX; }

    double n;
  };

 private:
  // By id, so that the last digit does not depend on the order in which candidates come.
  static double deviation(Candidates& c) {
    std::vector<dvt_cand> by_id(c.all().begin(), c.all().end());
    std::erase_if(by_id, [](const dvt_cand& x) { return std::isinf(x.logit); });
    if (!c.by_id())
      std::sort(by_id.begin(), by_id.end(),
                [](const dvt_cand& a, const dvt_cand& b) { return a.id < b.id; });
    const auto count = static_cast<double>(by_id.size());
    double sum = 0, squares = 0;
    for (const dvt_cand& x : by_id) sum += x.logit;
    for (const dvt_cand& x : by_id) squares += (x.logit - sum / count) * (x.logit - sum / count);
    return std::sqrt(squares / count);
  }

  double n_;
};

}  // namespace
DVT_EXPORT_SAMPLER(TopNSigma)
