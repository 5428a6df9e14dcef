#include "core/doctor/op_case.hpp"

#include <algorithm>
#include <map>

#include "core/plugin/host.hpp"

namespace dovetail::core {
namespace {

Attr integers(const char* key, std::vector<int64_t> values) {
  Attr a;
  a.key = key;
  a.flags = DVT_ATTR_MUST;
  a.i64 = std::move(values);
  return a;
}

std::vector<dvt_dim> fixed_dims(const std::vector<int64_t>& shape) {
  std::vector<dvt_dim> out;
  out.reserve(shape.size());
  for (const int64_t n : shape) out.push_back(fixed_dim(n));
  return out;
}

int64_t product(const std::vector<int64_t>& dims) {
  int64_t n = 1;
  for (const int64_t d : dims) n *= d;
  return n;
}

// Writes a case's graph; `map_` gives the written value of each of the case's.
class CaseWriter {
 public:
  CaseWriter(const OpCase& c, const OpRegistry& ops) : case_(c), writer_(ops) {}

  Result<CaseGraph> write() {
    for (const OpCase::State& s : case_.states) {
      dvt_state_spec spec = s.spec;
      spec.name = abi_text(s.name);
      DVT_TRY(give(s.val, writer_.add_state(spec)));
    }
    for (const OpCase::Input& in : case_.inputs) {
      DVT_TRY(const uint32_t val, writer_.input(in.name));
      DVT_TRY(give(in.val, val));
    }
    for (const OpCase::Weight& w : case_.weights)
      DVT_TRY(give(w.val, writer_.weight(w.name, fixed_dims(w.shape))));
    writer_.scope("fed");
    for (size_t i = 0; i < case_.fed.size(); ++i) DVT_TRY(feed(i));
    for (const OpCase::Node& node : case_.nodes) DVT_TRY(emit(node));
    CaseGraph out;
    for (const uint32_t val : case_.wanted) DVT_TRY(name_output(val, out.outputs));
    out.graph = writer_.take();
    return out;
  }

 private:
  Status give(uint32_t val, uint32_t written) {
    if (!map_.emplace(val, written).second)
      return invalid("value " + std::to_string(val) + " is given twice");
    return Status::ok();
  }
  Result<uint32_t> written(uint32_t val) const {
    const auto it = map_.find(val);
    if (it == map_.end()) return invalid("value " + std::to_string(val) + " is not given before");
    return it->second;
  }
  Result<uint32_t> one(const char* op, const std::vector<uint32_t>& in,
                       const std::vector<Attr>& attrs = {}) {
    DVT_TRY(const std::vector<uint32_t> out, writer_.emit(op, 1, in, attrs));
    return out[0];
  }

  Status feed(size_t i) {
    const OpCase::Fed& fed = case_.fed[i];
    const auto n_tokens = static_cast<int64_t>(case_.n_tokens());
    const uint32_t table = writer_.weight(fed_name(i), fixed_dims({n_tokens, product(fed.tail)}));
    DVT_TRY(const uint32_t ids, writer_.input("tokens"));
    DVT_TRY(uint32_t x, one("embed", {ids, table}));
    if (fed.is_of_rows) {
      DVT_TRY(const uint32_t rows, writer_.input("out_rows"));
      DVT_TRY(x, one("take_rows", {x, rows}));
    }
    if (fed.tail.size() != 1) {
      DVT_TRY(x, one("reshape", {x}, {integers("n_last", {1}), integers("tail", fed.tail)}));
    }
    return give(fed.val, x);
  }

  Status emit(const OpCase::Node& node) {
    writer_.scope(node.scope);
    std::vector<uint32_t> in;
    for (const uint32_t val : node.in) {
      uint32_t x = kNoValue;
      if (val != kNoValue) {
        DVT_TRY(x, written(val));
      }
      in.push_back(x);
    }
    DVT_TRY(const std::vector<uint32_t> outs, writer_.emit(node.op, node.rev, in, node.attrs));
    if (outs.size() != node.out.size())
      return invalid("op \"" + node.op + "\" gives " + std::to_string(outs.size()) +
                     " values, expected " + std::to_string(node.out.size()));
    for (size_t i = 0; i < outs.size(); ++i) DVT_TRY(give(node.out[i], outs[i]));
    return Status::ok();
  }

  Status name_output(uint32_t val, std::vector<CaseGraph::Output>& outputs) {
    DVT_TRY(const uint32_t x, written(val));
    const std::vector<dvt_dim> dims = writer_.type_of(x).dims;
    if (!has_rows(writer_.graph(), x))
      return unsupported("a value of " + writer_.graph().shape_text(dims) +
                         " has no row of float32 for each token");
    CaseGraph::Output out{
        "out." + std::to_string(outputs.size()), writer_.graph().str(dims[0].sym) == "R", {}, 1};
    for (size_t i = 1; i < dims.size(); ++i) out.tail.push_back(dims[i].value);
    out.width = static_cast<size_t>(product(out.tail));
    DVT_TRY(writer_.name_value(out.name, x, DVT_VALF_OUTPUT));
    outputs.push_back(std::move(out));
    return Status::ok();
  }

  const OpCase& case_;
  GraphWriter writer_;
  std::map<uint32_t, uint32_t> map_;
};

}  // namespace

size_t OpCase::n_tokens() const {
  size_t n = 0;
  for (const Step& s : steps) n += s.positions.size();
  return n;
}

std::vector<size_t> OpCase::row_tokens() const {
  std::vector<size_t> out;
  size_t first = 0;
  for (const Step& s : steps) {
    for (const uint32_t row : s.rows) out.push_back(first + row);
    first += s.positions.size();
  }
  return out;
}

bool OpCase::reads(std::string_view input) const {
  return std::any_of(inputs.begin(), inputs.end(),
                     [input](const Input& in) { return in.name == input; });
}

std::string fed_name(size_t i) {
  return "dovetail.fed." + std::to_string(i);
}

Result<CaseGraph> graph_of(const OpCase& c, const OpRegistry& ops) {
  if (c.reads("tokens") && !c.fed.empty())
    return internal_error("a case that is fed cannot read token ids");
  return CaseWriter(c, ops).write();
}

bool has_rows(const Graph& graph, uint32_t val) {
  const ValueType type = graph.type_of(val);
  if (type.dtype != DVT_ACTIVATION && type.dtype != DVT_F32) return false;
  if (type.dims.empty()) return false;
  const std::string_view first = graph.str(type.dims[0].sym);
  return (first == "T" || first == "R") && std::all_of(type.dims.begin() + 1, type.dims.end(),
                                                       [](const dvt_dim& d) { return d.sym == 0; });
}

}  // namespace dovetail::core
