// One value against one declared key, and a map of plugin parameters against its declarations.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/node.hpp"
#include "core/base/status.hpp"
#include "core/config/schema.hpp"

namespace dovetail::core {

/// Collects what is wrong with a config, one line each.
class Faults {
 public:
  static constexpr size_t kMaxShown = 20;

  /// Adds "origin: what".
  void add(const Origin& origin, const std::string& what);
  bool empty() const { return lines_.empty(); }
  /// ok, or kInvalid with every line, the first kMaxShown of them.
  Status status() const;

 private:
  std::vector<std::string> lines_;
  size_t n_more_ = 0;
};

/// "a number over 0 and at most 1, or a list of them".
std::string expectation(const ParamSpec& spec);

/// `the string "x"`, `3.5`, `a list`: a value for a message.
std::string describe_value(const Node& value);

/// Checks type, form, range and choices. Null is always right: it means the default.
void check_value(const Node& value, const ParamSpec& spec, const std::string& path, Faults& faults);

/// The names of `specs`.
std::vector<std::string> names_of(const std::vector<ParamSpec>& specs);
const ParamSpec* find_spec(const std::vector<ParamSpec>& specs, std::string_view name);

/// Adds `unknown key "x" in path`, with the nearest of `known`.
void add_unknown_key(const Node::Entry& entry, const std::string& path,
                     const std::vector<std::string>& known, Faults& faults);

/// Adds a fault for every required key that `map` lacks.
void check_required(const Node& map, const std::vector<ParamSpec>& specs, const std::string& path,
                    Faults& faults);

/// Whether `value` is a map of parameters, not a shorthand for the first one.
bool is_params_map(const Node& value, const std::vector<ParamSpec>& specs);

/// Checks what a sampler stage's name is set to: a map of parameters, a shorthand, or null.
void check_params(const Node& value, const std::vector<ParamSpec>& specs, const std::string& path,
                  Faults& faults);

/// The checked parameters of a plugin as a map: the shorthand spelled out, each default filled in,
/// in declared order; a parameter without value or default is left out.
/// errors   kInvalid, as validate() says it; `path` names the plugin's place in the config.
Result<Node> complete_params(const Node& value, const std::vector<ParamSpec>& specs,
                             const std::string& path);

}  // namespace dovetail::core
