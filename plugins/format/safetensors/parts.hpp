// Which tensors of a quantised checkpoint make a matrix together.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "matrix.hpp"
#include "quantization.hpp"

namespace dovetail::safetensors {

struct Gathered {
  std::vector<std::unique_ptr<Matrix>> matrices;  // in the order of their first tensor
  std::vector<const Stored*> others;              // the tensors that are as they are
};

/// Sorts out all tensors of a checkpoint; they live as long as the result. What a quantised model has for its
/// activations is left out: activations are floats here.
/// errors  DVT_EFORMAT: a matrix lacks a part, or its parts do not fit. DVT_EUNSUPPORTED
Gathered gather(const Quantization& q, const std::deque<Stored>& tensors, Call call);

}  // namespace dovetail::safetensors
