// Runtime: a config with the plugins it names, checked. Session: a Runtime with its model loaded.
//
// Every command begins with one of them; the order of a start is here and nowhere else:
// config -> plugins -> checkpoint -> validate -> architecture -> backend -> weights -> engine.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/node.hpp"
#include "core/base/thread_pool.hpp"
#include "core/cli/command.hpp"
#include "core/cli/progress.hpp"
#include "core/config/schema.hpp"
#include "core/config/settings.hpp"
#include "core/engine/engine.hpp"
#include "core/model/model.hpp"
#include "core/plugin/host.hpp"
#include "core/plugin/registry.hpp"

namespace dovetail::core {

class Runtime {
 public:
  /// Reads the config, finds its plugins, lets the checkpoint give its own defaults if it can be opened, checks every
  /// key against what the plugins declare.
  static Result<std::unique_ptr<Runtime>> open(const std::string& program,
                                               const ModelOptions& options);
  /// No config: what is installed.
  static Result<std::unique_ptr<Runtime>> open_plugins_only(
      const std::string& program, const std::vector<std::string>& paths = {});

  const Node& config() const { return config_; }
  /// The checkpoint of model.path, once: none for a model without files.
  /// errors   what Checkpoint::open() reports
  Result<std::unique_ptr<Checkpoint>> take_checkpoint();
  const std::string& config_name() const { return config_name_; }  // as the user would name it
  const Settings& settings() const { return settings_; }
  PluginRegistry& plugins() { return *plugins_; }
  HostServices& host() { return *host_; }
  ThreadPool& pool() { return *pool_; }
  OpRegistry& ops() { return ops_; }
  /// Parameters that plugins declare, loading each one that is asked for.
  PluginParams plugin_params();
  /// The section `backend` for another plugin than it names: what the config says there, without the keys that are
  /// parameters of that plugin alone. `asked_by` is the place of `name`, for messages: "/backend".
  /// errors   kInvalid: no such plugin, a value that it does not take. What loading it reports.
  Result<Settings::Backend> other_backend(const std::string& name, const std::string& asked_by);

 private:
  Runtime() = default;
  Status start(const std::string& program, const std::vector<std::string>& plugin_paths);
  Status check_named_plugins();
  /// Loads a plugin that the config uses and completes its parameters.
  Status complete(std::string_view kind, const PluginParams& params, PluginUse& use);
  /// Opens the checkpoint and gives the layer of the config that it is; null if it cannot be opened.
  Result<Node> open_checkpoint();

  Node config_;
  std::string config_name_;
  Settings settings_;
  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<HostServices> host_;
  std::unique_ptr<PluginRegistry> plugins_;
  OpRegistry ops_;
  std::map<std::pair<std::string, std::string>, std::vector<ParamSpec>> params_;
  Status checkpoint_status_;
  std::unique_ptr<Checkpoint> checkpoint_;
};

struct SessionOptions {
  std::vector<std::string> observed;  // values that must stay readable: "layer_out.0"
  bool observe_layers = false;        // all of "layer_out.i"
  bool plan_only = false;             // stop before weights are loaded
  bool all_rows = false;              // a step may want the logits of every token
  int64_t least_context = 0;          // tokens, where the config has no `context`
};

/// A move to another backend that succeeded.
struct BackendMove {
  StateMove states;
  double seconds = 0;  // with loading the weights there
};

class Session {
 public:
  static Result<std::unique_ptr<Session>> open(const std::string& program,
                                               const ModelOptions& options,
                                               const SessionOptions& session = {});

  Runtime& runtime() { return *runtime_; }
  const Settings& settings() const { return runtime_->settings(); }
  Model& model() { return *model_; }
  const Model& model() const { return *model_; }
  const SamplerChain& chain() const { return chain_; }
  /// An engine over the model with the config's limits.
  std::unique_ptr<Engine> make_engine() const;
  /// What the config asks of a request: limits, stops, seed. The prompt is empty.
  RequestParams request_params() const;
  /// Moves the model to the backend `name` and with it the requests of the engine, the only one and settled.
  /// errors   why all stays where it is
  Result<BackendMove> move_to(const std::string& name, const std::string& asked_by, Engine& engine);
  /// Where the model runs: "cpu (AVX2)".
  std::string backend_text() const;

 private:
  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<Model> model_;
  SamplerChain chain_;
};

/// What X in `dovetail run X` is: a config if it is a model's folder (one with config.json), or a path: one word
/// that ends in .yaml, .yml or a checkpoint file's ending, or that has a "/" and begins with a folder that is
/// there; else a prompt. "yes/no" and the name of any other file are prompts.
bool names_a_config(const std::string& text);

/// The arguments [CONFIG] [TEXT]: `config` is empty where there is none, `text` is as it was.
/// errors   kInvalid: more than two words, or a first of two that is no config: a text without its quotes.
Status split_words(const std::vector<std::string>& words, std::string& config, std::string& text);

}  // namespace dovetail::core
