#include "core/doctor/case_run.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <new>
#include <numeric>

#include "core/model/checkpoint.hpp"
#include "core/plugin/call_frame.hpp"
#include "core/plugin/host.hpp"

namespace dovetail::core {
namespace {

// A weight as the backend is told of it.
struct Source {
  dvt_weight_use use{};
  dvt_bytes bytes{};
};

class CaseRun {
 public:
  CaseRun(const OpCase& c, const CaseBackend& backend, const uint32_t* cancel)
      : case_(c), backend_(backend), table_(*backend.table), call_(cancel) {}
  ~CaseRun() {
    if (program_) table_.drop(program_);
    if (context_) table_.close(context_);
  }
  CaseRun(const CaseRun&) = delete;
  CaseRun& operator=(const CaseRun&) = delete;

  Result<CaseOutputs> run(CaseGraph made, const OpRegistry& ops) {
    DVT_TRY(call_.check(
        table_.open(backend_.plugin, call_, 0, doc_handle(backend_.params), &context_)));
    DVT_TRY(PlacedGraph placed,
            place_ops(std::move(made.graph), ops, table_, context_, backend_.name));
    graph_ = std::move(placed.graph);
    DVT_TRY(load_weights());
    DVT_TRY(compile());
    CaseOutputs out{std::move(made.outputs), {}, std::move(placed.placements)};
    for (const CaseGraph::Output& v : out.values)
      out.numbers.emplace_back(case_.n_tokens() * v.width, 0.0F);
    size_t first = 0;
    for (const OpCase::Step& step : case_.steps) {
      DVT_TRY(run_step(step, first, out));
      first += step.positions.size();
    }
    return out;
  }

 private:
  struct AlignedFree {
    size_t align;
    void operator()(std::byte* p) const { ::operator delete[](p, std::align_val_t{align}); }
  };

  Source source_of(const dvt_weight_ref& ref) {
    const std::string_view name = graph_.str(ref.name);
    Source out;
    out.use.struct_size = sizeof out.use;
    out.use.access = ref.access;
    out.use.name = abi_text(name);
    const std::vector<dvt_dim> dims = graph_.type_of(ref.val).dims;
    out.use.ndim = static_cast<uint32_t>(dims.size());
    for (size_t i = 0; i < dims.size(); ++i) out.use.shape[i] = dims[i].value;
    for (size_t i = 0; i < case_.fed.size(); ++i)
      if (fed_name(i) == name) {
        const std::vector<float>& numbers = case_.fed[i].numbers;
        out.use.stored = abi_text("float32");
        out.bytes = {numbers.data(), numbers.size() * sizeof(float)};
      }
    for (const OpCase::Weight& w : case_.weights)
      if (w.name == name) {
        out.use.stored = abi_text(w.stored);
        out.use.wanted = abi_text(w.wanted);
        out.bytes = {w.bytes.data(), w.bytes.size()};
        // A file need not keep to the line that elements begin on.
        const uint64_t element = plain_bytes(w.stored, {1}).value_or(1);
        if (reinterpret_cast<uintptr_t>(out.bytes.p) % element != 0) {
          std::byte* const ordered = memory(w.bytes.size(), element);
          std::memcpy(ordered, w.bytes.data(), w.bytes.size());
          out.bytes.p = ordered;
        }
      }
    return out;
  }

  // The size that a plain format needs is known here; that of another the backend knows.
  static Status check_size(const Source& s, const dvt_weight_plan& plan) {
    const std::vector<int64_t> shape(s.use.shape, s.use.shape + s.use.ndim);
    const std::optional<uint64_t> need = plain_bytes(text_of(s.use.stored), shape);
    const uint64_t expected = need                        ? *need
                              : plan.how == DVT_PLAN_KEEP ? plan.bytes
                                                          : uint64_t{s.bytes.n};
    if (s.bytes.n == expected) return Status::ok();
    return bad_format("weight \"" + std::string(text_of(s.use.name)) + "\" has " +
                      std::to_string(s.bytes.n) + " bytes, its shape and format " +
                      std::string(text_of(s.use.stored)) + " need " + std::to_string(expected));
  }

  std::byte* memory(uint64_t bytes, uint64_t align) {
    align = std::max<uint64_t>(64, align);
    memory_.emplace_back(static_cast<std::byte*>(::operator new[](std::max<uint64_t>(1, bytes),
                                                                  std::align_val_t{align})),
                         AlignedFree{align});
    return memory_.back().get();
  }

  Status load_weights() {
    std::vector<Source> sources;
    for (const dvt_weight_ref& ref : graph_.weights()) sources.push_back(source_of(ref));
    std::vector<dvt_weight_use> uses;
    std::vector<dvt_bytes> bytes;
    for (const Source& s : sources) {
      uses.push_back(s.use);
      bytes.push_back(s.bytes);
    }
    std::vector<dvt_weight_plan> plans(uses.size());
    for (dvt_weight_plan& p : plans) p.struct_size = sizeof p;
    DVT_TRY(call_.check(table_.plan(context_, call_, uses.data(), plans.data(), uses.size())));
    for (size_t i = 0, end = 0; i < uses.size(); i = end) {
      for (end = i + 1; end < uses.size() && plans[end].group == plans[i].group;) ++end;
      for (size_t k = i; k < end; ++k) DVT_TRY(check_size(sources[k], plans[k]));
      DVT_TRY(load_group(&uses[i], &bytes[i], end - i, plans[i]));
    }
    return Status::ok();
  }

  Status load_group(const dvt_weight_use* uses, const dvt_bytes* bytes, size_t n,
                    const dvt_weight_plan& plan) {
    const std::string name(text_of(uses[0].name));
    if (plan.how == DVT_PLAN_PUT) {
      if (!DVT_HAS(backend_.table, put))
        return unsupported("weight \"" + name + "\" is to be put, and there is no put");
      for (size_t k = 0; k < n; ++k)
        DVT_TRY(call_.check(table_.put(context_, call_, uses[k].name, 0, bytes[k], 1)).in(name));
      return Status::ok();
    }
    const void* bound = bytes[0].p;
    if (plan.how == DVT_PLAN_PACK) {
      std::byte* const packed = memory(plan.bytes, plan.align);
      DVT_TRY(
          call_.check(table_.pack(context_, call_, uses, bytes, n, packed, plan.bytes)).in(name));
      bound = packed;
    } else if (reinterpret_cast<uintptr_t>(bound) % std::max<uint32_t>(1, plan.align) != 0) {
      std::byte* const kept = memory(bytes[0].n, plan.align);
      std::memcpy(kept, bytes[0].p, bytes[0].n);
      bound = kept;
    }
    return call_.check(table_.bind(context_, call_, uses, n, &plan, bound)).in(name);
  }

  uint32_t n_pages() const {
    return static_cast<uint32_t>((case_.n_tokens() + backend_.page_len - 1) / backend_.page_len);
  }

  // Every backend has these caches, and the one that it asks for.
  Status check_cache() {
    const uint32_t wanted = backend_.kv_dtype;
    if (wanted == DVT_F32 || wanted == DVT_BF16 || wanted == DVT_I8_SCALED) return Status::ok();
    dvt_backend_info info{};
    info.struct_size = sizeof info;
    DVT_TRY(call_.check(table_.info(context_, call_, &info)));
    if (info.kv_dtype == wanted) return Status::ok();
    return unsupported("the case has a cache of dtype " + std::to_string(wanted) +
                       ", which this backend does not have");
  }

  Status compile() {
    DVT_TRY(check_cache());
    const std::vector<dvt_state_spec>& specs = graph_.states();
    DVT_TRY(call_.check(table_.alloc_states(context_, call_, specs.data(), specs.size(),
                                            backend_.kv_dtype, backend_.page_len, n_pages(), 1)));
    dvt_compile_options options{};
    options.struct_size = sizeof options;
    options.max_rows = 1;
    for (const OpCase::Step& s : case_.steps) {
      options.max_tokens = std::max(options.max_tokens, static_cast<uint32_t>(s.positions.size()));
      options.max_rows = std::max(options.max_rows, static_cast<uint32_t>(s.rows.size()));
    }
    options.max_seqs = 1;
    const dvt_graph view = graph_.view();
    return call_.check(table_.compile(context_, call_, &view, &options, &program_));
  }

  // All tokens are of one sequence, whose pages are the first ones of every group.
  Status run_step(const OpCase::Step& step, size_t first, CaseOutputs& out) {
    const auto n = static_cast<uint32_t>(step.positions.size());
    std::vector<int32_t> tokens = step.tokens;
    if (!case_.fed.empty()) {
      tokens.resize(n);
      std::iota(tokens.begin(), tokens.end(), static_cast<int32_t>(first));
    }
    const std::vector<uint32_t> tok_off{0, n}, slots{0}, page_off{0, n_pages()};
    std::vector<uint32_t> pages(n_pages());
    std::iota(pages.begin(), pages.end(), 0);
    std::map<uint32_t, dvt_page_group> by_number;
    for (const dvt_state_spec& spec : graph_.states())
      if (spec.kind != DVT_STATE_FIXED)
        by_number[spec.group] = {sizeof(dvt_page_group), spec.group,  backend_.page_len, spec.rate,
                                 page_off.data(),        pages.data()};
    std::vector<dvt_page_group> groups;
    groups.reserve(by_number.size());
    for (const auto& [number, group] : by_number) groups.push_back(group);
    dvt_batch batch{};
    batch.struct_size = sizeof batch;
    batch.n_tokens = n;
    batch.n_seqs = batch.n_axes = 1;
    batch.n_rows = static_cast<uint32_t>(step.rows.size());
    batch.tok_off = tok_off.data();
    batch.slots = slots.data();
    batch.tokens = tokens.data();
    batch.positions = step.positions.data();
    batch.out_rows = step.rows.data();
    batch.groups = groups.data();
    batch.n_groups = groups.size();

    // What a backend leaves out is no number.
    std::vector<std::vector<float>> numbers;
    std::vector<dvt_output> outs;
    for (const CaseGraph::Output& v : out.values) {
      numbers.emplace_back((v.is_of_rows ? step.rows.size() : n) * v.width,
                           std::numeric_limits<float>::quiet_NaN());
      outs.push_back(
          {abi_text(v.name), numbers.back().data(), numbers.back().size() * sizeof(float)});
    }
    uint64_t ticket = 0;
    DVT_TRY(call_.check(
        table_.submit(program_, call_, &batch, outs.data(), outs.size(), nullptr, &ticket)));
    DVT_TRY(call_.check(table_.wait(program_, call_, ticket)));
    for (size_t i = 0; i < out.values.size(); ++i) {
      const CaseGraph::Output& v = out.values[i];
      const size_t n_rows = v.width == 0 ? 0 : numbers[i].size() / v.width;
      for (size_t r = 0; r < n_rows; ++r)
        std::copy_n(
            numbers[i].begin() + static_cast<std::ptrdiff_t>(r * v.width), v.width,
            out.numbers[i].begin() +
                static_cast<std::ptrdiff_t>((first + (v.is_of_rows ? step.rows[r] : r)) * v.width));
    }
    return Status::ok();
  }

  const OpCase& case_;
  const CaseBackend& backend_;
  const dvt_backend_v1& table_;
  CallFrame call_;
  Graph graph_;
  std::vector<std::unique_ptr<std::byte[], AlignedFree>> memory_;  // weights are adopted
  void* context_ = nullptr;
  void* program_ = nullptr;
};

}  // namespace

Result<CaseOutputs> run_case(const OpCase& c, const CaseBackend& backend, const OpRegistry& ops,
                             const uint32_t* cancel) {
  DVT_TRY(CaseGraph made, graph_of(c, ops));
  Result<CaseOutputs> out = CaseRun(c, backend, cancel).run(std::move(made), ops);
  if (!out) return out.status().in("backend " + backend.name);
  return out;
}

}  // namespace dovetail::core
