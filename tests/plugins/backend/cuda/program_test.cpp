// Programs on the emulated device: which launches a step takes, that recorded ones give the bits of direct ones, and
// that a step runs on while the host does.
#include "plugins/backend/cuda/program.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>

#include "core/graph/op_registry.hpp"
#include "tests/contract/backend_rig.hpp"
#include "tests/plugins/backend/cuda/emulated_device.hpp"

namespace dovetail::cuda {
namespace {

using core::test::Frame;
using core::test::Sequence;
using core::test::small_model;
using core::test::SmallModel;
using Batch = core::test::BackendRig::Step;

constexpr uint32_t kPageLen = core::test::BackendRig::kPageLen, kMaxTokens = 48, kMaxSeqs = 12;
constexpr uint64_t kVocab = SmallModel::kVocab;

/// The small model on a device of its own.
class Rig {
 public:
  Rig()
      : device_(0),
        states_(DeviceStateMemory(device_)),
        graph_(small_model().graph(core::test::op_registry())) {
    for (const auto& [name, weight] : small_model().weights()) {
      const std::vector<uint8_t> bytes = SmallModel::stored(weight, "bf16");
      const bool is_vector = weight.shape.size() == 1;
      const std::vector<uint8_t> stored = is_vector ? SmallModel::stored(weight, "float32") : bytes;
      DeviceBytes on_device(device_, stored.size());
      device_.copy_in(on_device.get(), stored.data(), stored.size());
      weights_.insert_or_assign(
          name, Weight{std::move(on_device), is_vector ? uint32_t{DVT_F32} : uint32_t{DVT_BF16}});
    }
    states_.alloc(graph_.states(), DVT_BF16, kPageLen, kPages, kMaxSeqs);
    dvt_compile_options options{};
    options.struct_size = sizeof options;
    options.max_tokens = options.max_rows = kMaxTokens;
    options.max_seqs = kMaxSeqs;
    const dvt_graph view = graph_.view();
    program_ = std::make_unique<Program>(device_, view, options, weights_, states_);
    device_.wait();
  }
  static constexpr uint32_t kPages = 1024;

  Sequence sequence(uint32_t n_tokens) {
    Sequence out;
    out.slot = n_sequences_++ % kMaxSeqs;
    for (uint32_t i = 0; i * kPageLen < n_tokens; ++i)
      out.pages.push_back(n_pages_++ * 37 % kPages);
    EXPECT_LE(n_pages_, kPages);
    return out;
  }
  /// Runs tokens of a sequence, n at a time.
  void prefill(Sequence& s, uint32_t n, uint32_t seed) {
    while (s.n_cached < n) {
      std::vector<int32_t> tokens;
      for (uint32_t i = s.n_cached; i < std::min(n, s.n_cached + kMaxTokens); ++i)
        tokens.push_back(static_cast<int32_t>((i * 31 + seed) % kVocab));
      Batch b = core::test::BackendRig::step_of({{&s, tokens}});
      b.out_rows.resize(1);
      (void)logits(b);
      s.n_cached += static_cast<uint32_t>(tokens.size());
    }
  }
  uint64_t submit(Batch& b, std::span<const dvt_output> outs,
                  const dvt_sampling* sampling = nullptr, const dvt_token_from* from = nullptr) {
    dvt_batch batch = *core::test::BackendRig::batch_of(b);
    batch.token_from = from;
    return program_->submit(Call(frame_), batch, outs, sampling);
  }
  void wait(uint64_t ticket) { program_->wait(Call(frame_), ticket); }
  std::vector<float> logits(Batch& b) {
    std::vector<float> out(b.out_rows.size() * kVocab);
    const dvt_output wanted{to_abi("logits"), out.data(), out.size() * sizeof(float)};
    wait(submit(b, {&wanted, 1}));
    return out;
  }

 private:
  Frame frame_;
  Device device_;
  Weights weights_;
  DeviceStates states_;
  core::Graph graph_;
  std::unique_ptr<Program> program_;
  uint32_t n_sequences_ = 0, n_pages_ = 0;
};

/// What the device counted while fn ran.
template <class Fn>
EmulatedCounts counts_of(const Fn& fn) {
  const EmulatedCounts before = emulated_counts();
  fn();
  const EmulatedCounts after = emulated_counts();
  return {after.n_launches - before.n_launches, after.n_queued - before.n_queued,
          after.n_recorded - before.n_recorded, after.n_replayed - before.n_replayed,
          after.n_waits - before.n_waits};
}

/// Sequences of which one fills two chunks of attention's keys and more.
struct Decode {
  explicit Decode(size_t n) {
    const uint32_t lengths[] = {7, 530, 1, 40, 3, 22, 9, 2, 5, 11, 4};
    for (size_t i = 0; i < n; ++i) {
      sequences.push_back(rig.sequence(lengths[i] + 8));
      rig.prefill(sequences.back(), lengths[i], static_cast<uint32_t>(i));
    }
  }
  Batch step() {
    std::vector<core::test::Part> parts;
    for (size_t i = 0; i < sequences.size(); ++i)
      parts.push_back({&sequences[i], {static_cast<int32_t>(i * 5 % kVocab)}});
    return core::test::BackendRig::step_of(parts);
  }
  Rig rig;
  std::vector<Sequence> sequences;
};

// Batches that fill the power of two, and that do not; few enough to be fused, and more.
TEST(CudaProgram, AReplayGivesTheBitsOfDirectLaunches) {
  for (const size_t n : {size_t{1}, size_t{3}, size_t{4}, size_t{11}}) {
    SCOPED_TRACE(std::to_string(n) + " tokens");
    Decode replayed(n), direct(n);
    Batch all = replayed.step(), some = direct.step();
    std::vector<float> got;
    const EmulatedCounts counts = counts_of([&] { got = replayed.rig.logits(all); });
    EXPECT_EQ(counts.n_replayed, 1U);
    EXPECT_EQ(counts.n_queued, 0U);
    some.out_rows.push_back(0);  // not what decode asks for: its launches are not recorded
    std::vector<float> expected;
    const EmulatedCounts direct_counts = counts_of([&] { expected = direct.rig.logits(some); });
    EXPECT_EQ(direct_counts.n_replayed, 0U);
    expected.resize(got.size());
    EXPECT_EQ(std::memcmp(got.data(), expected.data(), got.size() * sizeof(float)), 0);
    // What the step has written is what the next one reads.
    for (auto* d : {&replayed, &direct})
      for (Sequence& s : d->sequences) ++s.n_cached;
    Batch next = replayed.step(), next_direct = direct.step();
    next_direct.out_rows.push_back(0);
    got = replayed.rig.logits(next);
    expected = direct.rig.logits(next_direct);
    EXPECT_EQ(std::memcmp(got.data(), expected.data(), got.size() * sizeof(float)), 0)
        << "a step later";
  }
}

TEST(CudaProgram, RecordsOncePerPowerOfTwo) {
  Decode three(3), four(4);
  Batch step = three.step();
  EXPECT_EQ(counts_of([&] { (void)three.rig.logits(step); }).n_recorded, 1U);
  for (Sequence& s : three.sequences) ++s.n_cached;
  step = three.step();
  EXPECT_EQ(counts_of([&] { (void)three.rig.logits(step); }).n_recorded, 0U) << "other positions";
  three.sequences.pop_back();  // 2 tokens
  step = three.step();
  EXPECT_EQ(counts_of([&] { (void)three.rig.logits(step); }).n_recorded, 1U);
}

// docs/gpu/budget.md counts on these: five for a layer with SwiGLU, one each for tokens, rope's table, the embedding, the
// rows of logits, the head and argmax. The small model scales its embedding, and its second layer has GeGLU, whose norm,
// products, gelu, mul take five where SwiGLU takes one.
TEST(CudaProgram, TakesTheLaunchesOfTheBudget) {
  constexpr uint64_t kLayer = 5, kBesides = 6, kScaledEmbedding = 1, kGeGlu = 5 - 1;
  Decode decode(2);
  Batch step = decode.step();
  int32_t ids[2] = {};
  const dvt_output out{to_abi("ids"), ids, sizeof ids};
  const dvt_sampling argmax{sizeof argmax, DVT_SAMPLE_ARGMAX, nullptr};
  const EmulatedCounts counts = counts_of([&] {
    decode.rig.wait(decode.rig.submit(step, {&out, 1}, &argmax));
  });
  EXPECT_EQ(counts.n_launches, 2 * kLayer + kGeGlu + kBesides + kScaledEmbedding);
  EXPECT_EQ(counts.n_replayed, 1U);
  EXPECT_EQ(counts.n_queued, 0U);
}

TEST(CudaProgram, RunsOnWhileTheHostDoes) {
  Decode ahead(3), in_turn(3);
  const dvt_sampling argmax{sizeof argmax, DVT_SAMPLE_ARGMAX, nullptr};
  constexpr int kSteps = 5;
  std::vector<std::vector<int32_t>> got(kSteps, std::vector<int32_t>(3, -7)), expected = got;
  const auto output = [](std::vector<int32_t>& ids) {
    return dvt_output{to_abi("ids"), ids.data(), ids.size() * sizeof(int32_t)};
  };
  // Each step names the tokens of the step before, whose ids nobody has seen; two steps are under way.
  uint64_t ticket = 0, before = 0;
  for (int i = 0; i < kSteps; ++i) {
    Batch step = ahead.step();
    const std::vector<dvt_token_from> from = {{ticket, 0, 0}, {ticket, 1, 0}, {ticket, 2, 0}};
    const dvt_output out = output(got[static_cast<size_t>(i)]);
    if (before != 0) ahead.rig.wait(before);
    uint64_t next = 0;
    const EmulatedCounts counts = counts_of([&] {
      next = ahead.rig.submit(step, {&out, 1}, &argmax, ticket != 0 ? from.data() : nullptr);
    });
    EXPECT_EQ(counts.n_launches, 0U) << "submit " << i << " waited";
    EXPECT_EQ(got[static_cast<size_t>(i)][0], -7);
    before = ticket, ticket = next;
    for (Sequence& s : ahead.sequences) ++s.n_cached;
    if (i == kSteps - 1) {
      ahead.rig.wait(before);
      ahead.rig.wait(ticket);
    }
  }
  for (int i = 0; i < kSteps; ++i) {
    Batch step = in_turn.step();
    if (i > 0) step.tokens = expected[static_cast<size_t>(i - 1)];
    const dvt_output out = output(expected[static_cast<size_t>(i)]);
    in_turn.rig.wait(in_turn.rig.submit(step, {&out, 1}, &argmax));
    for (Sequence& s : in_turn.sequences) ++s.n_cached;
  }
  EXPECT_EQ(got, expected);
}

// Who never waits for a ticket gets its ids before its place is taken; a program may go while steps are under way.
TEST(CudaProgram, StepsThatNobodyWaitsForAreFinished) {
  Decode decode(1);
  const dvt_sampling argmax{sizeof argmax, DVT_SAMPLE_ARGMAX, nullptr};
  int32_t ids[3] = {-7, -7, -7};
  for (int i = 0; i < 3; ++i) {
    Batch step = decode.step();
    const dvt_output out{to_abi("ids"), &ids[i], sizeof ids[i]};
    (void)decode.rig.submit(step, {&out, 1}, &argmax);
    ++decode.sequences[0].n_cached;
  }
  EXPECT_GE(ids[0], 0);
  EXPECT_EQ(ids[2], -7);
}

}  // namespace
}  // namespace dovetail::cuda
