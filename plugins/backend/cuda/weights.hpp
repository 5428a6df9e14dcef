// Weights for a CUDA device: plain ones and packed ones as they are stored; others are packed as the config
// asks, or expanded to float32 (the block formats of GGUF).
#pragma once

#include <dovetail/plain_weights.hpp>

#include <optional>

#include <kernels/weight_formats.hpp>

#include "device.hpp"

namespace dovetail::cuda {

/// A bound weight, on the device.
struct Weight {
  DeviceBytes bytes;
  uint32_t dtype;  // DVT_F32, DVT_BF16, DVT_F16 or packed_dtype()
};

/// The dtype of a weight in a block format, beyond those of the ABI, and back.
uint32_t packed_dtype(kernels::WeightFormat format);
std::optional<kernels::WeightFormat> packed_format(uint32_t dtype);

class WeightPlanner : public PlainWeights {
 public:
  explicit WeightPlanner(const Host& host);

  dvt_weight_plan plan(const dvt_weight_use& use) const;
  void pack(std::span<const dvt_weight_use> uses, std::span<const dvt_bytes> sources, void* dst,
            uint64_t bytes, Call call) const;
  /// Of what bind() gets.
  uint32_t dtype_of(const dvt_weight_use& use, const dvt_weight_plan& plan) const;

 private:
  Host host_;
};

}  // namespace dovetail::cuda
