// Where the values of a program live in its workspace, what lanes own, and where they meet.
#pragma once

#include <dovetail/host_cut.hpp>
#include <dovetail/host_states.hpp>

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <vector>

namespace dovetail {

/// How a node says that lanes may share its work.
using CutOf = std::function<CutRule(const GraphView&, const dvt_node&)>;

/// A value of which each lane has a copy in the modes of a bit.
struct LaneCopy {
  uint32_t val, place, mode_bit;
};
/// What lanes own: columns of nodes, copies of values.
struct Shares {
  Cuts cuts;
  std::vector<LaneCopy> copies;
  uint64_t place_bytes, lane_bytes;  // of a copy's place; of all places of a lane

  bool is_copy(uint32_t v, uint32_t mode) const {
    return std::any_of(copies.begin(), copies.end(),
                       [&](const LaneCopy& c) { return c.val == v && (mode & c.mode_bit); });
  }
};
/// Where values live in the workspace.
struct Layout {
  std::vector<uint64_t> offset;   // by value; UINT64_MAX: not in the workspace
  std::vector<uint32_t> root;     // the value whose memory it shares, or itself
  std::vector<int64_t> last_use;  // node, of roots
  std::vector<bool> kept;         // wanted when the step has run
  std::optional<Shares> shares;
  uint64_t values_bytes = 0, total = 0;  // of the values; with the lanes' copies
};

/// Memory of a value: bytes of the workspace, or an identity.
struct Region {
  uint64_t begin, end;
};

/// Modes of a step: bit 0, few tokens; bit 1, few rows of logits (at most kFewRows).
inline constexpr uint32_t kFewOfAll = 3;

inline uint64_t element_bytes(uint32_t dtype) {
  return dtype == DVT_ACTIVATION ? sizeof(float) : dtype_bytes(dtype);
}

/// Whether lanes own columns in a mode. With many tokens meeting costs nothing beside the work, and
/// nodes deal it out as lanes come for it: processors need not be equally fast.
constexpr bool owns_columns(uint32_t mode) {
  return (mode & 1u) != 0;
}

/// Before which nodes lanes meet in a mode, where `region_of` says what memory a value is in.
template <class RegionOf>
std::vector<bool> meetings(const GraphView& g, const Shares& shares, uint32_t mode,
                           RegionOf region_of) {
  Barriers barriers;
  std::vector<bool> out(g.n_nodes(), false);
  for (uint64_t i = 0; i < g.n_nodes(); ++i) {
    const dvt_node& node = g.node(i);
    if (is_alias(g, node)) continue;
    const bool owned = owns_columns(mode) && shares.cuts.units(g, i) > 0;
    const uint32_t group = owned ? shares.cuts.group(g.outputs(node)[0]) : Cuts::kNone;
    std::vector<Barriers::Access> reads, writes;
    std::vector<int32_t> states;
    const auto access = [&](uint32_t v, bool by_column) -> Barriers::Access {
      const Region r = region_of(v);
      return {r.begin, r.end, by_column && group == shares.cuts.group(v) ? group : Cuts::kNone,
              Cuts::width(g, v)};
    };
    for (size_t k = 0; k < node.n_in; ++k) {
      const uint32_t v = g.inputs(node)[k];
      if (v == UINT32_MAX) continue;
      if (g.val(v).role == DVT_VAL_STATE) states.push_back(static_cast<int32_t>(g.val(v).bind));
      if (g.val(v).role == DVT_VAL_COMPUTED && !shares.is_copy(v, mode))
        reads.push_back(access(v, shares.cuts.by_column(i, k)));
    }
    for (uint32_t v : g.outputs(node))
      if (!shares.is_copy(v, mode)) writes.push_back(access(v, true));
    out[i] = barriers.before(reads, writes, states);
  }
  return out;
}

class LayoutMaker {
 public:
  /// Where each value lives, first fit. A place is taken again once the lanes have met after its last
  /// use, so that sharing memory never makes them meet.
  static Layout make(const GraphView& g, const Sizes& max, const dvt_compile_options& options,
                     const CutOf& cut_of, uint32_t n_lanes) {
    std::vector<CutRule> rules(g.n_nodes());
    for (uint64_t i = 0; i < g.n_nodes(); ++i)
      if (g.op(g.node(i)).tier != DVT_TIER_PLUGIN) rules[i] = cut_of(g, g.node(i));
    Layout layout = find_lives(g, options, rules);
    layout.shares.emplace(share_out(g, std::move(rules), layout, n_lanes));
    std::vector<bool> meets(g.n_nodes(), true);  // one lane is always in step with itself
    if (n_lanes > 1)
      meets = meetings(g, *layout.shares, kFewOfAll, [&layout](uint32_t v) {
        return Region{layout.root[v], layout.root[v] + 1};
      });
    struct Block {
      uint64_t offset, bytes;
      int64_t last;
    };
    std::vector<Block> taken;
    layout.offset.assign(g.n_vals(), UINT64_MAX);
    for (uint64_t i = 0; i < g.n_nodes(); ++i) {
      if (meets[i])
        std::erase_if(taken, [i](const Block& b) { return b.last < static_cast<int64_t>(i); });
      for (uint32_t v : g.outputs(g.node(i))) {
        if (layout.root[v] != v) continue;
        const uint64_t bytes =
            (static_cast<uint64_t>(g.elements(v, max)) * element_bytes(g.val(v).dtype) + 63) / 64 *
            64;
        std::sort(taken.begin(), taken.end(),
                  [](const Block& a, const Block& b) { return a.offset < b.offset; });
        uint64_t at = 0;
        for (const Block& b : taken) {
          if (at + bytes <= b.offset) break;
          at = std::max(at, b.offset + b.bytes);
        }
        layout.offset[v] = at;
        layout.values_bytes = std::max(layout.values_bytes, at + bytes);
        taken.push_back({at, bytes, layout.last_use[v]});
      }
    }
    for (uint32_t v = 0; v < g.n_vals(); ++v) layout.offset[v] = layout.offset[layout.root[v]];
    layout.total = layout.values_bytes + layout.shares->lane_bytes * n_lanes;
    return layout;
  }

  /// Which values share memory, and until when they are read; `rules` by node, or none.
  static Layout find_lives(const GraphView& g, const dvt_compile_options& options,
                           const std::vector<CutRule>& rules = {}) {
    Layout layout;
    layout.root.resize(g.n_vals());
    std::iota(layout.root.begin(), layout.root.end(), 0);
    layout.last_use.assign(g.n_vals(), -1);
    layout.kept.resize(g.n_vals());
    for (uint64_t i = 0; i < g.n_nodes(); ++i) {
      const dvt_node& node = g.node(i);
      for (uint32_t v : g.inputs(node))
        if (v != UINT32_MAX) layout.last_use[layout.root[v]] = static_cast<int64_t>(i);
      for (uint32_t v : g.outputs(node)) {
        const int32_t shared = is_alias(g, node) ? 0 : rules.empty() ? -1 : rules[i].in_place;
        if (shared >= 0) layout.root[v] = layout.root[g.inputs(node)[static_cast<size_t>(shared)]];
        layout.last_use[layout.root[v]] =
            std::max(layout.last_use[layout.root[v]], static_cast<int64_t>(i));
      }
    }
    for (uint32_t v = 0; v < g.n_vals(); ++v)
      if (is_kept(g.val(v), options, g)) {
        layout.last_use[layout.root[v]] = static_cast<int64_t>(g.n_nodes());
        layout.kept[v] = true;
      }
    return layout;
  }

 private:
  static bool is_kept(const dvt_val& v, const dvt_compile_options& options, const GraphView& g) {
    if (v.flags & DVT_VALF_OUTPUT) return true;
    for (uint64_t i = 0; i < options.n_observed; ++i)
      if (v.name != 0 && g.str(v.name) == to_view(options.observed[i])) return true;
    return false;
  }

  // How nodes are cut, and the lanes' own copies of values with few rows: places are shared by values
  // that never live at the same time.
  static Shares share_out(const GraphView& g, std::vector<CutRule> rules, const Layout& layout,
                          uint32_t n_lanes) {
    if (n_lanes == 1) rules.assign(g.n_nodes(), {});
    Shares shares{Cuts(g, std::move(rules), layout.root, layout.kept, n_lanes), {}, 0, 0};
    std::vector<int64_t> busy_until;  // by place
    for (uint64_t i = 0; i < g.n_nodes(); ++i) {
      const dvt_node& node = g.node(i);
      if (node.n_out != 1 || !shares.cuts.is_copy(g.outputs(node)[0])) continue;
      const uint32_t v = g.outputs(node)[0];
      const auto free = std::find_if(busy_until.begin(), busy_until.end(), [i](int64_t until) {
        return until < static_cast<int64_t>(i);
      });
      const auto place = static_cast<uint32_t>(free - busy_until.begin());
      if (free == busy_until.end()) busy_until.push_back(0);
      busy_until[place] = layout.last_use[v];
      shares.place_bytes = std::max(
          shares.place_bytes,
          (static_cast<uint64_t>(kFewRows * Cuts::width(g, v)) * element_bytes(g.val(v).dtype) +
           63) /
              64 * 64);
      shares.copies.push_back({v, place, Cuts::has_rows(g, v, "T") ? 1u : 2u});
    }
    shares.lane_bytes = shares.place_bytes * busy_until.size();
    return shares;
  }
};

}  // namespace dovetail
