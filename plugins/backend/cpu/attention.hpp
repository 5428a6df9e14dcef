// The ops over cached keys and values: how their work is cut among lanes.
#pragma once

#include <dovetail/host_program.hpp>

namespace dovetail::cpu {

/// cache_write and attend cut their own work; attention is both.
void run_cache_write(const NodeRun& n, Lane lane, uint32_t phase);
std::any prepare_attend(const GraphView& g, const dvt_node& n, Preparation& program);
void run_attend(const NodeRun& n, Lane lane, uint32_t phase);

/// Lanes own kv heads where there are as many for each; else they meet between writing and attending,
/// and a step of few tokens is cut by heads and chunks of keys.
std::any prepare_attention(const GraphView& g, const dvt_node& n, Preparation& program);
CutRule cut_attention(const GraphView& g, const dvt_node& n);
void run_attention(const NodeRun& n, Lane lane, uint32_t phase);

/// Memory that programs of this graph take for the parts of attention, beyond their workspace.
uint64_t attention_bytes(const dvt_graph& graph, uint32_t n_lanes);

}  // namespace dovetail::cpu
