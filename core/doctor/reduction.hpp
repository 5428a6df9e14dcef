// Makes a case that a backend gets wrong as small as it stays wrong: fewer tokens, fewer rows and columns of a matrix.
#pragma once

#include <functional>
#include <optional>

#include "core/doctor/case_run.hpp"
#include "core/doctor/op_case.hpp"
#include "core/doctor/op_error.hpp"

namespace dovetail::core {

/// How a case is wrong: of which wanted value, how far, and what is right.
struct Wrong {
  size_t value = 0;
  OpError error;
  CaseOutputs expected;
};
/// The wanted value that is furthest off.
Wrong worst_of(const OpCase& c, CaseOutputs expected, const CaseOutputs& got);

/// Runs a case on both backends; nothing where they agree.
using Judge = std::function<Result<std::optional<Wrong>>(const OpCase&)>;

struct WrongCase {
  OpCase op_case;
  Wrong wrong;
};

/// A smaller case which `judge` still finds wrong, or the same. One that cannot be run is not taken.
/// errors  kCancelled
Result<WrongCase> reduced(WrongCase from, const Judge& judge);

}  // namespace dovetail::core
