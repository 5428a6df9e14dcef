// The ops of fusion.hpp: one launch where tokens are few, else the launches that they stand for.
#include <algorithm>

#include "op_parts.hpp"

namespace dovetail::cuda {
namespace {

namespace k = kernels::cuda;

std::any prepare_norm(const GraphView& g, const dvt_node& n, DevicePreparation&) {
  return RmsNorm::find(g, n, "norm.").value_or(RmsNorm{});
}
k::DecodeNorm decode_norm(const NodeLaunch& n, size_t weight, const RmsNorm& norm) {
  return {n.has(weight) ? n.in[weight].f32() : nullptr, norm.eps, norm.weight_offset};
}
const float* floats_or_null(const NodeLaunch& n, size_t i) {
  return n.has(i) ? n.in[i].f32() : nullptr;
}

/// Input 0, normed with input 1 where that is there, and cut.
uint8_t* cut_normed(const NodeLaunch& n, const RmsNorm& norm, Scratch& scratch) {
  const Array& x = n.in[0];
  const float* rows = x.f32();
  if (n.has(1)) {
    float* normed = scratch.floats(x.size());
    k::rms_norm(n.stream(), normed, rows, n.in[1].f32(), x.rows(), x.last(), norm.eps,
                norm.weight_offset);
    rows = normed;
  }
  uint8_t* cut = scratch.take(cut_scratch(x.rows(), x.last()));
  k::cut_activations(n.stream(), cut, rows, x.rows(), x.last());
  return cut;
}
uint64_t cut_normed_scratch(const GraphView& g, const dvt_node& n, const Sizes& sizes) {
  const uint32_t x = g.inputs(n)[0];
  const int64_t k_len = g.dims(x, sizes).back(), size = g.elements(x, sizes);
  return Scratch::of_floats(size) + cut_scratch(k_len == 0 ? 0 : size / k_len, k_len);
}
/// Floats of the product of input 0 and the matrix of that input.
int64_t product_len(const GraphView& g, const dvt_node& n, size_t matrix, const Sizes& sizes) {
  const uint32_t x = g.inputs(n)[0];
  const int64_t k_len = g.dims(x, sizes).back();
  return k_len == 0 ? 0 : g.elements(x, sizes) / k_len * g.dims(g.inputs(n)[matrix], sizes)[0];
}

// x, norm weight, w, bias, residual
void launch_linear(const NodeLaunch& n) {
  const RmsNorm& norm = *std::any_cast<RmsNorm>(n.prepared);
  const Array& x = n.in[0];
  const k::Matrix w = matrix_of(n.in[2]);
  if (x.rows() <= k::kDecodeTokens)
    return k::decode_linear(n.stream(), n.out[0].f32(), x.f32(), decode_norm(n, 1, norm), w,
                            floats_or_null(n, 3), floats_or_null(n, 4), x.rows());
  Scratch scratch(n.scratch);
  const uint8_t* cut = cut_normed(n, norm, scratch);
  k::linear(n.stream(), n.out[0].f32(), cut, w, floats_or_null(n, 3), floats_or_null(n, 4),
            x.rows());
}

// x, norm weight, gate, up, bias of gate, bias of up
void launch_gate_up(const NodeLaunch& n) {
  const RmsNorm& norm = *std::any_cast<RmsNorm>(n.prepared);
  const Array &x = n.in[0], &out = n.out[0];
  const k::Matrix gate = matrix_of(n.in[2]), up = matrix_of(n.in[3]);
  const float *gate_bias = floats_or_null(n, 4), *up_bias = floats_or_null(n, 5);
  if (x.rows() <= k::kDecodeTokens && gate.numbers == up.numbers)
    return k::decode_gate_up(n.stream(), out.f32(), x.f32(), decode_norm(n, 1, norm), gate, up,
                             gate_bias, up_bias, x.rows());
  Scratch scratch(n.scratch);
  const uint8_t* cut = cut_normed(n, norm, scratch);
  float *gates = scratch.floats(out.size()), *ups = scratch.floats(out.size());
  k::linear(n.stream(), gates, cut, gate, gate_bias, nullptr, x.rows());
  k::linear(n.stream(), ups, cut, up, up_bias, nullptr, x.rows());
  k::silu_mul(n.stream(), out.f32(), gates, ups, out.size());
}
uint64_t gate_up_scratch(const GraphView& g, const dvt_node& n, const Sizes& sizes) {
  return cut_normed_scratch(g, n, sizes) + 2 * Scratch::of_floats(product_len(g, n, 2, sizes));
}

// x, norm weight, wq, wk, wv, bq, bk, bv, norm weights of heads of q and of k, states of keys and of values
constexpr size_t kMatrices = 2, kBiases = 5, kHeadNorms = 8, kStates = 10;
struct Qkv {
  RmsNorm norm, q_norm, k_norm;
  std::shared_ptr<RopeTable> rope;
};
std::any prepare_qkv(const GraphView& g, const dvt_node& n, DevicePreparation& p) {
  const auto norm = [&](const char* prefix) {
    return RmsNorm::find(g, n, prefix).value_or(RmsNorm{});
  };
  return Qkv{norm("norm."), norm("q_norm."), norm("k_norm."), RopeTable::of(g, n, p)};
}
bool is_fused(const NodeLaunch& n) {
  const uint32_t dtype = n.in[kMatrices].dtype;
  return n.in[0].rows() <= k::kDecodeTokens && n.in[kMatrices + 1].dtype == dtype &&
         n.in[kMatrices + 2].dtype == dtype &&
         slot_of(n, kStates).group == slot_of(n, kStates + 1).group;
}
k::CacheNumbers numbers_of(const DeviceStates::Slot& slot) {
  if (slot.dtype == DVT_BF16) return k::CacheNumbers::kBf16;
  return slot.dtype == DVT_I8_SCALED ? k::CacheNumbers::kInt8 : k::CacheNumbers::kFloat32;
}
void launch_qkv_at_once(const NodeLaunch& n, const Qkv& qkv) {
  const DeviceStates::Slot &keys = slot_of(n, kStates), &values = slot_of(n, kStates + 1);
  const auto heads = [&](size_t part, const k::DecodeNorm& norm) {
    return k::DecodeHeads{n.in[kMatrices + part].data, floats_or_null(n, kBiases + part), norm};
  };
  k::decode_qkv(
      n.stream(),
      {n.in[0].f32(), decode_norm(n, 1, qkv.norm), heads(0, decode_norm(n, kHeadNorms, qkv.q_norm)),
       heads(1, decode_norm(n, kHeadNorms + 1, qkv.k_norm)), heads(2, {}),
       matrix_of(n.in[kMatrices]).numbers, n.in[0].last(), n.out[0].dim[1], qkv.rope->cosines(),
       qkv.rope->sines(), qkv.rope->half_len, n.out[0].f32(), layout_of(keys, n.states->page_len()),
       numbers_of(keys), keys.data, values.data, n.step->rows(keys.group),
       reinterpret_cast<float*>(n.scratch), n.counters});
}
/// The heads of q or k: product, norm, rope.
void launch_turned_heads(const NodeLaunch& n, const uint8_t* cut, size_t part, const RmsNorm& norm,
                         const RopeTable& rope, float* product, float* out) {
  const int64_t n_tokens = n.in[0].rows(), head_dim = n.out[0].dim[2];
  const k::Matrix w = matrix_of(n.in[kMatrices + part]);
  k::linear(n.stream(), product, cut, w, floats_or_null(n, kBiases + part), nullptr, n_tokens);
  if (n.has(kHeadNorms + part))
    k::rms_norm(n.stream(), product, product, n.in[kHeadNorms + part].f32(),
                n_tokens * w.n_rows / head_dim, head_dim, norm.eps, norm.weight_offset);
  k::rope_half_split(n.stream(), out, w.n_rows, product, w.n_rows, rope.cosines(), rope.sines(),
                     n_tokens, w.n_rows / head_dim, head_dim, rope.half_len);
}
void launch_qkv(const NodeLaunch& n) {
  const Qkv& qkv = *std::any_cast<Qkv>(n.prepared);
  if (is_fused(n)) return launch_qkv_at_once(n, qkv);
  const int64_t n_tokens = n.in[0].rows();
  Scratch scratch(n.scratch);
  const uint8_t* cut = cut_normed(n, qkv.norm, scratch);
  float* product = scratch.floats(n.out[0].size());
  float* turned = scratch.floats(n.out[0].size());
  launch_turned_heads(n, cut, 0, qkv.q_norm, *qkv.rope, product, n.out[0].f32());
  launch_turned_heads(n, cut, 1, qkv.k_norm, *qkv.rope, product, turned);
  write_rows(n, turned, kStates);
  k::linear(n.stream(), product, cut, matrix_of(n.in[kMatrices + 2]),
            floats_or_null(n, kBiases + 2), nullptr, n_tokens);
  write_rows(n, product, kStates + 1);
}
uint64_t qkv_scratch(const GraphView& g, const dvt_node& n, const Sizes& sizes) {
  const std::vector<int64_t> q =
      g.dims(g.outputs(n)[0], sizes);  // has at least as many heads as k and v
  const int64_t n_kv_heads = g.dims(g.inputs(n)[kStates], sizes)[0];
  const uint64_t in_turn =
      cut_normed_scratch(g, n, sizes) + 2 * Scratch::of_floats(q[0] * q[1] * q[2]);
  return std::max(in_turn, Scratch::of_floats(k::decode_qkv_products_len(q[1], n_kv_heads, q[2])));
}
int64_t qkv_counters(const GraphView& g, const dvt_node& n) {
  return g.dims(g.outputs(n)[0], {})[1] + 2 * g.dims(g.inputs(n)[kStates], {})[0];
}

constexpr DeviceOp kFusedOps[] = {
    {"cuda.linear", launch_linear, prepare_norm, cut_normed_scratch},
    {"cuda.gate_up", launch_gate_up, prepare_norm, gate_up_scratch},
    {"cuda.qkv", launch_qkv, prepare_qkv, qkv_scratch, qkv_counters},
};

}  // namespace

const DeviceOp* find_fused_op(std::string_view name) {
  for (const DeviceOp& op : kFusedOps)
    if (op.name == name) return &op;
  return nullptr;
}

}  // namespace dovetail::cuda
