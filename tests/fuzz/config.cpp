// A config.json, as the architecture qwen3 takes it: its keys, its weights, its graph.
#include <dovetail/abi/arch.h>

#include <array>
#include <vector>

#include "core/base/json.hpp"
#include "core/graph/builder.hpp"
#include "core/graph/op_registry.hpp"
#include "tests/fuzz/rig.hpp"

namespace dovetail::core::fuzz {
namespace {

/// A checkpoint that agrees with its config, so that a config that was changed still gets to its graph. It has eight
/// layers: a config of more names weights that are missing.
class Agreeing {
 public:
  explicit Agreeing(const Node& config) : config_(config) {}
  dvt_catalogue_v1 table() { return {sizeof(dvt_catalogue_v1), 0, this, find, count}; }

  std::vector<int64_t> shape_of(std::string_view name) const {
    const auto has = [&](std::string_view part) {
      return name.find(part) != std::string_view::npos;
    };
    if (const size_t at = name.find("layers."); at != std::string_view::npos) {
      const std::string_view layer = name.substr(at + 7);
      if (layer.size() < 2 || layer[0] > '7' || layer[1] != '.') return {};
    }
    const int64_t d = key("hidden_size", 1), f = key("intermediate_size", 1);
    const int64_t n_heads = key("num_attention_heads", 1);
    const int64_t n_kv = key("num_key_value_heads", n_heads);
    const int64_t e = key("head_dim", n_heads == 0 ? 1 : d / n_heads);
    const int64_t q = product(n_heads, e), kv = product(n_kv, e), v = key("vocab_size", 1);
    if (has("_proj.bias")) return {has("q_proj") ? q : has("o_proj") ? d : kv};
    if (has("q_norm") || has("k_norm")) return {e};
    if (has("norm")) return {d};
    if (has("q_proj")) return {q, d};
    if (has("k_proj") || has("v_proj")) return {kv, d};
    if (has("o_proj")) return {d, q};
    if (has("gate_proj") || has("up_proj")) return {f, d};
    if (has("down_proj")) return {d, f};
    return {v, d};
  }

 private:
  static int64_t product(int64_t a, int64_t b) {
    int64_t out = 0;
    return __builtin_mul_overflow(a, b, &out) ? 0 : out;
  }
  int64_t key(std::string_view name, int64_t otherwise) const {
    const Node* v = config_.find(name);
    return v != nullptr && v->is_int() ? v->as_int() : otherwise;
  }
  static dvt_code find(void* self, dvt_str name, dvt_str* format, uint32_t* ndim,
                       int64_t* shape) noexcept {
    const std::vector<int64_t> is = static_cast<const Agreeing*>(self)->shape_of(text_of(name));
    if (is.empty()) return DVT_EINVAL;
    *format = abi_text("bf16");
    *ndim = static_cast<uint32_t>(is.size());
    std::copy(is.begin(), is.end(), shape);
    return DVT_OK;
  }
  static uint64_t count(void*) noexcept { return 92; }

  const Node& config_;
};

void build(const dvt_arch_v1& table, void* arch, const Agreeing& weights) {
  CallFrame call;
  dvt_arch_info info{};
  info.struct_size = sizeof info;
  must(table.info(arch, call, &info) == DVT_OK, "an open architecture has no info");
  uint64_t need = 0;
  (void)table.states(arch, call, nullptr, 0, &need);
  std::vector<dvt_state_spec> states(need);
  for (dvt_state_spec& s : states) s.struct_size = sizeof s;
  must(table.states(arch, call, states.data(), states.size(), &need) == DVT_OK,
       "an open architecture does not list its states");
  const auto shape = [&](std::string_view name) -> Result<std::vector<int64_t>> {
    return weights.shape_of(name);
  };
  static const OpRegistry ops;
  GraphBuilder builder(ops, shape, states);
  CallFrame building;
  const dvt_code code = table.build(arch, building, builder.table(), abi_text("main"));
  if (code != DVT_OK) must_explain(building.check(code));
  const Result<Graph> graph = builder.finish();
  if (!graph) return must_explain(graph.status());
  (void)graph->dump();
  const Result<Graph> plain =
      decompose(*graph, std::vector<bool>(graph->view().n_nodes, true), ops);
  if (!plain) must_explain(plain.status());
}

void try_config(std::string_view json) {
  const Result<Node> config = parse_json(json, "config.json");
  if (!config) return must_explain(config.status());
  const LoadedPlugin& qwen3 = plugin("arch", "qwen3");
  const auto* table = qwen3.interface<dvt_arch_v1>("dovetail.arch/1");
  Agreeing weights(*config);
  const dvt_catalogue_v1 catalogue = weights.table();
  const dvt_arch_open in{sizeof in, 0, doc_handle(*config), 0, &catalogue};
  CallFrame call;
  void* arch = nullptr;
  const Status opened = call.check(table->open(qwen3.self, call, &in, &arch));
  if (!opened.is_ok()) return must_explain(opened);
  build(*table, arch, weights);
  table->close(arch);
}

}  // namespace
}  // namespace dovetail::core::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  dovetail::core::fuzz::try_config({reinterpret_cast<const char*>(data), size});
  return 0;
}
