#include "core/config/load.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <utility>

#include "core/config/merge.hpp"
#include "core/config/paths.hpp"
#include "core/config/schema.hpp"
#include "core/config/stages.hpp"
#include "core/config/validate.hpp"
#include "core/config/yaml.hpp"

namespace dovetail::core {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxExtendsDepth = 16;
constexpr int kMaxFiles = 64;
constexpr const char* kSetVariable = "DOVETAIL_SET";

Result<std::string> read_file(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored))
    return io_error(path + ": is a folder, expected a config file");
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) return io_error(path + ": cannot be opened: " + std::strerror(errno));
  std::string text(kYamlMaxBytes + 1, '\0');  // one more, so that the parser sees it is too long
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.bad()) return io_error(path + ": cannot be read: " + std::strerror(errno));
  text.resize(static_cast<size_t>(in.gcount()));
  return text;
}

void set_origin_below(Node& node, const Origin& origin) {
  node.set_origin(origin);
  if (node.is_list()) {
    for (Node& item : node.items()) set_origin_below(item, origin);
  } else if (node.is_map()) {
    for (Node::Entry& entry : node.entries()) set_origin_below(entry.second, origin);
  }
}

Status check_version(const Node& root, const std::string& source) {
  if (!root.is_map())
    return invalid(source + ": the config is " + root.kind_name() + ", expected a map of keys");
  const std::string expected = "expected \"dovetail: " + std::to_string(kConfigVersion) + "\"";
  const Node* version = root.find("dovetail");
  if (version == nullptr)
    return invalid(source + ": the key \"dovetail\" is missing, " + expected + " at the top");
  if (!version->is_int() || version->as_int() != kConfigVersion) {
    return invalid(version->origin().str() + ": another version of the config language, " +
                   expected);
  }
  return Status::ok();
}

Node without(const Node& map, std::string_view key) {
  Node out = Node::make_map();
  out.set_origin(map.origin());
  for (const auto& [name, value] : map.entries()) {
    if (name != key) out.set(name, value);
  }
  return out;
}

/// Reads a config and all that it extends.
class FileReader {
 public:
  explicit FileReader(const Environment& environment) : environment_(environment) {}

  Result<Node> read(const std::string& path) {
    DVT_TRY(const std::string text, read_file(path));
    return read_text(text, path);
  }

  Result<Node> read_text(std::string_view text, const std::string& source) {
    if (++n_files_ > kMaxFiles) {
      return invalid(source + ": more than " + std::to_string(kMaxFiles) +
                     " configs are read for one");
    }
    DVT_TRY(Node root, parse_yaml(text, source));
    DVT_TRY(check_version(root, source));
    const Node* extends = root.find("extends");
    if (extends == nullptr || extends->is_null()) return without(root, "extends");
    chain_.push_back(source);
    DVT_TRY(Node base, read_bases(*extends));
    chain_.pop_back();
    return merge_configs(std::move(base), without(root, "extends"));
  }

 private:
  Result<Node> read_bases(const Node& extends) {
    if (!extends.is_list()) return read_base(extends);
    Node all = Node::make_map();
    for (const Node& item : extends.items()) {
      DVT_TRY(const Node base, read_base(item));
      all = merge_configs(std::move(all), base);
    }
    return all;
  }

  Result<Node> read_base(const Node& name) {
    const std::string where = name.origin().str() + ": extends";
    if (!name.is_string() || name.as_string().empty()) {
      return invalid(where + " has " + name.kind_name() +
                     ", expected a file name or a list of them");
    }
    Result<std::string> expanded = expand_variables(name.as_string(), environment_);
    if (!expanded) return expanded.status().in(where);
    const std::string path =
        (fs::path(chain_.back()).parent_path() / *expanded).lexically_normal().string();
    DVT_TRY(check_chain(path).in(where));
    Result<Node> base = read(path);
    if (!base && base.status().code() == Code::kIo) return base.status().in(where);
    return base;
  }

  Status check_chain(const std::string& path) const {
    std::string shown;
    bool is_cycle = false;
    for (const std::string& above : chain_) {
      std::error_code not_there;
      is_cycle = is_cycle || above == path || fs::equivalent(above, path, not_there);
      shown += above + " -> ";
    }
    if (is_cycle) return invalid("goes round in a circle: " + shown + path);
    if (chain_.size() >= kMaxExtendsDepth) {
      return invalid("is nested deeper than " + std::to_string(kMaxExtendsDepth) +
                     " configs: " + shown + path);
    }
    return Status::ok();
  }

  const Environment& environment_;
  std::vector<std::string> chain_;  // the configs that are being read, outermost first
  int n_files_ = 0;
};

// Applies "a.b.c=VALUE"; `from` is what to call it: "--set" or "DOVETAIL_SET".
Status apply_set(Node& root, const Node& defaults, const std::string& text,
                 const std::string& from) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    return invalid(from + " \"" + text +
                   "\": expected KEY=VALUE, such as backend.plugin=reference");
  }
  const std::string path = text.substr(0, equals);
  const std::string value_text = text.substr(equals + 1);
  const std::string source = from + " " + path;
  Node value;
  if (value_text.find_first_not_of(" \t") != std::string::npos) {
    DVT_TRY(value, parse_yaml(value_text, source));
  }
  set_origin_below(value, Origin{std::make_shared<const std::string>(source), 0, 0});
  if (path == kSamplerKey && value.is_map()) {  // changes what is below it, as in a file
    root.set(path, with_stages(chain_over(defaults, root), value));
    return Status::ok();
  }
  return set_path(root, defaults, path, std::move(value)).in(source);
}

// Splits at ";" outside quotes.
std::vector<std::string> split_sets(const std::string& text) {
  std::vector<std::string> parts(1);
  char quote = 0;
  for (const char c : text) {
    if (quote == 0 && c == ';') {
      parts.emplace_back();
      continue;
    }
    if (quote == 0 && (c == '"' || c == '\'')) {
      quote = c;
    } else if (c == quote) {
      quote = 0;
    }
    parts.back() += c;
  }
  std::erase_if(parts, [](const std::string& part) {
    return part.find_first_not_of(' ') == std::string::npos;
  });
  return parts;
}

bool sets_sampler(const std::string& set) {
  const std::string key = set.substr(0, set.find('='));
  return key == kSamplerKey || key.starts_with(std::string(kSamplerKey) + ".");
}

Status apply_all_sets(Node& config, const Node& defaults, const LoadOptions& options,
                      bool with_sampler) {
  for (std::string& set : split_sets(options.environment(kSetVariable).value_or(""))) {
    set.erase(0, set.find_first_not_of(' '));
    if (with_sampler || !sets_sampler(set)) DVT_TRY(apply_set(config, defaults, set, kSetVariable));
  }
  for (const std::string& set : options.sets)
    if (with_sampler || !sets_sampler(set)) DVT_TRY(apply_set(config, defaults, set, "--set"));
  return Status::ok();
}

}  // namespace

Result<ConfigLayers> ConfigLayers::over_defaults(Node config, const LoadOptions& options) {
  ConfigLayers layers;
  layers.config_ = std::move(config);
  layers.options_ = options;
  if (!options.defaults_path.empty()) {
    DVT_TRY(layers.defaults_, FileReader(options.environment).read(options.defaults_path));
  }
  return layers;
}

Result<ConfigLayers> ConfigLayers::read(const std::string& path, const LoadOptions& options) {
  DVT_TRY(Node config, FileReader(options.environment).read(path));
  return over_defaults(std::move(config), options);
}

Result<ConfigLayers> ConfigLayers::read_text(std::string_view text, const std::string& source,
                                             const LoadOptions& options) {
  DVT_TRY(Node config, FileReader(options.environment).read_text(text, source));
  return over_defaults(std::move(config), options);
}

Result<ConfigLayers> ConfigLayers::for_checkpoint(const std::string& model_path,
                                                  const LoadOptions& options) {
  const Origin origin{std::make_shared<const std::string>("command line"), 0, 0};
  Node model = Node::make_map();
  model.set("path", Node::make_string(escape_variables(model_path)));
  Node config = Node::make_map();
  config.set("dovetail", Node::make_int(kConfigVersion));
  config.set("model", std::move(model));
  set_origin_below(config, origin);
  return over_defaults(std::move(config), options);
}

Result<Node> ConfigLayers::merged(Node config, Node defaults, bool with_sampler) const {
  const auto make_chain = [&] {
    if (const Node* sampler = config.find(kSamplerKey); sampler != nullptr && sampler->is_map())
      config.set(kSamplerKey, chain_over(defaults, config));
  };
  make_chain();
  DVT_TRY(apply_all_sets(config, defaults, options_, with_sampler));
  make_chain();  // where there was none, --set sampler.top_p made a map
  Node merged = merge_defaults(defaults, config);
  if (merged.find("extends") != nullptr)
    return invalid("--set extends: only a config file can extend others");
  const std::vector<std::string> from_variables =
      paths_from_variables(merged, options_.environment);
  DVT_TRY(expand_all(merged, options_.environment));
  DVT_TRY(validate(merged, {}));
  make_paths_absolute(merged, from_variables, options_.environment);
  merged.build_index();
  return merged;
}

Result<Node> ConfigLayers::effective(const Node& checkpoint) const {
  return merged(config_, checkpoint.is_map() ? merge_configs(defaults_, checkpoint) : defaults_,
                /*with_sampler=*/true);
}

Result<Node> ConfigLayers::without_sampler() const {
  return merged(without(config_, kSamplerKey), without(defaults_, kSamplerKey),
                /*with_sampler=*/false);
}

Result<Node> load_config(const std::string& path, const LoadOptions& options) {
  DVT_TRY(const ConfigLayers layers, ConfigLayers::read(path, options));
  return layers.effective();
}

Result<Node> load_config_text(std::string_view text, const std::string& source,
                              const LoadOptions& options) {
  DVT_TRY(const ConfigLayers layers, ConfigLayers::read_text(text, source, options));
  return layers.effective();
}

}  // namespace dovetail::core
