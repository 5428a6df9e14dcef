// What `dovetail plugins list | inspect | explain` print: as text for people, as a Node for --json.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/node.hpp"
#include "core/base/status.hpp"
#include "core/plugin/inspection.hpp"
#include "core/plugin/registry.hpp"

namespace dovetail::core {

/// The plugins that count, by kind, and how many others there are.
std::string plugins_list_text(const PluginRegistry& registry);
Node plugins_list_node(const PluginRegistry& registry);

/// Every candidate for a plugin (its id, name, KIND/NAME or path), tried in a child process; the step
/// where each fell out and what to do; and the places that were searched.
/// errors  kInvalid: nothing of that name was found; the message names the places.
Result<std::string> plugin_explain_text(PluginRegistry& registry, std::string_view plugin);
Result<Node> plugin_explain_node(PluginRegistry& registry, std::string_view plugin);

/// Checks one file without loading it. Its findings say why it cannot be loaded.
/// errors  kIo: there is no such file.
Result<Inspection> inspect_plugin_file(const std::string& path);
std::string inspection_text(const Inspection& inspection);
Node inspection_node(const Inspection& inspection);

/// The candidate for a plugin (its id, name or KIND/NAME) that counts, or else the first there is.
/// errors  kInvalid: nothing of that name was found; the message names the nearest and the places.
Result<const Candidate*> candidate_named(const PluginRegistry& registry, std::string_view plugin);

/// What a loaded plugin declares.
std::string params_text(const std::vector<dvt_param>& params);
Node params_node(const std::vector<dvt_param>& params);

}  // namespace dovetail::core
