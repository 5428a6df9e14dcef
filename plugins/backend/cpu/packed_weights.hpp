// Weights in block formats: which uses get them, how their rows are packed, and the node that
// quantises activations once for all products that read them.
#pragma once

#include <dovetail/host_backend.hpp>

#include <kernels/cpu.hpp>
#include <kernels/gguf_blocks.hpp>
#include <kernels/linear_gguf.hpp>

#include <optional>
#include <string_view>

namespace dovetail::cpu {

/// The dtype of a bound weight in a block format, beyond those of the ABI.
uint32_t packed_dtype(kernels::WeightFormat format);
uint32_t packed_dtype(kernels::GgufPacked format);
bool is_packed(uint32_t dtype);

/// The block format of that name ("int8", "int6", "int4", "int4q").
std::optional<kernels::WeightFormat> find_weight_format(std::string_view name);

/// The format that a use is stored in, packed as the kernels read it ("int4.1"), and is to stay in.
/// errors  DVT_EFORMAT: its shape is none of a packed matrix.
std::optional<kernels::WeightFormat> stored_format(const dvt_weight_use& use);
/// The format that a use is stored in so, where the config wants its numbers as float32.
/// errors  DVT_EFORMAT: its shape is none of a packed matrix.
std::optional<kernels::WeightFormat> format_to_unpack(const dvt_weight_use& use);
/// The format that a use is to be packed in: what the config wants, for a matrix of plain numbers whose
/// rows are whole blocks. A matrix that cannot be packed stays as it is stored.
std::optional<kernels::WeightFormat> format_to_pack(const dvt_weight_use& use);
/// The format that a bound use has: stored or packed in it.
std::optional<kernels::WeightFormat> format_of(const dvt_weight_use& use);
/// Read where it lies in the file; packed.
dvt_weight_plan plan_stored(const dvt_weight_use& use, kernels::WeightFormat format);
dvt_weight_plan plan_packed(const dvt_weight_use& use, kernels::WeightFormat format);

/// The block format of GGUF that a matrix is stored in and multiplied in; none for one that is wanted as float32.
/// errors  DVT_EFORMAT: its rows are no whole blocks.
std::optional<kernels::GgufPacked> gguf_format_to_pack(const dvt_weight_use& use);
dvt_weight_plan plan_gguf(const dvt_weight_use& use, kernels::GgufPacked format);
/// Packs it on all lanes of the host.
/// errors  DVT_EFORMAT: the source is not as long as its shape and format say.
void pack_gguf(const Host& host, kernels::GgufPacked format, const dvt_weight_use& use,
               dvt_bytes source, void* dst, Call call);

/// Any other block format of GGUF that a use is stored in and expanded from when the model is loaded; null for any other.
/// errors  DVT_EFORMAT: its rows are no whole blocks.
const kernels::GgufFormat* expanded_format(const dvt_weight_use& use);
/// As float32.
dvt_weight_plan plan_expanded(const dvt_weight_use& use);
/// Expands on all lanes of the host.
/// errors  DVT_EFORMAT: the source is not as long as its shape and format say.
void expand(const Host& host, const kernels::GgufFormat& format, const dvt_weight_use& use,
            dvt_bytes source, void* dst, Call call);

/// What is stored so, as float32, on all lanes of the host.
/// errors  DVT_EFORMAT: the source is not as long as its shape and format say.
void unpack_matrix(const Host& host, const kernels::CpuKernels& k, kernels::WeightFormat format,
                   const dvt_weight_use& use, dvt_bytes source, void* dst, Call call);

/// The kernels of a bound weight in a block format, by its dtype.
struct PackedKernels {
  kernels::UnpackRowFn* unpack_row;
  kernels::LinearQuantizedFn *linear, *linear_add;
};
PackedKernels packed_kernels(const kernels::CpuKernels& k, uint32_t dtype);

/// Packs a matrix, on all lanes of the host.
void pack_matrix(const Host& host, const kernels::CpuKernels& k, kernels::WeightFormat format,
                 const dvt_weight_use& use, dvt_bytes source, void* dst, Call call);

/// The graph with products against packed weights as "cpu.linear_packed", and before the first of them
/// that reads a value a node "cpu.quantize", whose result they read.
GraphCopy with_quantized_activations(const dvt_graph& graph,
                                     const std::map<std::string, HostWeight, std::less<>>& weights);
/// Workspace that such nodes may take beyond what the graph says.
uint64_t quantized_bytes(const dvt_graph& graph, const dvt_compile_options& options);

}  // namespace dovetail::cpu
