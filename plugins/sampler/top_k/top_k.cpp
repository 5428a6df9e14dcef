// top_k: keeps the k likeliest ids, of equal ones the lower; 0, -1 and k over their number keep all.
// Source: Fan et al. 2018, arXiv:1805.04833.
#include <dovetail/sampler.hpp>

namespace dovetail::top_k {

class TopK {
 public:
  static constexpr std::array params = {
      int_param("top_k", "0", "keep the k likeliest ids; 0 or -1 keeps all", -1)};

  explicit TopK(const StageOpen& in) : k_(in.defaults.integer("top_k")) {}

  struct Request {
    Request(const TopK& stage, const RequestOpen& in)
        : k(in.overrides.integer("top_k", stage.k_)) {}

    void apply(Candidates& c) {
      if (k > 0 && static_cast<uint64_t>(k) < c.size()) c.keep_likeliest(static_cast<size_t>(k));
    }
    uint32_t effect() const { return k == 1 ? DVT_EFFECT_ARGMAX : DVT_EFFECT_KEEPS_ARGMAX; }

    int64_t k;
  };

 private:
  int64_t k_;
};

}  // namespace dovetail::top_k
DVT_EXPORT_SAMPLER(dovetail::top_k::TopK)
