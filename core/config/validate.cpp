#include "core/config/validate.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "core/base/nearest.hpp"
#include "core/config/check_value.hpp"
#include "core/config/source_text.hpp"

namespace dovetail::core {
namespace {

class Validator {
 public:
  explicit Validator(const PluginParams& params) : params_(params) {}

  Status check(const Node& config) {
    check_top_level(config);
    for (const Section& section : config_sections()) {
      const Node* map = section.name.empty() ? nullptr : config.find(section.name);
      if (map != nullptr) check_section(*map, section);
    }
    if (const Node* sampler = config.find(kSamplerKey)) check_sampler(*sampler);
    return faults_.status();
  }

 private:
  void check_top_level(const Node& config) {
    const Section& top = *find_section("");
    std::vector<std::string> known = names_of(top.keys);
    for (const Section& section : config_sections()) {
      if (!section.name.empty()) known.push_back(section.name);
    }
    known.emplace_back(kSamplerKey);
    for (const Node::Entry& entry : config.entries()) {
      if (const ParamSpec* spec = find_spec(top.keys, entry.first)) {
        check_value(entry.second, *spec, spec->name, faults_);
      } else if (std::find(known.begin(), known.end(), entry.first) == known.end()) {
        add_unknown_key(entry, "", known, faults_);
      }
    }
    check_required(config, top.keys, "", faults_);
  }

  void check_section(const Node& map, const Section& section) {
    if (map.is_null()) return;
    if (!map.is_map()) {
      const std::string example = section.name + ": {" + section.keys[0].name + ": ...}";
      faults_.add(map.origin(), section.name + ": got " + describe_value(map) +
                                    ", expected a map such as \"" + example + "\"");
      return;
    }
    const std::vector<ParamSpec>* own = plugin_specs(map, section);
    std::vector<std::string> known = names_of(section.keys);
    if (own != nullptr) {
      for (const ParamSpec& spec : *own) known.push_back(spec.name);
    }
    const bool is_open = !section.plugin_kind.empty() && own == nullptr;
    for (const Node::Entry& entry : map.entries()) {
      const ParamSpec* spec = find_spec(section.keys, entry.first);
      if (spec == nullptr && own != nullptr) spec = find_spec(*own, entry.first);
      if (spec != nullptr) {
        check_value(entry.second, *spec, section.name + "." + entry.first, faults_);
      } else if (!is_open) {
        add_unknown_key(entry, section.name, known, faults_);
      }
    }
    check_required(map, section.keys, section.name, faults_);
    if (own != nullptr) check_required(map, *own, section.name, faults_);
  }

  // The parameters of the section's plugin; null where there is none or it is not known yet.
  const std::vector<ParamSpec>* plugin_specs(const Node& map, const Section& section) {
    if (section.plugin_kind.empty() || !params_.find) return nullptr;
    const Node* name = map.find(section.plugin_key);
    const bool is_named = name != nullptr && name->is_string();
    const std::vector<ParamSpec>* specs =
        params_.find(section.plugin_kind, is_named ? name->as_string() : std::string());
    if (specs == nullptr && is_named)
      check_installed(section.plugin_kind, *name, name->as_string(), "");
    return specs;
  }

  // Adds a fault if there is no such plugin. `path` is set where the name is a key.
  bool check_installed(std::string_view kind, const Node& at, const std::string& name,
                       const std::string& path) {
    if (!params_.names) return true;
    const std::vector<std::string> names = params_.names(kind);
    if (std::find(names.begin(), names.end(), name) != names.end()) return true;
    std::string what = path.empty() ? "" : path + ": ";
    what += "no " + std::string(kind) + " plugin " + quote_for_message(name) + " is installed" +
            did_you_mean(name, names);
    if (params_.places && !names_places_) what += "; " + params_.places();
    names_places_ = true;  // once for all faults
    faults_.add(at.origin(), what);
    return false;
  }

  void check_sampler(const Node& sampler) {
    if (sampler.is_null()) return;
    if (!sampler.is_list()) {
      faults_.add(sampler.origin(),
                  "sampler: got " + describe_value(sampler) +
                      ", expected a list of stages such as \"- temperature: 0.6\"");
      return;
    }
    size_t i = 0;
    for (const Node& stage : sampler.items()) check_stage(stage, "sampler." + std::to_string(i++));
  }

  void check_stage(const Node& stage, const std::string& path) {
    if (stage.is_string()) {
      const std::vector<ParamSpec>* specs = stage_specs(stage.as_string());
      if (specs != nullptr) {
        Node none;
        none.set_origin(stage.origin());
        check_params(none, *specs, path, faults_);
      } else {
        check_installed(kSamplerKind, stage, stage.as_string(), "");
      }
    } else if (stage.is_map() && stage.entries().size() == 1) {
      const auto& [name, value] = stage.entries()[0];
      const std::vector<ParamSpec>* specs = stage_specs(name);
      if (specs != nullptr) {
        check_params(value, *specs, path + "." + name, faults_);
      } else {
        check_installed(kSamplerKind, value, name, path);
      }
    } else {
      add_no_stage(stage, path);
    }
  }

  // A second key in a stage is often a mistyped name of `--set sampler.0.NAME`: it is named, at its own place.
  void add_no_stage(const Node& stage, const std::string& path) {
    const bool has_keys = stage.is_map() && !stage.entries().empty();
    std::string got = has_keys ? "the keys" : describe_value(stage), suggestion;
    std::vector<std::string> before;
    if (has_keys) {
      for (const Node::Entry& entry : stage.entries()) {
        suggestion = did_you_mean(entry.first, before);
        got += (before.empty() ? " " : ", ") + quote_for_message(entry.first);
        before.push_back(entry.first);
      }
    }
    const Node& at = has_keys ? stage.entries().back().second : stage;
    faults_.add(at.origin(), path + ": got " + got +
                                 ", expected one stage: a name, or a name and its parameters "
                                 "such as \"temperature: 0.6\"" +
                                 suggestion);
  }

  const std::vector<ParamSpec>* stage_specs(const std::string& name) const {
    return params_.find ? params_.find(kSamplerKind, name) : nullptr;
  }

  const PluginParams& params_;
  Faults faults_;
  bool names_places_ = false;
};

}  // namespace

Status validate(const Node& config, const PluginParams& params) {
  if (!config.is_map()) {
    return invalid(config.origin().str() + ": the config is " + config.kind_name() +
                   ", expected a map of keys");
  }
  return Validator(params).check(config);
}

}  // namespace dovetail::core
