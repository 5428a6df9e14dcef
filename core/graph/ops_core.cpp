// The core ops: what every backend has. Each entry is the op's contract: inputs, attributes, result.
// D is the last dimension; dims before it are "rows".
#include "core/graph/op_registry.hpp"

namespace dovetail::core {
namespace {

using Types = std::vector<ValueType>;

Status need_rank(const OpCall& c, size_t i, size_t min_rank, const char* what) {
  if (c.types[i].dims.size() >= min_rank) return Status::ok();
  return invalid(std::string(what) + " is " + c.shape(i) + ", expected at least " +
                 std::to_string(min_rank) + " dimensions");
}

// ids [T] i32, table [V, D] -> [T, D]: row ids[t] of the table.
Status infer_embed(const OpCall& c, Types& out) {
  if (c.types[0].dims.size() != 1 || c.types[0].dtype != DVT_I32)
    return invalid("ids are " + c.shape(0) + ", expected [T] of i32");
  if (c.types[1].dims.size() != 2) return invalid("table is " + c.shape(1) + ", expected [V, D]");
  out = {{DVT_ACTIVATION, {c.types[0].dims[0], c.types[1].dims[1]}}};
  return Status::ok();
}

// x [.., K], weight [N, K], optional bias [N] -> [.., N]: x weight^T + bias, summed in float32 or better.
Status infer_linear(const OpCall& c, Types& out) {
  DVT_TRY(need_rank(c, 0, 1, "x"));
  const auto& w = c.types[1].dims;
  if (w.size() != 2 || !same_dim(w[1], c.types[0].dims.back()))
    return invalid("x is " + c.shape(0) + " and weight is " + c.shape(1) +
                   ", expected [.., K] and [N, K]");
  if (c.has(2) && (c.types[2].dims.size() != 1 || !same_dim(c.types[2].dims[0], w[0])))
    return invalid("bias is " + c.shape(2) + ", expected [" + std::to_string(w[0].value) + "]");
  out = {c.types[0]};
  out[0].dims.back() = w[0];
  return Status::ok();
}

// x; n_last: how many last dimensions to replace; tail: by what. Same elements, same order.
Status infer_reshape(const OpCall& c, Types& out) {
  DVT_TRY(const int64_t n_last, c.i64("n_last"));
  const Attr* tail = c.attr("tail");
  const auto& dims = c.types[0].dims;
  if (!tail || tail->type != DVT_ATTR_I64)
    return invalid("attribute \"tail\" is missing, expected integers");
  if (n_last < 1 || static_cast<size_t>(n_last) > dims.size())
    return invalid("n_last is " + std::to_string(n_last) + " for x " + c.shape(0));
  int64_t before = 1, after = 1;
  for (size_t i = dims.size() - static_cast<size_t>(n_last); i < dims.size(); ++i) {
    if (dims[i].sym)
      return invalid("x is " + c.shape(0) + ": only fixed dimensions can be reshaped");
    before *= dims[i].value;
  }
  for (int64_t v : tail->i64) after *= v;
  if (before != after)
    return invalid("x is " + c.shape(0) + ", its last " + std::to_string(n_last) +
                   " dimensions hold " + std::to_string(before) + " elements, the new ones " +
                   std::to_string(after));
  out = {c.types[0]};
  out[0].dims.resize(dims.size() - static_cast<size_t>(n_last));
  for (int64_t v : tail->i64) out[0].dims.push_back(fixed_dim(v));
  return Status::ok();
}

// a, b -> elementwise. b has a's shape, or a's last dimensions, or a's shape with 1 as last dimension.
Status infer_elementwise(const OpCall& c, Types& out) {
  const auto& a = c.types[0].dims;
  const auto& b = c.types[1].dims;
  bool ok = b.size() <= a.size();
  const bool column =
      ok && b.size() == a.size() && !b.empty() && b.back().sym == 0 && b.back().value == 1;
  for (size_t i = 0; ok && i < b.size(); ++i) {
    const size_t at = a.size() - b.size() + i;
    if (!(column && i + 1 == b.size())) ok = same_dim(a[at], b[i]);
  }
  if (!ok)
    return invalid("operands are " + c.shape(0) + " and " + c.shape(1) + ", which do not fit");
  out = {c.types[0]};
  return Status::ok();
}

Status infer_same(const OpCall& c, Types& out) {
  out = {c.types[0]};
  return Status::ok();
}

// x [.., D] -> [.., 1]
Status infer_mean_last(const OpCall& c, Types& out) {
  DVT_TRY(need_rank(c, 0, 1, "x"));
  out = {c.types[0]};
  out[0].dims.back() = fixed_dim(1);
  return Status::ok();
}

Status infer_scalar(const OpCall& c, Types& out) {
  DVT_TRY([[maybe_unused]] const double v, c.f64("value"));
  return infer_same(c, out);
}

// x [T, H, E], positions [1, T]; inv_freq [R/2] with R <= E, attention_factor m -> [T, H, E].
// With a = float(pos) * float(inv_freq[i]), rotates (x[i], x[i + R/2]) by a and scales both by m.
Status infer_rope(const OpCall& c, Types& out) {
  const auto& x = c.types[0].dims;
  const auto& p = c.types[1].dims;
  if (x.size() != 3) return invalid("x is " + c.shape(0) + ", expected [T, H, E]");
  if (p.size() != 2 || !same_dim(p[1], x[0]) || c.types[1].dtype != DVT_I32)
    return invalid("positions are " + c.shape(1) + ", expected [1, T] of i32");
  const Attr* freq = c.attr("inv_freq");
  if (!freq || freq->type != DVT_ATTR_F64 || freq->f64.empty() ||
      static_cast<int64_t>(freq->f64.size()) * 2 > x[2].value)
    return invalid("attribute \"inv_freq\" needs 1 to " + std::to_string(x[2].value / 2) +
                   " numbers for x " + c.shape(0));
  DVT_TRY([[maybe_unused]] const double m, c.f64("attention_factor"));
  out = {c.types[0]};
  return Status::ok();
}

// x [T, G, E], state of rows [G, E], positions: row positions[t] of t's sequence becomes x[t].
// A token sees what nodes before it wrote. No result.
Status infer_cache_write(const OpCall& c, Types& out) {
  const auto& x = c.types[0].dims;
  const auto& s = c.types[1].dims;
  if (c.writer.graph().val(c.in[1]).role != DVT_VAL_STATE)
    return invalid("the second input is not a state");
  bool same = x.size() == s.size() + 1;
  for (size_t i = 0; same && i < s.size(); ++i) same = same_dim(x[i + 1], s[i]);
  if (!same) return invalid("x is " + c.shape(0) + ", the state's rows are " + c.shape(1));
  out.clear();
  return Status::ok();
}

// q [T, H, E], states k and v of rows [G, E], positions; scale, window -> [T, H, E].
// Head h reads group h / (H / G). Softmax over the rows at positions <= the token's own (with window
// w > 0: the last w of those) of scale * q.k, weights applied to v. Softmax in float32.
Status infer_attend(const OpCall& c, Types& out) {
  const auto& q = c.types[0].dims;
  const auto& k = c.types[1].dims;
  const auto& v = c.types[2].dims;
  const Graph& g = c.writer.graph();
  if (g.val(c.in[1]).role != DVT_VAL_STATE || g.val(c.in[2]).role != DVT_VAL_STATE)
    return invalid("k and v are not states");
  if (q.size() != 3 || k.size() != 2 || v.size() != 2 || !same_dim(q[2], k[1]) ||
      !same_dim(k[0], v[0]) || k[0].value <= 0 || q[1].value % k[0].value != 0)
    return invalid("q is " + c.shape(0) + ", rows of k and v are " + c.shape(1) + " and " +
                   c.shape(2) + ", expected [T, H, E] and [G, E] with H a multiple of G");
  DVT_TRY([[maybe_unused]] const double scale, c.f64("scale"));
  DVT_TRY(const int64_t window, c.i64("window"));
  if (window < 0)
    return invalid("window is " + std::to_string(window) +
                   ", expected 0 (none) or a number of keys");
  out = {{DVT_ACTIVATION, {q[0], q[1], v[1]}}};
  return Status::ok();
}

// x [T, ..], rows [R] i32 -> [R, ..]
Status infer_take_rows(const OpCall& c, Types& out) {
  DVT_TRY(need_rank(c, 0, 1, "x"));
  if (c.types[1].dims.size() != 1 || c.types[1].dtype != DVT_I32)
    return invalid("rows are " + c.shape(1) + ", expected [R] of i32");
  out = {c.types[0]};
  out[0].dims[0] = c.types[1].dims[0];
  return Status::ok();
}

}  // namespace

void register_core_ops(OpRegistry& registry) {
  const auto core = [&registry](const char* name, size_t min_in, size_t max_in, auto infer) {
    OpDef def;
    def.name = name;
    def.min_inputs = min_in;
    def.max_inputs = max_in;
    def.infer = infer;
    (void)registry.add(std::move(def));  // names below are distinct
  };
  core("embed", 2, 2, infer_embed);
  core("linear", 2, 3, infer_linear);
  core("reshape", 1, 1, infer_reshape);
  core("add", 2, 2, infer_elementwise);
  core("mul", 2, 2, infer_elementwise);
  core("silu", 1, 1, infer_same);       // x / (1 + exp(-x))
  core("gelu_tanh", 1, 1, infer_same);  // x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))
  core("mean_last", 1, 1, infer_mean_last);  // mean over the last dimension
  core("add_scalar", 1, 1, infer_scalar);
  core("mul_scalar", 1, 1, infer_scalar);
  core("rsqrt", 1, 1, infer_same);  // 1 / sqrt(x)
  core("rope", 2, 2, infer_rope);
  core("cache_write", 3, 3, infer_cache_write);
  core("attend", 4, 4, infer_attend);
  core("take_rows", 2, 2, infer_take_rows);
}

}  // namespace dovetail::core
