// The element types of safetensors, and how a file carries a block format, which it has no type for:
// the tensor is bytes (U8, one dimension), and __metadata__ says what they are, as
//   "dovetail.format.model.layers.0.mlp.up_proj.weight": "int4.1 [3072, 1024]"
#pragma once

#include <cstdint>
#include <string_view>

namespace dovetail::safetensors {

struct Dtype {
  std::string_view stored, format;
  uint64_t bytes;
};
inline constexpr Dtype kDtypes[] = {
    {"F64", "float64", 8},     {"F32", "float32", 4},     {"F16", "f16", 2},   {"BF16", "bf16", 2},
    {"F8_E4M3", "f8_e4m3", 1}, {"F8_E5M2", "f8_e5m2", 1}, {"I64", "i64", 8},   {"I32", "i32", 4},
    {"I16", "i16", 2},         {"I8", "i8", 1},           {"U64", "u64", 8},   {"U32", "u32", 4},
    {"U16", "u16", 2},         {"U8", "u8", 1},           {"BOOL", "bool", 1},
};

/// What block formats are stored as.
inline constexpr std::string_view kBytes = "U8";
/// Of the metadata's keys; the tensor's name follows.
inline constexpr std::string_view kFormatKey = "dovetail.format.";

}  // namespace dovetail::safetensors
