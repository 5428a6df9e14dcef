#include "program.hpp"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "fusion.hpp"

namespace dovetail::cuda {
namespace {

Sizes sizes_of(const dvt_compile_options& options) {
  return {options.max_tokens, options.max_rows, options.max_seqs};
}
Layout layout_of(const GraphView& g, const dvt_compile_options& options) {
  // One queue is one lane: places are taken again as soon as their last reader is launched.
  return LayoutMaker::make(
      g, sizes_of(options), options, [](const GraphView&, const dvt_node&) { return CutRule{}; },
      1);
}
uint64_t scratch_bytes(const GraphView& g, const Sizes& max) {
  uint64_t most = 0;
  for (uint64_t i = 0; i < g.n_nodes(); ++i)
    if (const DeviceOp* op = find_op(g.op_name(g.node(i))); op && op->scratch)
      most = std::max(most, op->scratch(g, g.node(i), max));
  return most;
}
uint64_t counter_bytes(const GraphView& g) {
  int64_t most = 0;
  for (uint64_t i = 0; i < g.n_nodes(); ++i)
    if (const DeviceOp* op = find_op(g.op_name(g.node(i))); op && op->n_counters)
      most = std::max(most, op->n_counters(g, g.node(i)));
  return static_cast<uint64_t>(most) * sizeof(uint32_t);
}
uint64_t ids_bytes(const Sizes& max) {
  return 2 * static_cast<uint64_t>(max.rows) * sizeof(int32_t);
}

std::vector<int64_t> tile_lens_of(const GraphView& g) {
  std::set<int64_t> lens;
  for (uint64_t i = 0; i < g.n_nodes(); ++i)
    if (const int64_t len = attend_tile_len(g, g.node(i))) lens.insert(len);
  return {lens.begin(), lens.end()};
}
std::vector<uint32_t> groups_of(const DeviceStates& states) {
  std::set<uint32_t> groups;
  for (uint32_t i = 0; i < states.size(); ++i)
    if (states.slot(i).kind == DVT_STATE_PAGED) groups.insert(states.slot(i).group);
  return {groups.begin(), groups.end()};
}

}  // namespace

Program::Program(Device& device, const dvt_graph& graph, const dvt_compile_options& options,
                 const Weights& weights, const DeviceStates& states)
    : device_(device),
      states_(states),
      copy_(with_fused_ops(GraphCopy(graph), options)),
      graph_(copy_.view()),
      max_(sizes_of(options)),
      layout_(layout_of(GraphView(&graph_), options)),
      preparation_{device, max_, 0, {}, {}},
      step_(device, tile_lens_of(GraphView(&graph_)), groups_of(states), max_) {
  const GraphView g(&graph_);
  for (uint64_t i = 0; i < g.n_nodes(); ++i) {
    nodes_.push_back(make_node(g, g.node(i)));
    if (is_alias(g, g.node(i)))
      views_.emplace_back(nodes_.back().out.front(), nodes_.back().in.front());
  }
  place_values(g, weights);
  workspace_ = DeviceBytes(device, layout_.total);
  scratch_ = DeviceBytes(device, scratch_bytes(g, max_));
  counters_ = DeviceBytes(device, counter_bytes(g));
  device.zero(counters_.get(), counters_.n_bytes());
  ids_ = DeviceBytes(device, ids_bytes(max_));
  workspace_bytes_ = layout_.total + scratch_.n_bytes() + counters_.n_bytes() + ids_.n_bytes() +
                     preparation_.shared_bytes;
  for (InFlight& step : in_flight_)
    step.ids = HostBytes(device, static_cast<uint64_t>(max_.rows) * sizeof(int32_t));
}

uint64_t Program::workspace(const dvt_graph& graph, const dvt_compile_options& options) {
  const GraphCopy fused = with_fused_ops(GraphCopy(graph), options);
  const dvt_graph view = fused.view();
  const GraphView g(&view);
  const Sizes max = sizes_of(options);
  return layout_of(g, options).total + scratch_bytes(g, max) + counter_bytes(g) + ids_bytes(max) +
         rope_bytes(g, max);
}

Program::Node Program::make_node(const GraphView& g, const dvt_node& n) {
  const std::string_view name = g.op_name(n);
  Node node{find_op(name), {}, {}, {}, {}};
  if (!node.op || g.op(n).tier == DVT_TIER_PLUGIN)
    throw Error("this backend has no op \"" + std::string(name) + "\"", DVT_EUNSUPPORTED,
                std::string(g.str(n.scope)));
  node.in.assign(g.inputs(n).begin(), g.inputs(n).end());
  node.out.assign(g.outputs(n).begin(), g.outputs(n).end());
  for (const uint32_t v : node.in)
    node.launch.state.push_back(v != UINT32_MAX && g.val(v).role == DVT_VAL_STATE
                                    ? static_cast<int32_t>(g.val(v).bind)
                                    : -1);
  node.launch.in.resize(node.in.size());
  node.launch.out.resize(node.out.size());
  if (node.op->prepare) node.prepared = node.op->prepare(g, n, preparation_);
  return node;
}

void Program::place_values(const GraphView& g, const Weights& weights) {
  arrays_.resize(g.n_vals());
  for (uint32_t v = 0; v < g.n_vals(); ++v) {
    const dvt_val& val = g.val(v);
    Array& a = arrays_[v];
    a.dtype = val.dtype == DVT_ACTIVATION ? uint32_t{DVT_F32} : val.dtype;
    a.ndim = val.ndim;
    if (val.name != 0) named_.emplace(g.str(val.name), v);
    if (val.role == DVT_VAL_STATE) continue;
    for (uint32_t d = 0; d < val.ndim; ++d) {
      const dvt_dim& dim = g.dim(val.dim0 + d);
      if (dim.sym == 0)
        a.dim[d] = dim.value;
      else
        sized_.push_back({v, d, g.size_of(dim)});
    }
    // A value that fusion took out has no place.
    if (val.role == DVT_VAL_COMPUTED && layout_.root[v] == v && layout_.offset[v] != UINT64_MAX)
      computed_.push_back(v);
    if (val.role != DVT_VAL_WEIGHT) continue;
    const auto it = weights.find(g.str(val.name));
    if (it == weights.end())
      throw Error("weight \"" + std::string(g.str(val.name)) + "\" was never bound", DVT_EINTERNAL);
    a.data = it->second.bytes.get();
    a.dtype = it->second.dtype;
  }
}

Program::~Program() {
  try {
    device_.use();
    device_.wait();
  } catch (const Error&) {  // the device is lost; so is what it still does
  }
}

uint64_t Program::submit(Call call, const dvt_batch& batch, std::span<const dvt_output> outs,
                         const dvt_sampling* sampling) {
  device_.use();
  check(batch, outs, sampling);
  find_sources(batch);
  call.check_cancelled();
  const auto logits = named_.find("logits");
  const uint32_t* mask = sampling ? sampling->mask : nullptr;
  const int64_t n_mask_words = mask ? (arrays_[logits->second].last() + 31) / 32 : 0;
  const StepShape shape = step_.shape(batch, mask != nullptr);
  InFlight& step = in_flight_[(ticket_ + 1) % kInFlight];
  finish(step);
  const bool has_moved = step_.send(batch, shape, sources_, mask, n_mask_words, step.tables);
  if (has_moved) recorded_.clear();
  run(shape, Step::has_few_shapes(batch), sampling != nullptr);
  ++ticket_;

  bool has_values = false;
  set_sizes({batch.n_tokens, batch.n_rows, batch.n_seqs});
  for (const dvt_output& out : outs) {
    const auto it = named_.find(to_view(out.name));
    if (it == named_.end()) {
      step.ids_to.emplace_back(out.data, batch.n_rows * sizeof(int32_t));
      continue;
    }
    has_values = true;
    const Array& a = arrays_[it->second];
    device_.copy_out(out.data, a.data, static_cast<uint64_t>(a.size()) * dtype_bytes(a.dtype));
  }
  if (sampling) device_.fetch(step.ids.get(), ids_.get(), batch.n_rows * sizeof(int32_t));
  device_.place(step.done);
  step.is_queued = true;
  if (has_values) finish(step);
  return ticket_;
}

void Program::wait(Call call, uint64_t ticket) {
  if (ticket > ticket_) throw Error("ticket " + std::to_string(ticket) + " was never given");
  device_.use();
  if (ticket + kInFlight > ticket_) finish(in_flight_[ticket % kInFlight]);
  call.check_cancelled();
}

// Also where nobody has waited for it, before its place is taken by another step.
void Program::finish(InFlight& step) {
  if (!std::exchange(step.is_queued, false)) return;
  const auto ids_to = std::exchange(step.ids_to, {});
  device_.wait(step.done);
  for (const auto& [to, n_bytes] : ids_to) std::memcpy(to, step.ids.get(), n_bytes);
}

// Launches read what changes from step to step from the device's memory, so that those of one shape are the same.
void Program::run(const StepShape& shape, bool has_few_shapes, bool samples) {
  set_sizes({shape.n_tokens, shape.n_rows, shape.n_seqs});
  bind_arrays();
  if (!has_few_shapes) return launch(samples);
  const LaunchKey key{shape, samples};
  auto known = recorded_.find(key);
  if (known == recorded_.end())
    known = recorded_.emplace(key, device_.record([&] { launch(samples); })).first;
  device_.replay(known->second);
}

void Program::launch(bool samples) {
  kernels::cuda::take_tokens(device_.stream(), step_.tokens(), step_.from(),
                             reinterpret_cast<int32_t*>(ids_.get()),
                             step_.tokens() ? step_.n_tokens() : 0, max_.rows);
  for (const auto& launch : preparation_.at_start) launch(step_);
  for (const Node& node : nodes_) node.op->launch(node.launch);
  if (!samples) return;
  const Array& logits = arrays_[named_.find("logits")->second];
  kernels::cuda::argmax(device_.stream(), reinterpret_cast<int32_t*>(ids_.get()), logits.f32(),
                        step_.mask(), step_.shape().n_rows, logits.last());
}

void Program::set_sizes(const Sizes& sizes) {
  for (const SizedDim& s : sized_) arrays_[s.val].dim[s.dim] = sizes.*s.size;
}

// Before anything is launched: a step that is refused changes nothing.
void Program::check(const dvt_batch& batch, std::span<const dvt_output> outs,
                    const dvt_sampling* sampling) {
  if (batch.n_tokens > max_.tokens || batch.n_rows > max_.rows || batch.n_seqs > max_.seqs)
    throw Error("the batch has " + std::to_string(batch.n_tokens) + " tokens, " +
                std::to_string(batch.n_rows) + " rows and " + std::to_string(batch.n_seqs) +
                " sequences, compiled for " + std::to_string(max_.tokens) + ", " +
                std::to_string(max_.rows) + " and " + std::to_string(max_.seqs));
  set_sizes({batch.n_tokens, batch.n_rows, batch.n_seqs});
  if (sampling && sampling->kind != DVT_SAMPLE_ARGMAX)
    throw Error("this backend samples only the argmax", DVT_EUNSUPPORTED);
  if (sampling && !named_.contains("logits"))
    throw Error("the graph has no value \"logits\" to sample from");
  for (const dvt_output& out : outs) {
    const std::string name(to_view(out.name));
    const auto it = named_.find(name);
    if (it == named_.end() && name != "ids")
      throw Error("the graph has no value \"" + name + "\" to read");
    if (it != named_.end() && !layout_.kept[it->second])
      throw Error("\"" + name + "\" is no output and was not observed when the graph was compiled");
    const uint64_t need = it == named_.end() ? batch.n_rows * sizeof(int32_t)
                                             : static_cast<uint64_t>(arrays_[it->second].size()) *
                                                   dtype_bytes(arrays_[it->second].dtype);
    if (out.bytes < need)
      throw Error("output \"" + name + "\" needs " + std::to_string(need) + " bytes, got " +
                  std::to_string(out.bytes));
  }
}

void Program::find_sources(const dvt_batch& batch) {
  sources_.assign(batch.n_tokens, -1);
  for (uint32_t i = 0; batch.token_from && i < batch.n_tokens; ++i) {
    const dvt_token_from& from = batch.token_from[i];
    if (from.ticket == 0) continue;
    if (from.ticket > ticket_ || from.ticket + kInFlight <= ticket_ || from.row >= max_.rows)
      throw Error("a token names row " + std::to_string(from.row) + " of ticket " +
                  std::to_string(from.ticket) + ", whose ids are not kept");
    sources_[i] =
        static_cast<int32_t>((ticket_ - from.ticket) * static_cast<uint64_t>(max_.rows) + from.row);
  }
}

void Program::bind_arrays() {
  const auto feed = [this](std::string_view input, const int32_t* data) {
    if (const auto it = named_.find(input); it != named_.end())
      arrays_[it->second].data = const_cast<int32_t*>(data);
  };
  feed("tokens", step_.tokens());
  feed("positions", step_.positions());
  feed("out_rows", step_.out_rows());
  for (const uint32_t v : computed_) arrays_[v].data = workspace_.get() + layout_.offset[v];
  for (const auto& [view, of] : views_) arrays_[view].data = arrays_[of].data;
  for (Node& node : nodes_) {
    for (size_t i = 0; i < node.in.size(); ++i)
      node.launch.in[i] = node.in[i] == UINT32_MAX ? Array{} : arrays_[node.in[i]];
    for (size_t i = 0; i < node.out.size(); ++i) node.launch.out[i] = arrays_[node.out[i]];
    node.launch.step = &step_;
    node.launch.states = &states_;
    node.launch.scratch = scratch_.get();
    node.launch.counters = reinterpret_cast<uint32_t*>(counters_.get());
    node.launch.prepared = &node.prepared;
  }
}

}  // namespace dovetail::cuda
