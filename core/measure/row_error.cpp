#include "core/measure/row_error.hpp"

#include <cmath>
#include <limits>

#include "core/base/assert.hpp"

namespace dovetail::core {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct OneRow {
  double relative = 0, max_abs = 0;
};

OneRow error_of(std::span<const float> a, std::span<const float> b) {
  OneRow out;
  double squares = 0, size = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double x = a[i], y = b[i];
    if (!std::isfinite(x) || !std::isfinite(y)) return {kInfinity, kInfinity};
    const double difference = std::abs(y - x);
    squares += difference * difference;
    size += x * x;
    out.max_abs = std::max(out.max_abs, difference);
  }
  if (squares > 0) out.relative = size > 0 ? std::sqrt(squares / size) : kInfinity;
  return out;
}

}  // namespace

void RowErrors::add(std::span<const float> a, std::span<const float> b, size_t row_len) {
  DVT_ASSERT(a.size() == b.size() && row_len > 0);
  for (size_t at = 0; at < a.size(); at += row_len, ++n_rows_) {
    const OneRow row = error_of(a.subspan(at, row_len), b.subspan(at, row_len));
    sum_relative_ += row.relative;
    if (row.relative > worst_relative_) worst_relative_ = row.relative, worst_row_ = n_rows_;
    if (row.max_abs > max_abs_) max_abs_ = row.max_abs, max_abs_row_ = n_rows_;
  }
}

double RowErrors::mean_relative() const {
  return n_rows_ == 0 ? 0 : sum_relative_ / static_cast<double>(n_rows_);
}

}  // namespace dovetail::core
