// The tensor types of GGUF by their numbers: how many numbers a block holds in how many bytes, and what
// the canonical name of the format is; the layouts of the blocks are in kernels/gguf_blocks.hpp.
// Source: the GGUF specification and ggml's table of types (github.com/ggml-org/ggml, docs/gguf.md).
#pragma once

#include <cstdint>
#include <string_view>

namespace dovetail::gguf {

struct TensorType {
  uint32_t number;
  std::string_view name, format;
  uint64_t block_len, block_bytes;
};
inline constexpr TensorType kTensorTypes[] = {
    {0, "F32", "float32", 1, 4},      {1, "F16", "f16", 1, 2},
    {2, "Q4_0", "q4_0", 32, 18},      {3, "Q4_1", "q4_1", 32, 20},
    {6, "Q5_0", "q5_0", 32, 22},      {7, "Q5_1", "q5_1", 32, 24},
    {8, "Q8_0", "q8_0", 32, 34},      {10, "Q2_K", "q2_k", 256, 84},
    {11, "Q3_K", "q3_k", 256, 110},   {12, "Q4_K", "q4_k", 256, 144},
    {13, "Q5_K", "q5_k", 256, 176},   {14, "Q6_K", "q6_k", 256, 210},
    {20, "IQ4_NL", "iq4_nl", 32, 18}, {23, "IQ4_XS", "iq4_xs", 256, 136},
    {24, "I8", "i8", 1, 1},           {25, "I16", "i16", 1, 2},
    {26, "I32", "i32", 1, 4},         {27, "I64", "i64", 1, 8},
    {28, "F64", "float64", 1, 8},     {30, "BF16", "bf16", 1, 2},
    {39, "MXFP4", "mxfp4", 32, 17},
};

/// Types that exist and that nothing here computes with, for messages.
struct UnknownType {
  uint32_t number;
  std::string_view name;
};
inline constexpr UnknownType kOtherTypes[] = {
    {9, "Q8_1"},   {15, "Q8_K"},  {16, "IQ2_XXS"}, {17, "IQ2_XS"}, {18, "IQ3_XXS"},
    {19, "IQ1_S"}, {21, "IQ3_S"}, {22, "IQ2_S"},   {29, "IQ1_M"},  {34, "TQ1_0"},
    {35, "TQ2_0"}, {40, "NVFP4"}, {41, "Q1_0"},
};

}  // namespace dovetail::gguf
