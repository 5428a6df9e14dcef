// How a program's nodes are cut among lanes, and where lanes must meet.
//
// A value [rows, ..] has a width: the product of its dims but the first. Where an op's columns depend
// on the same columns of its inputs alone (an addition, the heads of an attention), one lane can own
// the same columns from node to node, and no lane waits for another. Such values form groups; each
// group is cut into equal units of columns, dealt to lanes in order. What reads a whole row (a linear
// layer, a norm) makes the lanes meet first, unless every lane made the row for itself: with few rows
// a norm is cheaper computed by all than waited for.
// Where lanes meet never changes a value: an op's result for a row and a column has one order.
#pragma once

#include <dovetail/graph_view.hpp>

#include <algorithm>
#include <numeric>
#include <optional>
#include <string_view>
#include <vector>

namespace dovetail {

/// One lane of a step; its part of n units is range(n, grain).
struct Lane {
  uint32_t index = 0, count = 1;

  struct Range {
    int64_t begin, end;
  };
  /// A contiguous part of [0, n), cut at multiples of grain.
  Range range(int64_t n, int64_t grain = 1) const {
    const int64_t units = (n + grain - 1) / grain;
    const int64_t begin = units * index / count * grain, end = units * (index + 1) / count * grain;
    return {std::min(begin, n), std::min(end, n)};
  }
};

/// What a node says of itself.
struct CutRule {
  // Its columns can be dealt in this many equal parts, or in a divisor; 0: it cuts itself.
  int64_t units = 0;
  uint32_t by_column = 0;   // bits of the inputs of which a lane reads the columns that it writes
  bool can_copy = false;    // every lane may compute all of the (only) output for itself
  uint32_t reads_copy = 0;  // bits of the inputs that may be a copy per lane
  int32_t in_place =
      -1;  // the input whose memory the (only) output takes; nothing may read it later
};

/// Whether a node does nothing but give its input another shape.
inline bool is_alias(const GraphView& g, const dvt_node& n) {
  return g.op_name(n) == "reshape";
}

/// Rows up to which copies are made, by the sizes T and R.
inline constexpr int64_t kFewRows = 4;

class Cuts {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  /// `rules` by node; `root` gives for each value the one whose memory it shares; `kept` values must
  /// be in one place when the step has run.
  Cuts(const GraphView& g, std::vector<CutRule> rules, const std::vector<uint32_t>& root,
       const std::vector<bool>& kept, uint32_t n_lanes)
      : rules_(std::move(rules)),
        n_lanes_(n_lanes),
        parent_(g.n_vals()),
        units_(g.n_vals(), 0),
        copy_(g.n_vals(), false) {
    std::iota(parent_.begin(), parent_.end(), 0);
    for (uint64_t i = 0; i < g.n_nodes(); ++i) {
      const dvt_node& node = g.node(i);
      const uint32_t out = g.outputs(node).empty() ? kNone : g.outputs(node)[0];
      if (out == kNone) continue;
      if (is_alias(g, node) && width(g, out) == width(g, g.inputs(node)[0]))
        parent_[find(out)] = find(g.inputs(node)[0]);
      else if (rules_[i].units > 0)
        join(g, node, rules_[i]);
    }
    if (n_lanes > 1) choose_copies(g, root, kept);
  }

  /// Units of a node's columns; 0 where the node cuts itself.
  int64_t units(const GraphView& g, uint64_t node) const {
    return rules_[node].units == 0 ? 0 : units_[find(g.outputs(g.node(node))[0])];
  }
  /// Whether a lane reads just its own columns of input k of a node.
  bool by_column(uint64_t node, size_t k) const {
    return k < 32 && (rules_[node].by_column >> k & 1u);
  }
  /// The group of a value, or kNone if its columns belong to no lane.
  uint32_t group(uint32_t v) const { return units_[find(v)] > 0 ? find(v) : kNone; }
  /// Whether lanes have a copy each of this value when its rows are few.
  bool is_copy(uint32_t v) const { return copy_[v]; }

  static int64_t width(const GraphView& g, uint32_t v) {
    int64_t n = 1;
    for (uint32_t d = 1; d < g.val(v).ndim; ++d) n *= g.dim(g.val(v).dim0 + d).value;
    return n;
  }
  /// Whether the rows of a value are counted by this symbol ("T", "R").
  static bool has_rows(const GraphView& g, uint32_t v, std::string_view symbol) {
    return g.val(v).ndim > 0 && g.str(g.dim(g.val(v).dim0).sym) == symbol;
  }

 private:
  uint32_t find(uint32_t v) const {
    while (parent_[v] != v) v = parent_[v];
    return v;
  }
  // A cut into few units must be even; one into many is nearly so.
  bool is_even(int64_t units) const {
    return units > 0 && (units % n_lanes_ == 0 || units >= 16 * int64_t{n_lanes_});
  }

  // Inputs of no group are there for all: lanes meet before they are read.
  void join(const GraphView& g, const dvt_node& node, CutRule& rule) {
    const uint32_t out = g.outputs(node)[0];
    std::vector<uint32_t> grouped;
    int64_t units = rule.units;
    for (uint32_t k = 0; k < node.n_in && k < 32; ++k) {
      const uint32_t in = g.inputs(node)[k];
      if (!(rule.by_column >> k & 1u) || units_[find(in)] == 0) continue;
      grouped.push_back(in);
      units = std::gcd(units, units_[find(in)]);
    }
    if (!is_even(units)) {
      if (!is_even(rule.units)) rule.units = 0;
      units_[out] = rule.units;
      return;
    }
    for (const uint32_t in : grouped) parent_[find(in)] = out;
    units_[out] = units;
  }

  // A value may be a copy per lane where all who read it can take one, and nobody wants it afterwards.
  void choose_copies(const GraphView& g, const std::vector<uint32_t>& root,
                     const std::vector<bool>& kept) {
    for (uint64_t i = 0; i < g.n_nodes(); ++i)
      if (rules_[i].can_copy && g.node(i).n_out == 1 &&
          (has_rows(g, g.outputs(g.node(i))[0], "T") || has_rows(g, g.outputs(g.node(i))[0], "R")))
        copy_[g.outputs(g.node(i))[0]] = true;
    for (uint32_t v = 0; v < g.n_vals(); ++v)
      if (kept[v] || root[v] != v) copy_[root[v]] = false;
    for (uint64_t i = 0; i < g.n_nodes(); ++i)
      for (uint32_t k = 0; k < g.node(i).n_in; ++k) {
        const uint32_t v = g.inputs(g.node(i))[k];
        if (v != kNone && !(k < 32 && rules_[i].reads_copy >> k & 1u)) copy_[root[v]] = false;
      }
  }

  std::vector<CutRule> rules_;
  uint32_t n_lanes_;
  mutable std::vector<uint32_t> parent_;  // of each value, towards its group's first
  std::vector<int64_t> units_;            // of a group, at its first
  std::vector<bool> copy_;
};

/// Where lanes meet: before a node that touches memory which another lane may have written, or may
/// still read, since they last met.
class Barriers {
 public:
  /// Memory of the workspace; group kNone: a lane may touch any part.
  struct Access {
    uint64_t begin = 0, end = 0;
    uint32_t group = Cuts::kNone;
    int64_t width = 0;
  };
  /// Notes what a node reads and writes; true if lanes must meet before it.
  bool before(const std::vector<Access>& reads, const std::vector<Access>& writes,
              const std::vector<int32_t>& states) {
    bool meet = false;
    for (const Access& r : reads) meet = meet || hits(written_, r);
    for (const Access& w : writes) meet = meet || hits(written_, w) || hits(read_, w);
    for (int32_t s : states)
      meet = meet || std::find(states_.begin(), states_.end(), s) != states_.end();
    if (meet) clear();
    read_.insert(read_.end(), reads.begin(), reads.end());
    written_.insert(written_.end(), writes.begin(), writes.end());
    states_.insert(states_.end(), states.begin(), states.end());
    return meet;
  }
  /// Lanes have met inside a node.
  void clear() {
    read_.clear();
    written_.clear();
    states_.clear();
  }

 private:
  static bool hits(const std::vector<Access>& list, const Access& a) {
    return std::any_of(list.begin(), list.end(), [&a](const Access& b) {
      const bool same_owner = a.group != Cuts::kNone && a.group == b.group && a.begin == b.begin &&
                              a.end == b.end && a.width == b.width;
      return a.begin < b.end && b.begin < a.end && !same_owner;
    });
  }
  std::vector<Access> read_, written_;
  std::vector<int32_t> states_;
};

}  // namespace dovetail
