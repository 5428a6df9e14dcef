// What ops have in common: matrices and products, norms, tables of rope, caches.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <kernels/cuda_decode.hpp>

#include "ops.hpp"

namespace dovetail::cuda {

/// A weight of products.
kernels::cuda::Matrix matrix_of(const Array& w);

struct RmsNorm {
  float eps, weight_offset;

  /// With the attributes of a node behind a prefix; nothing where it has none such.
  static std::optional<RmsNorm> find(const GraphView& g, const dvt_node& n,
                                     const std::string& prefix = "");
};

/// Cosines and sines of a step's positions, for all layers that share frequencies.
struct RopeTable {
  int64_t half_len;
  DeviceBytes inv_freq, cos, sin;  // [half_len], [max tokens, half_len] twice

  const float* cosines() const { return reinterpret_cast<const float*>(cos.get()); }
  const float* sines() const { return reinterpret_cast<const float*>(sin.get()); }
  /// Of a node with rope's attributes.
  static std::shared_ptr<RopeTable> of(const GraphView& g, const dvt_node& n, DevicePreparation& p);
};

/// A node's scratch memory, piece by piece.
class Scratch {
 public:
  explicit Scratch(uint8_t* p) : p_(p) {}
  uint8_t* take(uint64_t n_bytes) { return std::exchange(p_, p_ + aligned(n_bytes)); }
  float* floats(int64_t n) {
    return reinterpret_cast<float*>(take(static_cast<uint64_t>(n) * sizeof(float)));
  }
  static uint64_t aligned(uint64_t n_bytes) { return (n_bytes + 255) / 256 * 256; }
  static uint64_t of_floats(int64_t n) { return aligned(static_cast<uint64_t>(n) * sizeof(float)); }

 private:
  uint8_t* p_;
};
/// Of the activations [n_tokens, k_len] of a product, cut.
inline uint64_t cut_scratch(int64_t n_tokens, int64_t k_len) {
  return Scratch::aligned(static_cast<uint64_t>(kernels::cuda::cut_bytes(n_tokens, k_len)));
}

/// Calls fn(base) with the slot's element.
template <class Fn>
void with_element(const DeviceStates::Slot& slot, const Fn& fn) {
  if (slot.dtype == DVT_BF16) return fn(reinterpret_cast<uint16_t*>(slot.data));
  if (slot.dtype == DVT_I8_SCALED) return fn(reinterpret_cast<int8_t*>(slot.data));
  fn(reinterpret_cast<float*>(slot.data));
}
kernels::KvLayout layout_of(const DeviceStates::Slot& slot, uint32_t page_len);
/// The slot of the node's input i.
const DeviceStates::Slot& slot_of(const NodeLaunch& n, size_t i);
/// New rows of the step's tokens into the state of input `state`.
void write_rows(const NodeLaunch& n, const float* rows, size_t state);

}  // namespace dovetail::cuda
