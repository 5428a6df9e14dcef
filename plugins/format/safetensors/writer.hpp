// The files of a checkpoint that is written: one, or shards with their index.
#pragma once

#include <dovetail/format.hpp>

#include <cstdint>
#include <span>

namespace dovetail::safetensors {

/// See dvt_format_v1.lay_out.
void lay_out(std::span<const dvt_tensor> tensors, uint64_t max_bytes, const FileSink& sink);

}  // namespace dovetail::safetensors
