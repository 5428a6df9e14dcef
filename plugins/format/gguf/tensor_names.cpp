#include "tensor_names.hpp"

#include <algorithm>
#include <span>

namespace dovetail::gguf {
namespace {

struct Pair {
  std::string_view from, to;
};
constexpr Pair kOutside[] = {
    {"token_embd", "model.embed_tokens"}, {"output_norm", "model.norm"}, {"output", "lm_head"}};
constexpr Pair kInLayer[] = {
    {"attn_norm", "input_layernorm"},    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},      {"attn_v", "self_attn.v_proj"},
    {"attn_output", "self_attn.o_proj"}, {"attn_q_norm", "self_attn.q_norm"},
    {"attn_k_norm", "self_attn.k_norm"}, {"ffn_gate", "mlp.gate_proj"},
    {"ffn_up", "mlp.up_proj"},           {"ffn_down", "mlp.down_proj"}};
// Norms about the feed-forward: with a norm after attention and one after the feed-forward the names shift.
constexpr Pair kPreNorm[] = {{"ffn_norm", "post_attention_layernorm"}};
constexpr Pair kSandwich[] = {{"post_attention_norm", "post_attention_layernorm"},
                              {"ffn_norm", "pre_feedforward_layernorm"},
                              {"post_ffw_norm", "post_feedforward_layernorm"}};

std::string_view find(std::span<const Pair> pairs, std::string_view name) {
  for (const Pair& p : pairs)
    if (p.from == name) return p.to;
  return {};
}

// "blk.12.attn_q.weight": "12", "attn_q", ".weight".
struct Parts {
  std::string_view layer, name, ending;
};
Parts parts_of(std::string_view name) {
  Parts out;
  const size_t dot = std::min(name.rfind('.'), name.size());
  out.ending = name.substr(dot);
  out.name = name.substr(0, dot);
  if (out.ending != ".weight" && out.ending != ".bias") return {};
  if (!out.name.starts_with("blk.")) return out;
  const std::string_view rest = out.name.substr(4);
  const size_t end = rest.find('.');
  if (end == 0 || end == std::string_view::npos || rest.find_first_not_of("0123456789") != end)
    return {};
  out.layer = rest.substr(0, end);
  out.name = rest.substr(end + 1);
  return out;
}

}  // namespace

std::string hugging_face_name(std::string_view name, std::string_view architecture) {
  const Parts parts = parts_of(name);
  std::string_view to;
  if (parts.layer.empty()) {
    to = find(kOutside, parts.name);
    return to.empty() ? std::string(name) : std::string(to) + std::string(parts.ending);
  }
  to = find(kInLayer, parts.name);
  if (to.empty())
    to = architecture.starts_with("gemma") ? find(kSandwich, parts.name)
                                           : find(kPreNorm, parts.name);
  if (to.empty()) return std::string(name);
  return "model.layers." + std::string(parts.layer) + "." + std::string(to) +
         std::string(parts.ending);
}

Heads paired_heads(std::string_view name, std::string_view architecture) {
  const Parts parts = parts_of(name);
  if (architecture != "llama" || parts.layer.empty()) return Heads::kNone;
  return parts.name == "attn_q"   ? Heads::kQuery
         : parts.name == "attn_k" ? Heads::kKey
                                  : Heads::kNone;
}

}  // namespace dovetail::gguf
