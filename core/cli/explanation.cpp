#include "core/cli/explanation.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>

namespace dovetail::core {
namespace {

using Runs = Placement::Runs;

// Ops of one name that run in one way for one reason.
struct Group {
  std::string op, reason;
  Runs runs;
  size_t n = 0;
  std::vector<std::string> scopes;  // each once, in order
};

std::vector<Group> groups_of(const std::vector<Placement>& placements) {
  std::vector<Group> out;
  for (const Placement& p : placements) {
    auto it = std::find_if(out.begin(), out.end(), [&p](const Group& g) {
      return g.op == p.op && g.runs == p.runs && g.reason == p.reason;
    });
    if (it == out.end()) it = out.insert(out.end(), {p.op, p.reason, p.runs, 0, {}});
    ++it->n;
    if (std::find(it->scopes.begin(), it->scopes.end(), p.scope) == it->scopes.end())
      it->scopes.push_back(p.scope);
  }
  return out;
}

size_t count(const std::vector<Placement>& placements, Runs runs) {
  return static_cast<size_t>(std::count_if(placements.begin(), placements.end(),
                                           [runs](const Placement& p) { return p.runs == runs; }));
}

const char* key_of(Runs runs) {
  constexpr const char* kKeys[] = {"natively", "slowly", "by definition"};
  return kKeys[static_cast<size_t>(runs)];
}

std::string how(const Group& g) {
  if (g.runs == Runs::kNatively) return "natively";
  return (g.runs == Runs::kSlowly ? "natively, but slowly: " : "by its definition in core ops: ") +
         g.reason;
}

std::string summary(const std::vector<Placement>& all) {
  const size_t n_defined = count(all, Runs::kByDefinition), n_slow = count(all, Runs::kSlowly),
               n_native = all.size() - n_defined;
  std::string out = n_defined == 0 ? "all " + std::to_string(all.size()) + " ops run natively"
                                   : std::to_string(n_native) + " of " +
                                         std::to_string(all.size()) + " ops run natively, " +
                                         std::to_string(n_defined) + " by their definition";
  if (n_slow > 0) out += "; " + std::to_string(n_slow) + " of the native ones are slow";
  return out;
}

// The first number between points of a scope, and what stands around it.
struct NumberedScope {
  std::string before, after;
  std::optional<int> number;
};
NumberedScope split(const std::string& scope) {
  for (size_t begin = 0; begin < scope.size();) {
    const size_t end = std::min(scope.find('.', begin), scope.size());
    int number = 0;
    const auto [stop, error] = std::from_chars(scope.data() + begin, scope.data() + end, number);
    if (error == std::errc() && stop == scope.data() + end)
      return {scope.substr(0, begin), scope.substr(end), number};
    begin = end + 1;
  }
  return {scope, "", {}};
}

std::string ranges_text(const std::set<int>& numbers) {
  std::string out;
  for (auto it = numbers.begin(); it != numbers.end();) {
    const int first = *it;
    int last = first;
    while (++it != numbers.end() && *it == last + 1) last = *it;
    out += (out.empty() ? "" : ",") + std::to_string(first) +
           (last > first ? "-" + std::to_string(last) : "");
  }
  return out;
}

}  // namespace

std::string scopes_text(const std::vector<std::string>& scopes) {
  std::vector<std::pair<NumberedScope, std::set<int>>> kinds;
  for (const std::string& scope : scopes) {
    const NumberedScope s = split(scope);
    auto it = std::find_if(kinds.begin(), kinds.end(), [&s](const auto& kind) {
      const NumberedScope& k = kind.first;
      return k.before == s.before && k.after == s.after &&
             k.number.has_value() == s.number.has_value();
    });
    if (it == kinds.end()) it = kinds.insert(kinds.end(), {s, {}});
    if (s.number) it->second.insert(*s.number);
  }
  std::string out;
  for (const auto& [scope, numbers] : kinds)
    out += (out.empty() ? "" : ", ") + scope.before + ranges_text(numbers) + scope.after;
  return out;
}

std::string explanation_text(const Model& model) {
  const std::vector<Group> groups = groups_of(model.placements());
  std::string out = "backend " + model.backend_name() + " (" + model.backend_variant() +
                    "): " + summary(model.placements()) + "\n";
  size_t op_width = 0, n_width = 0, where_width = 0;
  for (const Group& g : groups) {
    op_width = std::max(op_width, g.op.size());
    n_width = std::max(n_width, std::to_string(g.n).size());
    where_width = std::max(where_width, scopes_text(g.scopes).size());
  }
  for (const Group& g : groups) {
    const std::string n = std::to_string(g.n), where = scopes_text(g.scopes);
    out += "  " + g.op + std::string(op_width - g.op.size() + 2 + n_width - n.size(), ' ') + n +
           "  " + where + std::string(where_width - where.size() + 2, ' ') + how(g) + "\n";
  }
  return out;
}

Node explanation_node(const Model& model) {
  const std::vector<Placement>& all = model.placements();
  const auto integer = [](size_t n) { return Node::make_int(static_cast<int64_t>(n)); };
  Node out = Node::make_map(), ops = Node::make_list();
  out.set("backend", Node::make_string(model.backend_name()));
  out.set("variant", Node::make_string(model.backend_variant()));
  out.set("ops", integer(all.size()));
  out.set("by_definition", integer(count(all, Runs::kByDefinition)));
  out.set("slow", integer(count(all, Runs::kSlowly)));
  for (const Group& g : groups_of(all)) {
    Node entry = Node::make_map(), scopes = Node::make_list();
    for (const std::string& scope : g.scopes) scopes.items().push_back(Node::make_string(scope));
    entry.set("op", Node::make_string(g.op));
    entry.set("count", integer(g.n));
    entry.set("runs", Node::make_string(key_of(g.runs)));
    entry.set("reason", g.reason.empty() ? Node() : Node::make_string(g.reason));
    entry.set("scopes", std::move(scopes));
    ops.items().push_back(std::move(entry));
  }
  out.set("placement", std::move(ops));
  return out;
}

}  // namespace dovetail::core
