// What every backend must do, tried on each one that the build made, with a small decoder: see
// small_model.hpp. Held to its own arithmetic in double, to itself in other batches, and to the others.
#include <bit>
#include <cmath>
#include <set>

#include "core/model/state_move.hpp"
#include "tests/contract/backend_rig.hpp"

namespace dovetail::core::test {
namespace {

constexpr double kBound = 1e-4;  // of logits, which are below 10

std::vector<int32_t> some_tokens(size_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<int32_t> out;
  for (size_t i = 0; i < n; ++i) out.push_back(static_cast<int32_t>(random() % SmallModel::kVocab));
  return out;
}

void expect_near(const Rows& got, const std::vector<std::vector<double>>& expected, double bound,
                 const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  double worst = 0;
  for (size_t r = 0; r < got.size(); ++r) {
    ASSERT_EQ(got[r].size(), expected[r].size()) << what;
    for (size_t i = 0; i < got[r].size(); ++i) {
      ASSERT_FALSE(std::isnan(got[r][i])) << what << ": row " << r;
      worst = std::max(worst, std::fabs(static_cast<double>(got[r][i]) - expected[r][i]));
    }
  }
  EXPECT_LE(worst, bound) << what;
}
void expect_same_bytes(const Rows& a, const Rows& b, const std::string& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (size_t r = 0; r < a.size(); ++r) {
    ASSERT_EQ(a[r].size(), b[r].size()) << what;
    ASSERT_EQ(std::memcmp(a[r].data(), b[r].data(), a[r].size() * sizeof(float)), 0)
        << what << ": row " << r;
  }
}
Rows rows_between(const Rows& rows, size_t begin, size_t end) {
  return {rows.begin() + static_cast<std::ptrdiff_t>(begin),
          rows.begin() + static_cast<std::ptrdiff_t>(end)};
}

class BackendContract : public testing::TestWithParam<BuiltPlugin> {
 protected:
  void SetUp() override {
    plugin_ = ContractHost::get().load(GetParam());
    ASSERT_NE(plugin_, nullptr);
    table_ = plugin_->interface<dvt_backend_v1>("dovetail.backend/1");
    ASSERT_NE(table_, nullptr);
    before_ = ContractHost::get().live_bytes();
    if (device_kind(*plugin_) == 0) skip_without_device();
  }
  // A backend for hardware that this machine lacks: it loads, lists no device, and says why when it is opened.
  void skip_without_device() {
    const Node params = default_params(*plugin_);
    void* context = nullptr;
    Frame call;
    EXPECT_EQ(table_->open(plugin_->self, call, 0, doc_handle(params), &context), DVT_EDEVICE);
    const std::string reason = call.reason();
    EXPECT_FALSE(reason.empty()) << "refused without a reason";
    GTEST_SKIP() << GetParam().name << " has no device here: " << reason;
  }
  void TearDown() override {
    EXPECT_EQ(ContractHost::get().live_bytes(), before_) << "host memory is left behind";
  }

  LoadedPlugin* plugin_ = nullptr;
  const dvt_backend_v1* table_ = nullptr;
  uint64_t before_ = 0;
};

// ---------------------------------------------------------------- before anything is loaded

TEST_P(BackendContract, HasTheSlotsThatTheCoreCalls) {
  EXPECT_GE(table_->struct_size, offsetof(dvt_backend_v1, copy_pages) + sizeof table_->copy_pages);
  EXPECT_TRUE(table_->devices && table_->open && table_->close && table_->info &&
              table_->supports && table_->plan);
  EXPECT_TRUE(table_->bind && table_->alloc_states && table_->estimate && table_->compile &&
              table_->drop);
  EXPECT_TRUE(table_->submit && table_->wait && table_->mem && table_->export_state &&
              table_->import_state && table_->copy_pages);
  EXPECT_EQ(DVT_HAS(table_, snapshot), DVT_HAS(table_, restore))
      << "one is of no use without the other";
}

TEST_P(BackendContract, ListsDevicesByTheRuleOfCapAndNeed) {
  Frame call;
  uint64_t need = 0;
  (void)table_->devices(plugin_->self, call, nullptr, 0, &need);
  ASSERT_GE(need, 1u);
  std::vector<dvt_device> devices(need);
  for (dvt_device& d : devices) d = {}, d.struct_size = sizeof d, d.reserved = 4711;
  uint64_t again = 0;
  EXPECT_EQ(table_->devices(plugin_->self, call, devices.data(), need - 1, &again), DVT_ETOOSMALL);
  EXPECT_EQ(again, need);
  EXPECT_EQ(devices.back().reserved, 4711u) << "wrote past cap";
  expect_ok(table_->devices(plugin_->self, call, devices.data(), need, &again), call, "devices");
  for (const dvt_device& d : devices) {
    EXPECT_FALSE(text_of(d.name).empty());
    EXPECT_GE(d.kind, uint32_t{DVT_DEVICE_CPU});
    EXPECT_LE(d.kind, uint32_t{DVT_DEVICE_OTHER});
    EXPECT_LE(d.mem_free, d.mem_total);
  }
}

TEST_P(BackendContract, SaysWhatItIs) {
  const BackendRig rig(*plugin_);
  dvt_backend_info info{};
  info.struct_size = sizeof info;
  Frame call;
  expect_ok(table_->info(rig.context(), call, &info), call, "info");
  EXPECT_GE(info.preferred_page_len, 1u);
  EXPECT_TRUE(info.kv_dtype == DVT_F32 || info.kv_dtype == DVT_BF16 || info.kv_dtype == DVT_F16)
      << info.kv_dtype;
  EXPECT_FALSE(text_of(info.variant).empty());
}

TEST_P(BackendContract, RunsCoreOpsAndSaysWhyNotOthers) {
  const BackendRig rig(*plugin_, {.decompose_all = true});
  const std::vector<dvt_verdict> verdicts = rig.verdicts(), again = rig.verdicts();
  for (size_t i = 0; i < verdicts.size(); ++i) {
    const std::string op(rig.graph().op_name(rig.graph().node(i)));
    EXPECT_TRUE(verdicts[i].level == DVT_NATIVE || verdicts[i].level == DVT_SLOW)
        << op << ": " << text_of(verdicts[i].reason);
    EXPECT_EQ(verdicts[i].level, again[i].level) << op;
  }
  // An op that no backend has: an answer with its reason, not a failure.
  OpRegistry ops;
  OpDef alien;
  alien.name = "alien";
  alien.infer = [](const OpCall& c, std::vector<ValueType>& out) {
    out = {c.types[0]};
    return Status::ok();
  };
  ASSERT_TRUE(ops.add(alien));
  GraphWriter w(ops);
  const uint32_t x =
      w.emit("embed", 1, {*w.input("tokens"), w.weight("t", {fixed_dim(8), fixed_dim(8)})}, {})
          ->at(0);
  ASSERT_TRUE(w.emit("alien", 1, {x}, {}));
  const Graph graph = w.take();
  const dvt_graph view = graph.view();
  std::vector<dvt_verdict> found(view.n_nodes);
  Frame call;
  expect_ok(table_->supports(rig.context(), call, &view, found.data()), call, "supports");
  EXPECT_TRUE(found[1].level == DVT_CANNOT || found[1].level == DVT_DECOMPOSE) << found[1].level;
  EXPECT_FALSE(text_of(found[1].reason).empty());
}

TEST_P(BackendContract, PlansTheSameEachTime) {
  for (const char* format : {"float32", "bf16", "f16"}) {
    SCOPED_TRACE(format);
    BackendRig rig(*plugin_, {.format = format});
    const std::vector<dvt_weight_use> uses = rig.uses();
    const std::vector<dvt_weight_plan> plans = rig.plan(uses), again = rig.plan(uses);
    std::set<uint32_t> finished;
    for (size_t i = 0; i < plans.size(); ++i) {
      const dvt_weight_plan &p = plans[i], &q = again[i];
      const std::string name(text_of(uses[i].name));
      EXPECT_EQ(std::tie(p.how, p.group, p.align, p.bytes, p.layout_hash),
                std::tie(q.how, q.group, q.align, q.bytes, q.layout_hash))
          << name;
      EXPECT_TRUE(p.how == DVT_PLAN_KEEP || p.how == DVT_PLAN_PACK || p.how == DVT_PLAN_PUT)
          << name << ": " << p.how;
      EXPECT_GT(p.bytes, 0u) << name;
      if (p.how == DVT_PLAN_KEEP) {
        EXPECT_EQ(p.bytes, rig.stored(uses[i]).size()) << name;
      }
      if (p.how != DVT_PLAN_PUT) {
        EXPECT_TRUE(std::has_single_bit(p.align)) << name << ": " << p.align;
      }
      if (i > 0 && p.group != plans[i - 1].group) finished.insert(plans[i - 1].group);
      EXPECT_FALSE(finished.contains(p.group)) << name << ": the weights of a group stand apart";
    }
  }
}

// A host of another release has longer or shorter records; the first says how long.
TEST_P(BackendContract, StepsByTheHostsRecords) {
  BackendRig rig(*plugin_);
  const std::vector<dvt_weight_use> uses = rig.uses();
  const std::vector<dvt_weight_plan> want = rig.plan(uses);
  constexpr size_t kLonger = 24, kKnownToAll = offsetof(dvt_weight_plan, numbers_format);
  for (const size_t use_bytes : {sizeof(dvt_weight_use), sizeof(dvt_weight_use) + kLonger})
    for (const size_t plan_bytes : {kKnownToAll, sizeof(dvt_weight_plan) + kLonger}) {
      SCOPED_TRACE(std::to_string(use_bytes) + ", " + std::to_string(plan_bytes));
      constexpr uint8_t kUnknown = 0xee;
      std::vector<uint8_t> in(use_bytes * uses.size(), kUnknown),
          out(plan_bytes * uses.size(), kUnknown);
      for (size_t i = 0; i < uses.size(); ++i) {
        dvt_weight_use use = uses[i];
        use.struct_size = static_cast<uint32_t>(use_bytes);
        std::memcpy(&in[i * use_bytes], &use, sizeof use);
        const auto length = static_cast<uint32_t>(plan_bytes);
        std::memcpy(&out[i * plan_bytes], &length, sizeof length);
      }
      Frame call;
      expect_ok(table_->plan(rig.context(), call, reinterpret_cast<dvt_weight_use*>(in.data()),
                             reinterpret_cast<dvt_weight_plan*>(out.data()), uses.size()),
                call, "plan");
      for (size_t i = 0; i < uses.size(); ++i) {
        dvt_weight_plan got{};
        std::memcpy(&got, &out[i * plan_bytes], std::min(plan_bytes, sizeof got));
        EXPECT_EQ(got.struct_size, plan_bytes);
        EXPECT_EQ(std::tie(got.how, got.group, got.align, got.bytes, got.layout_hash),
                  std::tie(want[i].how, want[i].group, want[i].align, want[i].bytes,
                           want[i].layout_hash));
        for (size_t k = sizeof got; k < plan_bytes; ++k)
          EXPECT_EQ(out[i * plan_bytes + k], kUnknown) << k;
      }
    }
}

// float32 in the file, `wanted` by the config. `wanted` outlives it.
dvt_weight_use matrix_to_quantise(BackendRig& rig, std::string_view wanted, int64_t n_rows,
                                  int64_t k_len) {
  dvt_weight_use use = rig.uses().front();
  use.access = DVT_ACCESS_DENSE;
  use.stored = abi_text("float32");
  use.wanted = abi_text(wanted);
  use.ndim = 2;
  use.shape[0] = n_rows, use.shape[1] = k_len;
  return use;
}

// What a report calls the weights: the format of the numbers, in whatever layout they are.
TEST_P(BackendContract, NamesTheFormatOfQuantisedNumbers) {
  BackendRig rig(*plugin_);
  for (const std::string wanted : {"int8", "int6", "int4", "int4q"}) {
    SCOPED_TRACE(wanted);
    const dvt_weight_use use = matrix_to_quantise(rig, wanted, 128, 64);
    dvt_weight_plan plan{};
    plan.struct_size = sizeof plan;
    Frame call;
    if (table_->plan(rig.context(), call, &use, &plan, 1) != DVT_OK) continue;
    const bool is_file_format = plan.file_format.n > 0;
    EXPECT_TRUE(
        text_of(is_file_format ? plan.file_format : plan.numbers_format).starts_with(wanted + "."));
    const double bits = 8.0 * static_cast<double>(is_file_format ? plan.bytes : plan.numbers_bytes);
    EXPECT_LE(bits, (wanted.at(3) - '0' + 1) * 128 * 64);
    EXPECT_GE(bits, (wanted.at(3) - '0') * 128 * 64);
  }
}

TEST_P(BackendContract, RefusesFormatsThatItCannotCompute) {
  BackendRig rig(*plugin_);
  dvt_weight_use use = rig.uses().front();
  dvt_weight_plan plan{};
  plan.struct_size = sizeof plan;
  Frame call;
  use.stored = abi_text("no such format");
  expect_refused(table_->plan(rig.context(), call, &use, &plan, 1), call, DVT_EUNSUPPORTED,
                 "stored");
  use.stored = abi_text("float32");
  use.wanted = abi_text("no such format");
  expect_refused(table_->plan(rig.context(), call, &use, &plan, 1), call, DVT_EUNSUPPORTED,
                 "wanted");
}

TEST_P(BackendContract, PacksTheSameBytesEachTimeAndNoMore) {
  constexpr size_t kGuard = 64;
  for (const char* format : {"float32", "bf16", "f16"}) {
    BackendRig rig(*plugin_, {.format = format});
    const std::vector<dvt_weight_use> uses = rig.uses();
    const std::vector<dvt_weight_plan> plans = rig.plan(uses);
    for (size_t i = 0, end = 0; i < uses.size(); i = end) {
      for (end = i + 1; end < uses.size() && plans[end].group == plans[i].group;) ++end;
      if (plans[i].how != DVT_PLAN_PACK) continue;
      std::vector<std::vector<uint8_t>> sources;
      std::vector<dvt_bytes> bytes;
      for (size_t k = i; k < end; ++k) sources.push_back(rig.stored(uses[k]));
      for (const auto& s : sources) bytes.push_back({s.data(), s.size()});
      std::vector<uint8_t> packed[2];
      for (int turn = 0; turn < 2; ++turn) {
        const uint8_t before = turn == 0 ? 0x5a : 0xa5;
        std::vector<uint8_t> room(plans[i].align + plans[i].bytes + kGuard, before);
        void* p = room.data();
        size_t space = room.size();
        ASSERT_NE(std::align(plans[i].align, plans[i].bytes, p, space), nullptr);
        auto* dst = static_cast<uint8_t*>(p);
        Frame call;
        expect_ok(table_->pack(rig.context(), call, &uses[i], bytes.data(), bytes.size(), dst,
                               plans[i].bytes),
                  call, "pack");
        packed[turn].assign(dst, dst + plans[i].bytes);
        for (const uint8_t* g = dst + plans[i].bytes; g < room.data() + room.size(); ++g)
          ASSERT_EQ(*g, before) << text_of(uses[i].name) << ": wrote past the end";
      }
      EXPECT_EQ(packed[0], packed[1]) << format << " " << text_of(uses[i].name);
    }
  }
}

// What a file may hold of a backend's packed weights: made in pieces, named, and taken back by that name.
TEST_P(BackendContract, FileFormatsGoByRowsAndAreReadBack) {
  constexpr int64_t kRows = 2 * DVT_FILE_ROWS + 70, kLen = 64;
  BackendRig rig(*plugin_);
  std::vector<float> values(kRows * kLen);
  std::mt19937 random(41);
  for (float& v : values) v = static_cast<float>(random() % 2001) / 1000.0f - 1.0f;
  const auto pack = [&](dvt_weight_use use, int64_t row0, int64_t n) {
    use.shape[0] = n;
    const dvt_weight_plan plan = rig.plan({use})[0];
    std::vector<uint8_t> out(plan.bytes);
    const dvt_bytes source{values.data() + row0 * kLen,
                           static_cast<uint64_t>(n * kLen) * sizeof(float)};
    Frame call;
    expect_ok(table_->pack(rig.context(), call, &use, &source, 1, out.data(), out.size()), call,
              "pack");
    return out;
  };
  for (const char* wanted : {"int8", "int6", "int4", "int4q"}) {
    SCOPED_TRACE(wanted);
    dvt_weight_use use = matrix_to_quantise(rig, wanted, kRows, kLen);
    dvt_weight_plan plan{};
    plan.struct_size = sizeof plan;
    Frame call;
    if (table_->plan(rig.context(), call, &use, &plan, 1) != DVT_OK || plan.file_format.n == 0)
      continue;
    EXPECT_EQ(plan.how, uint32_t{DVT_PLAN_PACK});
    std::vector<uint8_t> pieces;
    for (int64_t row = 0; row < kRows; row += DVT_FILE_ROWS)
      for (const uint8_t b : pack(use, row, std::min<int64_t>(DVT_FILE_ROWS, kRows - row)))
        pieces.push_back(b);
    EXPECT_EQ(pieces, pack(use, 0, kRows));

    use.stored = plan.file_format;
    use.wanted = {};
    const dvt_weight_plan kept = rig.plan({use})[0];
    if (kept.how == DVT_PLAN_KEEP) {
      EXPECT_EQ(kept.bytes, pieces.size());
    }
    use.wanted = abi_text("float32");
    const dvt_weight_plan expanded = rig.plan({use})[0];
    EXPECT_EQ(expanded.how, uint32_t{DVT_PLAN_PACK});
    EXPECT_EQ(text_of(expanded.file_format), "float32");
    std::vector<float> numbers(kRows * kLen);
    ASSERT_EQ(expanded.bytes, numbers.size() * sizeof(float));
    dvt_bytes source{pieces.data(), pieces.size()};
    expect_ok(table_->pack(rig.context(), call, &use, &source, 1, numbers.data(), expanded.bytes),
              call, "pack");
    for (size_t i = 0; i < numbers.size(); ++i) ASSERT_NEAR(numbers[i], values[i], 0.2) << i;
    --source.n;
    expect_refused(
        table_->pack(rig.context(), call, &use, &source, 1, numbers.data(), expanded.bytes), call,
        DVT_EFORMAT, "a byte too few");

    use.shape[1] = kLen + 1;
    for (const char* then : {"", "float32"}) {
      use.wanted = abi_text(then);
      expect_refused(table_->plan(rig.context(), call, &use, &plan, 1), call, DVT_EFORMAT,
                     "rows that are no whole blocks");
    }
  }
}

TEST_P(BackendContract, TakesTheMemoryThatItEstimates) {
  for (const uint32_t kv_dtype : kKvDtypes) {
    SCOPED_TRACE("cache " + std::to_string(kv_dtype));
    BackendRig rig(*plugin_, {.kv_dtype = kv_dtype});
    const dvt_graph view = rig.graph().view();
    const dvt_compile_options options = rig.compile_options();
    uint64_t page = 0, slot = 0, workspace = 0, again[3];
    Frame call;
    expect_ok(table_->estimate(rig.context(), call, &view, &options, kv_dtype, BackendRig::kPageLen,
                               &page, &slot, &workspace),
              call, "estimate");
    expect_ok(table_->estimate(rig.context(), call, &view, &options, kv_dtype, BackendRig::kPageLen,
                               &again[0], &again[1], &again[2]),
              call, "estimate");
    EXPECT_EQ(std::tie(page, slot, workspace), std::tie(again[0], again[1], again[2]));
    EXPECT_GE(page, rig.n_states() * rig.row_bytes() * BackendRig::kPageLen)
        << "the rows of a page do not fit in it";
    EXPECT_EQ(slot, 0u) << "there are no states by sequence";
    rig.load();
    uint64_t need = 0;
    (void)table_->mem(rig.context(), call, nullptr, 0, &need);
    std::vector<dvt_mem_row> rows(need);
    for (dvt_mem_row& r : rows) r.struct_size = sizeof r;
    expect_ok(table_->mem(rig.context(), call, rows.data(), rows.size(), &need), call, "mem");
    uint64_t states = 0, work = 0;
    for (const dvt_mem_row& r : rows) {
      EXPECT_LE(r.live, r.peak);
      if (r.tag == DVT_MEM_STATE) states += r.live;
      if (r.tag == DVT_MEM_WORKSPACE) work += r.live;
    }
    EXPECT_EQ(states, page * RigOptions{}.n_pages + slot * BackendRig::kSlots);
    EXPECT_LE(work, workspace);
    if (need > 0) {
      EXPECT_EQ(table_->mem(rig.context(), call, rows.data(), need - 1, &need), DVT_ETOOSMALL);
    }
  }
}

// ---------------------------------------------------------------- results

TEST_P(BackendContract, ComputesWhatTheOpsMean) {
  const std::vector<int32_t> tokens = some_tokens(23, 1);
  const SmallModel::Answer expected = small_model().answer(tokens);
  for (const char* format : {"float32", "bf16", "f16"}) {
    BackendRig rig(*plugin_, {.format = format});
    rig.load();
    if (HasFatalFailure()) return;
    Sequence s = rig.sequence();
    expect_near(rig.run({{&s, tokens}}), expected.logits, kBound, format);
  }
}

TEST_P(BackendContract, NativeOpsEqualTheirDefinitions) {
  const std::vector<int32_t> tokens = some_tokens(23, 2);
  BackendRig native(*plugin_), defined(*plugin_, {.decompose_all = true});
  native.load();
  defined.load();
  Sequence a = native.sequence(), b = defined.sequence();
  const Rows x = native.run({{&a, tokens}}), y = defined.run({{&b, tokens}});
  std::vector<std::vector<double>> expected;
  for (const auto& row : y) expected.emplace_back(row.begin(), row.end());
  expect_near(x, expected, kBound, "native against defined");
}

TEST_P(BackendContract, ComputesNearlyTheSameOverASmallerCache) {
  const std::vector<int32_t> tokens = some_tokens(23, 3);
  for (const uint32_t kv_dtype : {uint32_t{DVT_BF16}, uint32_t{DVT_I8_SCALED}}) {
    BackendRig rig(*plugin_, {.kv_dtype = kv_dtype});
    rig.load();
    Sequence s = rig.sequence();
    expect_near(rig.run({{&s, tokens}}), small_model().answer(tokens).logits, 5e-2,
                "cache " + std::to_string(kv_dtype));
  }
}

TEST_P(BackendContract, ShowsObservedValues) {
  const std::vector<int32_t> tokens = some_tokens(9, 4);
  BackendRig rig(*plugin_, {.observed = {"layer_out.0", "layer_out.1"}});
  rig.load();
  Sequence s = rig.sequence();
  BackendRig::Step step = BackendRig::step_of({{&s, tokens}});
  const dvt_batch* batch = BackendRig::batch_of(step);
  std::vector<float> logits(tokens.size() * SmallModel::kVocab), layers[SmallModel::kLayers];
  std::vector<dvt_output> outs = {
      {abi_text("logits"), logits.data(), logits.size() * sizeof(float)}};
  const std::string names[] = {"layer_out.0", "layer_out.1"};
  for (size_t i = 0; i < std::size(layers); ++i) {
    layers[i].resize(tokens.size() * SmallModel::kModel);
    outs.push_back({abi_text(names[i]), layers[i].data(), layers[i].size() * sizeof(float)});
  }
  Frame call;
  expect_ok(rig.submit_and_wait(call, batch, outs), call, "submit");
  BackendRig unobserved(*plugin_, {});
  unobserved.load();
  Sequence other = unobserved.sequence();
  const Rows rows = unobserved.run({{&other, tokens}});
  for (size_t t = 0; t < tokens.size(); ++t)
    EXPECT_EQ(rows[t],
              std::vector<float>(
                  logits.begin() + static_cast<std::ptrdiff_t>(t) * SmallModel::kVocab,
                  logits.begin() + static_cast<std::ptrdiff_t>(t + 1) * SmallModel::kVocab))
        << "watching changed the logits of token " << t;
  const SmallModel::Answer expected = small_model().answer(tokens);
  for (size_t i = 0; i < std::size(layers); ++i)
    for (size_t t = 0; t < tokens.size(); ++t)
      for (size_t d = 0; d < SmallModel::kModel; ++d)
        ASSERT_NEAR(static_cast<double>(layers[i][t * SmallModel::kModel + d]),
                    expected.layer_out[i][t][d], kBound)
            << names[i] << " of token " << t;
}

TEST_P(BackendContract, ShowsObservedValuesThatAreViewsOfOthers) {
  const std::vector<int32_t> tokens = some_tokens(9, 4);
  BackendRig rig(*plugin_, {.observed = {"heads.0", "merged_heads.0"}});
  rig.load();
  Sequence s = rig.sequence();
  BackendRig::Step step = BackendRig::step_of({{&s, tokens}});
  const dvt_batch* batch = BackendRig::batch_of(step);
  const size_t n = tokens.size() * SmallModel::kHeads * SmallModel::kHead;
  std::vector<float> logits(tokens.size() * SmallModel::kVocab), heads(n), merged(n, NAN);
  const dvt_output outs[] = {{abi_text("logits"), logits.data(), logits.size() * sizeof(float)},
                             {abi_text("merged_heads.0"), merged.data(), n * sizeof(float)},
                             {abi_text("heads.0"), heads.data(), n * sizeof(float)}};
  Frame call;
  expect_ok(rig.submit_and_wait(call, batch, outs), call, "submit");
  EXPECT_EQ(merged, heads);
  EXPECT_NE(heads, std::vector<float>(n));
}

TEST_P(BackendContract, GivesTheSameBytesAloneInABatchAndInPieces) {
  for (const uint32_t kv_dtype : kKvDtypes)
    for (const char* format : {"float32", "bf16"}) {
      SCOPED_TRACE(std::string(format) + ", cache " + std::to_string(kv_dtype));
      const std::vector<int32_t> a = some_tokens(19, 5), b = some_tokens(7, 6),
                                 c = some_tokens(12, 7);
      const auto fresh = [&] {
        auto rig = std::make_unique<BackendRig>(*plugin_,
                                                RigOptions{.format = format, .kv_dtype = kv_dtype});
        rig->load();
        return rig;
      };
      Rows alone_a, alone_b, alone_c;
      {
        const auto rig = fresh();
        Sequence x = rig->sequence(20), y = rig->sequence(20), z = rig->sequence(20);
        alone_a = rig->run({{&x, a}});
        alone_b = rig->run({{&y, b}});
        alone_c = rig->run({{&z, c}}, 99.0f);
      }
      for (const size_t chunk : {1, 2, 5, 18}) {
        const auto rig = fresh();
        Sequence x = rig->sequence(20);
        expect_same_bytes(rig->run_chunked(x, a, chunk), alone_a,
                          "in pieces of " + std::to_string(chunk));
      }
      const auto rig = fresh();
      (void)rig->sequence(4);  // other pages and slots than alone
      Sequence x = rig->sequence(20), y = rig->sequence(20), z = rig->sequence(20);
      const Rows both =
          rig->run({{&y, {b.begin(), b.begin() + 4}}, {&x, {a.begin(), a.begin() + 11}}});
      expect_same_bytes(rows_between(both, 0, 4), rows_between(alone_b, 0, 4), "b in a batch");
      expect_same_bytes(rows_between(both, 4, 15), rows_between(alone_a, 0, 11), "a in a batch");
      // Prefill of one beside decode of another and a piece of a third.
      const Rows three = rig->run({{&x, {a[11]}}, {&z, c}, {&y, {b.begin() + 4, b.end()}}});
      expect_same_bytes(rows_between(three, 0, 1), rows_between(alone_a, 11, 12), "a decodes");
      expect_same_bytes(rows_between(three, 1, 13), alone_c, "c starts");
      expect_same_bytes(rows_between(three, 13, 16), rows_between(alone_b, 4, 7), "b goes on");
    }
}

// How work is cut among lanes must not show: the model has 2 kv heads, so that lanes own heads on 2
// lanes and cannot on 3.
TEST_P(BackendContract, GivesTheSameBytesOnAnyNumberOfLanes) {
  const std::vector<int32_t> a = some_tokens(19, 5), b = some_tokens(7, 6);
  for (const uint32_t kv_dtype : kKvDtypes) {
    SCOPED_TRACE("cache " + std::to_string(kv_dtype));
    std::vector<Rows> together, stepwise;
    for (const uint32_t n_lanes : {1u, 2u, 3u, 4u, 7u}) {
      ContractHost host(n_lanes);
      LoadedPlugin* const plugin = host.load(GetParam());
      ASSERT_NE(plugin, nullptr);
      BackendRig rig(*plugin, RigOptions{.format = "bf16", .kv_dtype = kv_dtype});
      rig.load();
      Sequence x = rig.sequence(20), y = rig.sequence(20), z = rig.sequence(20);
      together.push_back(rig.run({{&x, a}, {&y, b}}));
      stepwise.push_back(rig.run_chunked(z, a, 1));
      expect_same_bytes(together.back(), together.front(),
                        std::to_string(n_lanes) + " lanes, a batch");
      expect_same_bytes(stepwise.back(), stepwise.front(),
                        std::to_string(n_lanes) + " lanes, token by token");
      expect_same_bytes(stepwise.back(), rows_between(together.back(), 0, a.size()),
                        std::to_string(n_lanes) + " lanes");
    }
  }
}

// With more lanes than kv heads, long contexts can be cut by keys, where a step has few tokens. Backends of a
// device have no use for lanes: they get other pieces.
TEST_P(BackendContract, GivesTheSameBytesHoweverWorkIsCutFarIntoAText) {
  struct Cut {
    uint32_t n_lanes;
    size_t chunk;
  };
  const std::vector<Cut> cuts = device_kind(*plugin_) == DVT_DEVICE_CPU
                                    ? std::vector<Cut>{{1, 48}, {3, 48}, {5, 48}}
                                    : std::vector<Cut>{{1, 48}, {1, 31}};
  const std::vector<int32_t> a = some_tokens(1101, 9), b = some_tokens(600, 10);
  for (const uint32_t kv_dtype : kKvDtypes) {
    SCOPED_TRACE("cache " + std::to_string(kv_dtype));
    std::vector<Rows> steps;
    for (const Cut& cut : cuts) {
      const std::string what =
          std::to_string(cut.n_lanes) + " lanes, pieces of " + std::to_string(cut.chunk);
      ContractHost host(cut.n_lanes);
      LoadedPlugin* const plugin = host.load(GetParam());
      ASSERT_NE(plugin, nullptr);
      BackendRig rig(*plugin, RigOptions{.format = "bf16", .kv_dtype = kv_dtype, .n_pages = 512});
      rig.load();
      Sequence x = rig.sequence(1104), y = rig.sequence(604);
      rig.run_chunked(x, {a.begin(), a.end() - 2}, cut.chunk);
      rig.run_chunked(y, {b.begin(), b.end() - 1}, cut.chunk);
      const Rows both = rig.run({{&x, {a.end() - 2, a.end() - 1}}, {&y, {b.back()}}});
      const Rows alone = rig.run({{&x, {a.back()}}});
      if (steps.empty()) steps = {both, alone};
      expect_same_bytes(both, steps[0], what + ", two sequences");
      expect_same_bytes(alone, steps[1], what + ", one sequence");
    }
  }
}

TEST_P(BackendContract, GivesOnlyTheRowsThatAreWanted) {
  const std::vector<int32_t> tokens = some_tokens(10, 8);
  BackendRig rig(*plugin_);
  rig.load();
  Sequence s = rig.sequence(20), t = rig.sequence(20);
  const Rows all = rig.run({{&s, tokens}});
  BackendRig::Step step = BackendRig::step_of({{&t, tokens}});
  step.out_rows = {9, 3};
  const dvt_batch* batch = BackendRig::batch_of(step);
  std::vector<float> two(2 * SmallModel::kVocab + 8, -7.0f);
  const dvt_output out{abi_text("logits"), two.data(), two.size() * sizeof(float)};
  Frame call;
  expect_ok(rig.submit_and_wait(call, batch, {&out, 1}), call, "submit");
  EXPECT_EQ(std::memcmp(two.data(), all[9].data(), SmallModel::kVocab * sizeof(float)), 0);
  EXPECT_EQ(std::memcmp(two.data() + SmallModel::kVocab, all[3].data(),
                        SmallModel::kVocab * sizeof(float)),
            0);
  for (size_t i = 2 * SmallModel::kVocab; i < two.size(); ++i)
    EXPECT_EQ(two[i], -7.0f) << "wrote past the rows";

  step.out_rows
      .clear();  // a piece of a prompt: nothing is wanted, the cache is filled all the same
  Sequence u = rig.sequence(20);
  BackendRig::Step silent = BackendRig::step_of({{&u, {tokens.begin(), tokens.end() - 1}}});
  silent.out_rows.clear();
  expect_ok(rig.submit_and_wait(call, BackendRig::batch_of(silent), {}), call,
            "submit without rows");
  u.n_cached = 9;
  expect_same_bytes(rig.run({{&u, {tokens.back()}}}), rows_between(all, 9, 10),
                    "after a piece without rows");
}

// ---------------------------------------------------------------- sampling

struct Sampled {
  dvt_code code;
  uint64_t ticket = 0;
  std::vector<int32_t> ids;
};
Sampled sample(BackendRig& rig, Frame& call, const dvt_batch* batch,
               const uint32_t* mask = nullptr) {
  Sampled out{DVT_OK, 0, std::vector<int32_t>(batch->n_rows, -1)};
  const dvt_output ids{abi_text("ids"), out.ids.data(), out.ids.size() * sizeof(int32_t)};
  const dvt_sampling how{sizeof how, DVT_SAMPLE_ARGMAX, mask};
  out.code = rig.submit_and_wait(call, batch, {&ids, 1}, &how, &out.ticket);
  return out;
}

TEST_P(BackendContract, SamplesTheArgmaxOfWhatTheMaskLeaves) {
  const std::vector<int32_t> tokens = some_tokens(12, 9);
  BackendRig rig(*plugin_);
  rig.load();
  Sequence s = rig.sequence(20), t = rig.sequence(20), u = rig.sequence(20);
  const Rows rows = rig.run({{&s, tokens}});
  Frame call;
  BackendRig::Step step = BackendRig::step_of({{&t, tokens}});
  const Sampled free = sample(rig, call, BackendRig::batch_of(step));
  expect_ok(free.code, call, "argmax");
  std::vector<uint32_t> mask((SmallModel::kVocab + 31) / 32, 0);
  for (int32_t id : {3, 31, 32, 64, 69}) mask[static_cast<size_t>(id) / 32] |= 1u << id % 32;
  BackendRig::Step masked_step = BackendRig::step_of({{&u, tokens}});
  const Sampled masked = sample(rig, call, BackendRig::batch_of(masked_step), mask.data());
  expect_ok(masked.code, call, "argmax under a mask");
  for (size_t r = 0; r < rows.size(); ++r) {
    EXPECT_EQ(free.ids[r], std::max_element(rows[r].begin(), rows[r].end()) - rows[r].begin())
        << "row " << r;
    int32_t best = 3;
    for (int32_t id : {31, 32, 64, 69})
      if (rows[r][static_cast<size_t>(id)] > rows[r][static_cast<size_t>(best)]) best = id;
    EXPECT_EQ(masked.ids[r], best) << "row " << r;
  }
}

TEST_P(BackendContract, TakesATokenFromAnEarlierStep) {
  const std::vector<int32_t> tokens = some_tokens(6, 10);
  BackendRig rig(*plugin_);
  rig.load();
  Sequence s = rig.sequence(20), t = rig.sequence(20);
  Frame call;
  BackendRig::Step first = BackendRig::step_of({{&s, tokens}});
  const Sampled sampled = sample(rig, call, BackendRig::batch_of(first));
  expect_ok(sampled.code, call, "first step");
  s.n_cached = 6;
  Rows straight = rig.run({{&t, tokens}});
  // Sampled again, so that the ids of the step before this one are still to be had.
  Sequence again = rig.sequence(20);
  BackendRig::Step repeat = BackendRig::step_of({{&again, tokens}});
  const Sampled repeated = sample(rig, call, BackendRig::batch_of(repeat));
  again.n_cached = 6;
  straight = rig.run({{&t, {sampled.ids[5]}}});
  BackendRig::Step next = BackendRig::step_of({{&again, {0}}});
  const dvt_token_from from{repeated.ticket, 5, 0};
  dvt_batch batch = *BackendRig::batch_of(next);
  batch.token_from = &from;
  std::vector<float> logits(SmallModel::kVocab);
  const dvt_output out{abi_text("logits"), logits.data(), logits.size() * sizeof(float)};
  const dvt_code code = rig.submit_and_wait(call, &batch, {&out, 1});
  expect_ok(code, call, "a token by its ticket");
  expect_same_bytes({logits}, straight, "a token by its ticket");

  const dvt_token_from unknown{repeated.ticket + 1000, 0, 0};
  batch.token_from = &unknown;
  const dvt_code refused = rig.submit_and_wait(call, &batch, {&out, 1});
  EXPECT_NE(refused, DVT_OK) << "a ticket that was never given";
  EXPECT_FALSE(call.reason().empty());
}

// ---------------------------------------------------------------- states

TEST_P(BackendContract, ExportedRowsImportedElsewhereGoOnTheSame) {
  for (const uint32_t kv_dtype : kKvDtypes) {
    const std::vector<int32_t> tokens = some_tokens(15, 11);
    const std::vector<int32_t> head(tokens.begin(), tokens.begin() + 11),
        tail(tokens.begin() + 11, tokens.end());
    BackendRig rig(*plugin_, {.kv_dtype = kv_dtype}), other(*plugin_, {.kv_dtype = kv_dtype});
    rig.load();
    other.load();
    Sequence s = rig.sequence(20);
    (void)rig.run({{&s, head}});
    (void)other.sequence(8);
    Sequence t = other.sequence(20);
    Frame call;
    for (uint32_t state = 0; state < rig.n_states(); ++state) {
      std::vector<uint8_t> whole = rig.exported(state, s, 0, 11);
      std::vector<uint8_t> part = rig.exported(state, s, 3, 6);  // across pages
      EXPECT_TRUE(std::equal(part.begin(), part.end(),
                             whole.begin() + static_cast<std::ptrdiff_t>(3 * rig.row_bytes())));
      std::vector<uint8_t> first(whole.begin(),
                                 whole.begin() + static_cast<std::ptrdiff_t>(5 * rig.row_bytes()));
      std::vector<uint8_t> rest(whole.begin() + static_cast<std::ptrdiff_t>(5 * rig.row_bytes()),
                                whole.end());
      expect_ok(other.transfer(call, true, state, t, 5, 6, rest), call, "import_state");
      expect_ok(other.transfer(call, true, state, t, 0, 5, first), call, "import_state");
      EXPECT_EQ(other.exported(state, t, 0, 11), whole);
    }
    t.n_cached = 11;
    expect_same_bytes(other.run({{&t, tail}}), rig.run({{&s, tail}}), "after the move");
  }
}

// A session goes from any backend to any other: the layout between them is one.
TEST_P(BackendContract, ExportsWhatEveryOtherBackendExports) {
  const std::vector<int32_t> tokens = some_tokens(15, 12);
  BackendRig rig(*plugin_);
  rig.load();
  Sequence s = rig.sequence(20);
  (void)rig.run({{&s, tokens}});
  for (const BuiltPlugin& built : built_plugins("backend")) {
    if (built.name == GetParam().name) continue;
    const LoadedPlugin* plugin = ContractHost::get().load(built);
    ASSERT_NE(plugin, nullptr);
    if (device_kind(*plugin) == 0) continue;
    BackendRig other(*plugin);
    other.load();
    Sequence t = other.sequence(20);
    (void)other.run({{&t, tokens}});
    for (uint32_t state = 0; state < rig.n_states(); ++state) {
      const std::vector<uint8_t> a = rig.exported(state, s, 0, 15),
                                 b = other.exported(state, t, 0, 15);
      for (size_t i = 0; i < a.size(); i += sizeof(float)) {
        float x = 0, y = 0;
        std::memcpy(&x, &a[i], sizeof x);
        std::memcpy(&y, &b[i], sizeof y);
        ASSERT_NEAR(x, y, 1e-4) << built.name << ", state " << state << ", element "
                                << i / sizeof(float);
      }
    }
  }
}

// The numbers of an exported row of DVT_I8_SCALED, head after head.
std::vector<float> scaled_numbers(const BackendRig& rig, const std::vector<uint8_t>& rows) {
  std::vector<float> out;
  for (size_t at = 0; at < rows.size(); at += rig.head_bytes()) {
    float scale = 0;
    std::memcpy(&scale, &rows[at + rig.head_bytes() - sizeof scale], sizeof scale);
    for (size_t i = 0; i < SmallModel::kHead; ++i)
      out.push_back(static_cast<float>(static_cast<int8_t>(rows[at + i])) * scale);
  }
  return out;
}
TEST_P(BackendContract, ScalesEachHeadOfAnInt8Cache) {
  const std::vector<int32_t> tokens = some_tokens(15, 12);
  BackendRig rig(*plugin_, {.kv_dtype = DVT_I8_SCALED}), plain(*plugin_);
  rig.load();
  plain.load();
  Sequence s = rig.sequence(20), t = plain.sequence(20);
  (void)rig.run({{&s, tokens}});
  (void)plain.run({{&t, tokens}});
  for (uint32_t state = 0; state < 2; ++state) {  // of the first layer: nothing was cached before
    const std::vector<float> got = scaled_numbers(rig, rig.exported(state, s, 0, 15));
    const std::vector<uint8_t> bytes = plain.exported(state, t, 0, 15);
    std::vector<float> expected(got.size());
    ASSERT_EQ(bytes.size(), expected.size() * sizeof(float));
    std::memcpy(expected.data(), bytes.data(), bytes.size());
    for (size_t row = 0; row < got.size(); row += SmallModel::kHead) {
      float greatest = 0;
      for (size_t i = 0; i < SmallModel::kHead; ++i)
        greatest = std::max(greatest, std::fabs(expected[row + i]));
      for (size_t i = 0; i < SmallModel::kHead; ++i)
        ASSERT_NEAR(got[row + i], expected[row + i], 0.5001f * greatest / 127.0f)
            << "state " << state << ", row " << row / SmallModel::kHead << ", element " << i;
    }
  }
}

TEST_P(BackendContract, RefusesChunksThatDoNotFit) {
  BackendRig rig(*plugin_);
  rig.load();
  Sequence s = rig.sequence(8);  // two pages
  std::vector<uint8_t> rows(8 * rig.row_bytes());
  Frame call;
  for (const bool in : {false, true}) {
    const std::string what = in ? "import_state" : "export_state";
    expect_ok(rig.transfer(call, in, 0, s, 0, 8, rows), call, what);
    expect_refused(rig.transfer(call, in, rig.n_states(), s, 0, 8, rows), call, DVT_EINVAL,
                   what + " of no state");
    expect_refused(rig.transfer(call, in, 0, s, 0, 7, rows), call, DVT_EINVAL,
                   what + " of another size");
    expect_refused(rig.transfer(call, in, 0, s, 1, 8, rows), call, DVT_EINVAL,
                   what + " past the pages");
  }
}

// As the core moves running sequences: through any other backend and back they are what they were, to the bit.
TEST_P(BackendContract, StatesThatWentToAnotherBackendComeBackTheSame) {
  const std::vector<CacheGroup> groups = {{0, 1}};
  for (const BuiltPlugin& built : built_plugins("backend")) {
    const LoadedPlugin* plugin = ContractHost::get().load(built);
    ASSERT_NE(plugin, nullptr);
    if (device_kind(*plugin) == 0) continue;
    for (const uint32_t kv_dtype : kKvDtypes) {
      BackendRig here(*plugin_, {.kv_dtype = kv_dtype}), there(*plugin, {.kv_dtype = kv_dtype}),
          back(*plugin_, {.kv_dtype = kv_dtype});
      for (BackendRig* rig : {&here, &there, &back}) rig->load();
      Sequence s = here.sequence(20), t = here.sequence(12);
      (void)here.run({{&s, some_tokens(15, 11)}, {&t, some_tokens(8, 12)}});
      const std::vector<SequenceCache> caches = {{s.slot, {s.pages}, s.n_cached},
                                                 {t.slot, {t.pages}, t.n_cached}};
      const std::vector<const SequenceCache*> both = {&caches[0], &caches[1]};
      const auto holder = [kv_dtype](const BackendRig& rig) {
        return StateHolder{rig.table(), rig.context(), kv_dtype};
      };
      for (const auto& [from, to] : {std::pair{&here, &there}, std::pair{&there, &back}}) {
        const Result<StateMove> moved = move_states(
            holder(*from), holder(*to), here.graph().states(), both, groups, BackendRig::kPageLen);
        ASSERT_TRUE(moved) << built.name << ": " << moved.status().message();
      }
      for (uint32_t state = 0; state < here.n_states(); ++state)
        for (const Sequence* q : {&s, &t}) {
          const std::vector<uint8_t> was = here.exported(state, *q, 0, q->n_cached);
          EXPECT_EQ(there.exported(state, *q, 0, q->n_cached), was) << built.name;
          EXPECT_EQ(back.exported(state, *q, 0, q->n_cached), was) << built.name;
        }
      Sequence s_back = s, t_back = t;
      expect_same_bytes(back.run({{&t_back, {5, 3}}, {&s_back, {9}}}),
                        here.run({{&t, {5, 3}}, {&s, {9}}}),
                        "after there and back through " + built.name);
    }
  }
}

TEST_P(BackendContract, CopiedPagesHoldTheSameRows) {
  const std::vector<int32_t> tokens = some_tokens(14, 13);
  BackendRig rig(*plugin_);
  rig.load();
  Sequence s = rig.sequence(16), copy = rig.sequence(16), untouched = rig.sequence(16);
  (void)rig.run({{&s, {tokens.begin(), tokens.begin() + 10}}});
  (void)rig.run({{&untouched, {tokens.begin(), tokens.begin() + 10}}});
  Frame call;
  expect_ok(table_->copy_pages(rig.context(), call, 0, s.pages.data(), copy.pages.data(), 3), call,
            "copy_pages");
  copy.n_cached = 10;
  for (uint32_t state = 0; state < rig.n_states(); ++state)
    EXPECT_EQ(rig.exported(state, copy, 0, 10), rig.exported(state, s, 0, 10));
  // What one writes from here on the other does not see.
  (void)rig.run({{&s, {1, 2, 3, 4}}});
  const std::vector<int32_t> tail(tokens.begin() + 10, tokens.end());
  expect_same_bytes(rig.run({{&copy, tail}}), rig.run({{&untouched, tail}}), "over copied pages");
  expect_ok(table_->copy_pages(rig.context(), call, 0, nullptr, nullptr, 0), call,
            "copy_pages of none");
}

// A state of fixed size per sequence, without a graph: its bytes go in, come out, are reset and kept.
TEST_P(BackendContract, KeepsStatesOfFixedSizeApart) {
  BackendRig rig(*plugin_);
  dvt_state_spec spec{};
  spec.struct_size = sizeof spec;
  spec.kind = DVT_STATE_FIXED;
  spec.name = abi_text("matrix");
  spec.dtype = DVT_F32;
  spec.ndim = 2;
  spec.dim[0] = 3;
  spec.dim[1] = 5;
  spec.rate = 1;
  spec.rewind = DVT_REWIND_SNAPSHOT;
  Frame call;
  const dvt_code code = table_->alloc_states(rig.context(), call, &spec, 1, DVT_F32,
                                             BackendRig::kPageLen, 4, BackendRig::kSlots);
  if (code == DVT_EUNSUPPORTED) {
    EXPECT_FALSE(call.reason().empty());
    GTEST_SKIP() << GetParam().name << " has no states of fixed size";
  }
  expect_ok(code, call, "alloc_states");
  constexpr size_t kBytes = 15 * sizeof(float);
  const auto fixed = [&](bool in, uint32_t slot, std::vector<uint8_t>& data) {
    Sequence s;
    s.slot = slot;
    return rig.transfer(call, in, 0, s, 0, 0, data);
  };
  const auto filled = [](uint8_t v) { return std::vector<uint8_t>(kBytes, v); };
  const auto content = [&](uint32_t slot) {
    std::vector<uint8_t> out(kBytes, 0xee);
    expect_ok(fixed(false, slot, out), call, "export_state");
    return out;
  };
  for (uint32_t slot = 0; slot < BackendRig::kSlots; ++slot) {
    EXPECT_EQ(content(slot), filled(0)) << "a fresh sequence starts at zero";
    std::vector<uint8_t> data = filled(static_cast<uint8_t>(slot + 1));
    expect_ok(fixed(true, slot, data), call, "import_state");
  }
  ASSERT_TRUE(DVT_HAS(table_, reset_slot));
  expect_ok(table_->reset_slot(rig.context(), call, 1), call, "reset_slot");
  EXPECT_EQ(content(1), filled(0));
  EXPECT_EQ(content(0), filled(1));
  EXPECT_EQ(content(2), filled(3));
  std::vector<uint8_t> wrong(kBytes + 4);
  expect_refused(fixed(false, 0, wrong), call, DVT_EINVAL, "export_state of another size");
  if (!DVT_HAS(table_, snapshot)) return;  // optional where no state needs it
  expect_ok(table_->snapshot(rig.context(), call, 2, 0), call, "snapshot");
  std::vector<uint8_t> later = filled(99);
  expect_ok(fixed(true, 2, later), call, "import_state");
  expect_ok(table_->restore(rig.context(), call, 2, 0), call, "restore");
  EXPECT_EQ(content(2), filled(3));
}

// A block of fixed size has no rows that could carry scales.
TEST_P(BackendContract, KeepsActivationsOfFixedSizeAsFloatsBesideAnInt8Cache) {
  BackendRig rig(*plugin_);
  dvt_state_spec spec = rig.graph().states().front();
  spec.kind = DVT_STATE_FIXED;
  Frame call;
  const dvt_code code = table_->alloc_states(rig.context(), call, &spec, 1, DVT_I8_SCALED,
                                             BackendRig::kPageLen, 4, BackendRig::kSlots);
  if (code == DVT_EUNSUPPORTED) {
    EXPECT_FALSE(call.reason().empty());
    GTEST_SKIP() << GetParam().name << " has no states of fixed size";
  }
  expect_ok(code, call, "alloc_states");
  std::vector<uint8_t> data(SmallModel::kKvHeads * SmallModel::kHead * sizeof(float), 7);
  Sequence s;
  expect_ok(rig.transfer(call, true, 0, s, 0, 0, data), call, "import_state");
}

TEST_P(BackendContract, RefusesStatesOfUnknownKind) {
  BackendRig rig(*plugin_);
  dvt_state_spec spec = rig.graph().states().front();
  spec.kind = 99;
  Frame call;
  expect_refused(
      table_->alloc_states(rig.context(), call, &spec, 1, DVT_F32, BackendRig::kPageLen, 4, 1),
      call, DVT_EUNSUPPORTED, "kind 99");
}

// ---------------------------------------------------------------- trouble

TEST_P(BackendContract, StopsWhenCancelledAndGoesOnAfterwards) {
  const std::vector<int32_t> tokens = some_tokens(20, 14);
  BackendRig rig(*plugin_);
  rig.load();
  Sequence s = rig.sequence(20), t = rig.sequence(20);
  const Rows expected = rig.run({{&s, tokens}});
  BackendRig::Step step = BackendRig::step_of({{&t, tokens}});
  std::vector<float> logits(tokens.size() * SmallModel::kVocab);
  const dvt_output out{abi_text("logits"), logits.data(), logits.size() * sizeof(float)};
  uint32_t cancel = 1;
  Frame call(&cancel);
  EXPECT_EQ(rig.submit_and_wait(call, BackendRig::batch_of(step), {&out, 1}), DVT_ECANCELLED);
  cancel = 0;
  expect_ok(rig.submit_and_wait(call, BackendRig::batch_of(step), {&out, 1}), call,
            "the same step again");
  for (size_t r = 0; r < expected.size(); ++r)
    ASSERT_EQ(std::memcmp(&logits[r * SmallModel::kVocab], expected[r].data(),
                          SmallModel::kVocab * sizeof(float)),
              0)
        << "row " << r;
}

TEST_P(BackendContract, RefusesWrongStepsAndGoesOn) {
  const std::vector<int32_t> tokens = some_tokens(8, 15);
  BackendRig rig(*plugin_);
  rig.load();
  Sequence s = rig.sequence(8), t = rig.sequence(8);
  const Rows expected = rig.run({{&s, tokens}});
  std::vector<float> logits(8 * SmallModel::kVocab, -7.0f);
  const auto refused = [&](const std::string& what, const dvt_batch& batch, const dvt_output& out) {
    Frame call;
    const dvt_code code = rig.submit_and_wait(call, &batch, {&out, 1});
    EXPECT_NE(code, DVT_OK) << what;
    EXPECT_NE(code, DVT_ECANCELLED) << what;
    EXPECT_FALSE(call.reason().empty()) << what;
  };
  const dvt_output good{abi_text("logits"), logits.data(), logits.size() * sizeof(float)};
  BackendRig::Step step = BackendRig::step_of({{&t, tokens}});
  const dvt_batch batch = *BackendRig::batch_of(step);
  refused("an output that is not there", batch, {abi_text("no such value"), logits.data(), 64});
  refused("an output that is too small", batch,
          {abi_text("logits"), logits.data(), good.bytes - 1});
  for (const float l : logits) ASSERT_EQ(l, -7.0f) << "wrote into an output that is too small";

  dvt_batch without_pages = batch;
  without_pages.n_groups = 0;
  refused("no page tables", without_pages, good);
  Sequence longer = rig.sequence(1);
  longer.pages.assign(16, 0);
  BackendRig::Step big =
      BackendRig::step_of({{&longer, some_tokens(BackendRig::kMaxTokens + 1, 16)}});
  std::vector<float> room((BackendRig::kMaxTokens + 1) * SmallModel::kVocab);
  refused("more tokens than it was compiled for", *BackendRig::batch_of(big),
          {abi_text("logits"), room.data(), room.size() * sizeof(float)});
  dvt_sampling unknown{sizeof unknown, 99, nullptr};
  Frame call;
  EXPECT_EQ(rig.submit_and_wait(call, &batch, {&good, 1}, &unknown), DVT_EUNSUPPORTED);
  EXPECT_FALSE(call.reason().empty());
  EXPECT_NE(table_->wait(rig.program(), call, 1u << 30), DVT_OK) << "a ticket that was never given";
  EXPECT_FALSE(call.reason().empty());
  expect_same_bytes(rig.run({{&t, tokens}}), expected, "after the refusals");
}

TEST_P(BackendContract, NamesAWeightThatWasNeverBound) {
  BackendRig rig(*plugin_);
  rig.bind_weights("layers.1.up");
  rig.alloc_states();
  Frame call;
  EXPECT_NE(rig.compile(call), DVT_OK);
  EXPECT_NE(call.reason().find("layers.1.up"), std::string::npos);
  EXPECT_EQ(rig.program(), nullptr);
}

TEST_P(BackendContract, ServesContextsApart) {
  const std::vector<int32_t> tokens = some_tokens(12, 17);
  BackendRig one(*plugin_);
  one.load();
  Sequence s = one.sequence(20), t;
  const Rows first = one.run({{&s, tokens}});
  {
    BackendRig two(*plugin_, {.format = "bf16"});
    two.load();
    t = two.sequence(20);
    (void)two.run({{&t, some_tokens(17, 18)}});
  }
  Sequence u = one.sequence(20);
  expect_same_bytes(one.run({{&u, tokens}}), first, "after another context came and went");
}

TEST_P(BackendContract, MeasuresItsOwnReading) {
  if (!DVT_HAS(table_, read_bandwidth)) GTEST_SKIP() << GetParam().name << " does not measure";
  const BackendRig rig(*plugin_);
  const std::vector<uint8_t> bytes(1 << 20, 1);
  double seconds = -1;
  Frame call;
  expect_ok(table_->read_bandwidth(rig.context(), call, bytes.data(), bytes.size(), &seconds), call,
            "read_bandwidth");
  EXPECT_GT(seconds, 0.0);
}

INSTANTIATE_TEST_SUITE_P(Built, BackendContract, testing::ValuesIn(built_plugins("backend")),
                         test_name);

}  // namespace
}  // namespace dovetail::core::test
