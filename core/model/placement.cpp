#include "core/model/placement.hpp"

#include <algorithm>

#include "core/graph/builder.hpp"
#include "core/plugin/call_frame.hpp"
#include "core/plugin/host.hpp"

namespace dovetail::core {

Result<PlacedGraph> place_ops(Graph graph, const OpRegistry& ops, const dvt_backend_v1& backend,
                              void* context, const std::string& name) {
  const dvt_graph view = graph.view();
  std::vector<dvt_verdict> verdicts(view.n_nodes);
  CallFrame call;
  DVT_TRY(call.check(backend.supports(context, call, &view, verdicts.data())));
  PlacedGraph out;
  std::vector<bool> chosen(view.n_nodes, false);
  for (size_t i = 0; i < verdicts.size(); ++i) {
    const dvt_node& node = graph.node(i);
    Placement place{std::string(graph.str(node.scope)), std::string(graph.op_name(node)),
                    Placement::Runs::kNatively, std::string(text_of(verdicts[i].reason))};
    const OpDef* def = ops.find(place.op, view.ops[node.op].rev);
    const bool is_native = verdicts[i].level == DVT_NATIVE || verdicts[i].level == DVT_SLOW;
    if (!is_native && !(def && def->decompose))
      return unsupported(place.scope + ": op \"" + place.op + "\" cannot run on backend \"" + name +
                         "\": " + place.reason);
    if (verdicts[i].level == DVT_SLOW) place.runs = Placement::Runs::kSlowly;
    if (!is_native) place.runs = Placement::Runs::kByDefinition;
    chosen[i] = !is_native;
    out.placements.push_back(std::move(place));
  }
  out.graph = std::move(graph);
  if (std::find(chosen.begin(), chosen.end(), true) != chosen.end()) {
    DVT_TRY(out.graph, decompose(out.graph, chosen, ops));
  }
  return out;
}

}  // namespace dovetail::core
