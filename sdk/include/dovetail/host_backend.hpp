// HostBackend: what backends in host memory have in common besides HostProgram: bound weights,
// states, the sampling that a batch may ask for, tickets. A backend derives from it and adds its ops,
// its weight plan and its name.
#pragma once

#include <dovetail/host_program.hpp>
#include <dovetail/plain_weights.hpp>

#include <array>
#include <cmath>

namespace dovetail {

class HostBackend : public PlainWeights {
 public:
  HostBackend(const BackendOpen& in, Widen widen) : PlainWeights(widen), host_(in.host) {}
  HostBackend(const HostBackend&) = delete;
  HostBackend& operator=(const HostBackend&) = delete;

  void bind(std::span<const dvt_weight_use> uses, const dvt_weight_plan& plan, const void* p) {
    const uint32_t dtype =
        plan.how == DVT_PLAN_PACK ? uint32_t{DVT_F32} : plain_dtype(to_view(uses[0].stored));
    weights_[std::string(to_view(uses[0].name))] = {p, plan.bytes, dtype};
  }

  void alloc_states(const StateAlloc& a) {
    states_.alloc(a.specs, a.kv_dtype, a.page_len, a.n_pages, a.n_slots);
  }
  /// For a backend whose programs run `find`'s ops on all lanes or on one.
  StateEstimate estimate_with(HostProgram::FindOp find, bool parallel, const dvt_graph* graph,
                              const dvt_compile_options& options, uint32_t kv_dtype,
                              uint32_t page_len) const {
    StateEstimate out = HostStates::estimate(GraphView(graph), kv_dtype, page_len);
    const dvt_host_v1* h = host_.table();
    out.workspace =
        HostProgram::workspace(graph, options, find, parallel ? h->n_lanes(h->self) : 1);
    return out;
  }
  std::vector<dvt_mem_row> mem() const {
    return {{sizeof(dvt_mem_row), DVT_MEM_STATE, states_.bytes(), states_.bytes(), states_.bytes()},
            {sizeof(dvt_mem_row), DVT_MEM_WORKSPACE, workspace_, workspace_, workspace_}};
  }
  void export_state(const dvt_chunk& c) const { states_.export_chunk(c); }
  void import_state(const dvt_chunk& c) { states_.import_chunk(c); }
  void copy_pages(uint32_t group, const uint32_t* src, const uint32_t* dst, uint64_t n) {
    states_.copy_pages(group, src, dst, n);
  }
  void reset_slot(uint32_t slot) { states_.reset(slot); }

  /// A compiled graph with the ids of its last steps, so that a batch may name a row of an earlier
  /// ticket instead of a token. Runs at submit; a ticket is done when it is given.
  class Program {
   public:
    Program(std::unique_ptr<HostProgram> program, uint32_t max_tokens, uint32_t max_rows,
            int64_t (*argmax)(const float*, int64_t))
        : program_(std::move(program)), argmax_(argmax), tokens_(max_tokens) {
      for (auto& ids : history_) ids.resize(max_rows);
    }
    uint64_t submit(Call call, const dvt_batch& batch, std::span<const dvt_output> outs,
                    const dvt_sampling* sampling) {
      dvt_batch resolved = batch;
      if (batch.token_from) {
        for (uint32_t i = 0; i < batch.n_tokens && i < tokens_.size(); ++i) {
          const dvt_token_from& from = batch.token_from[i];
          tokens_[i] = from.ticket == 0 ? batch.tokens[i] : earlier_id(from);
        }
        resolved.tokens = tokens_.data();
      }
      program_->run(call, resolved, outs);
      ++ticket_;
      if (sampling) sample(batch, outs, *sampling);
      return ticket_;
    }
    void wait(Call, uint64_t ticket) const {
      if (ticket > ticket_) throw Error("ticket " + std::to_string(ticket) + " was never given");
    }
    uint64_t workspace_bytes() const { return program_->workspace_bytes(); }

   private:
    static constexpr uint64_t kHistory = 2;  // steps whose ids can be named

    int32_t earlier_id(const dvt_token_from& from) const {
      if (from.ticket > ticket_ || from.ticket + kHistory <= ticket_ ||
          from.row >= history_[0].size())
        throw Error("a token names row " + std::to_string(from.row) + " of ticket " +
                    std::to_string(from.ticket) + ", whose ids are not kept");
      return std::max(0, history_[from.ticket % kHistory][from.row]);
    }
    void sample(const dvt_batch& batch, std::span<const dvt_output> outs,
                const dvt_sampling& sampling) {
      if (sampling.kind != DVT_SAMPLE_ARGMAX)
        throw Error("this backend samples only the argmax", DVT_EUNSUPPORTED);
      const Array logits = program_->value("logits");
      std::vector<int32_t>& ids = history_[ticket_ % kHistory];
      for (uint32_t r = 0; r < batch.n_rows; ++r) {
        float* row = logits.f32() + int64_t{r} * logits.last();
        if (sampling.mask)
          for (int64_t i = 0; i < logits.last(); ++i)
            if (!(sampling.mask[i / 32] >> (i % 32) & 1u))
              row[i] = -std::numeric_limits<float>::infinity();
        const int64_t id = argmax_(row, logits.last());
        ids[r] = id >= 0 && row[id] > -std::numeric_limits<float>::infinity()
                     ? static_cast<int32_t>(id)
                     : -1;
      }
      for (const dvt_output& out : outs)
        if (to_view(out.name) == "ids") {
          if (out.bytes < batch.n_rows * sizeof(int32_t))
            throw Error("output \"ids\" is too small");
          std::memcpy(out.data, ids.data(), batch.n_rows * sizeof(int32_t));
        }
    }

    std::unique_ptr<HostProgram> program_;
    int64_t (*argmax_)(const float*, int64_t);
    std::vector<int32_t> tokens_;
    std::array<std::vector<int32_t>, kHistory> history_;
    uint64_t ticket_ = 0;
  };

 protected:
  std::unique_ptr<Program> make_program(GraphCopy graph, const dvt_compile_options& options,
                                        HostProgram::FindOp find, bool parallel,
                                        const void* context,
                                        int64_t (*argmax)(const float*, int64_t)) {
    auto inner = std::make_unique<HostProgram>(host_.table(), std::move(graph), options, find,
                                               weights_, &states_, parallel, context);
    workspace_ += inner->workspace_bytes();
    return std::make_unique<Program>(std::move(inner), options.max_tokens, options.max_rows,
                                     argmax);
  }
  /// The verdict for an op that is in the table, or that a plugin brings with a function.
  static dvt_verdict verdict(const GraphView& g, const dvt_node& n, HostProgram::FindOp find) {
    const dvt_op_ref& op = g.op(n);
    if (op.tier == DVT_TIER_PLUGIN) return {DVT_NATIVE, 0, {}};
    if (op.rev == 1 && find(g.str(op.name))) return {DVT_NATIVE, 0, {}};
    const dvt_str reason = literal("this backend has no such op");
    return {op.tier == DVT_TIER_COMPOSITE ? uint32_t{DVT_DECOMPOSE} : uint32_t{DVT_CANNOT}, 0,
            reason};
  }

  Host host_;
  HostStates states_;
  std::map<std::string, HostWeight, std::less<>> weights_;
  uint64_t workspace_ = 0;
};

}  // namespace dovetail
