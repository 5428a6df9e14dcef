#include "core/config/json_schema.hpp"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace dovetail::core {
namespace {

using Type = ParamSpec::Type;

Node text(std::string value) {
  return Node::make_string(std::move(value));
}

Node number(double value) {
  const bool is_whole = std::nearbyint(value) == value && std::abs(value) < 1e15;
  return is_whole ? Node::make_int(static_cast<int64_t>(value)) : Node::make_float(value);
}

Node list_of(std::vector<Node> items) {
  Node list = Node::make_list();
  list.items() = std::move(items);
  return list;
}

Node map_of(std::vector<Node::Entry> entries) {
  Node map = Node::make_map();
  map.entries() = std::move(entries);
  return map;
}

Node any_of(std::vector<Node> schemas) {
  if (schemas.size() == 1) return std::move(schemas[0]);
  return map_of({{"anyOf", list_of(std::move(schemas))}});
}

const char* type_name(Type type) {
  switch (type) {
    case Type::kBool:
      return "boolean";
    case Type::kInt:
      return "integer";
    case Type::kFloat:
      return "number";
    case Type::kString:
    case Type::kPath:
      return "string";
    case Type::kAny:
      break;
  }
  return "";
}

Node null_schema() {
  return map_of({{"type", text("null")}});
}

Node one_schema(const ParamSpec& spec) {
  Node schema = Node::make_map();
  if (spec.type != Type::kAny) schema.set("type", text(type_name(spec.type)));
  if (spec.min) schema.set(spec.min_exclusive ? "exclusiveMinimum" : "minimum", number(*spec.min));
  if (spec.max) schema.set(spec.max_exclusive ? "exclusiveMaximum" : "maximum", number(*spec.max));
  if (!spec.choices.empty()) {
    std::vector<Node> choices;
    for (const std::string& choice : spec.choices) choices.push_back(text(choice));
    schema.set("enum", list_of(std::move(choices)));
  }
  return schema;
}

// Every form of the value, and null, which means the default.
Node value_schema(const ParamSpec& spec) {
  std::vector<Node> forms;
  if ((spec.forms & ParamSpec::kOne) != 0) forms.push_back(one_schema(spec));
  if ((spec.forms & ParamSpec::kList) != 0) {
    forms.push_back(map_of({{"type", text("array")}, {"items", one_schema(spec)}}));
  }
  if ((spec.forms & ParamSpec::kMap) != 0) {
    forms.push_back(map_of({{"type", text("object")}, {"additionalProperties", one_schema(spec)}}));
  }
  if (!spec.required) forms.push_back(null_schema());
  Node schema = any_of(std::move(forms));
  if (!spec.help.empty()) schema.set("description", text(spec.help));
  if (spec.default_value) schema.set("default", *spec.default_value);
  return schema;
}

Node properties(const std::vector<ParamSpec>& specs) {
  Node map = Node::make_map();
  for (const ParamSpec& spec : specs) map.set(spec.name, value_schema(spec));
  return map;
}

void add_required(Node& schema, const std::vector<ParamSpec>& specs) {
  std::vector<Node> names;
  for (const ParamSpec& spec : specs) {
    if (spec.required && !spec.default_value) names.push_back(text(spec.name));
  }
  if (!names.empty()) schema.set("required", list_of(std::move(names)));
}

std::vector<std::string> plugin_names(const PluginParams& params, std::string_view kind) {
  return params.names ? params.names(kind) : std::vector<std::string>();
}

const std::vector<ParamSpec>* find_params(const PluginParams& params, std::string_view kind,
                                          std::string_view name) {
  return params.find ? params.find(kind, name) : nullptr;
}

Node allows_anything() {
  return map_of({{"additionalProperties", Node::make_bool(true)}});
}

// "if plugin is cpu, then cpu's parameters are allowed", for each plugin. Where none is named the
// default is meant, which this schema cannot know.
Node plugin_rules(const Section& section, const PluginParams& params) {
  const Node is_given = map_of({{"required", list_of({text(section.plugin_key)})}});
  std::vector<Node> rules;
  rules.push_back(map_of({{"if", is_given}, {"else", allows_anything()}}));
  for (const std::string& name : plugin_names(params, section.plugin_kind)) {
    const std::vector<ParamSpec>* specs = find_params(params, section.plugin_kind, name);
    Node is_named = is_given;
    is_named.set("properties", map_of({{section.plugin_key, map_of({{"const", text(name)}})}}));
    Node then = specs == nullptr ? allows_anything() : map_of({{"properties", properties(*specs)}});
    if (specs != nullptr) add_required(then, *specs);
    rules.push_back(map_of({{"if", std::move(is_named)}, {"then", std::move(then)}}));
  }
  return list_of(std::move(rules));
}

Node section_schema(const Section& section, const PluginParams& params) {
  Node schema = map_of({{"type", list_of({text("object"), text("null")})},
                        {"description", text(section.help)},
                        {"properties", properties(section.keys)}});
  add_required(schema, section.keys);
  const bool knows_plugins = !plugin_names(params, section.plugin_kind).empty();
  if (section.plugin_kind.empty()) {
    schema.set("additionalProperties", Node::make_bool(false));
  } else if (knows_plugins) {
    schema.set("allOf", plugin_rules(section, params));
    schema.set("unevaluatedProperties", Node::make_bool(false));
  }
  return schema;
}

// What may stand after a stage's name: the first parameter, a map of all, or null.
Node stage_schema(const std::vector<ParamSpec>& specs) {
  Node map = map_of({{"type", text("object")},
                     {"properties", properties(specs)},
                     {"additionalProperties", Node::make_bool(false)}});
  add_required(map, specs);
  std::vector<Node> forms;
  if (!specs.empty()) forms.push_back(value_schema(specs[0]));
  forms.push_back(std::move(map));
  if (specs.empty() || !specs[0].required) forms.push_back(null_schema());
  return any_of(std::move(forms));
}

Node sampler_schema(const PluginParams& params) {
  std::vector<Node> names;
  Node stages = Node::make_map();
  for (const std::string& name : plugin_names(params, kSamplerKind)) {
    names.push_back(text(name));
    const std::vector<ParamSpec>* specs = find_params(params, kSamplerKind, name);
    stages.set(name, specs == nullptr ? Node::make_map() : stage_schema(*specs));
  }
  Node by_name = map_of({{"type", text("string")}});
  Node with_params = map_of({{"type", text("object")},
                             {"minProperties", Node::make_int(1)},
                             {"maxProperties", Node::make_int(1)}});
  Node out = map_of({{"type", list_of({text("array"), text("object"), text("null")})},
                     {"description", text("stages that choose the next token, in order; or a map "
                                          "of those that differ from the model's own")}});
  if (!names.empty()) {
    by_name.set("enum", list_of(std::move(names)));
    out.set("properties", stages);
    out.set("additionalProperties", Node::make_bool(false));
    with_params.set("properties", std::move(stages));
    with_params.set("additionalProperties", Node::make_bool(false));
  }
  out.set("items", any_of({std::move(by_name), std::move(with_params)}));
  return out;
}

}  // namespace

Node json_schema(const PluginParams& params) {
  const Section& top = *find_section("");
  Node keys = properties(top.keys);
  for (const Section& section : config_sections()) {
    if (!section.name.empty()) keys.set(section.name, section_schema(section, params));
  }
  keys.set(kSamplerKey, sampler_schema(params));
  Node schema = map_of({{"$schema", text("https://json-schema.org/draft/2020-12/schema")},
                        {"title", text(top.help)},
                        {"type", text("object")},
                        {"properties", std::move(keys)},
                        {"additionalProperties", Node::make_bool(false)}});
  add_required(schema, top.keys);
  return schema;
}

}  // namespace dovetail::core
