#include "core/doctor/case_file.hpp"

#include <dovetail/sha256.hpp>

#include <algorithm>
#include <cstring>
#include <set>

#include "core/base/json.hpp"
#include "core/config/check_value.hpp"
#include "core/model/checkpoint.hpp"
#include "core/model/tensor_file.hpp"

namespace dovetail::core {
namespace {

constexpr const char* kCase = "dovetail.case";
constexpr const char* kSha256 = "dovetail.sha256";
constexpr int64_t kVersion = 1;

// What a file may ask of a backend.
constexpr int64_t kMostTokens = 1 << 16, kMostRowNumbers = 1 << 20, kMostPageLen = 1 << 12;

constexpr std::pair<std::string_view, std::string_view> kPlainDtypes[] = {
    {"float32", "F32"}, {"bf16", "BF16"}, {"f16", "F16"}};

// ------------------------------------------------------------------ writing

Node integer(int64_t n) {
  return Node::make_int(n);
}
template <class T>
Node integers(const std::vector<T>& values) {
  Node out = Node::make_list();
  for (const T v : values) out.items().push_back(integer(static_cast<int64_t>(v)));
  return out;
}
Node value_list(const std::vector<uint32_t>& values) {
  Node out = Node::make_list();
  for (const uint32_t v : values) out.items().push_back(v == kNoValue ? Node() : integer(v));
  return out;
}

Node attr_node(const Attr& a) {
  Node out = Node::make_map(), values = Node::make_list();
  out.set("key", Node::make_string(a.key));
  out.set("must", Node::make_bool((a.flags & DVT_ATTR_MUST) != 0));
  if (a.type == DVT_ATTR_STR) {
    out.set("text", Node::make_string(a.str));
    return out;
  }
  for (const int64_t v : a.i64) values.items().push_back(integer(v));
  for (const double v : a.f64) values.items().push_back(Node::make_float(v));
  out.set(a.type == DVT_ATTR_I64 ? "integers" : "floats", std::move(values));
  return out;
}

Node op_node(const OpCase::Node& n) {
  Node out = Node::make_map(), attrs = Node::make_list();
  out.set("op", Node::make_string(n.op));
  out.set("rev", integer(n.rev));
  out.set("scope", Node::make_string(n.scope));
  out.set("in", value_list(n.in));
  out.set("out", value_list(n.out));
  for (const Attr& a : n.attrs) attrs.items().push_back(attr_node(a));
  out.set("attrs", std::move(attrs));
  return out;
}

Node state_node(const OpCase::State& s) {
  Node out = Node::make_map();
  out.set("val", integer(s.val));
  out.set("name", Node::make_string(s.name));
  out.set("kind", integer(s.spec.kind));
  out.set("dtype", integer(s.spec.dtype));
  out.set("shape", integers(std::vector<int64_t>(s.spec.dim, s.spec.dim + s.spec.ndim)));
  out.set("rate", integer(s.spec.rate));
  out.set("window", integer(s.spec.window));
  out.set("rewind", integer(s.spec.rewind));
  out.set("group", integer(s.spec.group));
  return out;
}

template <class List, class Fn>
Node list_of(const List& list, const Fn& node_of) {
  Node out = Node::make_list();
  for (const auto& entry : list) out.items().push_back(node_of(entry));
  return out;
}

Node case_node(const CaseFile& f) {
  const OpCase& c = f.op_case;
  Node out = Node::make_map();
  out.set("version", integer(kVersion));
  out.set("scope", Node::make_string(f.scope));
  out.set("op", Node::make_string(f.op));
  out.set("backend", Node::make_string(f.backend));
  out.set("params", f.params.is_map() ? f.params : Node::make_map());
  out.set("trusted", Node::make_string(f.trusted));
  out.set("arch", Node::make_string(f.arch));
  out.set("tolerance", Node::make_float(f.tolerance));
  out.set("kv_dtype", integer(f.kv_dtype));
  out.set("page_len", integer(f.page_len));
  out.set("nodes", list_of(c.nodes, op_node));
  out.set("inputs", list_of(c.inputs, [](const OpCase::Input& in) {
            Node n = Node::make_map();
            n.set("val", integer(in.val));
            n.set("name", Node::make_string(in.name));
            return n;
          }));
  out.set("fed", list_of(c.fed, [](const OpCase::Fed& fed) {
            Node n = Node::make_map();
            n.set("val", integer(fed.val));
            n.set("of_rows", Node::make_bool(fed.is_of_rows));
            n.set("shape", integers(fed.tail));
            return n;
          }));
  out.set("weights", list_of(c.weights, [](const OpCase::Weight& w) {
            Node n = Node::make_map();
            n.set("val", integer(w.val));
            n.set("name", Node::make_string(w.name));
            n.set("stored", Node::make_string(w.stored));
            n.set("wanted", Node::make_string(w.wanted));
            n.set("shape", integers(w.shape));
            return n;
          }));
  out.set("states", list_of(c.states, state_node));
  out.set("steps", list_of(c.steps, [](const OpCase::Step& s) {
            Node n = Node::make_map();
            n.set("tokens", integers(s.tokens));
            n.set("positions", integers(s.positions));
            n.set("rows", integers(s.rows));
            return n;
          }));
  out.set("wanted", value_list(c.wanted));
  return out;
}

NamedArray floats(std::string name, std::vector<int64_t> shape, const std::vector<float>& numbers) {
  return {std::move(name), "F32", std::move(shape), std::as_bytes(std::span<const float>(numbers))};
}

NamedArray weight_array(size_t i, const OpCase::Weight& w) {
  const std::string name = "weight." + std::to_string(i);
  for (const auto& [format, dtype] : kPlainDtypes)
    if (w.stored == format) return {name, std::string(dtype), w.shape, w.bytes};
  return {name, "U8", {static_cast<int64_t>(w.bytes.size())}, w.bytes};
}

// ------------------------------------------------------------------ reading

Status fault(const Node& at, const std::string& what) {
  return bad_format(at.origin().str() + ": " + what);
}

// Reads a map's keys and keeps the first failure; what it then gives is empty.
class MapReader {
 public:
  MapReader(const Node& map, Status& status) : map_(map), status_(status) {}

  std::string text(const char* key) {
    return is(key, &Node::is_string, "a string") ? map_.find(key)->as_string() : "";
  }
  bool flag(const char* key) {
    return is(key, &Node::is_bool, "true or false") && map_.find(key)->as_bool();
  }
  int64_t integer(const char* key, int64_t least, int64_t most) {
    if (!is(key, &Node::is_int, "an integer")) return least;
    return checked(*map_.find(key), key, least, most);
  }
  double number(const char* key) {
    return is(key, &Node::is_number, "a number") ? map_.find(key)->as_float() : 0;
  }
  const std::vector<Node>& list(const char* key) {
    static const std::vector<Node> kEmpty;
    return is(key, &Node::is_list, "a list") ? map_.find(key)->items() : kEmpty;
  }
  template <class T>
  std::vector<T> integers(const char* key, int64_t least, int64_t most) {
    std::vector<T> out;
    for (const Node& n : list(key)) {
      if (!n.is_int())
        fail(n, key, "a list of integers");
      else
        out.push_back(static_cast<T>(checked(n, key, least, most)));
    }
    return out;
  }
  /// Numbers of values; null, where that may be, is an absent one.
  std::vector<uint32_t> values(const char* key, bool may_be_absent) {
    std::vector<uint32_t> out;
    for (const Node& n : list(key)) {
      if (n.is_null() && may_be_absent)
        out.push_back(kNoValue);
      else if (!n.is_int())
        fail(n, key, "a list of integers");
      else
        out.push_back(static_cast<uint32_t>(checked(n, key, 0, INT32_MAX)));
    }
    return out;
  }
  bool has(const char* key) const { return map_.find(key) != nullptr; }

 private:
  void fail(const Node& at, const char* key, const std::string& expected) {
    if (status_.is_ok())
      status_ = fault(
          at, std::string("\"") + key + "\" is " + describe_value(at) + ", expected " + expected);
  }
  bool is(const char* key, bool (Node::*is_kind)() const, const char* kind) {
    const Node* n = map_.find(key);
    if (!n && status_.is_ok())
      status_ = fault(map_, std::string("\"") + key + "\" is missing, expected " + kind);
    if (n && !(n->*is_kind)()) fail(*n, key, kind);
    return n && (n->*is_kind)();
  }
  int64_t checked(const Node& n, const char* key, int64_t least, int64_t most) {
    if (n.as_int() >= least && n.as_int() <= most) return n.as_int();
    fail(n, key, "an integer from " + std::to_string(least) + " to " + std::to_string(most));
    return least;
  }

  const Node& map_;
  Status& status_;
};

Attr read_attr(const Node& node, Status& status) {
  MapReader in(node, status);
  Attr out;
  out.key = in.text("key");
  out.flags = in.flag("must") ? DVT_ATTR_MUST : 0;
  if (in.has("text")) {
    out.type = DVT_ATTR_STR;
    out.str = in.text("text");
  } else if (in.has("floats")) {
    out.type = DVT_ATTR_F64;
    for (const Node& n : in.list("floats")) {
      if (n.is_number())
        out.f64.push_back(n.as_float());
      else if (status.is_ok())
        status = fault(n, "\"floats\" holds " + describe_value(n) + ", expected numbers");
    }
  } else {
    out.i64 = in.integers<int64_t>("integers", INT64_MIN, INT64_MAX);
  }
  return out;
}

OpCase::Node read_op(const Node& node, Status& status) {
  MapReader in(node, status);
  OpCase::Node out;
  out.op = in.text("op");
  out.rev = static_cast<uint32_t>(in.integer("rev", 0, UINT16_MAX));
  out.scope = in.text("scope");
  out.in = in.values("in", true);
  out.out = in.values("out", false);
  for (const Node& a : in.list("attrs")) out.attrs.push_back(read_attr(a, status));
  return out;
}

// The product of dims stays small: states are made anew for each token.
Status check_row(const Node& at, const std::vector<int64_t>& dims) {
  int64_t n = 1;
  for (const int64_t d : dims) {
    n *= std::max<int64_t>(d, 1);
    if (n > kMostRowNumbers)
      return fault(at, "a row has more than " + std::to_string(kMostRowNumbers) + " numbers");
  }
  return Status::ok();
}

OpCase::State read_state(const Node& node, Status& status) {
  MapReader in(node, status);
  OpCase::State out;
  out.val = static_cast<uint32_t>(in.integer("val", 0, INT32_MAX));
  out.name = in.text("name");
  const auto dims = in.integers<int64_t>("shape", 1, kMostRowNumbers);
  out.spec = {};
  out.spec.struct_size = sizeof out.spec;
  out.spec.kind = static_cast<uint32_t>(in.integer("kind", DVT_STATE_PAGED, DVT_STATE_TOKENS));
  out.spec.dtype = static_cast<uint32_t>(in.integer("dtype", 0, INT32_MAX));
  out.spec.rate = static_cast<uint32_t>(in.integer("rate", 1, kMostTokens));
  out.spec.window = static_cast<uint32_t>(in.integer("window", 0, INT32_MAX));
  out.spec.rewind = static_cast<uint32_t>(in.integer("rewind", 0, INT32_MAX));
  out.spec.group = static_cast<uint32_t>(in.integer("group", 0, INT32_MAX));
  if (dims.size() > DVT_MAX_DIMS && status.is_ok())
    status = fault(node, "\"shape\" has " + std::to_string(dims.size()) + " dimensions");
  if (status.is_ok()) status = check_row(node, dims);
  if (!status.is_ok()) return out;
  out.spec.ndim = static_cast<uint32_t>(dims.size());
  std::copy(dims.begin(), dims.end(), out.spec.dim);
  return out;
}

OpCase::Step read_step(const Node& node, Status& status) {
  MapReader in(node, status);
  OpCase::Step out;
  out.tokens = in.integers<int32_t>("tokens", 0, INT32_MAX);
  out.positions = in.integers<int32_t>("positions", 0, INT32_MAX);
  out.rows = in.integers<uint32_t>("rows", 0, kMostTokens);
  return out;
}

CaseFile read_case(const Node& node, Status& status) {
  MapReader in(node, status);
  CaseFile out;
  OpCase& c = out.op_case;
  in.integer("version", kVersion, kVersion);
  out.scope = in.text("scope");
  out.op = in.text("op");
  out.backend = in.text("backend");
  if (const Node* params = node.find("params"); params && params->is_map()) out.params = *params;
  out.trusted = in.text("trusted");
  out.arch = in.text("arch");
  out.tolerance = in.number("tolerance");
  out.kv_dtype = static_cast<uint32_t>(in.integer("kv_dtype", 1, INT32_MAX));
  out.page_len = static_cast<uint32_t>(in.integer("page_len", 1, kMostPageLen));
  for (const Node& n : in.list("nodes")) c.nodes.push_back(read_op(n, status));
  const auto val_of = [](MapReader& map) {
    return static_cast<uint32_t>(map.integer("val", 0, INT32_MAX));
  };
  for (const Node& n : in.list("inputs")) {
    MapReader map(n, status);
    c.inputs.push_back({val_of(map), map.text("name")});
  }
  for (const Node& n : in.list("fed")) {
    MapReader map(n, status);
    c.fed.push_back(
        {val_of(map), map.flag("of_rows"), map.integers<int64_t>("shape", 1, INT32_MAX), {}});
    if (c.fed.back().tail.size() >= DVT_MAX_DIMS && status.is_ok())
      status = fault(n, "\"shape\" has too many dimensions");
  }
  for (const Node& n : in.list("weights")) {
    MapReader map(n, status);
    c.weights.push_back({val_of(map),
                         map.text("name"),
                         map.text("stored"),
                         map.text("wanted"),
                         map.integers<int64_t>("shape", 1, INT32_MAX),
                         {},
                         nullptr});
    if (c.weights.back().shape.size() > DVT_MAX_DIMS && status.is_ok())
      status = fault(n, "\"shape\" has too many dimensions");
  }
  for (const Node& n : in.list("states")) c.states.push_back(read_state(n, status));
  for (const Node& n : in.list("steps")) c.steps.push_back(read_step(n, status));
  c.wanted = in.values("wanted", false);
  return out;
}

// The cache of core ops is paged, one row a token, keys as long as values; ops of plugins look for themselves.
Status check_states(const OpCase& c, const std::string& name) {
  for (const OpCase::Node& node : c.nodes) {
    if (node.op.find('/') != std::string::npos) continue;
    const dvt_state_spec* first = nullptr;
    for (const OpCase::State& s : c.states) {
      if (std::find(node.in.begin(), node.in.end(), s.val) == node.in.end()) continue;
      const bool is_cache = s.spec.kind == DVT_STATE_PAGED && s.spec.rate == 1 &&
                            (s.spec.dtype == DVT_ACTIVATION || s.spec.dtype == DVT_F32);
      if (!is_cache || (first && !std::equal(s.spec.dim, s.spec.dim + DVT_MAX_DIMS, first->dim)))
        return bad_format(name + ": state \"" + s.name + "\" is no cache for op \"" + node.op +
                          "\"");
      first = &s.spec;
    }
  }
  return Status::ok();
}

// `n_before`: tokens of earlier steps.
Status check_step(const OpCase& c, const OpCase::Step& s, size_t n_before) {
  const size_t n = s.positions.size();
  if (n == 0) return bad_format("a step has no tokens");
  if (s.tokens.size() != (c.fed.empty() ? n : 0))
    return bad_format("a step has " + std::to_string(s.tokens.size()) + " ids for " +
                      std::to_string(n) + " positions");
  for (const uint32_t row : s.rows)
    if (row >= n) return bad_format("row " + std::to_string(row) + " is beyond its step");
  for (size_t i = 0; i < n && !c.states.empty(); ++i)
    if (s.positions[i] != static_cast<int32_t>(n_before + i))
      return bad_format("positions do not count from 0, and a state is written by them");
  return Status::ok();
}

Status check_ids(const OpCase::Weight& table, const std::vector<OpCase::Step>& steps) {
  for (const OpCase::Step& s : steps)
    for (const int32_t id : s.tokens)
      if (table.shape.empty() || id >= table.shape[0])
        return bad_format("id " + std::to_string(id) + " is beyond the table \"" + table.name +
                          "\"");
  return Status::ok();
}

// What backends take on trust: each token has an id of the table, rows and positions are those of the step.
Status check_steps(const OpCase& c) {
  size_t n = 0;
  for (const OpCase::Step& s : c.steps) {
    DVT_TRY(check_step(c, s, n));
    n += s.positions.size();
  }
  if (n == 0 || n > kMostTokens)
    return bad_format("there are " + std::to_string(n) + " tokens, expected 1 to " +
                      std::to_string(kMostTokens));
  for (const OpCase::Node& node : c.nodes)
    for (const OpCase::Weight& w : c.weights)
      if (node.op == "embed" && node.in.size() == 2 && node.in[1] == w.val)
        DVT_TRY(check_ids(w, c.steps));
  return Status::ok();
}

// The float32 array of that name, of that shape.
Result<std::vector<float>> read_floats(const TensorFile& file, const std::string& path,
                                       const std::string& name,
                                       const std::optional<std::vector<int64_t>>& shape) {
  const NamedArray* a = file.find(name);
  if (!a || a->dtype != "F32" || (shape && a->shape != *shape))
    return bad_format(path + ": array \"" + name + "\" is missing, or has not the case's shape");
  std::vector<float> out(a->bytes.size() / sizeof(float));
  if (!out.empty()) std::memcpy(out.data(), a->bytes.data(), a->bytes.size());
  return out;
}

Status read_arrays(const TensorFile& file, const std::string& path, CaseFile& out) {
  OpCase& c = out.op_case;
  const auto n_tokens = static_cast<int64_t>(c.n_tokens());
  for (size_t i = 0; i < c.fed.size(); ++i) {
    std::vector<int64_t> shape{n_tokens};
    shape.insert(shape.end(), c.fed[i].tail.begin(), c.fed[i].tail.end());
    DVT_TRY(c.fed[i].numbers, read_floats(file, path, "fed." + std::to_string(i), shape));
  }
  for (size_t i = 0; i < c.weights.size(); ++i) {
    OpCase::Weight& w = c.weights[i];
    const NamedArray* a = file.find("weight." + std::to_string(i));
    const std::optional<uint64_t> need = plain_bytes(w.stored, w.shape);
    if (!a || (need && *need != a->bytes.size()))
      return bad_format(path + ": weight \"" + w.name +
                        "\" is missing, or has not the bytes of its shape");
    auto owner = std::make_shared<std::vector<std::byte>>(a->bytes.begin(), a->bytes.end());
    w.bytes = *owner;
    w.owner = std::move(owner);
  }
  for (size_t i = 0; i < c.wanted.size(); ++i) {
    DVT_TRY(std::vector<float> numbers,
            read_floats(file, path, "expected." + std::to_string(i), std::nullopt));
    out.expected.push_back(std::move(numbers));
  }
  return Status::ok();
}

}  // namespace

Status write_case_file(const std::filesystem::path& path, const CaseFile& file) {
  const OpCase& c = file.op_case;
  const auto n_tokens = static_cast<int64_t>(c.n_tokens());
  std::vector<NamedArray> arrays;
  for (size_t i = 0; i < c.fed.size(); ++i) {
    std::vector<int64_t> shape{n_tokens};
    shape.insert(shape.end(), c.fed[i].tail.begin(), c.fed[i].tail.end());
    arrays.push_back(floats("fed." + std::to_string(i), std::move(shape), c.fed[i].numbers));
  }
  for (size_t i = 0; i < c.weights.size(); ++i) arrays.push_back(weight_array(i, c.weights[i]));
  for (size_t i = 0; i < file.expected.size(); ++i)
    arrays.push_back(floats("expected." + std::to_string(i),
                            {n_tokens, static_cast<int64_t>(file.expected[i].size()) / n_tokens},
                            file.expected[i]));
  std::vector<std::byte> data;
  for (const NamedArray& a : arrays) data.insert(data.end(), a.bytes.begin(), a.bytes.end());
  return write_tensor_file(path, arrays,
                           {{kCase, to_json(case_node(file))}, {kSha256, sha256_hex(data)}});
}

Result<CaseFile> read_case_file(const std::filesystem::path& path) {
  DVT_TRY(const TensorFile file, read_tensor_file(path));
  const std::string name = path.string();
  const auto text = file.metadata.find(kCase), sum = file.metadata.find(kSha256);
  if (text == file.metadata.end() || sum == file.metadata.end())
    return bad_format(name + ": holds no case; `dovetail doctor` writes files that do");
  if (sum->second != sha256_hex(file.data))
    return bad_format(
        name + ": is damaged: its numbers have not the checksum that they were written with");
  DVT_TRY(const Node node, parse_json(text->second, name + ": " + kCase));
  Status status;
  CaseFile out = read_case(node, status);
  DVT_TRY(status);
  DVT_TRY(check_steps(out.op_case).in(name));
  DVT_TRY(check_states(out.op_case, name));
  DVT_TRY(read_arrays(file, name, out));
  return out;
}

}  // namespace dovetail::core
