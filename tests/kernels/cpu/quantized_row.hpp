// A row of quantised activations as a product reads it.
#pragma once

#include <cstring>

#include <kernels/linear_quantized.hpp>

namespace dovetail::kernels {

/// x of number k, from q16 (fine) or from q.
inline double activation(const uint8_t* row, int64_t k_len, int64_t k, bool fine) {
  float scale;
  std::memcpy(&scale, row + 3 * k_len + k / kQuantBlock * 4, sizeof scale);
  if (!fine) return static_cast<double>(static_cast<int8_t>(row[k])) * static_cast<double>(scale);
  int16_t q16;
  std::memcpy(&q16, row + k_len + 2 * k, sizeof q16);
  return static_cast<double>(q16) / kFineSteps * static_cast<double>(scale);
}

}  // namespace dovetail::kernels
