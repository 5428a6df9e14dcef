// A number of IEEE half precision as it is stored; its value: kernels/bf16.hpp.
#pragma once

#include <cstdint>

namespace dovetail::kernels {

/// A type of its own, because a bare uint16_t stands for bfloat16.
struct F16 {
  uint16_t bits;
};

}  // namespace dovetail::kernels
