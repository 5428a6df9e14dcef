// What the tests of the configuration share: comparing trees, naming plugins without any.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/node.hpp"
#include "core/config/schema.hpp"
#include "core/config/yaml.hpp"

namespace dovetail::core {

/// The same values in the same order of keys, wherever they were written.
inline bool same_values(const Node& a, const Node& b) {
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Node::Kind::kNull:
      return true;
    case Node::Kind::kBool:
      return a.as_bool() == b.as_bool();
    case Node::Kind::kInt:
      return a.as_int() == b.as_int();
    case Node::Kind::kFloat:
      return a.as_float() == b.as_float();
    case Node::Kind::kString:
      return a.as_string() == b.as_string();
    case Node::Kind::kList: {
      if (a.items().size() != b.items().size()) return false;
      for (size_t i = 0; i < a.items().size(); ++i) {
        if (!same_values(a.items()[i], b.items()[i])) return false;
      }
      return true;
    }
    case Node::Kind::kMap: {
      if (a.entries().size() != b.entries().size()) return false;
      for (size_t i = 0; i < a.entries().size(); ++i) {
        if (a.entries()[i].first != b.entries()[i].first) return false;
        if (!same_values(a.entries()[i].second, b.entries()[i].second)) return false;
      }
      return true;
    }
  }
  return false;
}

/// Parses a text that must be right.
inline Node parsed(std::string_view text) {
  Result<Node> node = parse_yaml(text, "x.yaml");
  EXPECT_TRUE(node.is_ok()) << node.status().message() << "\nin: " << text;
  return node ? std::move(node).value() : Node();
}

/// The message of a text that must be wrong; empty if it is not.
inline std::string fault_of(std::string_view text) {
  const Result<Node> node = parse_yaml(text, "x.yaml");
  return node ? "" : node.status().message();
}

/// Plugins that exist only as declarations.
struct DeclaredPlugins {
  std::map<std::pair<std::string, std::string>, std::vector<ParamSpec>> specs;

  PluginParams params() const {
    PluginParams out;
    out.find = [this](std::string_view kind, std::string_view name) {
      const auto at = specs.find({std::string(kind), std::string(name)});
      return at == specs.end() ? nullptr : &at->second;
    };
    out.names = [this](std::string_view kind) {
      std::vector<std::string> names;
      for (const auto& [key, unused] : specs) {
        if (key.first == kind) names.push_back(key.second);
      }
      return names;
    };
    return out;
  }
};

inline ParamSpec declared(std::string name, ParamSpec::Type type) {
  ParamSpec spec;
  spec.name = std::move(name);
  spec.type = type;
  return spec;
}

/// A handful of plugins as the real ones declare themselves.
inline DeclaredPlugins some_plugins() {
  using Type = ParamSpec::Type;
  ParamSpec temperature = declared("temperature", Type::kFloat);
  temperature.min = 0;
  temperature.default_value = Node::make_float(1.0);
  ParamSpec k = declared("k", Type::kInt);
  k.min = 0;
  k.default_value = Node::make_int(40);
  ParamSpec min_keep = declared("min_keep", Type::kInt);
  min_keep.min = 1;
  min_keep.default_value = Node::make_int(1);
  ParamSpec p = declared("p", Type::kFloat);
  p.min = 0;
  p.min_exclusive = true;
  p.max = 1;
  p.required = true;
  ParamSpec bias = declared("bias", Type::kFloat);
  bias.forms = ParamSpec::kMap;
  ParamSpec isa = declared("isa", Type::kString);
  isa.choices = {"auto", "portable", "avx2"};
  ParamSpec vocab_size = declared("vocab_size", Type::kInt);
  vocab_size.required = true;

  DeclaredPlugins plugins;
  plugins.specs[{"sampler", "greedy"}] = {};
  plugins.specs[{"sampler", "temperature"}] = {temperature};
  plugins.specs[{"sampler", "top_k"}] = {k, min_keep};
  plugins.specs[{"sampler", "top_p"}] = {p};
  plugins.specs[{"sampler", "logit_bias"}] = {bias};
  plugins.specs[{"backend", "cpu"}] = {isa};
  plugins.specs[{"backend", "reference"}] = {};
  plugins.specs[{"arch", "hash"}] = {vocab_size};
  plugins.specs[{"tokenizer", "bpe"}] = {};
  return plugins;
}

}  // namespace dovetail::core
