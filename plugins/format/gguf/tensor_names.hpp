// Names of tensors: those of GGUF to those of Hugging Face.
#pragma once

#include <string>
#include <string_view>

namespace dovetail::gguf {

/// "blk.3.attn_q.weight" of "llama" -> "model.layers.3.self_attn.q_proj.weight". A name that is not known
/// stays as it is. Source: the table of names in ggml-org/llama.cpp, gguf-py/gguf/tensor_mapping.py.
std::string hugging_face_name(std::string_view name, std::string_view architecture);

/// Whether rows of this tensor are stored in pairs (dvt_tensor.paired_rows): files of architecture llama have the
/// rows of each head of q and k so, for a rotary embedding of neighbours.
enum class Heads { kNone, kQuery, kKey };
Heads paired_heads(std::string_view name, std::string_view architecture);

}  // namespace dovetail::gguf
