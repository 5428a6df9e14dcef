// The composite ops: the vocabulary of language models, each with its definition in core ops. The
// definition is the meaning; a backend's native version is held to it by the contract suite.
#include "core/graph/op_registry.hpp"

namespace dovetail::core {
namespace {

using Types = std::vector<ValueType>;
using Values = Result<std::vector<uint32_t>>;

Attr number(const char* key, double value) {
  Attr a;
  a.key = key;
  a.type = DVT_ATTR_F64;
  a.flags = DVT_ATTR_MUST;
  a.f64 = {value};
  return a;
}

// Emits a core op with one result.
Result<uint32_t> one(const OpCall& c, const char* op, const std::vector<uint32_t>& in,
                     const std::vector<Attr>& attrs = {}) {
  DVT_TRY(const std::vector<uint32_t> out, c.writer.emit(op, 1, in, attrs));
  return out[0];
}

// rms_norm: x [.., D], weight [D]; eps, unit_offset -> [.., D]
Status infer_rms_norm(const OpCall& c, Types& out) {
  const auto& x = c.types[0].dims;
  const auto& w = c.types[1].dims;
  if (x.empty() || w.size() != 1 || !same_dim(x.back(), w[0]))
    return invalid("x is " + c.shape(0) + " and weight is " + c.shape(1) +
                   ", expected [.., D] and [D]");
  DVT_TRY([[maybe_unused]] const double eps, c.f64("eps"));
  DVT_TRY([[maybe_unused]] const int64_t offset, c.i64("unit_offset"));
  out = {c.types[0]};
  return Status::ok();
}

Values define_rms_norm(const OpCall& c) {
  DVT_TRY(const double eps, c.f64("eps"));
  DVT_TRY(const int64_t unit_offset, c.i64("unit_offset"));
  DVT_TRY(const uint32_t square, one(c, "mul", {c.in[0], c.in[0]}));
  DVT_TRY(const uint32_t mean, one(c, "mean_last", {square}));
  DVT_TRY(const uint32_t shifted, one(c, "add_scalar", {mean}, {number("value", eps)}));
  DVT_TRY(const uint32_t scale, one(c, "rsqrt", {shifted}));
  DVT_TRY(const uint32_t unit, one(c, "mul", {c.in[0], scale}));
  uint32_t weight = c.in[1];
  if (unit_offset != 0) {
    DVT_TRY(const uint32_t moved, one(c, "add_scalar", {weight}, {number("value", 1.0)}));
    weight = moved;
  }
  DVT_TRY(const uint32_t out, one(c, "mul", {unit, weight}));
  return std::vector<uint32_t>{out};
}

// swiglu: gate, up -> silu(gate) * up
Status infer_swiglu(const OpCall& c, Types& out) {
  const auto& a = c.types[0].dims;
  const auto& b = c.types[1].dims;
  bool same = a.size() == b.size();
  for (size_t i = 0; same && i < a.size(); ++i) same = same_dim(a[i], b[i]);
  if (!same)
    return invalid("gate is " + c.shape(0) + " and up is " + c.shape(1) +
                   ", expected the same shape");
  out = {c.types[0]};
  return Status::ok();
}

Values define_swiglu(const OpCall& c) {
  DVT_TRY(const uint32_t gate, one(c, "silu", {c.in[0]}));
  DVT_TRY(const uint32_t out, one(c, "mul", {gate, c.in[1]}));
  return std::vector<uint32_t>{out};
}

// attention: q [T, H, E], k [T, G, E], v [T, G, E], states k and v, positions; scale, window -> [T, H, E]
Status infer_attention(const OpCall& c, Types& out) {
  const auto& q = c.types[0].dims;
  const auto& k = c.types[1].dims;
  const auto& v = c.types[2].dims;
  const Graph& g = c.writer.graph();
  if (q.size() != 3 || k.size() != 3 || v.size() != 3 || !same_dim(q[2], k[2]) ||
      !same_dim(k[1], v[1]) || k[1].value <= 0 || q[1].value % k[1].value != 0)
    return invalid("q, k, v are " + c.shape(0) + ", " + c.shape(1) + ", " + c.shape(2) +
                   ", expected [T, H, E] and [T, G, E] with H a multiple of G");
  for (size_t i = 0; i < 2; ++i) {
    const auto& rows = c.types[3 + i].dims;
    if (g.val(c.in[3 + i]).role != DVT_VAL_STATE || rows.size() != 2 ||
        !same_dim(rows[0], c.types[1 + i].dims[1]) || !same_dim(rows[1], c.types[1 + i].dims[2]))
      return invalid("a cache state has rows " + c.shape(3 + i) + ", expected those of " +
                     c.shape(1 + i));
  }
  DVT_TRY([[maybe_unused]] const double scale, c.f64("scale"));
  DVT_TRY(const int64_t window, c.i64("window"));
  if (window < 0)
    return invalid("window is " + std::to_string(window) +
                   ", expected 0 (none) or a number of keys");
  out = {{DVT_ACTIVATION, {q[0], q[1], v[2]}}};
  return Status::ok();
}

Values define_attention(const OpCall& c) {
  DVT_TRY(c.writer.emit("cache_write", 1, {c.in[1], c.in[3], c.in[5]}, {}));
  DVT_TRY(c.writer.emit("cache_write", 1, {c.in[2], c.in[4], c.in[5]}, {}));
  DVT_TRY(const uint32_t out, one(c, "attend", {c.in[0], c.in[3], c.in[4], c.in[5]}, c.attrs));
  return std::vector<uint32_t>{out};
}

}  // namespace

void register_composite_ops(OpRegistry& registry) {
  const auto composite = [&registry](const char* name, size_t n_in, auto infer, auto define) {
    OpDef def;
    def.name = name;
    def.tier = DVT_TIER_COMPOSITE;
    def.min_inputs = def.max_inputs = n_in;
    def.infer = infer;
    def.decompose = define;
    (void)registry.add(std::move(def));  // names below are distinct
  };
  composite("rms_norm", 2, infer_rms_norm, define_rms_norm);
  composite("swiglu", 2, infer_swiglu, define_swiglu);
  composite("attention", 6, infer_attention, define_attention);
}

}  // namespace dovetail::core
