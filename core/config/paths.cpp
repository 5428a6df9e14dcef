#include "core/config/paths.hpp"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string_view>

#include "core/config/schema.hpp"

namespace dovetail::core {
namespace {

namespace fs = std::filesystem;

using Visit = std::function<void(Node&, const std::string& name)>;

void visit_strings(Node& value, const std::string& name, const Visit& visit) {
  if (value.is_string()) visit(value, name);
  if (!value.is_list()) return;
  size_t i = 0;
  for (Node& item : value.items()) {
    if (item.is_string()) visit(item, name + "." + std::to_string(i));
    ++i;
  }
}

// Calls `visit` with every string under a path key and the key's dotted name.
void visit_paths(Node& config, const Visit& visit) {
  for (const Section& section : config_sections()) {
    Node* map = section.name.empty() ? &config : config.find(section.name);
    for (const ParamSpec& spec : section.keys) {
      Node* value = map == nullptr ? nullptr : map->find(spec.name);
      if (value == nullptr || spec.type != ParamSpec::Type::kPath) continue;
      visit_strings(*value, section.name + "." + spec.name, visit);
    }
  }
}

bool starts_with_set_variable(std::string_view text, const Environment& environment) {
  if (!text.starts_with("${")) return false;
  const std::string_view inside = text.substr(2, text.find('}') - 2);
  const std::optional<std::string> value =
      environment(std::string(inside.substr(0, inside.find(":-"))));
  return value.has_value() && !value->empty();
}

}  // namespace

std::vector<std::string> paths_from_variables(const Node& config, const Environment& environment) {
  std::vector<std::string> names;
  Node copy = config;
  visit_paths(copy, [&](Node& value, const std::string& name) {
    if (starts_with_set_variable(value.as_string(), environment)) names.push_back(name);
  });
  return names;
}

void make_paths_absolute(Node& config, const std::vector<std::string>& from_variables,
                         const Environment& environment) {
  visit_paths(config, [&](Node& value, const std::string& name) {
    if (value.as_string().empty()) return;
    fs::path path = value.as_string();
    if (value.as_string().starts_with("~/"))
      path = environment("HOME").value_or("") + value.as_string().substr(1);
    const Origin& origin = value.origin();
    const bool from_file =
        origin.line > 0 && origin.source != nullptr &&
        std::find(from_variables.begin(), from_variables.end(), name) == from_variables.end();
    if (path.is_relative() && from_file) path = fs::path(*origin.source).parent_path() / path;
    std::error_code no_working_directory;
    const fs::path absolute = fs::absolute(path, no_working_directory);
    if (!no_working_directory) path = absolute;
    Node resolved = Node::make_string(path.lexically_normal().string());
    resolved.set_origin(origin);
    value = std::move(resolved);
  });
}

}  // namespace dovetail::core
