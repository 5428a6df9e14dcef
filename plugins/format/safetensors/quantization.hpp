// config.json's "quantization_config": whether the checkpoint has matrices in parts, and what the parts mean.
#pragma once

#include <dovetail/format.hpp>

#include <cstdint>

namespace dovetail::safetensors {

struct Quantization {
  enum class Method { kNone, kFp8, kGptq, kAwq };

  Method method = Method::kNone;
  // fp8: rows and columns that share a scale; 0: no blocks, the scales are of a row or of the whole matrix.
  int64_t block_rows = 0, block_len = 0;
  // gptq, awq
  int64_t bits = 4;
  int64_t group_len = 0;          // numbers along k that share a scale; 0: all of them
  bool zero_is_one_less = false;  // gptq: the zeros in the file are one less than they mean
  bool is_reordered = false;      // gptq: "desc_act", g_idx says which group a number is in
};

/// errors  DVT_EFORMAT: a value of the wrong kind. DVT_EUNSUPPORTED: a method, a version of one or a width that this
///         reader does not know.
Quantization read_quantization(Doc config);

}  // namespace dovetail::safetensors
