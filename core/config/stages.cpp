#include "core/config/stages.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/config/merge.hpp"
#include "core/config/schema.hpp"

namespace dovetail::core {
namespace {

// In which stages usually run; others come last.
constexpr std::string_view kUsualOrder[] = {"logit_bias",
                                            "repetition_penalty",
                                            "presence_penalty",
                                            "frequency_penalty",
                                            "temperature",
                                            "top_k",
                                            "top_p",
                                            "min_p",
                                            "typical_p"};

size_t rank_of(std::string_view name) {
  return static_cast<size_t>(std::find(std::begin(kUsualOrder), std::end(kUsualOrder), name) -
                             std::begin(kUsualOrder));
}

// Empty for what is no stage; a check finds that later.
std::string_view name_of(const Node& stage) {
  if (stage.is_string()) return stage.as_string();
  return stage.is_map() && stage.entries().size() == 1 ? stage.entries()[0].first
                                                       : std::string_view();
}

Node make_stage(std::string_view name, const Origin& origin) {
  Node stage = Node::make_map(), none;
  stage.set_origin(origin);
  none.set_origin(origin);
  stage.set(name, std::move(none));
  return stage;
}

}  // namespace

Node& stage_of(Node& chain, std::string_view name) {
  std::vector<Node>& stages = chain.items();
  auto at = std::find_if(stages.begin(), stages.end(),
                         [&](const Node& stage) { return name_of(stage) == name; });
  if (at == stages.end()) {
    at = std::find_if(stages.begin(), stages.end(),
                      [&](const Node& stage) { return rank_of(name_of(stage)) > rank_of(name); });
    at = stages.insert(at, make_stage(name, chain.origin()));
  } else if (at->is_string()) {
    *at = make_stage(name, at->origin());
  }
  return *at->find(name);
}

Node with_stages(Node chain, const Node& changes) {
  for (const auto& [name, params] : changes.entries()) {
    if (params.is_null()) continue;
    Node& stage = stage_of(chain, name);
    stage = merge(std::move(stage), params);
  }
  return chain;
}

Node chain_over(const Node& defaults, const Node& config) {
  const Node *below = defaults.find(kSamplerKey), *own = config.find(kSamplerKey);
  if (own != nullptr && !own->is_null() && !own->is_map()) return *own;
  Node chain = below != nullptr && below->is_list() ? *below : Node::make_list();
  if (own == nullptr || own->is_null()) return chain;
  if (chain.items().empty()) chain.set_origin(own->origin());
  return with_stages(std::move(chain), *own);
}

}  // namespace dovetail::core
