// What every architecture must do, tried on each one that the build made with its own fixtures:
// tests/plugins/arch/NAME/contract/CASE/ holds a config.json and, for a model with weights, tensors.txt
// with one "NAME FORMAT [SHAPE]" a line: all the tensors of such a checkpoint and no other. required.txt
// beside the cases names the keys, one a line, that no config may leave out.
#include <dovetail/abi/arch.h>
#include <dovetail/abi/op.h>

#include <functional>
#include <map>
#include <set>
#include <sstream>

#include "core/base/json.hpp"
#include "core/graph/builder.hpp"
#include "core/graph/op_registry.hpp"
#include "tests/contract/built_plugins.hpp"

namespace dovetail::core::test {
namespace {

struct Tensor {
  std::string format;
  std::vector<int64_t> shape;
};

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string out;
  for (int64_t n : shape) out += (out.empty() ? "" : ", ") + std::to_string(n);
  return "[" + out + "]";
}

/// A checkpoint without bytes: what an architecture may see of one.
class Catalogue {
 public:
  std::map<std::string, Tensor> tensors;

  static Catalogue read(const std::filesystem::path& file) {
    Catalogue out;
    if (!std::filesystem::exists(file)) return out;
    std::istringstream lines(read_text(file));
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string name, word;
      Tensor tensor;
      words >> name >> tensor.format;
      while (words >> word) {
        word.erase(
            std::remove_if(word.begin(), word.end(), [](char c) { return !std::isdigit(c); }),
            word.end());
        tensor.shape.push_back(std::stoll(word));
      }
      EXPECT_FALSE(tensor.shape.empty()) << file << ": " << line;
      out.tensors[name] = tensor;
    }
    return out;
  }
  dvt_catalogue_v1 table() { return {sizeof(dvt_catalogue_v1), 0, this, find, count}; }

 private:
  static dvt_code find(void* self, dvt_str name, dvt_str* format, uint32_t* ndim,
                       int64_t* shape) noexcept {
    const auto& all = static_cast<Catalogue*>(self)->tensors;
    const auto it = all.find(std::string(text_of(name)));
    if (it == all.end()) return DVT_EINVAL;
    *format = abi_text(it->second.format);
    *ndim = static_cast<uint32_t>(it->second.shape.size());
    std::copy(it->second.shape.begin(), it->second.shape.end(), shape);
    return DVT_OK;
  }
  static uint64_t count(void* self) noexcept {
    return static_cast<Catalogue*>(self)->tensors.size();
  }
};

/// One fixture of a plugin.
struct Case {
  std::string name;
  Node config;
  Catalogue catalogue;
};

/// An opened architecture, or the reason why there is none.
class Opened {
 public:
  Opened(const LoadedPlugin& plugin, const Node& config, Catalogue catalogue)
      : table_(plugin.interface<dvt_arch_v1>("dovetail.arch/1")), catalogue_(std::move(catalogue)) {
    const dvt_catalogue_v1 tensors = catalogue_.table();
    dvt_arch_open in{};
    in.struct_size = sizeof in;
    in.config = doc_handle(config);
    in.catalogue = &tensors;
    Frame call;
    code_ = table_->open(plugin.self, call, &in, &arch_);
    reason_ = call.reason();
  }
  ~Opened() {
    if (arch_ != nullptr) table_->close(arch_);
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

  dvt_code code() const { return code_; }
  const std::string& reason() const { return reason_; }
  const dvt_arch_v1& table() const { return *table_; }
  void* get() const { return arch_; }

  dvt_arch_info info() const {
    dvt_arch_info out{};
    out.struct_size = sizeof out;
    Frame call;
    expect_ok(table_->info(arch_, call, &out), call, "info");
    return out;
  }
  std::vector<dvt_state_spec> states() const {
    Frame call;
    uint64_t need = 0;
    (void)table_->states(arch_, call, nullptr, 0, &need);
    std::vector<dvt_state_spec> out(need);
    for (dvt_state_spec& s : out) s.struct_size = sizeof s;
    expect_ok(table_->states(arch_, call, out.data(), out.size(), &need), call, "states");
    EXPECT_EQ(need, out.size());
    return out;
  }
  /// What build makes with the host's builder.
  Result<Graph> build(const OpRegistry& ops) const {
    const auto shape = [this](std::string_view name) -> Result<std::vector<int64_t>> {
      const auto it = catalogue_.tensors.find(std::string(name));
      if (it == catalogue_.tensors.end())
        return invalid("weight \"" + std::string(name) + "\" is missing");
      return it->second.shape;
    };
    const std::vector<dvt_state_spec> specs = states();
    GraphBuilder builder(ops, shape, specs);
    Frame call;
    const dvt_code code = table_->build(arch_, call, builder.table(), abi_text("main"));
    if (builder.status().is_ok() && code != DVT_OK) return {code_of(code), call.reason()};
    return builder.finish();
  }

 private:
  const dvt_arch_v1* table_;
  Catalogue catalogue_;
  void* arch_ = nullptr;
  dvt_code code_ = DVT_OK;
  std::string reason_;
};

class ArchContract : public testing::TestWithParam<BuiltPlugin> {
 protected:
  void SetUp() override {
    plugin_ = ContractHost::get().load(GetParam());
    ASSERT_NE(plugin_, nullptr);
    if (const auto* own = plugin_->interface<dvt_op_set_v1>("dovetail.op/1"))
      for (uint32_t i = 0; i < own->n_ops; ++i) {
        const dvt_op_v1& op = *own->ops[i];
        EXPECT_NE(text_of(op.name).find('/'), std::string_view::npos)
            << text_of(op.name) << " names no owner";
        ASSERT_TRUE(op.infer && op.run);
        ASSERT_TRUE(ops_.add_plugin_op(&op));
      }
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(GetParam().fixture(), error)) {
      if (!entry.is_directory()) continue;
      Result<Node> config = parse_json(read_text(entry.path() / "config.json"), "config.json");
      ASSERT_TRUE(config) << config.status().message();
      cases_.push_back({entry.path().filename().string(), std::move(*config),
                        Catalogue::read(entry.path() / "tensors.txt")});
    }
    ASSERT_FALSE(cases_.empty()) << "no fixture in " << GetParam().fixture() << "/*/config.json";
    before_ = ContractHost::get().live_bytes();
  }
  void TearDown() override {
    EXPECT_EQ(ContractHost::get().live_bytes(), before_) << "host memory is left behind";
  }

  /// Tries a config that may be wrong. Refused: with a reason that names `key` or a weight whose shape
  /// no longer fits. Returns whether it was refused.
  bool is_refused(const Case& c, const Node& config, const std::string& key,
                  const std::string& how) {
    const Opened opened(*plugin_, config, c.catalogue);
    if (opened.code() == DVT_OK) {
      (void)opened.build(ops_);  // whatever it says, it must not crash
      return false;
    }
    EXPECT_TRUE(opened.code() == DVT_EINVAL || opened.code() == DVT_EUNSUPPORTED)
        << key << " " << how << ": " << opened.code();
    const bool names_it = opened.reason().find("\"" + key + "\"") != std::string::npos;
    const bool names_weight = opened.reason().find("weight \"") != std::string::npos;
    EXPECT_TRUE(names_it || names_weight) << key << " " << how << ": \"" << opened.reason() << "\"";
    return true;
  }

  LoadedPlugin* plugin_ = nullptr;
  OpRegistry ops_;
  std::vector<Case> cases_;
  uint64_t before_ = 0;
};

Node without(const Node& config, const std::string& key) {
  Node out = config;
  std::erase_if(out.entries(), [&](const Node::Entry& e) { return e.first == key; });
  return out;
}
Node with(const Node& config, const std::string& key, Node value) {
  Node out = config;
  out.set(key, std::move(value));
  return out;
}

TEST_P(ArchContract, OpensItsOwnConfigs) {
  EXPECT_FALSE(plugin_->manifest.keys.empty()) << "no model_type leads to it";
  for (const Case& c : cases_) {
    SCOPED_TRACE(c.name);
    const Opened opened(*plugin_, c.config, c.catalogue);
    ASSERT_EQ(opened.code(), DVT_OK) << opened.reason();
    const dvt_arch_info info = opened.info();
    EXPECT_GE(info.n_layers, 1u);
    EXPECT_GE(info.vocab_size, 1);
    EXPECT_GE(info.max_seq_len, 1);
    EXPECT_GE(info.d_model, 1);
    std::set<std::string> names;
    for (const dvt_state_spec& s : opened.states()) {
      const std::string name(text_of(s.name));
      EXPECT_FALSE(name.empty());
      EXPECT_TRUE(names.insert(name).second) << name << " is there twice";
      EXPECT_GE(s.struct_size, sizeof(dvt_state_spec)) << name;
      EXPECT_GE(s.kind, uint32_t{DVT_STATE_PAGED}) << name;
      EXPECT_LE(s.kind, uint32_t{DVT_STATE_TOKENS}) << name;
      EXPECT_GE(s.rate, 1u) << name;
      EXPECT_TRUE(s.rewind == DVT_REWIND_ANY || s.rewind == DVT_REWIND_SNAPSHOT) << name;
      ASSERT_LE(s.ndim, uint32_t{DVT_MAX_DIMS}) << name;
      for (uint32_t i = 0; i < s.ndim; ++i) EXPECT_GE(s.dim[i], 1) << name;
    }
  }
}

TEST_P(ArchContract, ListsStatesByTheRuleOfCapAndNeed) {
  const Opened opened(*plugin_, cases_[0].config, cases_[0].catalogue);
  ASSERT_EQ(opened.code(), DVT_OK) << opened.reason();
  const std::vector<dvt_state_spec> all = opened.states();
  if (all.empty()) return;  // none to list
  std::vector<dvt_state_spec> room(all.size());
  for (dvt_state_spec& s : room) s = {}, s.struct_size = sizeof s, s.rate = 4711;
  Frame call;
  uint64_t need = 0;
  EXPECT_EQ(opened.table().states(opened.get(), call, room.data(), room.size() - 1, &need),
            DVT_ETOOSMALL);
  EXPECT_EQ(need, all.size());
  EXPECT_EQ(room.back().rate, 4711u) << "wrote past cap";
}

TEST_P(ArchContract, BuildsTheSameGraphEachTime) {
  for (const Case& c : cases_) {
    SCOPED_TRACE(c.name);
    const Opened one(*plugin_, c.config, c.catalogue), other(*plugin_, c.config, c.catalogue);
    ASSERT_EQ(one.code(), DVT_OK) << one.reason();
    ASSERT_EQ(other.code(), DVT_OK);
    const Result<Graph> first = one.build(ops_), again = one.build(ops_), apart = other.build(ops_);
    ASSERT_TRUE(first) << first.status().message();
    ASSERT_TRUE(again) << again.status().message();
    ASSERT_TRUE(apart) << apart.status().message();
    EXPECT_EQ(first->view().fingerprint, again->view().fingerprint);
    EXPECT_EQ(first->view().fingerprint, apart->view().fingerprint);
    EXPECT_EQ(first->dump(), again->dump());
    EXPECT_EQ(first->dump(), apart->dump());
  }
}

TEST_P(ArchContract, GivesLogitsOfTheRowsThatAreWanted) {
  for (const Case& c : cases_) {
    SCOPED_TRACE(c.name);
    const Opened opened(*plugin_, c.config, c.catalogue);
    ASSERT_EQ(opened.code(), DVT_OK) << opened.reason();
    const Result<Graph> graph = opened.build(ops_);
    ASSERT_TRUE(graph) << graph.status().message();
    const dvt_graph g = graph->view();
    uint32_t n_logits = 0;
    for (uint32_t v = 0; v < g.n_vals; ++v) {
      if (!(g.vals[v].flags & DVT_VALF_OUTPUT) || graph->str(g.vals[v].name) != "logits") continue;
      ++n_logits;
      EXPECT_EQ(graph->shape_text(graph->type_of(v).dims),
                "[R, " + std::to_string(opened.info().vocab_size) + "]");
    }
    EXPECT_EQ(n_logits, 1u);
    EXPECT_EQ(graph->states().size(), opened.states().size());
  }
}

// The graph names every tensor of the checkpoint, with its shape; more than one use is one weight.
TEST_P(ArchContract, DeclaresEveryWeight) {
  for (const Case& c : cases_) {
    SCOPED_TRACE(c.name);
    const Opened opened(*plugin_, c.config, c.catalogue);
    ASSERT_EQ(opened.code(), DVT_OK) << opened.reason();
    const Result<Graph> graph = opened.build(ops_);
    ASSERT_TRUE(graph) << graph.status().message();
    std::set<std::string> used, stored;
    for (const auto& [name, tensor] : c.catalogue.tensors) stored.insert(name);
    for (const dvt_weight_ref& w : graph->weights()) {
      const std::string name(graph->str(w.name));
      EXPECT_TRUE(used.insert(name).second) << name << " is declared twice";
      EXPECT_NE(w.access, 0u) << name << " is never used";
      std::vector<int64_t> shape;
      for (const dvt_dim& d : graph->type_of(w.val).dims) shape.push_back(d.value);
      const auto it = c.catalogue.tensors.find(name);
      ASSERT_NE(it, c.catalogue.tensors.end()) << name;
      EXPECT_EQ(shape, it->second.shape) << name;
    }
    EXPECT_EQ(used, stored);
  }
}

TEST_P(ArchContract, RefusesGraphsThatItDoesNotHave) {
  const Opened opened(*plugin_, cases_[0].config, cases_[0].catalogue);
  ASSERT_EQ(opened.code(), DVT_OK) << opened.reason();
  const std::vector<dvt_state_spec> specs = opened.states();
  const auto shape = [](std::string_view) -> Result<std::vector<int64_t>> {
    return invalid("not asked for");
  };
  GraphBuilder builder(ops_, shape, specs);
  Frame call;
  expect_refused(
      opened.table().build(opened.get(), call, builder.table(), abi_text("no such graph")), call,
      DVT_EUNSUPPORTED, "build");
}

TEST_P(ArchContract, NamesAMissingWeight) {
  for (const Case& c : cases_)
    for (const auto& [name, tensor] : c.catalogue.tensors) {
      Catalogue less = c.catalogue;
      less.tensors.erase(name);
      const Opened opened(*plugin_, c.config, less);
      EXPECT_EQ(opened.code(), DVT_EINVAL) << c.name << " without " << name;
      EXPECT_NE(opened.reason().find(name), std::string::npos)
          << c.name << " without " << name << ": " << opened.reason();
    }
}

TEST_P(ArchContract, NamesAWeightOfTheWrongShape) {
  for (const Case& c : cases_)
    for (const auto& [name, tensor] : c.catalogue.tensors)
      for (size_t d = 0; d <= tensor.shape.size(); ++d) {
        Catalogue other = c.catalogue;
        std::vector<int64_t>& shape = other.tensors[name].shape;
        if (d < shape.size()) {
          ++shape[d];
        } else {
          shape.push_back(1);
        }
        const Opened opened(*plugin_, c.config, other);
        EXPECT_EQ(opened.code(), DVT_EINVAL) << name << " as " << shape_text(shape);
        for (const std::string& part : {name, shape_text(shape), shape_text(tensor.shape)})
          EXPECT_NE(opened.reason().find(part), std::string::npos)
              << "no " << part << " in \"" << opened.reason() << "\"";
      }
}

TEST_P(ArchContract, ReportsAllProblemsALineEach) {
  for (const Case& c : cases_) {
    if (c.catalogue.tensors.size() < 2) continue;  // a model without weights
    Catalogue less = c.catalogue;
    const std::string first = less.tensors.begin()->first,
                      last = std::prev(less.tensors.end())->first;
    less.tensors.erase(first);
    less.tensors.erase(last);
    const Opened opened(*plugin_, c.config, less);
    EXPECT_EQ(opened.code(), DVT_EINVAL);
    EXPECT_NE(opened.reason().find(first), std::string::npos) << opened.reason();
    EXPECT_NE(opened.reason().find(last), std::string::npos) << opened.reason();
    EXPECT_EQ(std::count(opened.reason().begin(), opened.reason().end(), '\n'), 1)
        << opened.reason();
  }
}

TEST_P(ArchContract, NamesAKeyThatIsMissing) {
  const std::filesystem::path file = GetParam().fixture() / "required.txt";
  std::istringstream lines(std::filesystem::exists(file) ? read_text(file) : std::string());
  size_t n = 0;
  for (std::string key; std::getline(lines, key); ++n)
    for (const Case& c : cases_)
      EXPECT_TRUE(is_refused(c, without(c.config, key), key, "left out")) << c.name << ": " << key;
  EXPECT_TRUE(n > 0 || cases_[0].catalogue.tensors.empty()) << "no keys in " << file;
}

// Each key of the config left out, of another kind, or out of range: taken, or refused by its name.
TEST_P(ArchContract, NamesTheKeyThatIsWrong) {
  for (const Case& c : cases_) {
    SCOPED_TRACE(c.name);
    size_t n_refused = 0;
    for (const auto& [key, value] : c.config.entries()) {
      const bool required = is_refused(c, without(c.config, key), key, "left out");
      std::vector<Node> wrong_kinds = {Node::make_list(), Node::make_map()};
      if (!value.is_string()) wrong_kinds.push_back(Node::make_string("wrong"));
      if (!value.is_number()) wrong_kinds.push_back(Node::make_int(7));
      if (!value.is_bool()) wrong_kinds.push_back(Node::make_bool(true));
      for (const Node& wrong : wrong_kinds) {
        const bool refused =
            is_refused(c, with(c.config, key, wrong), key, std::string("as ") + wrong.kind_name());
        EXPECT_TRUE(refused || !required) << key << " is needed, but may be " << wrong.kind_name();
        n_refused += refused;
      }
      if (!value.is_int()) continue;
      for (const int64_t n : {int64_t{0}, int64_t{-1}, int64_t{1} << 31, INT64_MAX}) {
        const bool refused =
            is_refused(c, with(c.config, key, Node::make_int(n)), key, "as " + std::to_string(n));
        EXPECT_TRUE(refused || !required) << key << " is needed, but may be " << n;
        n_refused += refused;
      }
    }
    EXPECT_GT(n_refused, 0u) << "no key matters";
  }
}

TEST_P(ArchContract, RefusesWhatIsNoConfig) {
  for (const char* text : {"null", "[]", "\"qwen3\"", "{}"}) {
    const Result<Node> config = parse_json(text, "config.json");
    ASSERT_TRUE(config);
    const Opened opened(*plugin_, *config, cases_[0].catalogue);
    if (opened.code() == DVT_OK) {  // a model that needs nothing said
      EXPECT_TRUE(cases_[0].catalogue.tensors.empty()) << text;
      continue;
    }
    EXPECT_TRUE(opened.code() == DVT_EINVAL || opened.code() == DVT_EUNSUPPORTED)
        << text << ": " << opened.code();
    EXPECT_FALSE(opened.reason().empty()) << text;
  }
}

INSTANTIATE_TEST_SUITE_P(Built, ArchContract, testing::ValuesIn(built_plugins("arch")), test_name);

}  // namespace
}  // namespace dovetail::core::test
