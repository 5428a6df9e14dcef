// Write an architecture: read the config, name the weights with their shapes, say the steps.
//
//   class MyModel {
//    public:
//     MyModel(ConfigReader& config, Weights& weights);
//     ModelInfo info() const;
//     std::vector<StateSpec> states() const;
//     Tensor forward(Ops& op, const Step& step) const;      // logits [R, V]
//   };
//   DVT_EXPORT_ARCHITECTURE(MyModel, "my_model")
//
// Nothing is computed in forward: it runs once, over symbolic handles, and makes the graph. Readers
// and ops keep the first failure with its name; the host reports it.
#pragma once

#include <dovetail/abi/arch.h>
#include <dovetail/abi/op.h>
#include <dovetail/config_reader.hpp>
#include <dovetail/plugin.hpp>
#include <dovetail/rope.hpp>

#include <deque>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace dovetail {

/// A handle to a value of the graph or to a weight; no data.
struct Tensor {
  uint32_t id = 0;
  bool is_weight = false;
  explicit operator bool() const { return id != 0; }
};

/// A size with the words that say what it is: {n_kv_heads * head_dim, "n_kv_heads * head_dim"}.
struct Dim {
  int64_t value;
  std::string what;
  Dim(int64_t v) : value(v) {}  // NOLINT(google-explicit-constructor): sizes read as numbers
  Dim(int64_t v, std::string w) : value(v), what(std::move(w)) {}
};

/// The checkpoint's tensors: names each one, checks its shape, collects what is wrong.
class Weights {
 public:
  explicit Weights(const dvt_catalogue_v1* catalogue) : catalogue_(catalogue) {}

  bool has(const std::string& name) const {
    dvt_str format{};
    uint32_t ndim = 0;
    int64_t shape[DVT_MAX_DIMS];
    return catalogue_->find(catalogue_->self, to_abi(name), &format, &ndim, shape) == DVT_OK;
  }
  /// The tensor `name`, which must have this shape.
  Tensor tensor(const std::string& name, std::initializer_list<Dim> expected) {
    dvt_str format{};
    uint32_t ndim = 0;
    int64_t shape[DVT_MAX_DIMS];
    if (catalogue_->find(catalogue_->self, to_abi(name), &format, &ndim, shape) != DVT_OK) {
      problem("weight \"" + name + "\" is missing, expected " + describe(expected) +
              "; a checkpoint of another architecture?");
      return {};
    }
    bool same = ndim == expected.size();
    uint32_t i = 0;
    for (const Dim& d : expected) same = same && shape[i++] == d.value;
    if (!same) {
      std::string got = "[";
      for (i = 0; i < ndim; ++i) got += (i ? ", " : "") + std::to_string(shape[i]);
      problem("weight \"" + name + "\" is " + got + "], expected " + describe(expected));
      return {};
    }
    names_.push_back(name);
    return {static_cast<uint32_t>(names_.size()), true};
  }
  /// One line each; the same fault in several layers is one line.
  std::vector<std::string> problems() const {
    std::vector<std::string> out;
    for (const auto& [what, n_more] : problems_)
      out.push_back(what + (n_more == 0 ? ""
                            : n_problems_ < kMostProblems
                                ? "; so in " + std::to_string(n_more) + " more layers"
                                : "; so in many more layers"));
    return out;
  }
  void problem(const std::string& what) {
    const auto [at, is_new] = known_.emplace(without_layers(what), problems_.size());
    if (is_new)
      problems_.emplace_back(what, 0);
    else
      ++problems_[at->second].second;
    if (++n_problems_ >= kMostProblems) throw TooManyProblems();
  }
  /// Ends the constructor of an architecture that looks for layers no checkpoint has.
  struct TooManyProblems {};
  std::vector<std::string> take_names() { return std::move(names_); }

 private:
  static std::string describe(std::initializer_list<Dim> dims) {
    std::string numbers, words;
    bool named = false;
    for (const Dim& d : dims) {
      numbers += (numbers.empty() ? "" : ", ") + std::to_string(d.value);
      words += (words.empty() ? "" : ", ") + (d.what.empty() ? std::to_string(d.value) : d.what);
      named = named || !d.what.empty();
    }
    return "[" + numbers + "]" + (named ? " (" + words + ")" : "");
  }
  static constexpr size_t kMostProblems = 1000;

  // "layers.3.mlp" and "layers.7.mlp" become one.
  static std::string without_layers(const std::string& what) {
    std::string out;
    for (size_t i = 0; i < what.size(); ++i) {
      out += what[i];
      if (what[i] != '.') continue;
      size_t end = i + 1;
      while (end < what.size() && what[end] >= '0' && what[end] <= '9') ++end;
      if (end > i + 1 && end < what.size() && what[end] == '.') i = end - 1;
    }
    return out;
  }

  const dvt_catalogue_v1* catalogue_;
  std::vector<std::string> names_;
  std::vector<std::pair<std::string, size_t>>
      problems_;                         // with the number of layers that have it too
  std::map<std::string, size_t> known_;  // without layers -> position in problems_
  size_t n_problems_ = 0;
};

/// One thing that a sequence carries; see dvt_state_spec.
struct StateSpec {
  std::string name;
  uint32_t kind = DVT_STATE_PAGED;
  uint32_t dtype = DVT_ACTIVATION;
  std::vector<int64_t> dim;  // of one row
  uint32_t rate = 1;
  uint32_t window = 0;
  uint32_t rewind = DVT_REWIND_ANY;
  uint32_t group = 0;
};

/// Keys and values of n_layers attention layers: "layers.i.k", "layers.i.v", rows [n_kv_heads, head_dim].
inline std::vector<StateSpec> kv_states(int32_t n_layers, int64_t n_kv_heads, int64_t head_dim) {
  std::vector<StateSpec> specs;
  for (int32_t i = 0; i < n_layers; ++i)
    for (const char* part : {".k", ".v"}) {
      StateSpec spec;
      spec.name = "layers." + std::to_string(i) + part;
      spec.dim = {n_kv_heads, head_dim};
      specs.push_back(std::move(spec));
    }
  return specs;
}

struct ModelInfo {
  int32_t n_layers = 0;
  int64_t vocab_size = 0, max_seq_len = 0, d_model = 0;
};

struct KvLayer {
  Tensor k, v;  // states
};

/// The ops. Each makes one node and returns its value; shapes are checked by the host.
class Ops {
 public:
  Ops(const dvt_builder_v1* builder, dvt_call* call, const std::vector<std::string>& weights)
      : builder_(builder), call_(call), weights_(weights), weight_ids_(weights.size() + 1, 0) {}

  /// Names the nodes that follow in messages, profiles and dumps: "layers.3.attn".
  void scope(const std::string& path) {
    note(builder_->scope(builder_->self, call_, to_abi(path)));
  }
  /// Gives a value a name under which it can be dumped: "layer_out.3".
  void observe(const std::string& name, Tensor x) {
    note(builder_->observe(builder_->self, call_, to_abi(name), value(x)));
  }

  Tensor embed(Tensor ids, Tensor table) { return emit("embed", {ids, table}); }  // [T] -> [T, D]
  Tensor linear(Tensor x, Tensor weight) {
    return emit("linear", {x, weight});
  }  // [.., K] -> [.., N]
  Tensor linear(Tensor x, Tensor weight, Tensor bias) { return emit("linear", {x, weight, bias}); }
  Tensor add(Tensor a, Tensor b) { return emit("add", {a, b}); }
  Tensor mul(Tensor a, Tensor b) { return emit("mul", {a, b}); }
  Tensor silu(Tensor x) { return emit("silu", {x}); }
  /// x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))
  Tensor gelu_tanh(Tensor x) { return emit("gelu_tanh", {x}); }
  Tensor scale(Tensor x, double by) { return emit("mul_scalar", {x}, {f64("value", &by)}); }
  /// silu(gate) * up
  Tensor swiglu(Tensor gate, Tensor up) { return emit("swiglu", {gate, up}); }
  /// Over the last dimension: x / sqrt(mean(x^2) + eps) * weight; with unit_offset, * (1 + weight).
  Tensor rms_norm(Tensor x, Tensor weight, double eps, bool unit_offset = false) {
    const int64_t offset = unit_offset ? 1 : 0;
    return emit("rms_norm", {x, weight}, {f64("eps", &eps), i64("unit_offset", &offset)});
  }
  Tensor split_heads(Tensor x, int64_t n_heads, int64_t head_dim) {  // [T, H*E] -> [T, H, E]
    const int64_t tail[] = {n_heads, head_dim};
    return reshape(x, 1, tail);
  }
  Tensor merge_heads(Tensor x) {  // [T, H, E] -> [T, H*E]
    const std::vector<dvt_dim> shape = shape_of(x);
    if (shape.size() < 2) return {};
    const int64_t tail[] = {shape[shape.size() - 2].value * shape.back().value};
    return reshape(x, 2, tail);
  }
  /// Rotates pairs (i, i + R/2) of the first R = 2 * inv_freq elements of each head.
  Tensor rope_half_split(Tensor x, Tensor positions, const RopeTable& rope) {
    const dvt_attr_in freq{to_abi("inv_freq"), DVT_ATTR_F64, DVT_ATTR_MUST, rope.inv_freq.data(),
                           rope.inv_freq.size()};
    return emit("rope", {x, positions}, {freq, f64("attention_factor", &rope.attention_factor)});
  }
  /// Appends k and v to the cache, then attends causally: q [T, H, E], k and v [T, G, E] -> [T, H, E].
  /// window: keys visible to a query, itself included; 0 = all before it.
  Tensor attention(Tensor q, Tensor k, Tensor v, KvLayer kv, Tensor positions, double scale,
                   int64_t window = 0) {
    return emit("attention", {q, k, v, kv.k, kv.v, positions},
                {f64("scale", &scale), i64("window", &window)});
  }
  Tensor take_rows(Tensor x, Tensor rows) {
    return emit("take_rows", {x, rows});
  }  // [T, ..] -> [R, ..]

  /// Any op by name, for ops of the plugin's own.
  Tensor emit(std::string_view op, std::initializer_list<Tensor> in,
              std::initializer_list<dvt_attr_in> attrs = {}) {
    std::vector<dvt_id> ids;
    for (const Tensor& t : in) ids.push_back(value(t));
    dvt_op_desc desc{};
    desc.struct_size = sizeof desc;
    desc.rev = 1;
    desc.op = to_abi(op);
    desc.in = ids.data();
    desc.n_in = ids.size();
    desc.attrs = attrs.begin();
    desc.n_attrs = attrs.size();
    desc.n_out = 1;
    Tensor out;
    note(builder_->emit(builder_->self, call_, &desc, &out.id));
    return out;
  }
  static dvt_attr_in f64(std::string_view key, const double* v) {
    return {to_abi(key), DVT_ATTR_F64, DVT_ATTR_MUST, v, 1};
  }
  static dvt_attr_in i64(std::string_view key, const int64_t* v) {
    return {to_abi(key), DVT_ATTR_I64, DVT_ATTR_MUST, v, 1};
  }

  Tensor input(std::string_view name) {
    Tensor out;
    note(builder_->input(builder_->self, call_, to_abi(name), &out.id));
    return out;
  }
  Tensor state(const std::string& slot) {
    Tensor out;
    note(builder_->state(builder_->self, call_, to_abi(slot), &out.id));
    return out;
  }
  void output(std::string_view name, Tensor x) {
    note(builder_->output(builder_->self, call_, to_abi(name), value(x)));
  }
  std::vector<dvt_dim> shape_of(Tensor x) {
    std::vector<dvt_dim> dims(DVT_MAX_DIMS);
    uint32_t n = 0;
    note(builder_->shape(builder_->self, call_, value(x), dims.data(), DVT_MAX_DIMS, &n));
    dims.resize(failed_ ? 0 : n);
    return dims;
  }
  dvt_code code() const { return code_; }

 private:
  Tensor reshape(Tensor x, int64_t n_last, std::span<const int64_t> tail) {
    const dvt_attr_in shape{to_abi("tail"), DVT_ATTR_I64, DVT_ATTR_MUST, tail.data(), tail.size()};
    return emit("reshape", {x}, {i64("n_last", &n_last), shape});
  }
  void note(dvt_code code) {
    if (code == DVT_OK || failed_) return;
    failed_ = true;
    code_ = code;
  }
  uint32_t value(Tensor t) {
    if (!t.is_weight) return t.id;
    uint32_t& id = weight_ids_[t.id];
    if (id == 0)
      note(builder_->weight(builder_->self, call_, to_abi(weights_[t.id - 1]), nullptr, 0, &id));
    return id;
  }

  const dvt_builder_v1* builder_;
  dvt_call* call_;
  const std::vector<std::string>& weights_;
  std::vector<uint32_t> weight_ids_;
  bool failed_ = false;
  dvt_code code_ = DVT_OK;
};

/// What a step feeds the graph.
class Step {
 public:
  explicit Step(Ops& op)
      : tokens(op.input("tokens")),
        positions(op.input("positions")),
        logit_rows(op.input("out_rows")),
        op_(op) {}
  const Tensor tokens;      // [T] i32
  const Tensor positions;   // [1, T] i32
  const Tensor logit_rows;  // [R] i32
  KvLayer kv(int32_t layer) const {
    const std::string base = "layers." + std::to_string(layer);
    return {op_.state(base + ".k"), op_.state(base + ".v")};
  }

 private:
  Ops& op_;
};

template <class T>
struct ArchTable {
  struct Opened {
    std::unique_ptr<T> model;
    std::vector<std::string> weights;
    std::deque<StateSpec> states;
  };
  static Opened& self(void* arch) { return *static_cast<Opened*>(arch); }

  static dvt_code open(void* plugin, dvt_call* call, const dvt_arch_open* in,
                       void** arch) noexcept {
    return guard(call, [&] {
      ConfigReader config(host_of(plugin).doc(in->config));
      Weights weights(in->catalogue);
      auto opened = std::make_unique<Opened>();
      try {
        opened->model = std::make_unique<T>(config, weights);
      } catch (const Weights::TooManyProblems&) {
        // They are reported below.
      }
      // Shapes follow from the config: when that is wrong, only its own problems mean anything.
      const std::vector<std::string> problems =
          config.problems().empty() ? weights.problems() : config.problems();
      if (!problems.empty()) {
        std::string all;
        for (size_t i = 0; i < problems.size() && i < 10; ++i) all += (i ? "\n" : "") + problems[i];
        if (problems.size() > 10) all += "\nand " + std::to_string(problems.size() - 10) + " more";
        throw Error(all);
      }
      opened->weights = weights.take_names();
      for (StateSpec& spec : opened->model->states()) opened->states.push_back(std::move(spec));
      *arch = opened.release();
    });
  }
  static void close(void* arch) noexcept { delete static_cast<Opened*>(arch); }
  static dvt_code info(void* arch, dvt_call* call, dvt_arch_info* out) noexcept {
    return guard(call, [&] {
      const ModelInfo info = self(arch).model->info();
      out->n_layers = static_cast<uint32_t>(info.n_layers);
      out->vocab_size = info.vocab_size;
      out->max_seq_len = info.max_seq_len;
      out->d_model = info.d_model;
    });
  }
  static dvt_code states(void* arch, dvt_call* call, dvt_state_spec* out, uint64_t cap,
                         uint64_t* need) noexcept {
    return guard(call, [&] {
      std::vector<dvt_state_spec> specs;
      for (const StateSpec& s : self(arch).states) {
        dvt_state_spec spec{};
        spec.struct_size = sizeof spec;
        spec.kind = s.kind;
        spec.name = to_abi(s.name);
        spec.dtype = s.dtype;
        spec.ndim = static_cast<uint32_t>(s.dim.size());
        for (size_t i = 0; i < s.dim.size() && i < DVT_MAX_DIMS; ++i) spec.dim[i] = s.dim[i];
        spec.rate = s.rate;
        spec.window = s.window;
        spec.rewind = s.rewind;
        spec.group = s.group;
        specs.push_back(spec);
      }
      give(std::span<const dvt_state_spec>(specs), out, cap, need);
    });
  }
  static dvt_code build(void* arch, dvt_call* call, const dvt_builder_v1* builder,
                        dvt_str graph_name) noexcept {
    return guard(call, [&] {
      if (to_view(graph_name) != "main")
        throw Error("this architecture has no graph \"" + std::string(to_view(graph_name)) + "\"",
                    DVT_EUNSUPPORTED);
      Ops op(builder, call, self(arch).weights);
      const Step step(op);
      op.output("logits", self(arch).model->forward(op, step));
      Call(call).check(op.code());
    });
  }
  static constexpr dvt_arch_v1 table = {
      sizeof(dvt_arch_v1), 0, open, close, info, states, build, nullptr};
  static const void* find(std::string_view name) {
    if (name == "dovetail.arch/1") return &table;
    if constexpr (requires { T::ops(); }) {
      if (name == "dovetail.op/1") return T::ops();
    }
    return nullptr;
  }
};

}  // namespace dovetail

/// Further arguments: every "model_type" that this class reads.
#define DVT_EXPORT_ARCHITECTURE(Class, ...)                     \
  DVT_DEFINE_PLUGIN("arch", ("dovetail.arch/1"), (__VA_ARGS__), \
                    ::dovetail::ArchTable<Class>::find, ::dovetail::params_of<Class>())
