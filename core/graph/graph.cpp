#include "core/graph/graph.hpp"

#include <algorithm>
#include <cstring>

#include "core/graph/op_registry.hpp"

namespace dovetail::core {

bool same_dim(const dvt_dim& a, const dvt_dim& b) {
  return a.sym == b.sym && (a.sym != 0 || a.value == b.value);
}

dvt_graph Graph::view() const {
  dvt_graph g{};
  g.struct_size = sizeof g;
  g.revision = 1;
  g.node_stride = sizeof(dvt_node);
  g.val_stride = sizeof(dvt_val);
  g.dim_stride = sizeof(dvt_dim);
  g.op_stride = sizeof(dvt_op_ref);
  g.attr_stride = sizeof(dvt_attr);
  g.weight_stride = sizeof(dvt_weight_ref);
  g.n_nodes = nodes_.size();
  g.n_vals = vals_.size();
  g.n_dims = dims_.size();
  g.n_ops = ops_.size();
  g.n_attrs = attrs_.size();
  g.n_edges = edges_.size();
  g.n_weights = weights_.size();
  g.n_states = states_.size();
  g.n_strs = strs_.size();
  g.attr_bytes = attr_data_.size();
  g.n_chars = chars_.size();
  g.nodes = nodes_.data();
  g.vals = vals_.data();
  g.dims = dims_.data();
  g.ops = ops_.data();
  g.attrs = attrs_.data();
  g.weights = weights_.data();
  g.states = states_.data();
  g.edges = edges_.data();
  g.attr_data = attr_data_.data();
  g.strs = strs_.data();
  g.chars = chars_.data();
  g.fingerprint = fingerprint_;
  return g;
}

std::string_view Graph::str(dvt_id id) const {
  if (id == 0 || id > strs_.size()) return {};
  const dvt_range& r = strs_[id - 1];
  return std::string_view(chars_).substr(r.begin, r.end - r.begin);
}

bool Graph::names(std::string_view name) const {
  return std::any_of(vals_.begin(), vals_.end(),
                     [&](const dvt_val& v) { return v.name != 0 && str(v.name) == name; });
}

ValueType Graph::type_of(uint32_t val) const {
  const dvt_val& v = vals_[val];
  return {v.dtype, {dims_.begin() + v.dim0, dims_.begin() + v.dim0 + v.ndim}};
}

std::vector<Attr> Graph::attrs_of(const dvt_node& n) const {
  std::vector<Attr> out;
  for (uint32_t i = 0; i < n.n_attrs; ++i) {
    const dvt_attr& a = attrs_[n.attr0 + i];
    Attr attr;
    attr.key = str(a.key);
    attr.type = a.type;
    attr.flags = a.flags;
    const uint8_t* data = attr_data_.data() + a.offset;
    if (a.type == DVT_ATTR_I64) {
      attr.i64.resize(a.n);
      if (a.n) std::memcpy(attr.i64.data(), data, a.n * sizeof(int64_t));
    } else if (a.type == DVT_ATTR_F64) {
      attr.f64.resize(a.n);
      if (a.n) std::memcpy(attr.f64.data(), data, a.n * sizeof(double));
    } else {
      attr.str.assign(reinterpret_cast<const char*>(data), a.n);
    }
    out.push_back(std::move(attr));
  }
  return out;
}

std::string Graph::shape_text(const std::vector<dvt_dim>& dims) const {
  std::string out = "[";
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i) out += ", ";
    out += dims[i].sym ? std::string(str(dims[i].sym)) : std::to_string(dims[i].value);
  }
  return out + "]";
}

std::string Graph::dump() const {
  std::string out;
  const auto value_text = [this](uint32_t v) {
    if (v == kNoValue) return std::string("-");
    const std::string name(str(vals_[v].name));
    return (name.empty() ? "%" + std::to_string(v) : name) + shape_text(type_of(v).dims);
  };
  for (const dvt_node& n : nodes_) {
    out += std::string(str(n.scope)) + "  " + std::string(op_name(n)) + "(";
    for (uint32_t i = 0; i < n.n_in; ++i) out += (i ? ", " : "") + value_text(input(n, i));
    out += ")";
    for (uint32_t i = 0; i < n.n_out; ++i) out += (i ? ", " : " -> ") + value_text(output(n, i));
    out += "\n";
  }
  return out;
}

dvt_id GraphWriter::intern(std::string_view text) {
  if (text.empty()) return 0;
  auto [it, fresh] = interned_.try_emplace(std::string(text), 0);
  if (fresh) {
    graph_.strs_.push_back({graph_.chars_.size(), graph_.chars_.size() + text.size()});
    graph_.chars_ += text;
    it->second = static_cast<dvt_id>(graph_.strs_.size());
  }
  return it->second;
}

uint32_t GraphWriter::add_value(std::string_view name, uint32_t role, const ValueType& type,
                                uint32_t bind) {
  dvt_val v{};
  v.name = intern(name);
  v.dtype = type.dtype;
  v.role = role;
  v.dim0 = static_cast<uint32_t>(graph_.dims_.size());
  v.ndim = static_cast<uint32_t>(type.dims.size());
  v.bind = bind;
  graph_.dims_.insert(graph_.dims_.end(), type.dims.begin(), type.dims.end());
  graph_.vals_.push_back(v);
  return static_cast<uint32_t>(graph_.vals_.size() - 1);
}

Result<uint32_t> GraphWriter::input(std::string_view name) {
  if (auto it = inputs_.find(name); it != inputs_.end()) return it->second;
  const dvt_dim tokens{0, intern("T"), 0}, rows{0, intern("R"), 0};
  ValueType type;
  type.dtype = DVT_I32;
  if (name == "tokens") {
    type.dims = {tokens};
  } else if (name == "positions") {
    type.dims = {fixed_dim(1), tokens};
  } else if (name == "out_rows") {
    type.dims = {rows};
  } else {
    return invalid("a graph has no input \"" + std::string(name) +
                   "\"; there are tokens, positions, out_rows");
  }
  return inputs_[std::string(name)] = add_value(name, DVT_VAL_INPUT, type, 0);
}

uint32_t GraphWriter::weight(std::string_view name, std::vector<dvt_dim> dims) {
  if (auto it = weights_.find(name); it != weights_.end()) return it->second;
  const uint32_t val = add_value(name, DVT_VAL_WEIGHT, {DVT_ACTIVATION, std::move(dims)},
                                 static_cast<uint32_t>(graph_.weights_.size()));
  dvt_weight_ref ref{};
  ref.name = intern(name);
  ref.val = val;
  ref.slice_dim = -1;
  graph_.weights_.push_back(ref);
  return weights_[std::string(name)] = val;
}

uint32_t GraphWriter::add_state(const dvt_state_spec& spec) {
  dvt_state_spec copy = spec;
  const std::string& name = graph_.state_names_.emplace_back(spec.name.p, spec.name.n);
  copy.struct_size = sizeof copy;
  copy.name = {name.data(), name.size()};
  std::vector<dvt_dim> dims;
  for (uint32_t i = 0; i < spec.ndim; ++i) dims.push_back(fixed_dim(spec.dim[i]));
  const uint32_t val = add_value(name, DVT_VAL_STATE, {spec.dtype, dims},
                                 static_cast<uint32_t>(graph_.states_.size()));
  graph_.states_.push_back(copy);
  return states_[name] = val;
}

Result<uint32_t> GraphWriter::state(std::string_view slot) {
  if (auto it = states_.find(slot); it != states_.end()) return it->second;
  return invalid("the architecture declares no state \"" + std::string(slot) + "\"");
}

Result<std::vector<uint32_t>> GraphWriter::emit(std::string_view op, uint32_t rev,
                                                const std::vector<uint32_t>& in,
                                                const std::vector<Attr>& attrs) {
  const OpDef* def = registry_.find(op, rev);
  const std::string where(graph_.str(scope_));
  const auto at = [&](const Status& s) {
    return s.in(where.empty() ? std::string(op) : where + ": " + std::string(op));
  };
  if (!def)
    return at(unsupported("there is no op of this name with revision " + std::to_string(rev)));
  OpCall call{*this, *def, in, attrs, {}};
  for (uint32_t v : in) {
    if (v != kNoValue && v >= graph_.vals_.size())
      return at(internal_error("an input is not a value of this graph"));
    call.types.push_back(v == kNoValue ? ValueType{} : type_of(v));
  }
  if (in.size() < def->min_inputs || in.size() > def->max_inputs)
    return at(invalid("got " + std::to_string(in.size()) + " inputs, expected " +
                      std::to_string(def->min_inputs) + " to " + std::to_string(def->max_inputs)));
  std::vector<ValueType> out_types;
  if (Status s = def->infer(call, out_types); !s.is_ok()) return at(s);

  dvt_node node{};
  const std::string op_key = std::string(op) + "/" + std::to_string(rev);
  auto [it, fresh] = ops_.try_emplace(op_key, static_cast<uint32_t>(graph_.ops_.size()));
  if (fresh)
    graph_.ops_.push_back(
        {intern(op), static_cast<uint16_t>(rev), static_cast<uint16_t>(def->tier)});
  node.op = it->second;
  node.scope = scope_;
  node.in0 = static_cast<uint32_t>(graph_.edges_.size());
  node.n_in = static_cast<uint32_t>(in.size());
  graph_.edges_.insert(graph_.edges_.end(), in.begin(), in.end());
  std::vector<uint32_t> outs;
  outs.reserve(out_types.size());
  for (const ValueType& t : out_types) outs.push_back(add_value("", DVT_VAL_COMPUTED, t, 0));
  node.out0 = static_cast<uint32_t>(graph_.edges_.size());
  node.n_out = static_cast<uint32_t>(outs.size());
  graph_.edges_.insert(graph_.edges_.end(), outs.begin(), outs.end());
  node.attr0 = static_cast<uint32_t>(graph_.attrs_.size());
  node.n_attrs = static_cast<uint32_t>(attrs.size());
  for (const Attr& a : attrs) add_attr(a);
  const bool takes_rows = def->tier == DVT_TIER_CORE && op == "embed";
  mark_weights(in, takes_rows ? DVT_ACCESS_ROWS : DVT_ACCESS_DENSE);
  graph_.nodes_.push_back(node);
  return outs;
}

void GraphWriter::mark_weights(const std::vector<uint32_t>& in, uint32_t access) {
  for (uint32_t v : in)
    if (v != kNoValue && graph_.vals_[v].role == DVT_VAL_WEIGHT)
      graph_.weights_[graph_.vals_[v].bind].access |= access;
}

void GraphWriter::add_attr(const Attr& a) {
  graph_.attr_data_.resize((graph_.attr_data_.size() + 7) / 8 * 8);
  dvt_attr record{intern(a.key), static_cast<uint16_t>(a.type), static_cast<uint16_t>(a.flags),
                  graph_.attr_data_.size(), 0};
  const auto append = [&](const void* p, size_t n, size_t size) {
    record.n = n;
    graph_.attr_data_.resize(record.offset + n * size);
    if (n) std::memcpy(graph_.attr_data_.data() + record.offset, p, n * size);
  };
  if (a.type == DVT_ATTR_I64)
    append(a.i64.data(), a.i64.size(), sizeof(int64_t));
  else if (a.type == DVT_ATTR_F64)
    append(a.f64.data(), a.f64.size(), sizeof(double));
  else
    append(a.str.data(), a.str.size(), 1);
  graph_.attrs_.push_back(record);
}

Status GraphWriter::name_value(std::string_view name, uint32_t val, uint32_t flag) {
  if (val == kNoValue || val >= graph_.vals_.size())
    return internal_error("named value does not exist");
  dvt_val& v = graph_.vals_[val];
  if (v.name != 0 && graph_.str(v.name) != name)
    return invalid("value \"" + std::string(graph_.str(v.name)) + "\" cannot also be named \"" +
                   std::string(name) + "\"");
  v.name = intern(name);
  v.flags |= flag;
  return Status::ok();
}

Graph GraphWriter::take() {
  // FNV-1a over every table: equal graphs get equal numbers.
  uint64_t h = 0xcbf29ce484222325ull;
  const auto mix = [&h](const void* p, size_t n) {
    for (size_t i = 0; i < n; ++i) h = (h ^ static_cast<const uint8_t*>(p)[i]) * 0x100000001b3ull;
  };
  mix(graph_.nodes_.data(), graph_.nodes_.size() * sizeof(dvt_node));
  mix(graph_.vals_.data(), graph_.vals_.size() * sizeof(dvt_val));
  mix(graph_.dims_.data(), graph_.dims_.size() * sizeof(dvt_dim));
  mix(graph_.ops_.data(), graph_.ops_.size() * sizeof(dvt_op_ref));
  mix(graph_.attrs_.data(), graph_.attrs_.size() * sizeof(dvt_attr));
  mix(graph_.edges_.data(), graph_.edges_.size() * sizeof(uint32_t));
  mix(graph_.attr_data_.data(), graph_.attr_data_.size());
  mix(graph_.chars_.data(), graph_.chars_.size());
  graph_.fingerprint_ = h;
  return std::move(graph_);
}

}  // namespace dovetail::core
