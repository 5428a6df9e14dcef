#include "core/doctor/op_error.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/measure/row_error.hpp"

namespace dovetail::core {
namespace {

// A row of both in which what is no number, or infinite, in both alike is 0.
struct RowPair {
  std::vector<float> expected, got;

  void take(std::span<const float> e, std::span<const float> g) {
    expected.assign(e.begin(), e.end());
    got.assign(g.begin(), g.end());
    for (size_t i = 0; i < e.size(); ++i)
      if (!std::isfinite(e[i]) && (e[i] == g[i] || (std::isnan(e[i]) && std::isnan(g[i]))))
        expected[i] = got[i] = 0;
  }
};

double rms_of(const std::vector<float>& row) {
  double squares = 0;
  for (const float v : row) squares += static_cast<double>(v) * static_cast<double>(v);
  return row.empty() ? 0 : std::sqrt(squares / static_cast<double>(row.size()));
}

double share_of(float expected, float got, double rms) {
  if (expected == got) return 0;
  const double difference = std::abs(static_cast<double>(got) - static_cast<double>(expected));
  return std::isfinite(difference) && rms > 0 ? difference / rms
                                              : std::numeric_limits<double>::infinity();
}

}  // namespace

double OpError::measure() const {
  return std::max(relative, element_share / kElementFactor);
}

OpError error_of(std::span<const float> expected, std::span<const float> got, size_t width,
                 std::span<const size_t> rows) {
  OpError out;
  RowPair pair;
  for (const size_t row : rows) {
    pair.take(expected.subspan(row * width, width), got.subspan(row * width, width));
    RowErrors errors;
    if (width > 0) errors.add(pair.expected, pair.got, width);
    if (errors.worst_relative() > out.relative) {
      out.relative = errors.worst_relative();
      out.row = row;
    }
    const double rms = rms_of(pair.expected);
    for (size_t i = 0; i < width; ++i) {
      const double share = share_of(pair.expected[i], pair.got[i], rms);
      if (share <= out.element_share) continue;
      out.element_share = share;
      out.element_row = row;
      out.element = i;
      out.expected = pair.expected[i];
      out.got = pair.got[i];
    }
  }
  return out;
}

double op_tolerance(double bits) {
  struct Step {
    double bits, tolerance;
  };
  // At least three times the worst that was seen where nothing was wrong; docs/cli.md has both.
  static constexpr Step kSteps[] = {{32, 2e-5}, {16, 0.005}};
  for (const Step& step : kSteps)
    if (bits >= step.bits) return step.tolerance;
  return 0.05;
}

}  // namespace dovetail::core
