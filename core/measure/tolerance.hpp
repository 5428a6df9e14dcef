// What a measured error may be where nothing is wrong.
#pragma once

namespace dovetail::core {

/// The relative error that an output of a whole model is allowed, by the fewest bits that are spent on a number of its
/// matrices or its cache. docs/cli.md (compare) has the table, and what was seen.
double model_tolerance(double bits);

}  // namespace dovetail::core
