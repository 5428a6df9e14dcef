// What `compare` found, in words and as JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/node.hpp"
#include "core/measure/comparison.hpp"

namespace dovetail::core {

/// One of the two, as far as it is needed once its model is gone.
struct ComparedSide {
  std::string config, backend, weights, kv_cache;  // for people
  std::vector<std::string> formats;                // of its matrices
  double least_bits = 32;                          // Weights::least_bits()
  uint32_t kv_bits = 32;
  uint32_t n_layers = 0;
  int64_t d_model = 0, vocab_size = 0;
  std::vector<std::string> pieces;  // of every id of its tokenizer; none without one
};

struct ComparisonReport {
  ComparedSide a, b;
  std::string prompt;  // empty where ids were given
  bool b_reads_other_ids =
      false;  // B's own tokens of the prompt are others than A's, which both were given
  std::vector<TokenId> ids;
  std::optional<double> tolerance;  // of relative errors; none: nothing is judged
  Comparison found;

  /// The first output beyond the tolerance: "layer_out.3" or "logits".
  std::optional<std::string> first_beyond() const;
  std::string text() const;
  Node node() const;
};

/// The relative error of an output that the two are allowed where the user does not say: by the fewest bits that
/// either spends on a number of its matrices or its cache. Where both have the same formats only the arithmetic
/// differs, which may round activations to 8 bits.
double default_tolerance(const ComparedSide& a, const ComparedSide& b);

}  // namespace dovetail::core
