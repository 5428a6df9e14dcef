// Cosines and sines of a step's positions, made once a step for all layers that share frequencies.
#pragma once

#include <dovetail/host_program.hpp>

#include <kernels/cpu.hpp>

#include <vector>

namespace dovetail::cpu {

class RopeTables {
 public:
  RopeTables(std::span<const double> inv_freq, double attention_factor, int64_t max_tokens)
      : inv_freq_(inv_freq.begin(), inv_freq.end()),
        factor_(static_cast<float>(attention_factor)),
        cos_(inv_freq.size() * static_cast<size_t>(max_tokens)),
        sin_(cos_.size()) {}

  /// Fills this lane's part for a step. Lanes meet after it.
  void fill(const kernels::CpuKernels& k, const int32_t* positions, int64_t n_tokens, Lane lane) {
    const auto [begin, end] = lane.range(n_tokens);
    const int64_t at = begin * half_len();
    k.rope_table(cos_.data() + at, sin_.data() + at, positions + begin, inv_freq_.data(),
                 end - begin, half_len(), factor_);
  }
  const float* cos() const { return cos_.data(); }
  const float* sin() const { return sin_.data(); }
  int64_t half_len() const { return static_cast<int64_t>(inv_freq_.size()); }

 private:
  std::vector<float> inv_freq_;
  float factor_;
  std::vector<float> cos_, sin_;  // [max_tokens, half_len]
};

}  // namespace dovetail::cpu
