// How far what a backend gave is from what it should be, and how far it may be.
#pragma once

#include <cstddef>
#include <span>

namespace dovetail::core {

/// Of one value: its worst row by the relative error |got - expected| / |expected| (RowErrors), and its worst
/// element by |got - expected| / rms(expected row). Numbers that are infinite or none in both alike are equal.
struct OpError {
  double relative = 0;
  size_t row = 0;
  double element_share = 0;
  size_t element_row = 0, element = 0;  // in its row
  float got = 0, expected = 0;          // of that element

  /// The relative error that it amounts to: an element alone may be kElementFactor times as far off as its row.
  double measure() const;
  bool is_beyond(double tolerance) const { return !(measure() <= tolerance); }
};
constexpr double kElementFactor = 10;

/// Of rows `rows` of [n, width].
OpError error_of(std::span<const float> expected, std::span<const float> got, size_t width,
                 std::span<const size_t> rows);

/// The relative error that one op is allowed. `bits`: of a number of the matrix that it multiplies by, or of the cache
/// that it reads: a backend may round what it multiplies to as many. docs/cli.md (doctor) has the table.
double op_tolerance(double bits);

}  // namespace dovetail::core
