#include "core/config/settings.hpp"

#include <filesystem>
#include <limits>
#include <string_view>
#include <utility>

#include "core/config/check_value.hpp"

namespace dovetail::core {
namespace {

/// Reads keys of one section and keeps the first failure, so that reading is a plain list.
class SectionReader {
 public:
  SectionReader(const Node& config, std::string_view name, Status& status)
      : map_(name.empty() ? &config : config.find(name)), name_(name), status_(status) {}

  std::optional<bool> boolean(std::string_view key) {
    const Node* node = value(key, &Node::is_bool, "true or false");
    return node == nullptr ? std::nullopt : std::optional(node->as_bool());
  }

  std::optional<std::string> text(std::string_view key) {
    const Node* node = value(key, &Node::is_string, "a string");
    return node == nullptr ? std::nullopt : std::optional(node->as_string());
  }

  std::optional<int64_t> i64(std::string_view key) {
    const Node* node = value(key, &Node::is_int, "an integer");
    return node == nullptr ? std::nullopt : std::optional(node->as_int());
  }

  std::optional<int32_t> i32(std::string_view key) {
    const Node* node = value(key, &Node::is_int, "an integer");
    return node == nullptr ? std::nullopt : std::optional(narrow(*node, key));
  }

  std::vector<std::string> texts(std::string_view key) {
    std::vector<std::string> out;
    for (const Node* node : one_or_more(key, &Node::is_string, "a string"))
      out.push_back(node->as_string());
    return out;
  }

  std::vector<int32_t> i32s(std::string_view key) {
    std::vector<int32_t> out;
    for (const Node* node : one_or_more(key, &Node::is_int, "an integer"))
      out.push_back(narrow(*node, key));
    return out;
  }

  /// The value of a key that the defaults must give.
  template <class T>
  T required(std::string_view key, std::optional<T> value) {
    if (value) return std::move(*value);
    fail(full_name(key) + ": not set, and no defaults.yaml gives a value");
    return T();
  }

  const Node* raw(std::string_view key) const {
    const Node* node = map_ == nullptr ? nullptr : map_->find(key);
    return node == nullptr || node->is_null() ? nullptr : node;
  }

  void fail(std::string message) {
    if (status_.is_ok()) status_ = invalid(std::move(message));
  }

  /// The plugin that `key` names, with the section's keys that are not its fixed ones.
  PluginUse plugin(std::string_view key) {
    PluginUse use;
    use.name = text(key).value_or("");
    use.path = name_;
    use.params = Node::make_map();
    if (map_ == nullptr || !map_->is_map()) return use;
    use.params.set_origin(map_->origin());
    const Section& section = *find_section(name_);
    for (const auto& [name, node] : map_->entries()) {
      if (find_spec(section.keys, name) == nullptr) use.params.set(name, node);
    }
    return use;
  }

 private:
  using Kind = bool (Node::*)() const;

  std::string full_name(std::string_view key) const {
    return (name_.empty() ? "" : name_ + ".") + std::string(key);
  }

  const Node* value(std::string_view key, Kind is_kind, const char* expected) {
    const Node* node = raw(key);
    if (node == nullptr || (node->*is_kind)()) return node;
    fail_type(*node, key, expected);
    return nullptr;
  }

  void fail_type(const Node& node, std::string_view key, const char* expected) {
    fail(node.origin().str() + ": " + full_name(key) + ": got " + describe_value(node) +
         ", expected " + expected);
  }

  std::vector<const Node*> one_or_more(std::string_view key, Kind is_kind, const char* expected) {
    const Node* node = raw(key);
    if (node == nullptr) return {};
    std::vector<const Node*> out;
    if (node->is_list()) {
      for (const Node& item : node->items()) out.push_back(&item);
    } else {
      out.push_back(node);
    }
    for (const Node* item : out) {
      if ((item->*is_kind)()) continue;
      fail_type(*item, key, expected);
      return {};
    }
    return out;
  }

  int32_t narrow(const Node& node, std::string_view key) {
    const int64_t v = node.as_int();
    if (v >= std::numeric_limits<int32_t>::min() && v <= std::numeric_limits<int32_t>::max()) {
      return static_cast<int32_t>(v);
    }
    fail(node.origin().str() + ": " + full_name(key) + ": got " + describe_value(node) +
         ", expected at most " + std::to_string(std::numeric_limits<int32_t>::max()));
    return 0;
  }

  const Node* map_;
  std::string name_;
  Status& status_;
};

Settings::Model read_model(const Node& config, Status& status) {
  SectionReader in(config, "model", status);
  Settings::Model model;
  model.path = in.text("path").value_or("");
  model.arch = in.plugin("arch");
  model.formats = in.texts("format");
  const std::filesystem::path last =
      std::filesystem::path(model.path + "/").parent_path().filename();
  model.name = in.text("name").value_or(model.path.empty() ? model.arch.name : last.string());
  if (const Node* path = in.raw("path"); path != nullptr && model.path.empty()) {
    in.fail(path->origin().str() + ": model.path: is empty, expected a folder or a file");
  }
  if (model.path.empty() && model.arch.name.empty()) {
    in.fail(
        "model.path: not set; give the folder of a checkpoint, such as --set model.path=FOLDER");
  }
  return model;
}

Settings::Backend read_backend(const Node& config, Status& status) {
  SectionReader in(config, "backend", status);
  Settings::Backend backend;
  backend.plugin = in.plugin("plugin");
  in.required("plugin", in.text("plugin"));
  backend.n_threads = in.i32("threads");
  backend.pin = in.required("pin", in.boolean("pin"));
  backend.huge_pages = in.required("huge_pages", in.boolean("huge_pages"));
  backend.weight_cache_gib = in.required("weight_cache_gib", in.i32("weight_cache_gib"));
  const Node* weights = in.raw("weights");
  if (weights != nullptr) backend.weights_origin = weights->origin().str() + ": backend.weights";
  if (weights == nullptr || !weights->is_map()) {
    backend.weights = in.text("weights").value_or("");
    return backend;
  }
  for (const auto& [tensor_class, format] : weights->entries()) {
    if (format.is_null()) continue;
    if (!format.is_string()) {
      in.fail(format.origin().str() + ": backend.weights." + tensor_class + ": got " +
              describe_value(format) + ", expected a string");
    } else if (tensor_class == "default") {
      backend.weights = format.as_string();
    } else {
      backend.class_weights[tensor_class] = format.as_string();
    }
  }
  return backend;
}

Settings::KvCache read_kv_cache(const Node& config, Status& status) {
  SectionReader in(config, "kv_cache", status);
  Settings::KvCache kv;
  kv.dtype = in.required("dtype", in.text("dtype"));
  kv.block_len = in.i32("block_len");
  kv.max_tokens = in.i64("max_tokens");
  return kv;
}

Settings::Scheduler read_scheduler(const Node& config, Status& status) {
  SectionReader in(config, "scheduler", status);
  Settings::Scheduler scheduler;
  scheduler.max_batch_tokens = in.required("max_batch_tokens", in.i32("max_batch_tokens"));
  scheduler.max_seqs = in.required("max_seqs", in.i32("max_seqs"));
  scheduler.prefill_chunk = in.required("prefill_chunk", in.i32("prefill_chunk"));
  return scheduler;
}

std::vector<PluginUse> read_sampler(const Node& config, Status& status) {
  std::vector<PluginUse> stages;
  const Node* list = config.find(kSamplerKey);
  if (list == nullptr || list->is_null()) return stages;
  const auto fail = [&](const Node& at) {
    if (status.is_ok())
      status = invalid(at.origin().str() + ": sampler: expected a list of stages");
  };
  if (!list->is_list()) {
    fail(*list);
    return stages;
  }
  for (const Node& stage : list->items()) {
    const std::string path = "sampler." + std::to_string(stages.size());
    if (stage.is_string()) {
      Node none;
      none.set_origin(stage.origin());
      stages.push_back({stage.as_string(), std::move(none), path});
    } else if (stage.is_map() && stage.entries().size() == 1) {
      const auto& [name, value] = stage.entries()[0];
      stages.push_back({name, value, std::string(path).append(".").append(name)});
    } else {
      fail(stage);
    }
  }
  return stages;
}

Settings::Generate read_generate(const Node& config, Status& status) {
  SectionReader in(config, "generate", status);
  Settings::Generate generate;
  generate.max_tokens = in.required("max_tokens", in.i32("max_tokens"));
  generate.stop = in.texts("stop");
  generate.stop_ids = in.i32s("stop_ids");
  generate.seed = in.i64("seed");
  generate.ignore_eos = in.required("ignore_eos", in.boolean("ignore_eos"));
  return generate;
}

Settings::Tokenizer read_tokenizer(const Node& config, Status& status) {
  SectionReader in(config, "tokenizer", status);
  Settings::Tokenizer tokenizer;
  tokenizer.plugin = in.plugin("plugin");
  tokenizer.path = in.text("path").value_or("");
  return tokenizer;
}

Settings::Chat read_chat(const Node& config, Status& status) {
  SectionReader in(config, "chat", status);
  Settings::Chat chat;
  chat.chat_template = in.text("template");
  chat.template_file = in.text("template_file").value_or("");
  chat.system = in.text("system");
  chat.enable_thinking = in.boolean("enable_thinking");
  chat.template_name = in.text("template_name").value_or("");
  chat.reasoning = in.required("reasoning", in.text("reasoning"));
  chat.tools = in.required("tools", in.text("tools"));
  if (chat.chat_template && !chat.template_file.empty()) {
    in.fail(in.raw("template_file")->origin().str() +
            ": chat.template_file: chat.template is given too, expected one of them");
  }
  return chat;
}

Settings::Plugins read_plugins(const Node& config, Status& status) {
  SectionReader in(config, "plugins", status);
  return {in.texts("path"), in.texts("allow"), in.texts("deny")};
}

}  // namespace

Result<Settings> read_settings(const Node& config) {
  Status status;
  Settings settings;
  settings.model = read_model(config, status);
  settings.backend = read_backend(config, status);
  settings.kv_cache = read_kv_cache(config, status);
  settings.scheduler = read_scheduler(config, status);
  settings.sampler = read_sampler(config, status);
  settings.generate = read_generate(config, status);
  settings.tokenizer = read_tokenizer(config, status);
  settings.chat = read_chat(config, status);
  settings.plugins = read_plugins(config, status);
  SectionReader top(config, "", status);
  settings.max_seq_len = top.i32("context");
  SectionReader log(config, "log", status);
  settings.log_level = log.required("level", log.text("level"));
  if (!status.is_ok()) return status;
  return settings;
}

}  // namespace dovetail::core
