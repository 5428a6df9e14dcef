// The core ops as obvious loops over float32: the oracle that every other backend is held to.
// One lane, no SIMD; the arithmetic itself is kernels/ref. Meaning of each op: core/graph/ops_core.cpp.
#include "ops.hpp"

#include <cmath>

#include <kernels/attend.hpp>
#include <kernels/convert.hpp>
#include <kernels/gather_rows.hpp>
#include <kernels/kv_cache.hpp>
#include <kernels/linear.hpp>
#include <kernels/pointwise.hpp>
#include <kernels/rope.hpp>

namespace dovetail::reference {
namespace {

namespace ref = kernels::ref;

void run_embed(const NodeRun& n, Lane, uint32_t) {
  const Array &ids = n.in[0], &table = n.in[1], &out = n.out[0];
  if (table.dtype == DVT_BF16)
    ref::gather_rows_bf16(out.f32(), static_cast<const uint16_t*>(table.data), ids.i32(),
                          ids.size(), table.last());
  else if (table.dtype == DVT_F16)
    ref::gather_rows_f16(out.f32(), static_cast<const kernels::F16*>(table.data), ids.i32(),
                         ids.size(), table.last());
  else
    ref::gather_rows_f32(out.f32(), table.f32(), ids.i32(), ids.size(), table.last());
}

void run_linear(const NodeRun& n, Lane, uint32_t) {
  const Array &x = n.in[0], &w = n.in[1], &y = n.out[0];
  const int64_t rows = x.rows(), k_len = x.last(), n_out = w.dim[0];
  if (w.dtype == DVT_BF16)
    ref::linear_bf16(y.f32(), n_out, x.f32(), k_len, static_cast<const uint16_t*>(w.data), rows,
                     k_len, 0, n_out);
  else if (w.dtype == DVT_F16)
    ref::linear_f16(y.f32(), n_out, x.f32(), k_len, static_cast<const kernels::F16*>(w.data), rows,
                    k_len, 0, n_out);
  else
    ref::linear_f32(y.f32(), n_out, x.f32(), k_len, w.f32(), rows, k_len, 0, n_out);
  if (n.has(2))
    for (int64_t r = 0; r < rows; ++r)
      ref::add(y.f32() + r * n_out, y.f32() + r * n_out, n.in[2].f32(), n_out);
}

// Applies fn(a, b) with b of a's shape, repeated over a's first dimensions, or one per row.
template <class Fn>
void elementwise(const NodeRun& n, Fn fn) {
  const Array &a = n.in[0], &b = n.in[1], &out = n.out[0];
  const int64_t size = a.size(), b_size = b.size();
  const bool per_row = b.ndim == a.ndim && b.last() == 1 && a.last() != 1;
  for (int64_t i = 0; i < size; ++i)
    out.f32()[i] = fn(a.f32()[i], b.f32()[per_row ? i / a.last() : i % b_size]);
}
void run_add(const NodeRun& n, Lane, uint32_t) {
  elementwise(n, [](float a, float b) { return a + b; });
}
void run_mul(const NodeRun& n, Lane, uint32_t) {
  elementwise(n, [](float a, float b) { return a * b; });
}
void run_silu(const NodeRun& n, Lane, uint32_t) {
  ref::silu(n.out[0].f32(), n.in[0].f32(), n.in[0].size());
}
void run_gelu_tanh(const NodeRun& n, Lane, uint32_t) {
  ref::gelu_tanh(n.out[0].f32(), n.in[0].f32(), n.in[0].size());
}

void run_mean_last(const NodeRun& n, Lane, uint32_t) {
  const Array& x = n.in[0];
  for (int64_t r = 0; r < x.rows(); ++r) {
    double sum = 0;
    for (int64_t i = 0; i < x.last(); ++i) sum += x.f32()[r * x.last() + i];
    n.out[0].f32()[r] = static_cast<float>(sum / static_cast<double>(x.last()));
  }
}
std::any prepare_scalar(const GraphView& g, const dvt_node& n, Preparation&) {
  return static_cast<float>(g.f64(n, "value"));
}
void run_add_scalar(const NodeRun& n, Lane, uint32_t) {
  const float value = *std::any_cast<float>(n.prepared);
  for (int64_t i = 0; i < n.in[0].size(); ++i) n.out[0].f32()[i] = n.in[0].f32()[i] + value;
}
void run_mul_scalar(const NodeRun& n, Lane, uint32_t) {
  const float value = *std::any_cast<float>(n.prepared);
  for (int64_t i = 0; i < n.in[0].size(); ++i) n.out[0].f32()[i] = n.in[0].f32()[i] * value;
}
void run_rsqrt(const NodeRun& n, Lane, uint32_t) {
  for (int64_t i = 0; i < n.in[0].size(); ++i)
    n.out[0].f32()[i] = 1.0f / std::sqrt(n.in[0].f32()[i]);
}

struct Rope {
  std::vector<float> inv_freq, cos, sin;
  float attention_factor;
};
std::any prepare_rope(const GraphView& g, const dvt_node& n, Preparation&) {
  const std::span<const double> f = g.f64_list(n, "inv_freq");
  auto rope = std::make_shared<Rope>();
  rope->inv_freq.assign(f.begin(), f.end());
  rope->cos.resize(f.size());
  rope->sin.resize(f.size());
  rope->attention_factor = static_cast<float>(g.f64(n, "attention_factor"));
  return rope;
}
void run_rope(const NodeRun& n, Lane, uint32_t) {
  Rope& rope = **std::any_cast<std::shared_ptr<Rope>>(n.prepared);
  const Array &x = n.in[0], &positions = n.in[1];
  const int64_t half = static_cast<int64_t>(rope.inv_freq.size()), n_heads = x.dim[1],
                head_dim = x.dim[2];
  for (int64_t t = 0; t < x.dim[0]; ++t) {
    ref::rope_table(rope.cos.data(), rope.sin.data(), positions.i32() + t, rope.inv_freq.data(), 1,
                    half, rope.attention_factor);
    const int64_t at = t * n_heads * head_dim;
    ref::rope_half_split(n.out[0].f32() + at, n_heads * head_dim, x.f32() + at, n_heads * head_dim,
                         rope.cos.data(), rope.sin.data(), 1, n_heads, head_dim, half);
  }
}

kernels::KvLayout layout_of(const HostStates::Slot& slot, uint32_t page_len) {
  return {static_cast<int64_t>(slot.n_outer), static_cast<int64_t>(slot.row_len), page_len,
          static_cast<int64_t>(slot.page_bytes / slot.element_bytes)};
}

void run_cache_write(const NodeRun& n, Lane, uint32_t) {
  const HostStates& states = *n.step->states;
  const HostStates::Slot& slot = states.slot(static_cast<uint32_t>(n.state[1]));
  const kernels::KvLayout layout = layout_of(slot, states.page_len());
  const dvt_page_group& group = n.step->group(slot.group);
  const dvt_batch& b = *n.step->batch;
  const int64_t row = layout.n_kv_heads * layout.head_dim;
  for (uint32_t s = 0; s < b.n_seqs; ++s) {
    const uint32_t first = b.tok_off[s];
    const int64_t count = b.tok_off[s + 1] - first;
    const uint32_t* pages = group.pages + group.page_off[s];
    const float* rows = n.in[0].f32() + first * row;
    if (slot.dtype == DVT_BF16)
      ref::cache_write_bf16(reinterpret_cast<uint16_t*>(slot.data), layout, pages,
                            b.positions[first], rows, row, count);
    else if (slot.dtype == DVT_I8_SCALED)
      ref::cache_write_int8(reinterpret_cast<int8_t*>(slot.data), layout, pages, b.positions[first],
                            rows, row, count);
    else
      ref::cache_write_f32(reinterpret_cast<float*>(slot.data), layout, pages, b.positions[first],
                           rows, row, count);
  }
}

struct Attend {
  float scale;
  int64_t window;
};
std::any prepare_attend(const GraphView& g, const dvt_node& n, Preparation&) {
  const int64_t window = g.i64(n, "window");
  return Attend{static_cast<float>(g.f64(n, "scale")), window == 0 ? INT64_MAX : window};
}
void run_attend(const NodeRun& n, Lane, uint32_t) {
  const Attend& attend = *std::any_cast<Attend>(n.prepared);
  const HostStates& states = *n.step->states;
  const HostStates::Slot& k = states.slot(static_cast<uint32_t>(n.state[1]));
  const HostStates::Slot& v = states.slot(static_cast<uint32_t>(n.state[2]));
  const kernels::KvLayout layout = layout_of(k, states.page_len());
  const dvt_page_group& group = n.step->group(k.group);
  const dvt_batch& b = *n.step->batch;
  const Array &q = n.in[0], &out = n.out[0];
  const int64_t stride = q.dim[1] * q.dim[2];
  for (uint32_t s = 0; s < b.n_seqs; ++s) {
    const uint32_t first = b.tok_off[s];
    for (int64_t head = 0; head < layout.n_kv_heads; ++head) {
      const kernels::AttendTask task{out.f32() + first * stride,
                                     stride,
                                     q.f32() + first * stride,
                                     stride,
                                     b.tok_off[s + 1] - first,
                                     b.positions[first],
                                     head,
                                     q.dim[1] / layout.n_kv_heads,
                                     attend.window,
                                     attend.scale};
      const uint32_t* pages = group.pages + group.page_off[s];
      if (k.dtype == DVT_BF16)
        ref::attend_bf16(task, layout, reinterpret_cast<const uint16_t*>(k.data),
                         reinterpret_cast<const uint16_t*>(v.data), pages);
      else if (k.dtype == DVT_I8_SCALED)
        ref::attend_int8(task, layout, reinterpret_cast<const int8_t*>(k.data),
                         reinterpret_cast<const int8_t*>(v.data), pages);
      else
        ref::attend_f32(task, layout, reinterpret_cast<const float*>(k.data),
                        reinterpret_cast<const float*>(v.data), pages);
    }
  }
}

void run_take_rows(const NodeRun& n, Lane, uint32_t) {
  const int64_t row_len = n.in[0].size() / n.in[0].dim[0];
  ref::gather_rows_f32(n.out[0].f32(), n.in[0].f32(), n.in[1].i32(), n.in[1].size(), row_len);
}

void run_nothing(const NodeRun&, Lane, uint32_t) {}  // reshape: the value shares its input's memory

constexpr HostOp kOps[] = {
    {"embed", run_embed},
    {"linear", run_linear},
    {"reshape", run_nothing},
    {"add", run_add},
    {"mul", run_mul},
    {"silu", run_silu},
    {"gelu_tanh", run_gelu_tanh},
    {"mean_last", run_mean_last},
    {"add_scalar", run_add_scalar, 1, prepare_scalar},
    {"mul_scalar", run_mul_scalar, 1, prepare_scalar},
    {"rsqrt", run_rsqrt},
    {"rope", run_rope, 1, prepare_rope},
    {"cache_write", run_cache_write},
    {"attend", run_attend, 1, prepare_attend},
    {"take_rows", run_take_rows},
};

}  // namespace

const HostOp* find_op(std::string_view name) {
  for (const HostOp& op : kOps)
    if (op.name == name) return &op;
  return nullptr;
}

}  // namespace dovetail::reference
