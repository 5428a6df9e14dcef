// HostProgram: runs a graph over host memory, node by node, on one lane or on all of them.
//
// A backend gives a table of ops (HostOp). The program gives every value a place in one workspace
// (places are shared by values that never live at the same time), finds out where lanes must meet,
// and runs batches. Values that a caller asks for by name are written straight into its buffer.
#pragma once

#include <dovetail/backend.hpp>
#include <dovetail/graph_copy.hpp>
#include <dovetail/host_layout.hpp>

#include <algorithm>
#include <any>
#include <atomic>
#include <cstring>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

namespace dovetail {

/// A value in memory: dense, row-major.
struct Array {
  void* data = nullptr;
  uint32_t dtype = DVT_F32;
  uint32_t ndim = 0;
  int64_t dim[DVT_MAX_DIMS] = {};
  uint64_t lane_bytes = 0;  // from a lane's copy to the next; 0: one for all lanes

  float* f32() const { return static_cast<float*>(data); }
  void* at(Lane lane) const { return static_cast<uint8_t*>(data) + lane.index * lane_bytes; }
  float* f32(Lane lane) const { return static_cast<float*>(at(lane)); }
  const int32_t* i32() const { return static_cast<const int32_t*>(data); }
  int64_t size() const { return rows(0); }
  /// Product of all dims but the last n.
  int64_t rows(uint32_t n_last = 1) const {
    int64_t out = 1;
    for (uint32_t i = 0; i + n_last < ndim; ++i) out *= dim[i];
    return out;
  }
  int64_t last() const { return ndim ? dim[ndim - 1] : 1; }
  /// Product of all dims but the first; 0 without rows.
  int64_t width() const { return ndim == 0 || dim[0] == 0 ? 0 : size() / dim[0]; }
};

/// The batch as ops read it.
struct StepView {
  const dvt_batch* batch = nullptr;
  const HostStates* states = nullptr;
  const void* context = nullptr;  // what the backend gave the program: its kernels, say

  const dvt_page_group& group(uint32_t number) const {
    const auto* base = reinterpret_cast<const uint8_t*>(batch->groups);
    for (uint64_t i = 0; i < batch->n_groups; ++i) {
      const auto& g =
          *reinterpret_cast<const dvt_page_group*>(base + i * batch->groups[0].struct_size);
      if (g.group == number) return g;
    }
    throw Error("the batch has no page tables for group " + std::to_string(number));
  }
};

/// One node with everything resolved for this step.
struct NodeRun {
  std::vector<Array> in, out;
  std::vector<int32_t> state;  // state index of each input, -1 for others
  const StepView* step = nullptr;
  const std::any* prepared = nullptr;
  int64_t units = 0;  // in which columns are dealt to lanes; 0: the op cuts its work as it likes
  std::atomic<int64_t>* n_taken = nullptr;  // pieces of the node's work that lanes have taken

  /// The next piece of the node's work in this step that no lane has taken yet.
  int64_t take() const { return n_taken->fetch_add(1, std::memory_order_relaxed); }
  /// Deals [0, n) out to lanes as they come: fn(begin, end) with multiples of grain. Processors need not
  /// be equally fast. Where lanes stream through memory, half of an even share is a lane's own to begin
  /// with, so that it reads on without a break. For one phase of an op.
  template <class Fn>
  void deal(Lane lane, int64_t n, int64_t grain, bool streams, const Fn& fn) const {
    if (lane.count == 1) return fn(0, n);
    const auto rest_of = [&](uint32_t index) {  // the part of a share that is nobody's yet
      const auto [begin, end] = Lane{index, lane.count}.range(n, grain);
      const int64_t half = (end - begin + grain) / (2 * grain) * grain;
      return Lane::Range{streams ? std::min(end, begin + half) : begin, end};
    };
    const int64_t begin = lane.range(n, grain).begin, own_end = rest_of(lane.index).begin;
    if (begin < own_end) fn(begin, own_end);
    const uint32_t n_pieces = streams ? 8 : 16;  // of a rest
    for (int64_t i = take(); i < int64_t{lane.count} * n_pieces; i = take()) {
      const Lane::Range rest = rest_of(static_cast<uint32_t>(i % lane.count));
      const auto index = static_cast<uint32_t>(i / lane.count);
      const auto piece = Lane{index, n_pieces}.range(rest.end - rest.begin, grain);
      if (piece.begin < piece.end) fn(rest.begin + piece.begin, rest.begin + piece.end);
    }
  }
  /// A lane's columns of a value of that width (the product of its dims but the first).
  Lane::Range columns(Lane lane, int64_t width) const {
    const auto [begin, end] = lane.range(units);
    return {begin * (width / units), end * (width / units)};
  }
  bool has(size_t i) const { return i < in.size() && (in[i].data != nullptr || state[i] >= 0); }
};

/// What `prepare` may use: bounds, values that nodes of one program share by key, and work that every
/// lane does when a step starts (lanes meet after it).
struct Preparation {
  Sizes max;
  uint32_t n_lanes = 1;
  std::map<std::string, std::any> shared;
  std::vector<std::function<void(const StepView&, Lane)>> at_start;
};

/// How a backend runs one op. `run` is called by every lane for each phase in turn; lanes meet between
/// phases, unless each owns its columns (NodeRun::units). It must not throw. `prepare` reads the
/// attributes once, at compile. `cut` says how lanes may share the work; without it the op cuts itself.
struct HostOp {
  std::string_view name;
  void (*run)(const NodeRun&, Lane, uint32_t phase);
  uint32_t n_phases = 1;
  std::any (*prepare)(const GraphView&, const dvt_node&, Preparation&) = nullptr;
  CutRule (*cut)(const GraphView&, const dvt_node&) = nullptr;
};

/// A bound weight.
struct HostWeight {
  const void* data = nullptr;
  uint64_t bytes = 0;
  uint32_t dtype = 0;
};

class HostProgram {
 public:
  using FindOp = const HostOp* (*)(std::string_view name);

  HostProgram(const dvt_host_v1* host, GraphCopy graph, const dvt_compile_options& options,
              FindOp find, const std::map<std::string, HostWeight, std::less<>>& weights,
              HostStates* states, bool parallel, const void* context)
      : host_(host),
        states_(states),
        n_lanes_(parallel ? host->n_lanes(host->self) : 1),
        weights_(weights),
        copy_(std::move(graph)),
        graph_(copy_.view()) {
    step_.context = context;
    const GraphView g(&graph_);
    max_ = {options.max_tokens, options.max_rows, options.max_seqs};
    preparation_.max = max_;
    preparation_.n_lanes = n_lanes_;
    const auto* ops =
        static_cast<const dvt_ops_v1*>(host->get_interface(host->self, to_abi("dovetail.ops/1")));
    for (uint64_t i = 0; i < g.n_nodes(); ++i) nodes_.push_back(make_node(g, g.node(i), find, ops));
    place_values(g, LayoutMaker::make(g, max_, options, cuts_of(find), n_lanes_));
    for (uint32_t mode = 0; mode < 4; ++mode) {
      const std::vector<bool> meets =
          meetings(g, *shares_, mode, [&](uint32_t v) { return region(g, v); });
      for (size_t i = 0; i < nodes_.size(); ++i)
        nodes_[i].barrier_modes |= static_cast<uint8_t>((meets[i] ? 1u : 0u) << mode);
    }
  }

  /// Workspace bytes that a graph would take.
  static uint64_t workspace(const dvt_graph* graph, const dvt_compile_options& options, FindOp find,
                            uint32_t n_lanes) {
    const GraphView g(graph);
    return LayoutMaker::make(g, {options.max_tokens, options.max_rows, options.max_seqs}, options,
                             cuts_of(find), n_lanes)
        .total;
  }
  uint64_t workspace_bytes() const { return workspace_bytes_; }

  /// How often lanes meet in a step with few tokens and rows of logits (at most kFewRows), or with many.
  size_t n_meetings(bool few) const {
    size_t n = preparation_.at_start.empty() ? 0 : 1;
    for (const Node& node : nodes_) {
      n += node.barrier_modes >> (few ? 3 : 0) & 1u;
      if (node.op && (!few || node.owned_units == 0)) n += node.op->n_phases - 1;
    }
    return n_lanes_ > 1 ? n : 0;
  }

  void run(Call call, const dvt_batch& batch, std::span<const dvt_output> outs) {
    if (batch.n_tokens > max_.tokens || batch.n_rows > max_.rows || batch.n_seqs > max_.seqs)
      throw Error("the batch has " + std::to_string(batch.n_tokens) + " tokens, " +
                  std::to_string(batch.n_rows) + " rows and " + std::to_string(batch.n_seqs) +
                  " sequences, compiled for " + std::to_string(max_.tokens) + ", " +
                  std::to_string(max_.rows) + " and " + std::to_string(max_.seqs));
    bind_step(batch, outs);
    step_.batch = &batch;
    step_.states = states_;
    for (uint32_t i = 0; i < states_->size();
         ++i)  // a missing table is found here: lanes cannot throw
      if (states_->slot(i).kind == DVT_STATE_PAGED) step_.group(states_->slot(i).group);
    error_ = {};
    if (n_lanes_ > 1) {
      const dvt_host_v1* h = host_;
      struct Job {
        HostProgram* self;
        dvt_call* call;
      } job{this, call.frame()};
      call.check(h->team_run(
          h->self, call.frame(),
          [](void* arg, uint32_t lane, uint32_t n) noexcept {
            const Job& j = *static_cast<Job*>(arg);
            j.self->run_lane(Lane{lane, n}, j.call);
          },
          &job));
    } else {
      run_lane(Lane{0, 1}, call.frame());
    }
    if (!error_.empty()) throw Error(error_, error_code_, error_where_);
    call.check_cancelled();
    for (const ViewOutput& c : view_outputs_) std::memcpy(c.to, arrays_[c.val].data, c.bytes);
  }

  /// Memory of a named value after run(), for sampling on this side.
  Array value(std::string_view name) const {
    const auto it = named_.find(name);
    if (it == named_.end()) throw Error("the graph has no value \"" + std::string(name) + "\"");
    return arrays_[it->second];
  }

 private:
  struct Node {
    const HostOp* op = nullptr;
    const dvt_op_v1* plugin_op = nullptr;
    std::any prepared;
    NodeRun run;
    std::vector<uint32_t> in, out;
    std::vector<dvt_attr_in> attrs;
    std::string scope;
    uint8_t barrier_modes = 0;  // bits of the modes in which lanes meet before it
    int64_t owned_units = 0;    // NodeRun::units where lanes own columns
  };

  /// A dimension that each batch sets.
  struct SizedDim {
    uint32_t val, dim;
    int64_t Sizes::*size;
  };

  /// An output that is a view of another value, filled when all has run.
  struct ViewOutput {
    uint32_t val;
    void* to;
    uint64_t bytes;
  };

  Node make_node(const GraphView& g, const dvt_node& n, FindOp find, const dvt_ops_v1* ops) {
    Node node;
    node.scope = g.str(n.scope);
    node.in.assign(g.inputs(n).begin(), g.inputs(n).end());
    node.out.assign(g.outputs(n).begin(), g.outputs(n).end());
    for (uint32_t v : node.in)
      node.run.state.push_back(v != UINT32_MAX && g.val(v).role == DVT_VAL_STATE
                                   ? static_cast<int32_t>(g.val(v).bind)
                                   : -1);
    node.run.in.resize(node.in.size());
    node.run.out.resize(node.out.size());
    const std::string_view name = g.op_name(n);
    if (g.op(n).tier == DVT_TIER_PLUGIN) {
      node.plugin_op = ops ? ops->find(ops->self, to_abi(name), g.op(n).rev) : nullptr;
      node.attrs = g.attrs(n);
    } else {
      node.op = find(name);
      if (node.op && node.op->prepare) node.prepared = node.op->prepare(g, n, preparation_);
    }
    if (!node.op && !node.plugin_op)
      throw Error("this backend has no op \"" + std::string(name) + "\"", DVT_EUNSUPPORTED,
                  node.scope);
    return node;
  }

  static CutOf cuts_of(FindOp find) {
    return [find](const GraphView& g, const dvt_node& n) {
      const HostOp* op = find(g.op_name(n));
      return op && op->cut ? op->cut(g, n) : CutRule{};
    };
  }

  void place_values(const GraphView& g, const Layout& layout) {
    offsets_ = layout.offset;
    shares_ = layout.shares;
    kept_ = layout.kept;
    workspace_bytes_ = layout.total;
    workspace_ = aligned_bytes(layout.values_bytes);
    lane_copies_ = aligned_bytes(shares_->lane_bytes * n_lanes_);
    for (size_t i = 0; i < nodes_.size(); ++i) nodes_[i].owned_units = shares_->cuts.units(g, i);
    n_taken_ = std::vector<Taken>(nodes_.size());
    arrays_.resize(g.n_vals());
    alias_of_.assign(g.n_vals(), UINT32_MAX);
    for (uint64_t i = 0; i < g.n_nodes(); ++i)
      if (is_alias(g, g.node(i))) alias_of_[g.outputs(g.node(i))[0]] = g.inputs(g.node(i))[0];
    for (uint32_t v = 0; v < g.n_vals(); ++v) {
      const dvt_val& val = g.val(v);
      Array& a = arrays_[v];
      a.dtype = val.dtype == DVT_ACTIVATION ? uint32_t{DVT_F32} : val.dtype;
      a.ndim = val.ndim;
      if (val.role == DVT_VAL_WEIGHT) {
        const auto it = weights_.find(g.str(val.name));
        if (it == weights_.end())
          throw Error("weight \"" + std::string(g.str(val.name)) + "\" was never bound",
                      DVT_EINTERNAL);
        a.data = const_cast<void*>(it->second.data);
        a.dtype = it->second.dtype;
        const std::vector<int64_t> dims = g.dims(v, max_);
        std::copy(dims.begin(), dims.end(), a.dim);
      } else if (val.role != DVT_VAL_STATE) {
        for (uint32_t d = 0; d < val.ndim; ++d) {
          const dvt_dim& dim = g.dim(val.dim0 + d);
          if (dim.sym == 0)
            a.dim[d] = dim.value;
          else
            sized_.push_back({v, d, g.size_of(dim)});
        }
        if (val.role == DVT_VAL_COMPUTED) computed_.push_back(v);
      }
      if (val.name != 0) named_.emplace(g.str(val.name), v);
    }
  }

  Region region(const GraphView& g, uint32_t v) const {
    if (offsets_[v] == UINT64_MAX) return {0, 0};
    return {offsets_[v], offsets_[v] + static_cast<uint64_t>(g.elements(v, max_)) *
                                           element_bytes(g.val(v).dtype)};
  }

  void bind_step(const dvt_batch& batch, std::span<const dvt_output> outs) {
    const Sizes sizes{batch.n_tokens, batch.n_rows, batch.n_seqs};
    view_outputs_.clear();
    mode_ = (sizes.tokens <= kFewRows ? 1u : 0u) | (sizes.rows <= kFewRows ? 2u : 0u);
    for (const SizedDim& s : sized_) arrays_[s.val].dim[s.dim] = sizes.*s.size;
    for (uint32_t v : computed_) arrays_[v].data = workspace_.get() + offsets_[v];
    for (const LaneCopy& c : shares_->copies) {
      const bool is_copy = (mode_ & c.mode_bit) != 0;
      if (is_copy) arrays_[c.val].data = lane_copies_.get() + c.place * shares_->place_bytes;
      arrays_[c.val].lane_bytes = is_copy ? shares_->lane_bytes : 0;
    }
    feed("tokens", batch.tokens);
    feed("positions", batch.positions);
    feed("out_rows", batch.out_rows);
    for (const dvt_output& out : outs) {
      const auto it = named_.find(to_view(out.name));
      if (it == named_.end()) {
        if (to_view(out.name) == "ids") continue;  // of the sampling that follows
        throw Error("the graph has no value \"" + std::string(to_view(out.name)) + "\" to read");
      }
      if (!kept_[it->second])
        throw Error("\"" + std::string(to_view(out.name)) +
                    "\" is no output and was not observed when the graph was compiled");
      Array& a = arrays_[it->second];
      const uint64_t need = static_cast<uint64_t>(a.size()) * dtype_bytes(a.dtype);
      if (out.bytes < need)
        throw Error("output \"" + std::string(to_view(out.name)) + "\" needs " +
                    std::to_string(need) + " bytes, got " + std::to_string(out.bytes));
      if (alias_of_[it->second] != UINT32_MAX)
        view_outputs_.push_back({it->second, out.data, need});
      else if (offsets_[it->second] != UINT64_MAX)
        a.data = out.data;
      else
        throw Error("\"" + std::string(to_view(out.name)) +
                    "\" is no value that the graph computes");
    }
    for (size_t v = 0; v < alias_of_.size(); ++v)
      if (alias_of_[v] != UINT32_MAX) arrays_[v].data = arrays_[alias_of_[v]].data;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      Node& node = nodes_[i];
      node.run.step = &step_;
      node.run.prepared = &node.prepared;
      node.run.units = owns_columns(mode_) ? node.owned_units : 0;
      node.run.n_taken = &n_taken_[i].n;
      n_taken_[i].n = 0;
      for (size_t k = 0; k < node.in.size(); ++k)
        node.run.in[k] = node.in[k] == UINT32_MAX ? Array{} : arrays_[node.in[k]];
      for (size_t k = 0; k < node.out.size(); ++k) node.run.out[k] = arrays_[node.out[k]];
    }
  }

  void feed(std::string_view input, const void* data) {
    if (const auto it = named_.find(input); it != named_.end())
      arrays_[it->second].data = const_cast<void*>(data);
  }

  void run_lane(Lane lane, dvt_call* call) noexcept {
    if (!preparation_.at_start.empty()) {
      for (const auto& work : preparation_.at_start) work(step_, lane);
      if (lane.count > 1) host_->team_barrier(host_->self);
    }
    for (Node& node : nodes_) {
      if ((node.barrier_modes >> mode_ & 1u) && lane.count > 1) host_->team_barrier(host_->self);
      if (node.plugin_op) {
        if (lane.index == 0) run_plugin_op(node, call);
        continue;
      }
      for (uint32_t phase = 0; phase < node.op->n_phases; ++phase) {
        if (phase > 0 && lane.count > 1 && node.run.units == 0) host_->team_barrier(host_->self);
        if (call->cancel && __atomic_load_n(call->cancel, __ATOMIC_RELAXED))
          continue;  // lanes still meet
        node.op->run(node.run, lane, phase);
      }
    }
  }

  void run_plugin_op(Node& node, dvt_call* call) noexcept {
    const dvt_code code = guard(call, [&] {
      std::vector<dvt_view> in, out;
      std::vector<dvt_state_view> states;
      for (size_t i = 0; i < node.in.size(); ++i) {
        if (const int32_t s = node.run.state[i]; s >= 0) {
          const HostStates::Slot& slot = states_->slot(static_cast<uint32_t>(s));
          const dvt_page_group& group = step_.group(slot.group);
          states.push_back({slot.data, slot.page_bytes, slot.outer_bytes, slot.row_bytes,
                            group.page_off, group.pages, states_->page_len(), slot.dtype});
        }
        in.push_back(view_of(node.run.in[i]));
      }
      for (const Array& a : node.run.out) out.push_back(view_of(a));
      dvt_op_args args{};
      args.struct_size = sizeof args;
      args.n_in = static_cast<uint32_t>(in.size());
      args.n_out = static_cast<uint32_t>(out.size());
      args.n_states = static_cast<uint32_t>(states.size());
      args.in = in.data();
      args.out = out.data();
      args.states = states.data();
      args.attrs = node.attrs.data();
      args.n_attrs = node.attrs.size();
      args.n_seqs = step_.batch->n_seqs;
      args.n_tokens = step_.batch->n_tokens;
      args.tok_off = step_.batch->tok_off;
      args.positions = step_.batch->positions;
      Call(call).check(node.plugin_op->run(call, &args));
    });
    if (code != DVT_OK && error_.empty()) {
      error_ = "op \"" + std::string(to_view(node.plugin_op->name)) + "\" failed";
      error_code_ = code;
      error_where_ = node.scope;
    }
  }
  static dvt_view view_of(const Array& a) {
    dvt_view v{};
    v.data = a.data;
    v.dtype = a.dtype;
    v.ndim = a.ndim;
    std::copy(a.dim, a.dim + DVT_MAX_DIMS, v.ne);
    return v;
  }

  const dvt_host_v1* host_;
  HostStates* states_;
  uint32_t n_lanes_;
  const std::map<std::string, HostWeight, std::less<>>& weights_;
  GraphCopy copy_;  // outlives the caller's graph
  dvt_graph graph_;
  Sizes max_;
  Preparation preparation_;
  std::vector<Node> nodes_;
  struct alignas(64) Taken {  // a line for each: lanes write them
    std::atomic<int64_t> n = 0;
  };
  std::vector<Taken> n_taken_;  // by node
  std::vector<uint64_t> offsets_;
  std::vector<uint32_t> alias_of_;
  std::vector<bool> kept_;
  std::vector<Array> arrays_;
  std::vector<SizedDim> sized_;
  std::vector<ViewOutput> view_outputs_;
  std::optional<Shares> shares_;
  AlignedBytes lane_copies_;
  uint32_t mode_ = 0;
  std::vector<uint32_t> computed_;  // values that live in the workspace
  std::map<std::string, uint32_t, std::less<>> named_;
  AlignedBytes workspace_;
  uint64_t workspace_bytes_ = 0;
  StepView step_;
  std::string error_, error_where_;
  dvt_code error_code_ = DVT_OK;
};

}  // namespace dovetail
