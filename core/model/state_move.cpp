#include "core/model/state_move.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "core/model/state_rows.hpp"
#include "core/plugin/host.hpp"

namespace dovetail::core {
namespace {

// Bytes of rows that are on their way at once, if a block has no more.
constexpr uint64_t kPieceBytes = uint64_t{4} << 20;

// One state on its way: its rows here and there, and how many tokens a row stands for.
struct Route {
  uint32_t state = 0;
  RowForm from, to;
  bool is_paged = false;
  size_t group = 0;  // index of its page tables
  uint32_t rate = 1;
  std::string name;

  uint64_t n_rows(const SequenceCache& sequence) const {
    return is_paged ? (uint64_t{sequence.n_cached} + rate - 1) / rate : 1;
  }
};

Result<std::vector<Route>> routes_of(const StateHolder& from, const StateHolder& to,
                                     std::span<const dvt_state_spec> states,
                                     std::span<const CacheGroup> groups) {
  std::vector<Route> routes;
  for (const dvt_state_spec& spec : states) {
    Route route;
    route.state = static_cast<uint32_t>(routes.size());
    DVT_TRY(route.from, row_form(spec, from.kv_dtype));
    DVT_TRY(route.to, row_form(spec, to.kv_dtype));
    route.is_paged = spec.kind != DVT_STATE_FIXED;
    route.rate = std::max(1u, spec.rate);
    route.name = "state \"" + std::string(text_of(spec.name)) + "\"";
    const auto group = std::find_if(groups.begin(), groups.end(),
                                    [&](const CacheGroup& g) { return g.number == spec.group; });
    if (route.is_paged && group == groups.end())
      return internal_error(route.name + " is of group " + std::to_string(spec.group) +
                            ", which has no page tables");
    route.group = static_cast<size_t>(group - groups.begin());
    routes.push_back(std::move(route));
  }
  return routes;
}

class Mover {
 public:
  Mover(const StateHolder& from, const StateHolder& to, uint32_t block_len, const uint32_t* cancel)
      : from_(from), to_(to), block_len_(block_len), call_(cancel) {}

  /// Rows [row0, row0 + n) of a state.
  Status move(const Route& route, const SequenceCache& sequence, uint64_t row0, uint64_t n) {
    here_.resize(n * route.from.bytes());
    dvt_chunk chunk{};
    chunk.struct_size = sizeof chunk;
    chunk.state = route.state;
    chunk.slot = sequence.slot;
    chunk.row0 = row0;
    chunk.rows = n;
    chunk.page_len = block_len_;
    if (route.is_paged) {
      chunk.n_pages = static_cast<uint32_t>(sequence.tables[route.group].size());
      chunk.pages = sequence.tables[route.group].data();
    }
    chunk.data = here_.data();
    chunk.bytes = here_.size();
    DVT_TRY(call_.check(from_.table.export_state(from_.context, call_, &chunk)).in(route.name));
    if (!(route.to == route.from)) {
      there_.resize(n * route.to.bytes());
      DVT_TRY(convert_rows(route.to, there_.data(), route.from, here_.data(), n).in(route.name));
      chunk.data = there_.data();
      chunk.bytes = there_.size();
    }
    return call_.check(to_.table.import_state(to_.context, call_, &chunk)).in(route.name);
  }
  /// Whole blocks of a state, of about kPieceBytes; a FIXED one has but one row.
  uint64_t rows_of_a_piece(const Route& route) const {
    const uint64_t block_bytes = std::max<uint64_t>(1, route.from.bytes() * block_len_);
    return std::max<uint64_t>(1, kPieceBytes / block_bytes) * block_len_;
  }

 private:
  const StateHolder& from_;
  const StateHolder& to_;
  uint32_t block_len_;
  CallFrame call_;
  std::vector<std::byte> here_, there_;
};

}  // namespace

Result<StateMove> move_states(const StateHolder& from, const StateHolder& to,
                              std::span<const dvt_state_spec> states,
                              std::span<const SequenceCache* const> sequences,
                              std::span<const CacheGroup> groups, uint32_t block_len,
                              const uint32_t* cancel, const ProgressFn& progress) {
  const dvt_backend_v1 *const source = &from.table, *const target = &to.table;
  if (!DVT_HAS(source, export_state))
    return unsupported("the backend that has the states does not export them");
  if (!DVT_HAS(target, import_state))
    return unsupported("the backend to go on with does not import states");
  DVT_TRY(const std::vector<Route> routes, routes_of(from, to, states, groups));
  StateMove moved;
  uint64_t total = 0;
  for (const SequenceCache* s : sequences) {
    ++moved.n_sequences;
    moved.n_tokens += s->n_cached;
    for (const Route& route : routes) total += route.n_rows(*s) * route.from.bytes();
  }
  Mover mover(from, to, block_len, cancel);
  for (const SequenceCache* s : sequences)
    for (const Route& route : routes) {
      const uint64_t n_rows = route.n_rows(*s), piece = mover.rows_of_a_piece(route);
      for (uint64_t row = 0; row < n_rows; row += piece) {
        if (cancel && __atomic_load_n(cancel, __ATOMIC_RELAXED))
          return Status(Code::kCancelled, "cancelled while states move");
        const uint64_t n = std::min(piece, n_rows - row);
        DVT_TRY(mover.move(route, *s, row, n));
        moved.n_bytes += n * route.from.bytes();
        if (progress) progress(moved.n_bytes, total, "moving states");
      }
    }
  return moved;
}

}  // namespace dovetail::core
