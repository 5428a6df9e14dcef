// The sampler chain of a config by the names of its stages, and how layers of it merge.
//
// A chain is a list of stages: "greedy", or a map of one name and its parameters. A layer gives a list, which is the
// whole chain, or a map of names and parameters, which changes the chain below it.
#pragma once

#include <string_view>

#include "core/base/node.hpp"

namespace dovetail::core {

/// The parameters of the stage of that name; a stage that is not there is put at its usual place (docs/sampling.md).
Node& stage_of(Node& chain, std::string_view name);

/// The chain with what the map says; null leaves a stage as it is.
Node with_stages(Node chain, const Node& changes);

/// The chain of a whole config over its defaults: its list, theirs as its map changes it, or theirs.
Node chain_over(const Node& defaults, const Node& config);

}  // namespace dovetail::core
