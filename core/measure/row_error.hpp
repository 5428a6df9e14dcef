// RowErrors: how far the rows of one tensor are from those of another that should be the same.
#pragma once

#include <cstddef>
#include <span>

namespace dovetail::core {

/// The relative error of a row is |b - a| / |a| in the Euclidean norm: rows of very different size, as the outputs of
/// a layer for different tokens are, count alike. 0 where both are 0; infinite where only a is, or where a number of
/// either is no number or infinite.
class RowErrors {
 public:
  /// Takes further rows, in order. shapes: a, b [n, row_len].
  void add(std::span<const float> a, std::span<const float> b, size_t row_len);

  size_t n_rows() const { return n_rows_; }
  double mean_relative() const;
  double worst_relative() const { return worst_relative_; }
  size_t worst_row() const { return worst_row_; }
  /// The largest |b[i] - a[i]|, and its row.
  double max_abs() const { return max_abs_; }
  size_t max_abs_row() const { return max_abs_row_; }
  /// Whether all bits of values are the same (-0 and 0 are).
  bool is_equal() const { return max_abs_ == 0; }

 private:
  size_t n_rows_ = 0;
  double sum_relative_ = 0, worst_relative_ = 0, max_abs_ = 0;
  size_t worst_row_ = 0, max_abs_row_ = 0;
};

}  // namespace dovetail::core
