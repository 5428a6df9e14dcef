// The ops, each over kernels/cuda. Meaning of each: core/graph/ops_core.cpp and ops_composite.cpp.
#include "ops.hpp"

#include <kernels/attend.hpp>

#include "op_parts.hpp"
#include "weights.hpp"

namespace dovetail::cuda {
namespace {

namespace k = kernels::cuda;

void launch_embed(const NodeLaunch& n) {
  const Array &ids = n.in[0], &table = n.in[1], &out = n.out[0];
  const auto gather = [&](const auto* rows) {
    k::gather_rows(n.stream(), out.f32(), rows, ids.i32(), ids.size(), table.last());
  };
  if (const auto format = packed_format(table.dtype))
    return k::gather_packed_rows(n.stream(), out.f32(), table.data, *format, ids.i32(), ids.size(),
                                 table.last());
  if (table.dtype == DVT_BF16) return gather(static_cast<const uint16_t*>(table.data));
  if (table.dtype == DVT_F16) return gather(static_cast<const kernels::F16*>(table.data));
  gather(table.f32());
}

void launch_linear(const NodeLaunch& n) {
  const Array& x = n.in[0];
  const float* bias = n.has(2) ? n.in[2].f32() : nullptr;
  if (x.rows() <= k::kDecodeTokens)
    return k::decode_linear(n.stream(), n.out[0].f32(), x.f32(), {}, matrix_of(n.in[1]), bias,
                            nullptr, x.rows());
  k::cut_activations(n.stream(), n.scratch, x.f32(), x.rows(), x.last());
  k::linear(n.stream(), n.out[0].f32(), n.scratch, matrix_of(n.in[1]), bias, nullptr, x.rows());
}
uint64_t linear_scratch(const GraphView& g, const dvt_node& n, const Sizes& sizes) {
  const uint32_t x = g.inputs(n)[0];
  const int64_t k_len = g.dims(x, sizes).back();
  return cut_scratch(k_len == 0 ? 0 : g.elements(x, sizes) / k_len, k_len);
}

// b has a's shape, or a's last dimensions, or one element per row.
k::Broadcast broadcast_of(const Array& a, const Array& b) {
  const bool per_row = b.ndim == a.ndim && b.last() == 1 && a.last() != 1;
  return per_row ? k::Broadcast{a.last(), b.size()} : k::Broadcast{1, b.size()};
}
void launch_add(const NodeLaunch& n) {
  k::add(n.stream(), n.out[0].f32(), n.in[0].f32(), n.in[1].f32(), n.in[0].size(),
         broadcast_of(n.in[0], n.in[1]));
}
void launch_mul(const NodeLaunch& n) {
  k::mul(n.stream(), n.out[0].f32(), n.in[0].f32(), n.in[1].f32(), n.in[0].size(),
         broadcast_of(n.in[0], n.in[1]));
}
void launch_swiglu(const NodeLaunch& n) {
  k::silu_mul(n.stream(), n.out[0].f32(), n.in[0].f32(), n.in[1].f32(), n.in[0].size());
}
void launch_silu(const NodeLaunch& n) {
  k::silu(n.stream(), n.out[0].f32(), n.in[0].f32(), n.in[0].size());
}
void launch_gelu_tanh(const NodeLaunch& n) {
  k::gelu_tanh(n.stream(), n.out[0].f32(), n.in[0].f32(), n.in[0].size());
}
void launch_rsqrt(const NodeLaunch& n) {
  k::rsqrt(n.stream(), n.out[0].f32(), n.in[0].f32(), n.in[0].size());
}
void launch_mean_last(const NodeLaunch& n) {
  k::mean_rows(n.stream(), n.out[0].f32(), n.in[0].f32(), n.in[0].rows(), n.in[0].last());
}
std::any prepare_scalar(const GraphView& g, const dvt_node& n, DevicePreparation&) {
  return static_cast<float>(g.f64(n, "value"));
}
void launch_add_scalar(const NodeLaunch& n) {
  k::add_scalar(n.stream(), n.out[0].f32(), n.in[0].f32(), *std::any_cast<float>(n.prepared),
                n.in[0].size());
}
void launch_mul_scalar(const NodeLaunch& n) {
  k::mul_scalar(n.stream(), n.out[0].f32(), n.in[0].f32(), *std::any_cast<float>(n.prepared),
                n.in[0].size());
}

std::any prepare_rms_norm(const GraphView& g, const dvt_node& n, DevicePreparation&) {
  return *RmsNorm::find(g, n);
}
void launch_rms_norm(const NodeLaunch& n) {
  const RmsNorm& norm = *std::any_cast<RmsNorm>(n.prepared);
  const Array& x = n.in[0];
  k::rms_norm(n.stream(), n.out[0].f32(), x.f32(), n.in[1].f32(), x.rows(), x.last(), norm.eps,
              norm.weight_offset);
}

std::any prepare_rope(const GraphView& g, const dvt_node& n, DevicePreparation& p) {
  return RopeTable::of(g, n, p);
}
void launch_rope(const NodeLaunch& n) {
  const RopeTable& table = **std::any_cast<std::shared_ptr<RopeTable>>(n.prepared);
  const Array& x = n.in[0];
  const int64_t stride = x.dim[1] * x.dim[2];
  k::rope_half_split(n.stream(), n.out[0].f32(), stride, x.f32(), stride, table.cosines(),
                     table.sines(), x.dim[0], x.dim[1], x.dim[2], table.half_len);
}

void launch_cache_write(const NodeLaunch& n) {
  write_rows(n, n.in[0].f32(), 1);
}

struct Attend {
  float scale;
  int64_t window;
};
std::any prepare_attend(const GraphView& g, const dvt_node& n, DevicePreparation&) {
  const int64_t window = g.i64(n, "window");
  return Attend{static_cast<float>(g.f64(n, "scale")), window == 0 ? INT64_MAX : window};
}
// With few tokens each chunk of a long context has blocks of its own, so that one sequence can fill the device.
constexpr int64_t kMostSplitTokens = 64, kMostParts = 1024;  // parts of a head
void attend_rows(const NodeLaunch& n, size_t k_state) {
  const Attend& attend = *std::any_cast<Attend>(n.prepared);
  const DeviceStates::Slot &keys = slot_of(n, k_state), &values = slot_of(n, k_state + 1);
  const Array &q = n.in[0], &out = n.out[0];
  const kernels::KvLayout layout = layout_of(keys, n.states->page_len());
  const int64_t n_tokens = q.dim[0], n_heads = q.dim[1];
  const Step::Tiles tiles = n.step->tiles(k::attend_tile_len(n_heads / layout.n_kv_heads));
  const int64_t n_chunks =
      (n.step->shape().room + kernels::kAttendChunk - 1) / kernels::kAttendChunk;
  const bool is_split =
      n_chunks > 1 && n_tokens <= kMostSplitTokens && n_tokens * n_chunks <= kMostParts;
  const k::AttendArgs args{out.f32(),     q.f32(),
                           tiles.g_tiles, tiles.n,
                           n_heads,       attend.window,
                           attend.scale,  is_split ? reinterpret_cast<float*>(n.scratch) : nullptr,
                           n_chunks,      n.counters};
  with_element(keys, [&](auto* base) {
    k::attend(n.stream(), args, layout, n.step->rows(keys.group), base,
              reinterpret_cast<decltype(base)>(values.data));
  });
}
uint64_t attend_scratch(const GraphView& g, const dvt_node& n, const Sizes& sizes) {
  const std::vector<int64_t> q = g.dims(g.inputs(n)[0], sizes);
  return static_cast<uint64_t>(kMostParts * q[1] * kernels::attend_part_len(q[2])) * sizeof(float);
}
int64_t attend_counters(const GraphView& g, const dvt_node& n) {
  return kMostSplitTokens * g.dims(g.inputs(n)[0], {})[1];
}
void launch_attend(const NodeLaunch& n) {
  attend_rows(n, 1);
}
void launch_attention(const NodeLaunch& n) {
  write_rows(n, n.in[1].f32(), 3);
  write_rows(n, n.in[2].f32(), 4);
  attend_rows(n, 3);
}

void launch_take_rows(const NodeLaunch& n) {
  const Array &x = n.in[0], &rows = n.in[1];
  const float* table = x.f32();
  k::gather_rows(n.stream(), n.out[0].f32(), table, rows.i32(), rows.size(), x.width());
}

void launch_nothing(const NodeLaunch&) {}  // reshape: the value shares its input's memory

constexpr DeviceOp kOps[] = {
    {"embed", launch_embed},
    {"linear", launch_linear, nullptr, linear_scratch},
    {"reshape", launch_nothing},
    {"add", launch_add},
    {"mul", launch_mul},
    {"silu", launch_silu},
    {"gelu_tanh", launch_gelu_tanh},
    {"mean_last", launch_mean_last},
    {"add_scalar", launch_add_scalar, prepare_scalar},
    {"mul_scalar", launch_mul_scalar, prepare_scalar},
    {"rsqrt", launch_rsqrt},
    {"rope", launch_rope, prepare_rope},
    {"cache_write", launch_cache_write},
    {"attend", launch_attend, prepare_attend, attend_scratch, attend_counters},
    {"take_rows", launch_take_rows},
    {"rms_norm", launch_rms_norm, prepare_rms_norm},
    {"swiglu", launch_swiglu},
    {"attention", launch_attention, prepare_attend, attend_scratch, attend_counters},
};

bool is_attention(std::string_view op) {
  return op == "attend" || op == "attention";
}

}  // namespace

const DeviceOp* find_op(std::string_view name) {
  for (const DeviceOp& op : kOps)
    if (op.name == name) return &op;
  return find_fused_op(name);
}

std::string_view why_not(const GraphView& g, const dvt_node& n) {
  if (is_attention(g.op_name(n)) && g.dims(g.inputs(n)[0], {}).back() > k::kMaxHeadDim)
    return "heads are longer than 256";
  return {};
}

int64_t attend_tile_len(const GraphView& g, const dvt_node& n) {
  if (!is_attention(g.op_name(n))) return 0;
  const uint32_t keys = g.inputs(n)[g.op_name(n) == "attend" ? 1 : 3];
  return k::attend_tile_len(g.dims(g.inputs(n)[0], {})[1] / g.dims(keys, {})[0]);
}

}  // namespace dovetail::cuda
