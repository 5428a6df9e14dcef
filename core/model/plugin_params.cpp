#include "core/model/plugin_params.hpp"

#include <cmath>

#include "core/config/yaml_scalar.hpp"
#include "core/plugin/host.hpp"

namespace dovetail::core {
namespace {

using Type = ParamSpec::Type;

struct Shape {
  Type type;
  uint8_t forms;
};
Result<Shape> shape_of(uint32_t type) {
  switch (type) {
    case DVT_PARAM_BOOL:
      return Shape{Type::kBool, ParamSpec::kOne};
    case DVT_PARAM_INT:
      return Shape{Type::kInt, ParamSpec::kOne};
    case DVT_PARAM_FLOAT:
      return Shape{Type::kFloat, ParamSpec::kOne};
    case DVT_PARAM_STR:
      return Shape{Type::kString, ParamSpec::kOne};
    case DVT_PARAM_MAP:
      return Shape{Type::kAny, ParamSpec::kMap};
    case DVT_PARAM_STR_LIST:
      return Shape{Type::kString, ParamSpec::kList};
    case DVT_PARAM_INT_LIST:
      return Shape{Type::kInt, ParamSpec::kList};
    case DVT_PARAM_FLOAT_LIST:
      return Shape{Type::kFloat, ParamSpec::kList};
    default:
      return unsupported("parameter type " + std::to_string(type) + " is not known to this core");
  }
}

Result<ParamSpec> param_spec(const dvt_param& p) {
  ParamSpec spec;
  spec.name = text_of(p.name);
  DVT_TRY(const Shape shape, shape_of(p.type));
  spec.type = shape.type;
  spec.forms = shape.forms;
  spec.help = text_of(p.help);
  spec.required = (p.flags & DVT_PARAM_REQUIRED) != 0;
  spec.min_exclusive = (p.flags & DVT_PARAM_MIN_EXCLUSIVE) != 0;
  spec.max_exclusive = (p.flags & DVT_PARAM_MAX_EXCLUSIVE) != 0;
  if (std::isfinite(p.min)) spec.min = p.min;
  if (std::isfinite(p.max)) spec.max = p.max;
  std::string_view choices = text_of(p.choices);
  while (!choices.empty()) {
    const size_t bar = choices.find('|');
    spec.choices.emplace_back(choices.substr(0, bar));
    choices = bar == std::string_view::npos ? std::string_view() : choices.substr(bar + 1);
  }
  if (p.default_text.n != 0) {
    if (spec.type == Type::kString) {
      spec.default_value = Node::make_string(std::string(text_of(p.default_text)));
    } else {
      DVT_TRY(spec.default_value, read_plain_scalar(text_of(p.default_text)));
    }
  }
  return spec;
}

}  // namespace

Result<std::vector<ParamSpec>> param_specs(const dvt_plugin_v1& plugin) {
  std::vector<ParamSpec> specs;
  const auto* at = reinterpret_cast<const uint8_t*>(plugin.params);
  for (uint64_t i = 0; i < plugin.n_params; ++i) {
    const auto& p = *reinterpret_cast<const dvt_param*>(at + i * plugin.params[0].struct_size);
    Result<ParamSpec> spec = param_spec(p);
    if (!spec)
      return spec.status().in("plugin " + std::string(text_of(plugin.id)) + ": parameter \"" +
                              std::string(text_of(p.name)) + "\"");
    specs.push_back(std::move(*spec));
  }
  return specs;
}

}  // namespace dovetail::core
