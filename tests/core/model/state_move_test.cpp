// States on their way between two backends, whose memory is the SDK's and whose faults are made here.
#include "core/model/state_move.hpp"

#include <gtest/gtest.h>

#include <dovetail/host_states.hpp>
#include <random>
#include <string>
#include <vector>

#include "core/model/state_rows.hpp"
#include "core/plugin/host.hpp"

namespace dovetail::core {
namespace {

constexpr uint32_t kBlockLen = 4, kBlocks = 40, kSlots = 3;

// Keys and a count by token, a recurrent block, rows of a second group of page tables.
std::vector<dvt_state_spec> some_specs() {
  const auto spec = [](const char* name, uint32_t kind, uint32_t dtype, uint32_t group,
                       std::vector<int64_t> dims) {
    dvt_state_spec out{};
    out.struct_size = sizeof out;
    out.kind = kind;
    out.name = abi_text(name);
    out.dtype = dtype;
    out.ndim = static_cast<uint32_t>(dims.size());
    std::copy(dims.begin(), dims.end(), out.dim);
    out.rate = 1;
    out.group = group;
    return out;
  };
  return {spec("keys", DVT_STATE_PAGED, DVT_ACTIVATION, 0, {2, 6}),
          spec("counts", DVT_STATE_PAGED, DVT_I32, 0, {3}),
          spec("matrix", DVT_STATE_FIXED, DVT_ACTIVATION, 0, {5, 3}),
          spec("index", DVT_STATE_PAGED, DVT_ACTIVATION, 7, {8})};
}
const std::vector<CacheGroup> kGroups = {{0, 1}, {7, 1}};

struct FakeBackend {
  explicit FakeBackend(uint32_t kv, std::vector<dvt_state_spec> all = some_specs())
      : specs(std::move(all)), kv_dtype(kv) {
    states.alloc(specs, kv_dtype, kBlockLen, kBlocks, kSlots);
    table.struct_size = sizeof table;
    table.export_state = [](void* ctx, dvt_call* call, const dvt_chunk* c) noexcept {
      return self(ctx).transfer(call, *c, false);
    };
    table.import_state = [](void* ctx, dvt_call* call, const dvt_chunk* c) noexcept {
      return self(ctx).transfer(call, *c, true);
    };
  }
  static FakeBackend& self(void* ctx) { return *static_cast<FakeBackend*>(ctx); }
  dvt_code transfer(dvt_call* call, const dvt_chunk& c, bool in) {
    if (fails_on == c.state) {
      call->fail(call, DVT_EDEVICE, abi_text("the bus is gone"), {});
      return DVT_EDEVICE;
    }
    ++n_calls;
    try {
      in ? states.import_chunk(c) : states.export_chunk(c);
    } catch (const std::exception& e) {
      call->fail(call, DVT_EINVAL, abi_text(e.what()), {});
      return DVT_EINVAL;
    }
    return DVT_OK;
  }
  StateHolder holder() { return {table, this, kv_dtype}; }

  /// Rows of a state of a sequence as the backend exports them.
  std::vector<std::byte> rows(uint32_t state, const SequenceCache& s, bool fill = false) {
    const dvt_state_spec& spec = specs[state];
    const bool is_paged = spec.kind == DVT_STATE_PAGED;
    const RowForm form = *row_form(spec, kv_dtype);
    const uint64_t n = is_paged ? s.n_cached : 1;
    std::vector<std::byte> data(n * form.bytes());
    if (fill) {
      std::vector<float> x(n * form.n_runs * form.run_len);
      for (float& v : x) v = std::normal_distribution<float>(0, 2)(random);
      const RowForm floats{DVT_F32, form.n_runs, form.run_len};
      if (form.dtype == DVT_I32)
        std::memcpy(data.data(), x.data(), data.size());
      else
        EXPECT_TRUE(
            convert_rows(form, data.data(), floats, reinterpret_cast<const std::byte*>(x.data()), n)
                .is_ok());
    }
    const std::vector<uint32_t>& pages = s.tables[spec.group == 7 ? 1 : 0];
    dvt_chunk c{sizeof c,
                state,
                s.slot,
                0,
                0,
                n,
                kBlockLen,
                static_cast<uint32_t>(pages.size()),
                pages.data(),
                data.data(),
                data.size()};
    fill ? states.import_chunk(c) : states.export_chunk(c);
    return data;
  }
  void fill(const std::vector<SequenceCache>& sequences) {
    for (const SequenceCache& s : sequences)
      for (uint32_t i = 0; i < specs.size(); ++i) (void)rows(i, s, true);
  }

  std::vector<dvt_state_spec> specs;
  uint32_t kv_dtype, fails_on = UINT32_MAX, n_calls = 0;
  HostStates states;
  dvt_backend_v1 table{};
  std::mt19937 random{11};
};

// Blocks in no order, a last one that is not full, an empty sequence.
std::vector<SequenceCache> some_sequences() {
  return {{2, {{7, 3, 30}, {1, 0, 9}}, 11}, {0, {{8, 4}, {5, 6}}, 8}, {1, {{}, {}}, 0}};
}
std::vector<const SequenceCache*> pointers(const std::vector<SequenceCache>& sequences) {
  std::vector<const SequenceCache*> out;
  for (const SequenceCache& s : sequences) out.push_back(&s);
  return out;
}
Result<StateMove> move(FakeBackend& from, FakeBackend& to,
                       const std::vector<SequenceCache>& sequences,
                       const uint32_t* cancel = nullptr, const ProgressFn& progress = {}) {
  return move_states(from.holder(), to.holder(), from.specs, pointers(sequences), kGroups,
                     kBlockLen, cancel, progress);
}

TEST(MoveStates, ThereAndBackIsTheSameToTheBit) {
  const std::vector<SequenceCache> sequences = some_sequences();
  for (uint32_t dtype : {DVT_F32, DVT_BF16, DVT_I8_SCALED}) {
    FakeBackend first(dtype), second(dtype), back(dtype);
    first.fill(sequences);
    const Result<StateMove> moved = move(first, second, sequences);
    ASSERT_TRUE(moved) << moved.status().message();
    EXPECT_EQ(moved->n_sequences, 3u);
    EXPECT_EQ(moved->n_tokens, 19u);
    uint64_t n_bytes = 0;
    ASSERT_TRUE(move(second, back, sequences));
    for (const SequenceCache& s : sequences)
      for (uint32_t i = 0; i < first.specs.size(); ++i) {
        const std::vector<std::byte> rows = first.rows(i, s);
        n_bytes += rows.size();
        EXPECT_EQ(second.rows(i, s), rows) << dtype << " state " << i << " slot " << s.slot;
        EXPECT_EQ(back.rows(i, s), rows) << dtype << " state " << i << " slot " << s.slot;
      }
    EXPECT_EQ(moved->n_bytes, n_bytes);
  }
}

TEST(MoveStates, ConvertsTheRowsOfAnotherNumberType) {
  const std::vector<SequenceCache> sequences = some_sequences();
  for (const auto& [from, to] :
       {std::pair{DVT_BF16, DVT_F32}, std::pair{DVT_F32, DVT_BF16},
        std::pair{DVT_F32, DVT_I8_SCALED}, std::pair{DVT_I8_SCALED, DVT_BF16}}) {
    FakeBackend first(from), second(to);
    first.fill(sequences);
    ASSERT_TRUE(move(first, second, sequences));
    for (const SequenceCache& s : sequences)
      for (uint32_t i = 0; i < first.specs.size(); ++i) {
        const RowForm a = *row_form(first.specs[i], from), b = *row_form(first.specs[i], to);
        const std::vector<std::byte> rows = first.rows(i, s);
        std::vector<std::byte> expected(rows.size() / a.bytes() * b.bytes());
        ASSERT_TRUE(
            convert_rows(b, expected.data(), a, rows.data(), rows.size() / a.bytes()).is_ok());
        EXPECT_EQ(second.rows(i, s), expected) << from << " to " << to << " state " << i;
      }
  }
}

TEST(MoveStates, WidenedRowsComeBackAsTheyWere) {
  const std::vector<SequenceCache> sequences = some_sequences();
  FakeBackend first(DVT_BF16), wide(DVT_F32), back(DVT_BF16);
  first.fill(sequences);
  ASSERT_TRUE(move(first, wide, sequences));
  ASSERT_TRUE(move(wide, back, sequences));
  for (const SequenceCache& s : sequences)
    for (uint32_t i = 0; i < first.specs.size(); ++i)
      EXPECT_EQ(back.rows(i, s), first.rows(i, s)) << i;
}

TEST(MoveStates, ManyRowsGoInPiecesOfWholeBlocksWithProgress) {
  std::vector<dvt_state_spec> wide = some_specs();
  wide.resize(1);
  wide[0].dim[1] = 1 << 16;  // 2 MiB a block: two of them a piece
  const std::vector<SequenceCache> sequences = {{0, {{7, 3, 30}, {}}, 11}};
  FakeBackend first(DVT_F32, wide), second(DVT_F32, wide);
  first.fill(sequences);
  second.n_calls = 0;
  std::vector<uint64_t> seen;
  const Result<StateMove> moved = move(first, second, sequences, nullptr,
                                       [&](uint64_t done, uint64_t total, std::string_view what) {
                                         EXPECT_EQ(what, "moving states");
                                         EXPECT_EQ(total, 11u << 19);
                                         seen.push_back(done);
                                       });
  ASSERT_TRUE(moved);
  EXPECT_EQ(seen, (std::vector<uint64_t>{8u << 19, 11u << 19}));
  EXPECT_EQ(second.n_calls, 2u);
  EXPECT_EQ(second.rows(0, sequences[0]), first.rows(0, sequences[0]));
}

TEST(MoveStates, SaysWhichStateFailedAndWhy) {
  const std::vector<SequenceCache> sequences = some_sequences();
  FakeBackend first(DVT_F32), second(DVT_F32);
  first.fill(sequences);
  second.fails_on = 2;
  const Status in = move(first, second, sequences).status();
  EXPECT_EQ(in.code(), Code::kDevice);
  EXPECT_EQ(in.message(), "state \"matrix\": the bus is gone");
  second.fails_on = UINT32_MAX;
  first.fails_on = 0;
  EXPECT_EQ(move(first, second, sequences).status().message(), "state \"keys\": the bus is gone");
}

TEST(MoveStates, RefusesABackendThatDoesNotImport) {
  FakeBackend first(DVT_F32), second(DVT_F32);
  second.table.import_state = nullptr;
  EXPECT_EQ(move(first, second, {}).status().code(), Code::kUnsupported);
}

TEST(MoveStates, EndsWhenCancelled) {
  const std::vector<SequenceCache> sequences = some_sequences();
  FakeBackend first(DVT_F32), second(DVT_F32);
  first.fill(sequences);
  const uint32_t cancel = 1;
  EXPECT_EQ(move(first, second, sequences, &cancel).status().code(), Code::kCancelled);
  EXPECT_EQ(second.n_calls, 0u);
}

}  // namespace
}  // namespace dovetail::core
