// A backend with the small model in it, driven through the C table as the core does.
#pragma once

#include <dovetail/abi/backend.h>

#include <memory>
#include <new>
#include <optional>
#include <span>

#include "core/graph/builder.hpp"
#include "tests/contract/built_plugins.hpp"
#include "tests/contract/small_model.hpp"

namespace dovetail::core::test {

inline const SmallModel& small_model() {
  static const SmallModel model;
  return model;
}
inline const OpRegistry& op_registry() {
  static const OpRegistry ops;
  return ops;
}

/// Of the backend's first device, DVT_DEVICE_CPU or another; 0 if this machine has none for it.
inline uint32_t device_kind(const LoadedPlugin& plugin) {
  const auto* table = plugin.interface<dvt_backend_v1>("dovetail.backend/1");
  Frame call;
  uint64_t n = 0;
  (void)table->devices(plugin.self, call, nullptr, 0, &n);
  std::vector<dvt_device> devices(n);
  for (dvt_device& d : devices) d.struct_size = sizeof d;
  expect_ok(table->devices(plugin.self, call, devices.data(), n, &n), call, "devices");
  return devices.empty() ? 0 : devices[0].kind;
}

/// A sequence: its cache pages and how many of its tokens are in them.
struct Sequence {
  uint32_t slot = 0;
  std::vector<uint32_t> pages;
  uint32_t n_cached = 0;
};
/// Tokens of a sequence to run in a step.
struct Part {
  Sequence* sequence;
  std::vector<int32_t> tokens;
};
using Rows = std::vector<std::vector<float>>;

/// Every cache that a config can ask for.
inline constexpr uint32_t kKvDtypes[] = {DVT_F32, DVT_BF16, DVT_I8_SCALED};

/// What a rig may do otherwise.
struct RigOptions {
  std::string format = "float32";  // of the weights
  uint32_t kv_dtype = DVT_F32;
  bool decompose_all = false;  // run composite ops by their definitions
  std::vector<std::string> observed = {};
  uint32_t n_pages = 64;  // a power of two
};

class BackendRig {
 public:
  static constexpr uint32_t kPageLen = 4, kSlots = 4, kMaxTokens = 48;

  /// Opens the backend and gets the graph ready for it; `load` does the rest.
  explicit BackendRig(const LoadedPlugin& plugin, RigOptions options = {})
      : table_(plugin.interface<dvt_backend_v1>("dovetail.backend/1")),
        options_(std::move(options)),
        params_(default_params(plugin)),
        graph_(small_model().graph(op_registry())) {
    Frame call;
    expect_ok(table_->open(plugin.self, call, 0, doc_handle(params_), &context_), call, "open");
    if (context_ == nullptr) return;
    const std::vector<dvt_verdict> found = verdicts();
    std::vector<bool> chosen;
    bool any = false;
    for (size_t i = 0; i < found.size(); ++i) {
      const bool composite = graph_.view().ops[graph_.node(i).op].tier == DVT_TIER_COMPOSITE;
      chosen.push_back(composite && (options_.decompose_all || found[i].level == DVT_DECOMPOSE));
      any = any || chosen.back();
    }
    if (!any) return;
    Result<Graph> plain = decompose(graph_, chosen, op_registry());
    EXPECT_TRUE(plain) << plain.status().message();
    if (plain) graph_ = std::move(*plain);
  }
  ~BackendRig() {
    if (program_ != nullptr) table_->drop(program_);
    if (context_ != nullptr) table_->close(context_);
  }
  BackendRig(const BackendRig&) = delete;
  BackendRig& operator=(const BackendRig&) = delete;

  const dvt_backend_v1& table() const { return *table_; }
  void* context() const { return context_; }
  void* program() const { return program_; }
  const Graph& graph() const { return graph_; }
  uint32_t n_states() const { return static_cast<uint32_t>(graph_.states().size()); }

  std::vector<dvt_verdict> verdicts() const {
    const dvt_graph view = graph_.view();
    std::vector<dvt_verdict> out(view.n_nodes);
    Frame call;
    expect_ok(table_->supports(context_, call, &view, out.data()), call, "supports");
    return out;
  }
  dvt_compile_options compile_options() {
    observed_.clear();
    for (const std::string& name : options_.observed) observed_.push_back(abi_text(name));
    dvt_compile_options out{};
    out.struct_size = sizeof out;
    out.max_tokens = out.max_rows = kMaxTokens;
    out.max_seqs = kSlots;
    out.observed = observed_.data();
    out.n_observed = observed_.size();
    return out;
  }
  /// Every weight of the graph, as the core asks for it. Valid as long as the rig.
  std::vector<dvt_weight_use> uses() {
    std::vector<dvt_weight_use> out;
    for (const dvt_weight_ref& ref : graph_.weights()) {
      dvt_weight_use use{};
      use.struct_size = sizeof use;
      use.access = ref.access;
      use.name = abi_text(graph_.str(ref.name));
      use.stored = abi_text(options_.format);
      const SmallModel::Weight& w = small_model().weights().at(std::string(graph_.str(ref.name)));
      use.ndim = static_cast<uint32_t>(w.shape.size());
      std::copy(w.shape.begin(), w.shape.end(), use.shape);
      out.push_back(use);
    }
    return out;
  }
  std::vector<uint8_t> stored(const dvt_weight_use& use) const {
    return SmallModel::stored(small_model().weights().at(std::string(text_of(use.name))),
                              options_.format);
  }
  std::vector<dvt_weight_plan> plan(const std::vector<dvt_weight_use>& uses) {
    std::vector<dvt_weight_plan> out(uses.size());
    for (dvt_weight_plan& p : out) p.struct_size = sizeof p;
    Frame call;
    expect_ok(table_->plan(context_, call, uses.data(), out.data(), uses.size()), call, "plan");
    return out;
  }

  /// Binds all weights but the one called `leave_out`.
  void bind_weights(const std::string& leave_out = {}) {
    const std::vector<dvt_weight_use> all = uses();
    const std::vector<dvt_weight_plan> plans = plan(all);
    for (size_t i = 0, end = 0; i < all.size(); i = end) {
      for (end = i + 1; end < all.size() && plans[end].group == plans[i].group;) ++end;
      if (text_of(all[i].name) == leave_out) continue;
      Frame call;
      const std::string name(text_of(all[i].name));
      std::vector<std::vector<uint8_t>> sources;
      std::vector<dvt_bytes> bytes;
      for (size_t k = i; k < end; ++k) sources.push_back(stored(all[k]));
      for (const auto& s : sources) bytes.push_back({s.data(), s.size()});
      if (plans[i].how == DVT_PLAN_KEEP) {
        ASSERT_EQ(end, i + 1) << name << ": stored bytes of several weights lie in several places";
        uint8_t* const kept = memory(sources[0].size(), plans[i].align);
        std::memcpy(kept, sources[0].data(), sources[0].size());
        expect_ok(table_->bind(context_, call, &all[i], 1, &plans[i], kept), call, "bind " + name);
      } else if (plans[i].how == DVT_PLAN_PACK) {
        uint8_t* const packed = memory(plans[i].bytes, plans[i].align);
        expect_ok(table_->pack(context_, call, &all[i], bytes.data(), bytes.size(), packed,
                               plans[i].bytes),
                  call, "pack " + name);
        expect_ok(table_->bind(context_, call, &all[i], end - i, &plans[i], packed), call,
                  "bind " + name);
      } else {
        ASSERT_EQ(plans[i].how, uint32_t{DVT_PLAN_PUT}) << name;
        ASSERT_TRUE(DVT_HAS(table_, put)) << name << " is to be put, and there is no put";
        for (size_t k = i; k < end; ++k) {  // in two parts, the second one last
          const uint64_t half = bytes[k - i].n / 2;
          const auto* p = static_cast<const uint8_t*>(bytes[k - i].p);
          expect_ok(table_->put(context_, call, all[k].name, 0, {p, half}, 0), call, "put " + name);
          expect_ok(
              table_->put(context_, call, all[k].name, half, {p + half, bytes[k - i].n - half}, 1),
              call, "put " + name);
        }
      }
    }
  }
  void alloc_states() {
    Frame call;
    const std::vector<dvt_state_spec>& specs = graph_.states();
    expect_ok(table_->alloc_states(context_, call, specs.data(), specs.size(), options_.kv_dtype,
                                   kPageLen, options_.n_pages, kSlots),
              call, "alloc_states");
  }
  dvt_code compile(Frame& call) {
    const dvt_graph view = graph_.view();
    const dvt_compile_options options = compile_options();
    return table_->compile(context_, call, &view, &options, &program_);
  }
  /// Everything up to a program that runs.
  void load() {
    ASSERT_NE(context_, nullptr);
    bind_weights();
    alloc_states();
    Frame call;
    expect_ok(compile(call), call, "compile");
    ASSERT_NE(program_, nullptr);
  }

  /// A sequence with fresh pages for n tokens, not in order.
  Sequence sequence(uint32_t n_tokens = kMaxTokens) {
    Sequence out;
    out.slot = next_slot_++ % kSlots;
    const uint32_t n = (n_tokens + kPageLen - 1) / kPageLen;
    for (uint32_t i = 0; i < n; ++i)
      out.pages.push_back((n_pages_used_ + i) * 37 % options_.n_pages);  // all differ
    n_pages_used_ += n;
    EXPECT_LE(n_pages_used_, options_.n_pages);
    return out;
  }

  /// A step as the backend gets it, with the memory that it points to.
  struct Step {
    std::vector<uint32_t> tok_off{0}, slots, out_rows, page_off{0}, pages;
    std::vector<int32_t> tokens, positions;
    dvt_page_group group{};
    dvt_batch batch{};
  };
  static Step step_of(const std::vector<Part>& parts) {
    Step s;
    for (const Part& part : parts) {
      for (size_t i = 0; i < part.tokens.size(); ++i) {
        s.out_rows.push_back(static_cast<uint32_t>(s.tokens.size()));
        s.tokens.push_back(part.tokens[i]);
        s.positions.push_back(static_cast<int32_t>(part.sequence->n_cached + i));
      }
      s.tok_off.push_back(static_cast<uint32_t>(s.tokens.size()));
      s.slots.push_back(part.sequence->slot);
      s.pages.insert(s.pages.end(), part.sequence->pages.begin(), part.sequence->pages.end());
      s.page_off.push_back(static_cast<uint32_t>(s.pages.size()));
    }
    return s;
  }
  /// Fills in the tables; `s` must not move afterwards.
  static const dvt_batch* batch_of(Step& s) {
    s.group = {sizeof(dvt_page_group), 0, kPageLen, 1, s.page_off.data(), s.pages.data()};
    s.batch.struct_size = sizeof s.batch;
    s.batch.n_tokens = static_cast<uint32_t>(s.tokens.size());
    s.batch.n_seqs = static_cast<uint32_t>(s.slots.size());
    s.batch.n_rows = static_cast<uint32_t>(s.out_rows.size());
    s.batch.n_axes = 1;
    s.batch.tok_off = s.tok_off.data();
    s.batch.slots = s.slots.data();
    s.batch.tokens = s.tokens.data();
    s.batch.positions = s.positions.data();
    s.batch.out_rows = s.out_rows.data();
    s.batch.groups = &s.group;
    s.batch.n_groups = 1;
    return &s.batch;
  }
  dvt_code submit_and_wait(Frame& call, const dvt_batch* batch, std::span<const dvt_output> outs,
                           const dvt_sampling* sampling = nullptr, uint64_t* ticket_out = nullptr) {
    uint64_t ticket = 0;
    const dvt_code code =
        table_->submit(program_, call, batch, outs.data(), outs.size(), sampling, &ticket);
    if (ticket_out != nullptr) *ticket_out = ticket;
    return code != DVT_OK ? code : table_->wait(program_, call, ticket);
  }
  /// Runs a step and gives the logits of every token in it. `poison` is what the buffer holds before.
  Rows run(const std::vector<Part>& parts, float poison = -7.0f) {
    Step step = step_of(parts);
    const dvt_batch* batch = batch_of(step);
    std::vector<float> logits(step.tokens.size() * SmallModel::kVocab, poison);
    const dvt_output out{abi_text("logits"), logits.data(), logits.size() * sizeof(float)};
    Frame call;
    expect_ok(submit_and_wait(call, batch, {&out, 1}), call, "submit and wait");
    for (const Part& part : parts)
      part.sequence->n_cached += static_cast<uint32_t>(part.tokens.size());
    Rows rows;
    for (size_t r = 0; r < step.tokens.size(); ++r)
      rows.emplace_back(logits.begin() + static_cast<std::ptrdiff_t>(r * SmallModel::kVocab),
                        logits.begin() + static_cast<std::ptrdiff_t>((r + 1) * SmallModel::kVocab));
    return rows;
  }
  /// The same of one sequence in pieces of `chunk` tokens.
  Rows run_chunked(Sequence& sequence, const std::vector<int32_t>& tokens, size_t chunk) {
    Rows rows;
    for (size_t at = 0; at < tokens.size(); at += chunk) {
      const size_t end = std::min(at + chunk, tokens.size());
      for (auto& row : run({{&sequence,
                             {tokens.begin() + static_cast<std::ptrdiff_t>(at),
                              tokens.begin() + static_cast<std::ptrdiff_t>(end)}}}))
        rows.push_back(std::move(row));
    }
    return rows;
  }

  /// Rows [row0, row0 + rows) of a state of a sequence, moved out or in.
  dvt_code transfer(Frame& call, bool in, uint32_t state, const Sequence& sequence, uint64_t row0,
                    uint64_t rows, std::vector<uint8_t>& data) const {
    dvt_chunk chunk{};
    chunk.struct_size = sizeof chunk;
    chunk.state = state;
    chunk.slot = sequence.slot;
    chunk.row0 = row0;
    chunk.rows = rows;
    chunk.page_len = kPageLen;
    chunk.n_pages = static_cast<uint32_t>(sequence.pages.size());
    chunk.pages = sequence.pages.data();
    chunk.data = data.data();
    chunk.bytes = data.size();
    return in ? table_->import_state(context_, call, &chunk)
              : table_->export_state(context_, call, &chunk);
  }
  /// Of one head's keys or values of one token.
  uint64_t head_bytes() const {
    constexpr uint64_t kScale = sizeof(float);
    if (options_.kv_dtype == DVT_I8_SCALED) return (SmallModel::kHead + 3) / 4 * 4 + kScale;
    return uint64_t{SmallModel::kHead} * (options_.kv_dtype == DVT_F32 ? 4 : 2);
  }
  uint64_t row_bytes() const { return SmallModel::kKvHeads * head_bytes(); }
  std::vector<uint8_t> exported(uint32_t state, const Sequence& sequence, uint64_t row0,
                                uint64_t rows) const {
    std::vector<uint8_t> out(rows * row_bytes());
    Frame call;
    expect_ok(transfer(call, false, state, sequence, row0, rows, out), call, "export_state");
    return out;
  }

 private:
  struct Free {
    std::align_val_t align;
    void operator()(uint8_t* p) const { ::operator delete[](p, align); }
  };
  uint8_t* memory(uint64_t bytes, uint32_t align) {
    const std::align_val_t a{std::max<size_t>(align, alignof(std::max_align_t))};
    memory_.emplace_back(static_cast<uint8_t*>(::operator new[](std::max<uint64_t>(bytes, 1), a)),
                         Free{a});
    return memory_.back().get();
  }

  const dvt_backend_v1* table_;
  RigOptions options_;
  Node params_;
  Graph graph_;
  std::vector<dvt_str> observed_;
  std::vector<std::unique_ptr<uint8_t[], Free>>
      memory_;  // outlives the context: weights are adopted
  void* context_ = nullptr;
  void* program_ = nullptr;
  uint32_t next_slot_ = 0, n_pages_used_ = 0;
};

}  // namespace dovetail::core::test
