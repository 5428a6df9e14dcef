#include "core/measure/tolerance.hpp"

namespace dovetail::core {

double model_tolerance(double bits) {
  struct Step {
    double bits, tolerance;
  };
  // At least twice the worst that was seen where nothing was wrong.
  static constexpr Step kSteps[] = {{32, 0.001}, {16, 0.03}, {8, 0.1}, {6, 0.15}, {4, 0.3}};
  for (const Step& step : kSteps)
    if (bits >= step.bits) return step.tolerance;
  return 0.6;
}

}  // namespace dovetail::core
