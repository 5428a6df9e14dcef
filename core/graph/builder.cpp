#include "core/graph/builder.hpp"

#include "core/graph/op_registry.hpp"

namespace dovetail::core {
namespace {

std::string_view view(dvt_str s) {
  return {s.p, static_cast<size_t>(s.n)};
}

Attr copy_attr(const dvt_attr_in& in) {
  Attr a;
  a.key = view(in.key);
  a.type = in.type;
  a.flags = in.flags;
  if (in.type == DVT_ATTR_I64) {
    const auto* p = static_cast<const int64_t*>(in.data);
    a.i64.assign(p, p + in.n);
  } else if (in.type == DVT_ATTR_F64) {
    const auto* p = static_cast<const double*>(in.data);
    a.f64.assign(p, p + in.n);
  } else {
    a.str.assign(static_cast<const char*>(in.data), in.n);
  }
  return a;
}

}  // namespace

// Handles given to the plugin are value index + 1.
struct GraphBuilder::Slots {
  static GraphBuilder& self(void* p) { return *static_cast<GraphBuilder*>(p); }

  static dvt_code input(void* p, dvt_call*, dvt_str name, dvt_id* out) noexcept {
    Result<uint32_t> v = self(p).writer_.input(view(name));
    if (!v) return self(p).keep(v.status());
    *out = *v + 1;
    return DVT_OK;
  }
  static dvt_code weight(void* p, dvt_call*, dvt_str name, const int64_t* shape, uint32_t ndim,
                         dvt_id* out) noexcept {
    GraphBuilder& b = self(p);
    Result<std::vector<int64_t>> got = b.weight_shape_(view(name));
    if (!got) return b.keep(got.status());
    std::vector<dvt_dim> dims;
    for (int64_t n : *got) dims.push_back(fixed_dim(n));
    bool same = ndim == 0 || ndim == dims.size();
    for (uint32_t i = 0; same && i < ndim; ++i) same = dims[i].value == shape[i];
    if (!same) {
      std::vector<dvt_dim> wanted;
      for (uint32_t i = 0; i < ndim; ++i) wanted.push_back(fixed_dim(shape[i]));
      return b.keep(invalid("weight \"" + std::string(view(name)) + "\" is " +
                            b.writer_.graph().shape_text(dims) + ", expected " +
                            b.writer_.graph().shape_text(wanted)));
    }
    *out = b.writer_.weight(view(name), std::move(dims)) + 1;
    return DVT_OK;
  }
  static dvt_code state(void* p, dvt_call*, dvt_str slot, dvt_id* out) noexcept {
    Result<uint32_t> v = self(p).writer_.state(view(slot));
    if (!v) return self(p).keep(v.status());
    *out = *v + 1;
    return DVT_OK;
  }
  static dvt_code emit(void* p, dvt_call*, const dvt_op_desc* desc, dvt_id* outs) noexcept {
    GraphBuilder& b = self(p);
    if (!b.status_.is_ok()) return static_cast<dvt_code>(b.status_.code());
    std::vector<uint32_t> in;
    for (uint64_t i = 0; i < desc->n_in; ++i)
      in.push_back(desc->in[i] == 0 ? kNoValue : desc->in[i] - 1);
    while (!in.empty() && in.back() == kNoValue)
      in.pop_back();  // trailing optional inputs left out
    std::vector<Attr> attrs;
    for (uint64_t i = 0; i < desc->n_attrs; ++i) attrs.push_back(copy_attr(desc->attrs[i]));
    Result<std::vector<uint32_t>> out = b.writer_.emit(view(desc->op), desc->rev, in, attrs);
    if (!out) return b.keep(out.status());
    for (uint64_t i = 0; i < desc->n_out && i < out->size(); ++i) outs[i] = (*out)[i] + 1;
    return DVT_OK;
  }
  static dvt_code scope(void* p, dvt_call*, dvt_str path) noexcept {
    self(p).writer_.scope(view(path));
    return DVT_OK;
  }
  static dvt_code output(void* p, dvt_call*, dvt_str name, dvt_id val) noexcept {
    return self(p).named(name, val, DVT_VALF_OUTPUT);
  }
  static dvt_code observe(void* p, dvt_call*, dvt_str name, dvt_id val) noexcept {
    return self(p).named(name, val, DVT_VALF_OBSERVED);
  }
  static dvt_code shape(void* p, dvt_call*, dvt_id val, dvt_dim* out, uint32_t cap,
                        uint32_t* ndim) noexcept {
    GraphBuilder& b = self(p);
    if (val == 0 || !b.status_.is_ok())
      return b.status_.is_ok() ? DVT_EINVAL : static_cast<dvt_code>(b.status_.code());
    const ValueType type = b.writer_.type_of(val - 1);
    *ndim = static_cast<uint32_t>(type.dims.size());
    if (*ndim > cap) return DVT_ETOOSMALL;
    std::copy(type.dims.begin(), type.dims.end(), out);
    return DVT_OK;
  }
};

dvt_code GraphBuilder::named(dvt_str name, dvt_id val, uint32_t flag) {
  if (!status_.is_ok()) return static_cast<dvt_code>(status_.code());
  if (val == 0)
    return keep(invalid("\"" + std::string(view(name)) + "\" names a value that was never made"));
  return keep(writer_.name_value(view(name), val - 1, flag));
}

GraphBuilder::GraphBuilder(const OpRegistry& registry, WeightShape weight_shape,
                           const std::vector<dvt_state_spec>& states)
    : writer_(registry), weight_shape_(std::move(weight_shape)) {
  for (const dvt_state_spec& spec : states) writer_.add_state(spec);
  table_ = {sizeof table_, 0,           this,         Slots::input,  Slots::weight,
            Slots::state,  Slots::emit, Slots::scope, Slots::output, Slots::observe,
            Slots::shape};
}

dvt_code GraphBuilder::keep(Status status) {
  if (status_.is_ok()) status_ = std::move(status);
  return static_cast<dvt_code>(status_.code());
}

Result<Graph> GraphBuilder::finish() {
  if (!status_.is_ok()) return status_;
  return writer_.take();
}

namespace {

// Writes inputs, weights and states; gives the new value of each of them, kNoValue for the others.
Result<std::vector<uint32_t>> copy_sources(const Graph& graph, GraphWriter& writer) {
  const dvt_graph g = graph.view();
  std::vector<uint32_t> map(g.n_vals, kNoValue);
  for (const dvt_state_spec& spec : graph.states()) writer.add_state(spec);
  for (uint32_t v = 0; v < g.n_vals; ++v) {
    const std::string name(graph.str(g.vals[v].name));
    if (g.vals[v].role == DVT_VAL_INPUT) {
      DVT_TRY(map[v], writer.input(name));
    } else if (g.vals[v].role == DVT_VAL_WEIGHT) {
      map[v] = writer.weight(name, graph.type_of(v).dims);
    } else if (g.vals[v].role == DVT_VAL_STATE) {
      DVT_TRY(map[v], writer.state(name));
    }
  }
  return map;
}

// Writes a node over new values, or its op's definition; gives its outputs.
Result<std::vector<uint32_t>> copy_node(const Graph& graph, const dvt_node& node,
                                        const std::vector<uint32_t>& in, bool decomposes,
                                        const OpRegistry& registry, GraphWriter& writer) {
  writer.scope(graph.str(node.scope));
  const std::vector<Attr> attrs = graph.attrs_of(node);
  const uint32_t rev = graph.view().ops[node.op].rev;
  const OpDef* def = registry.find(graph.op_name(node), rev);
  if (!decomposes || !def || !def->decompose)
    return writer.emit(graph.op_name(node), rev, in, attrs);
  OpCall call{writer, *def, in, attrs, {}};
  for (uint32_t v : in) call.types.push_back(v == kNoValue ? ValueType{} : writer.type_of(v));
  return def->decompose(call);
}

}  // namespace

Result<Graph> decompose(const Graph& graph, const std::vector<bool>& chosen,
                        const OpRegistry& registry) {
  const dvt_graph g = graph.view();
  GraphWriter writer(registry);
  DVT_TRY(std::vector<uint32_t> map, copy_sources(graph, writer));
  for (size_t i = 0; i < graph.n_nodes(); ++i) {
    const dvt_node& node = graph.node(i);
    std::vector<uint32_t> in;
    for (uint32_t k = 0; k < node.n_in; ++k) {
      const uint32_t v = graph.input(node, k);
      in.push_back(v == kNoValue ? kNoValue : map[v]);
    }
    DVT_TRY(const std::vector<uint32_t> outs,
            copy_node(graph, node, in, chosen[i], registry, writer));
    for (uint32_t k = 0; k < node.n_out; ++k) {
      const uint32_t old = graph.output(node, k);
      map[old] = outs[k];
      if (g.vals[old].name != 0)
        DVT_TRY(writer.name_value(graph.str(g.vals[old].name), map[old], g.vals[old].flags));
    }
  }
  return writer.take();
}

}  // namespace dovetail::core
