#include "core/graph/op_registry.hpp"

namespace dovetail::core {

const Attr* OpCall::attr(std::string_view key) const {
  for (const Attr& a : attrs)
    if (a.key == key) return &a;
  return nullptr;
}

Result<int64_t> OpCall::i64(std::string_view key) const {
  const Attr* a = attr(key);
  if (!a || a->type != DVT_ATTR_I64 || a->i64.size() != 1)
    return invalid("attribute \"" + std::string(key) + "\" is missing, expected one integer");
  return a->i64[0];
}

Result<double> OpCall::f64(std::string_view key) const {
  const Attr* a = attr(key);
  if (!a || a->type != DVT_ATTR_F64 || a->f64.size() != 1)
    return invalid("attribute \"" + std::string(key) + "\" is missing, expected one number");
  return a->f64[0];
}

OpRegistry::OpRegistry() {
  register_core_ops(*this);
  register_composite_ops(*this);
}

const OpDef* OpRegistry::find(std::string_view name, uint32_t rev) const {
  const auto it = ops_.find({std::string(name), rev});
  return it == ops_.end() ? nullptr : &it->second;
}

Status OpRegistry::add(OpDef def) {
  const std::pair<std::string, uint32_t> key{def.name, def.rev};
  if (ops_.contains(key))
    return invalid("op \"" + def.name + "\" revision " + std::to_string(def.rev) +
                   " is registered twice");
  ops_.emplace(key, std::move(def));
  return Status::ok();
}

std::vector<const OpDef*> OpRegistry::all() const {
  std::vector<const OpDef*> out;
  for (const auto& [key, def] : ops_) out.push_back(&def);
  return out;
}

namespace {

// Shape rule of a plugin's op: asks the plugin, checks what it says.
Status infer_plugin_op(const OpCall& call, std::vector<ValueType>& out) {
  std::vector<dvt_val> in_vals(call.in.size());
  std::vector<const dvt_dim*> in_dims(call.in.size(), nullptr);
  for (size_t i = 0; i < call.in.size(); ++i) {
    if (!call.has(i)) continue;
    in_vals[i] = call.writer.graph().val(call.in[i]);
    in_dims[i] = call.types[i].dims.data();
  }
  std::vector<dvt_attr_in> attrs;
  for (const Attr& a : call.attrs) {
    dvt_attr_in in{{a.key.data(), a.key.size()}, a.type, a.flags, nullptr, 0};
    if (a.type == DVT_ATTR_I64)
      in.data = a.i64.data(), in.n = a.i64.size();
    else if (a.type == DVT_ATTR_F64)
      in.data = a.f64.data(), in.n = a.f64.size();
    else
      in.data = a.str.data(), in.n = a.str.size();
    attrs.push_back(in);
  }
  std::string reason;
  dvt_call frame{};
  frame.struct_size = sizeof frame;
  frame.host = &reason;
  frame.fail = [](dvt_call* c, dvt_code, dvt_str msg, dvt_str) noexcept {
    static_cast<std::string*>(c->host)->assign(msg.p, msg.n);
  };
  dvt_val out_val{};
  dvt_dim out_dims[1][DVT_MAX_DIMS] = {};
  const dvt_code code =
      call.def.plugin_op->infer(&frame, in_vals.data(), in_dims.data(), call.in.size(),
                                attrs.data(), attrs.size(), &out_val, out_dims, 1);
  if (code != DVT_OK)
    return {static_cast<Code>(code), reason.empty() ? "the op's shape rule failed" : reason};
  if (out_val.ndim > DVT_MAX_DIMS)
    return invalid("the op's shape rule gave " + std::to_string(out_val.ndim) + " dimensions");
  out = {ValueType{out_val.dtype, {out_dims[0], out_dims[0] + out_val.ndim}}};
  return Status::ok();
}

}  // namespace

Status OpRegistry::add_plugin_op(const dvt_op_v1* op) {
  OpDef def;
  def.name.assign(op->name.p, op->name.n);
  def.rev = op->rev;
  def.tier = DVT_TIER_PLUGIN;
  def.min_inputs = 0;
  def.max_inputs = 64;
  def.infer = infer_plugin_op;
  def.plugin_op = op;
  if (def.name.find('/') == std::string::npos)
    return invalid("op \"" + def.name + "\" of a plugin has no owner; name it \"owner/op\"");
  if (const OpDef* known = find(def.name, def.rev); known && known->plugin_op == op)
    return Status::ok();
  return add(std::move(def));
}

}  // namespace dovetail::core
