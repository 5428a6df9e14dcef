// Layers of a config: how a later one overrides an earlier one.
#pragma once

#include <string_view>

#include "core/base/node.hpp"
#include "core/base/status.hpp"

namespace dovetail::core {

/// `over` on top of `base`: maps merge key by key, anything else replaces. A null stays in the result
/// and hides what was below it, until drop_nulls().
Node merge(Node base, const Node& over);

/// Two whole configs: merge(), but a map of sampler stages changes a chain below it (stages.hpp).
Node merge_configs(Node base, const Node& over);

/// The finished layers over the defaults: a null in `over` gives way to the default, or to nothing.
/// Nulls inside lists stay: a list belongs to one layer.
Node merge_defaults(const Node& defaults, const Node& over);

/// Sets the value at a dotted path; items of a list go by their index ("sampler.0.temperature"), stages of a
/// sampler chain by their name too ("sampler.temperature"), at whose usual place one is added.
/// Missing maps are made. A list that only `defaults` has is copied up before an item changes.
/// errors   kInvalid, without a place: an index that is not one, a path through a scalar.
Status set_path(Node& root, const Node& defaults, std::string_view path, Node value);

}  // namespace dovetail::core
