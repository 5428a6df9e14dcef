// greedy: keeps the likeliest id, the lowest on ties.
#include <dovetail/sampler.hpp>

namespace dovetail::greedy {

class Greedy {
 public:
  explicit Greedy(const StageOpen&) {}

  struct Request {
    Request(const Greedy&, const RequestOpen&) {}
    void apply(Candidates& c) { c.keep_likeliest(1); }
    uint32_t effect() const { return DVT_EFFECT_ARGMAX; }
  };
};

}  // namespace dovetail::greedy
DVT_EXPORT_SAMPLER(dovetail::greedy::Greedy)
