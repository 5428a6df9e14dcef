#include "program.hpp"

#include <algorithm>
#include <set>

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
  return static_cast<uint64_t>(max.rows) * sizeof(int32_t);
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
      step_(device, tile_lens_of(GraphView(&graph_)), groups_of(states)),
      tokens_(options.max_tokens) {
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
  for (auto& ids : history_) ids.resize(options.max_rows);
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

uint64_t Program::submit(Call call, const dvt_batch& batch, std::span<const dvt_output> outs,
                         const dvt_sampling* sampling) {
  device_.use();
  for (const SizedDim& s : sized_)
    arrays_[s.val].dim[s.dim] = Sizes{batch.n_tokens, batch.n_rows, batch.n_seqs}.*s.size;
  check(batch, outs, sampling);
  call.check_cancelled();
  const auto logits = named_.find("logits");
  const int64_t n_mask_words =
      sampling && sampling->mask ? (arrays_[logits->second].last() + 31) / 32 : 0;
  step_.send(batch, resolve_tokens(batch), sampling ? sampling->mask : nullptr, n_mask_words);
  bind_arrays();
  for (const auto& launch : preparation_.at_start) launch(step_);
  for (const Node& node : nodes_) node.op->launch(node.launch);

  ++ticket_;
  std::vector<int32_t>& ids = history_[ticket_ % kHistory];
  if (sampling) sample(batch, ids);
  for (const dvt_output& out : outs)
    if (const auto it = named_.find(to_view(out.name)); it != named_.end()) {
      const Array& a = arrays_[it->second];
      device_.copy_out(out.data, a.data, static_cast<uint64_t>(a.size()) * dtype_bytes(a.dtype));
    }
  device_.wait();
  for (const dvt_output& out : outs)
    if (to_view(out.name) == "ids")
      std::memcpy(out.data, ids.data(), batch.n_rows * sizeof(int32_t));
  call.check_cancelled();
  return ticket_;
}

void Program::wait(Call, uint64_t ticket) const {
  if (ticket > ticket_) throw Error("ticket " + std::to_string(ticket) + " was never given");
}

// Before anything is launched: a step that is refused changes nothing.
void Program::check(const dvt_batch& batch, std::span<const dvt_output> outs,
                    const dvt_sampling* sampling) {
  if (batch.n_tokens > max_.tokens || batch.n_rows > max_.rows || batch.n_seqs > max_.seqs)
    throw Error("the batch has " + std::to_string(batch.n_tokens) + " tokens, " +
                std::to_string(batch.n_rows) + " rows and " + std::to_string(batch.n_seqs) +
                " sequences, compiled for " + std::to_string(max_.tokens) + ", " +
                std::to_string(max_.rows) + " and " + std::to_string(max_.seqs));
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

const int32_t* Program::resolve_tokens(const dvt_batch& batch) {
  if (!batch.token_from) return batch.tokens;
  for (uint32_t i = 0; i < batch.n_tokens; ++i) {
    const dvt_token_from& from = batch.token_from[i];
    tokens_[i] = from.ticket == 0 ? batch.tokens[i] : earlier_id(from);
  }
  return tokens_.data();
}
int32_t Program::earlier_id(const dvt_token_from& from) const {
  if (from.ticket > ticket_ || from.ticket + kHistory <= ticket_ || from.row >= history_[0].size())
    throw Error("a token names row " + std::to_string(from.row) + " of ticket " +
                std::to_string(from.ticket) + ", whose ids are not kept");
  return std::max(0, history_[from.ticket % kHistory][from.row]);
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

void Program::sample(const dvt_batch& batch, std::vector<int32_t>& ids) {
  const Array& logits = arrays_[named_.find("logits")->second];
  kernels::cuda::argmax(device_.stream(), reinterpret_cast<int32_t*>(ids_.get()), logits.f32(),
                        step_.mask(), batch.n_rows, logits.last());
  device_.copy_out(ids.data(), ids_.get(), batch.n_rows * sizeof(int32_t));
}

}  // namespace dovetail::cuda
