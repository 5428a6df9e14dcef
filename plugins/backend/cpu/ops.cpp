// What each op does on all lanes: how its work is cut, which kernel runs on each part. The cut never
// changes a value: a kernel's result for a row depends on that row alone. Products are dealt out to lanes
// as they come for work; what lies between two products owns columns (see host_cut.hpp), so that a decoder
// layer needs lanes to meet six times when a step has few tokens.
#include "ops.hpp"

#include <algorithm>
#include <cmath>

#include <kernels/cpu.hpp>

#include "attention.hpp"
#include "packed_weights.hpp"
#include "rope_tables.hpp"

namespace dovetail::cpu {
namespace {

const kernels::CpuKernels& k(const NodeRun& n) {
  return *static_cast<const kernels::CpuKernels*>(n.step->context);
}
const uint16_t* bf16(const Array& a) {
  return static_cast<const uint16_t*>(a.data);
}
const kernels::F16* f16(const Array& a) {
  return static_cast<const kernels::F16*>(a.data);
}

// ---------------------------------------------------------------- rows and elements

void run_embed(const NodeRun& n, Lane lane, uint32_t) {
  const Array &ids = n.in[0], &table = n.in[1], &out = n.out[0];
  const auto [begin, end] = lane.range(ids.size());
  if (is_packed(table.dtype)) {
    const PackedKernels packed = packed_kernels(k(n), table.dtype);
    for (int64_t i = begin; i < end; ++i)
      packed.unpack_row(out.f32() + i * table.last(), table.data, ids.i32()[i], table.dim[0],
                        table.last());
    return;
  }
  float* to = out.f32() + begin * table.last();
  if (table.dtype == DVT_BF16)
    k(n).gather_rows_bf16(to, bf16(table), ids.i32() + begin, end - begin, table.last());
  else if (table.dtype == DVT_F16)
    k(n).gather_rows_f16(to, f16(table), ids.i32() + begin, end - begin, table.last());
  else
    k(n).gather_rows_f32(to, table.f32(), ids.i32() + begin, end - begin, table.last());
}

// Stripes of output columns go to lanes as they come for them, so that each weight row is read once, by
// one lane.
CutRule cut_linear(const GraphView&, const dvt_node&) {
  return {0, 0, false, 1};
}
// Columns [begin, end) of y: set to the product, or with it added.
void multiply(const NodeRun& n, Lane lane, Lane::Range columns, bool adds) {
  const Array &x = n.in[0], &w = n.in[1], &y = n.out[0];
  const int64_t rows = x.rows(), k_len = x.last(), n_out = w.dim[0];
  const auto [begin, end] = columns;
  const float* x_rows = x.f32(lane);
  if (w.dtype == DVT_BF16)
    (adds ? k(n).linear_add_bf16 : k(n).linear_bf16)(y.f32(), n_out, x_rows, k_len, bf16(w), rows,
                                                     k_len, begin, end);
  else if (w.dtype == DVT_F16)
    (adds ? k(n).linear_add_f16 : k(n).linear_f16)(y.f32(), n_out, x_rows, k_len, f16(w), rows,
                                                   k_len, begin, end);
  else
    (adds ? k(n).linear_add_f32 : k(n).linear_f32)(y.f32(), n_out, x_rows, k_len, w.f32(), rows,
                                                   k_len, begin, end);
}
void multiply_packed(const NodeRun& n, Lane lane, Lane::Range columns, bool adds) {
  const Array &xq = n.in[0], &w = n.in[1], &y = n.out[0];
  const PackedKernels packed = packed_kernels(k(n), w.dtype);
  (adds ? packed.linear_add : packed.linear)(y.f32(), w.dim[0], xq.at(lane), w.data, xq.rows(),
                                             w.dim[0], w.dim[1], columns.begin, columns.end);
}
// Whether a product is bound by reading its weights.
bool streams(const NodeRun& n) {
  return n.in[0].rows() <= kFewRows;
}
// The third input, if any, is a bias [n_out].
template <auto kMultiply, int64_t kGrain>
void run_product(const NodeRun& n, Lane lane, uint32_t) {
  const int64_t n_out = n.in[1].dim[0];
  n.deal(lane, n_out, kGrain, streams(n), [&](int64_t begin, int64_t end) {
    if (n.has(2))
      for (int64_t r = 0; r < n.in[0].rows(); ++r)
        std::copy(n.in[2].f32() + begin, n.in[2].f32() + end, n.out[0].f32() + r * n_out + begin);
    kMultiply(n, lane, {begin, end}, n.has(2));
  });
}
// The third input is in y's memory (with_residuals).
template <auto kMultiply, int64_t kGrain>
void run_product_add(const NodeRun& n, Lane lane, uint32_t) {
  n.deal(lane, n.in[1].dim[0], kGrain, streams(n), [&](int64_t begin, int64_t end) {
    kMultiply(n, lane, {begin, end}, true);
  });
}
CutRule cut_linear_add(const GraphView& g, const dvt_node& n) {
  CutRule rule = cut_linear(g, n);
  rule.in_place = 2;
  return rule;
}

// Activations for products with packed weights, quantised once for all of them.
CutRule cut_quantize(const GraphView&, const dvt_node&) {
  return {0, 0, true, 1};
}
void run_quantize(const NodeRun& n, Lane lane, uint32_t) {
  const Array &x = n.in[0], &out = n.out[0];
  if (out.lane_bytes > 0)
    return k(n).quantize_activations(out.at(lane), x.f32(lane), x.last(), x.rows(), x.last());
  const auto [begin, end] = lane.range(x.rows());
  k(n).quantize_activations(static_cast<uint8_t*>(out.data) + begin * out.last(),
                            x.f32(lane) + begin * x.last(), x.last(), end - begin, x.last());
}

// b has a's shape, repeats over a's rows, or holds one value per row.
CutRule cut_binary(const GraphView& g, const dvt_node& n) {
  const uint32_t a = g.inputs(n)[0], b = g.inputs(n)[1];
  const Sizes ones{1, 1, 1};
  if (g.val(a).ndim < 2 || g.dims(a, ones) != g.dims(b, ones)) return {};
  return {Cuts::width(g, a), 0b11};
}
CutRule cut_unary(const GraphView& g, const dvt_node& n) {
  return g.val(g.outputs(n)[0]).ndim < 2 ? CutRule{}
                                         : CutRule{Cuts::width(g, g.outputs(n)[0]), 0b1};
}
void binary(const NodeRun& n, Lane lane, kernels::BinaryFn* fn) {
  const Array &a = n.in[0], &b = n.in[1], &out = n.out[0];
  if (n.units > 0) {
    const int64_t width = out.width();
    const auto [begin, end] = n.columns(lane, width);
    for (int64_t r = 0; r < out.dim[0]; ++r)
      fn(out.f32() + r * width + begin, a.f32() + r * width + begin, b.f32() + r * width + begin,
         end - begin);
    return;
  }
  if (b.size() == a.size()) {
    const auto [begin, end] = lane.range(a.size(), 64);
    fn(out.f32() + begin, a.f32() + begin, b.f32() + begin, end - begin);
    return;
  }
  const bool per_row = b.ndim == a.ndim && b.last() == 1;
  const int64_t width = per_row ? a.last() : b.size();
  const auto [begin, end] = lane.range(a.size() / width);
  for (int64_t r = begin; r < end; ++r) {
    float* to = out.f32() + r * width;
    const float* from = a.f32() + r * width;
    if (!per_row) {
      fn(to, from, b.f32(), width);
    } else {
      for (int64_t i = 0; i < width; ++i) fn(to + i, from + i, b.f32() + r, 1);
    }
  }
}
void run_add(const NodeRun& n, Lane lane, uint32_t) {
  binary(n, lane, k(n).add);
}
void run_mul(const NodeRun& n, Lane lane, uint32_t) {
  binary(n, lane, k(n).mul);
}
void run_swiglu(const NodeRun& n, Lane lane, uint32_t) {
  binary(n, lane, k(n).silu_mul);
}
void unary(const NodeRun& n, Lane lane, kernels::UnaryFn* fn) {
  if (n.units > 0) {
    const Array& out = n.out[0];
    const int64_t width = out.width();
    const auto [begin, end] = n.columns(lane, width);
    for (int64_t r = 0; r < out.dim[0]; ++r)
      fn(out.f32() + r * width + begin, n.in[0].f32() + r * width + begin, end - begin);
    return;
  }
  const auto [begin, end] = lane.range(n.in[0].size(), 64);
  fn(n.out[0].f32() + begin, n.in[0].f32() + begin, end - begin);
}
void run_silu(const NodeRun& n, Lane lane, uint32_t) {
  unary(n, lane, k(n).silu);
}
void run_gelu_tanh(const NodeRun& n, Lane lane, uint32_t) {
  unary(n, lane, k(n).gelu_tanh);
}

// The parts of definitions that run natively here: only graphs that use them by name come this way.
void run_mean_last(const NodeRun& n, Lane lane, uint32_t) {
  const Array& x = n.in[0];
  const auto [begin, end] = lane.range(x.rows());
  for (int64_t r = begin; r < end; ++r) {
    double sum = 0;
    for (int64_t i = 0; i < x.last(); ++i) sum += static_cast<double>(x.f32()[r * x.last() + i]);
    n.out[0].f32()[r] = static_cast<float>(sum / static_cast<double>(x.last()));
  }
}
std::any prepare_scalar(const GraphView& g, const dvt_node& n, Preparation&) {
  return static_cast<float>(g.f64(n, "value"));
}
void run_add_scalar(const NodeRun& n, Lane lane, uint32_t) {
  const float value = *std::any_cast<float>(n.prepared);
  const auto [begin, end] = lane.range(n.in[0].size(), 64);
  for (int64_t i = begin; i < end; ++i) n.out[0].f32()[i] = n.in[0].f32()[i] + value;
}
void run_mul_scalar(const NodeRun& n, Lane lane, uint32_t) {
  const float value = *std::any_cast<float>(n.prepared);
  const auto [begin, end] = lane.range(n.in[0].size(), 64);
  for (int64_t i = begin; i < end; ++i) n.out[0].f32()[i] = n.in[0].f32()[i] * value;
}
void run_rsqrt(const NodeRun& n, Lane lane, uint32_t) {
  const auto [begin, end] = lane.range(n.in[0].size(), 64);
  for (int64_t i = begin; i < end; ++i) n.out[0].f32()[i] = 1.0f / std::sqrt(n.in[0].f32()[i]);
}

struct RmsNorm {
  float eps, weight_offset;
};
std::any prepare_rms_norm(const GraphView& g, const dvt_node& n, Preparation&) {
  return RmsNorm{static_cast<float>(g.f64(n, "eps")), static_cast<float>(g.i64(n, "unit_offset"))};
}
// A norm of heads owns heads; one of whole rows is done by every lane where rows are few.
CutRule cut_rms_norm(const GraphView& g, const dvt_node& n) {
  const uint32_t x = g.inputs(n)[0];
  if (g.val(x).ndim < 2) return {};
  const int64_t width = Cuts::width(g, x),
                norm_len = g.dim(g.val(x).dim0 + g.val(x).ndim - 1).value;
  return width == norm_len ? CutRule{0, 0, true} : CutRule{width / norm_len, 0b1};
}
void run_rms_norm(const NodeRun& n, Lane lane, uint32_t) {
  const RmsNorm& norm = *std::any_cast<RmsNorm>(n.prepared);
  const Array &x = n.in[0], &out = n.out[0];
  if (out.lane_bytes > 0)
    return k(n).rms_norm(out.f32(lane), x.f32(), n.in[1].f32(), x.rows(), x.last(), norm.eps,
                         norm.weight_offset);
  if (n.units > 0) {
    const int64_t width = x.width();
    const auto [from, to] = n.columns(lane, width);
    for (int64_t r = 0; r < x.dim[0]; ++r)
      k(n).rms_norm(out.f32() + r * width + from, x.f32() + r * width + from, n.in[1].f32(),
                    (to - from) / x.last(), x.last(), norm.eps, norm.weight_offset);
    return;
  }
  const auto [begin, end] = lane.range(x.rows());
  const int64_t at = begin * x.last();
  k(n).rms_norm(n.out[0].f32() + at, x.f32() + at, n.in[1].f32(), end - begin, x.last(), norm.eps,
                norm.weight_offset);
}

void run_take_rows(const NodeRun& n, Lane lane, uint32_t) {
  const Array &x = n.in[0], &rows = n.in[1];
  const int64_t row_len = x.dim[0] == 0 ? 0 : x.size() / x.dim[0];
  const auto [begin, end] = lane.range(rows.size());
  k(n).gather_rows_f32(n.out[0].f32() + begin * row_len, x.f32(), rows.i32() + begin, end - begin,
                       row_len);
}

void run_nothing(const NodeRun&, Lane, uint32_t) {}  // reshape: the value shares its input's memory

// ---------------------------------------------------------------- rope

// Nodes with the same frequencies share one table, filled when a step starts.
std::any prepare_rope(const GraphView& g, const dvt_node& n, Preparation& program) {
  if (g.str(g.val(g.inputs(n)[1]).name) != "positions")
    throw Error("rope takes the positions of the step, nothing computed from them",
                DVT_EUNSUPPORTED, std::string(g.str(n.scope)));
  const std::span<const double> freq = g.f64_list(n, "inv_freq");
  const double factor = g.f64(n, "attention_factor");
  std::string key(reinterpret_cast<const char*>(freq.data()), freq.size_bytes());
  key.append(reinterpret_cast<const char*>(&factor), sizeof factor);
  std::any& shared = program.shared["rope:" + key];
  if (!shared.has_value()) {
    const auto tables = std::make_shared<RopeTables>(freq, factor, program.max.tokens);
    shared = tables;
    program.at_start.push_back([tables](const StepView& step, Lane lane) {
      tables->fill(*static_cast<const kernels::CpuKernels*>(step.context), step.batch->positions,
                   step.batch->n_tokens, lane);
    });
  }
  return shared;
}
CutRule cut_rope(const GraphView& g, const dvt_node& n) {
  return {g.dim(g.val(g.inputs(n)[0]).dim0 + 1).value, 0b1};  // heads
}
void run_rope(const NodeRun& n, Lane lane, uint32_t) {
  const RopeTables& rope = **std::any_cast<std::shared_ptr<RopeTables>>(n.prepared);
  const Array& x = n.in[0];
  const int64_t n_tokens = x.dim[0], n_heads = x.dim[1], head_dim = x.dim[2],
                row = n_heads * head_dim;
  if (n.units > 0) {
    const auto [begin, end] = n.columns(lane, row);
    k(n).rope_half_split(n.out[0].f32() + begin, row, x.f32() + begin, row, rope.cos(), rope.sin(),
                         n_tokens, (end - begin) / head_dim, head_dim, rope.half_len());
    return;
  }
  // Decode has fewer tokens than lanes: cut by heads then.
  if (n_tokens < lane.count) {
    const auto [begin, end] = lane.range(n_heads);
    k(n).rope_half_split(n.out[0].f32() + begin * head_dim, row, x.f32() + begin * head_dim, row,
                         rope.cos(), rope.sin(), n_tokens, end - begin, head_dim, rope.half_len());
    return;
  }
  const auto [begin, end] = lane.range(n_tokens);
  const int64_t table = begin * rope.half_len();
  k(n).rope_half_split(n.out[0].f32() + begin * row, row, x.f32() + begin * row, row,
                       rope.cos() + table, rope.sin() + table, end - begin, n_heads, head_dim,
                       rope.half_len());
}

constexpr HostOp kOps[] = {
    {"embed", run_embed},
    {"linear", run_product<multiply, 16>, 1, nullptr, cut_linear},
    {"cpu.linear_add", run_product_add<multiply, 16>, 1, nullptr, cut_linear_add},
    {"cpu.quantize", run_quantize, 1, nullptr, cut_quantize},
    {"cpu.linear_packed", run_product<multiply_packed, kernels::kPackedRows>, 1, nullptr,
     cut_linear},
    {"cpu.linear_packed_add", run_product_add<multiply_packed, kernels::kPackedRows>, 1, nullptr,
     cut_linear_add},
    {"reshape", run_nothing},
    {"add", run_add, 1, nullptr, cut_binary},
    {"mul", run_mul, 1, nullptr, cut_binary},
    {"silu", run_silu, 1, nullptr, cut_unary},
    {"gelu_tanh", run_gelu_tanh, 1, nullptr, cut_unary},
    {"mean_last", run_mean_last},
    {"add_scalar", run_add_scalar, 1, prepare_scalar},
    {"mul_scalar", run_mul_scalar, 1, prepare_scalar},
    {"rsqrt", run_rsqrt},
    {"swiglu", run_swiglu, 1, nullptr, cut_binary},
    {"rms_norm", run_rms_norm, 1, prepare_rms_norm, cut_rms_norm},
    {"rope", run_rope, 1, prepare_rope, cut_rope},
    {"cache_write", run_cache_write},
    {"attend", run_attend, 1, prepare_attend},
    {"attention", run_attention, 2, prepare_attention, cut_attention},
    {"take_rows", run_take_rows},
};

}  // namespace

const HostOp* find_op(std::string_view name) {
  for (const HostOp& op : kOps)
    if (op.name == name) return &op;
  return nullptr;
}

}  // namespace dovetail::cpu
