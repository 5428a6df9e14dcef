#include "core/cli/session.hpp"

#include <algorithm>
#include <filesystem>

#include "core/base/cpus.hpp"
#include "core/base/log.hpp"
#include "core/cli/pull_hint.hpp"
#include "core/config/check_value.hpp"
#include "core/config/generation.hpp"
#include "core/config/load.hpp"
#include "core/config/validate.hpp"
#include "core/model/plugin_params.hpp"

namespace dovetail::core {
namespace {

namespace fs = std::filesystem;

fs::path prefix_of(const std::string& program) {
  return fs::path(program).parent_path().parent_path();
}
fs::path configs_of(const std::string& program) {
  return prefix_of(program) / "share" / "dovetail" / "configs";
}

bool ends_with_any(std::string_view text, std::initializer_list<std::string_view> ends) {
  for (std::string_view end : ends)
    if (text.ends_with(end)) return true;
  return false;
}

// A YAML file is read as it is; a folder or a checkpoint's file stands for a config of nothing else.
Result<ConfigLayers> read_layers(const std::string& program, const ModelOptions& model) {
  LoadOptions options;
  options.defaults_path = (configs_of(program) / "defaults.yaml").string();
  options.sets = model.sets;
  const std::string path =
      model.config.empty() ? (configs_of(program) / model.default_config).string() : model.config;
  std::error_code error;
  if (fs::is_directory(path, error) || ends_with_any(path, {".gguf", ".safetensors"}))
    return ConfigLayers::for_checkpoint(path, options);
  if (!fs::exists(path, error))
    return io_error("config \"" + path +
                    "\" does not exist; give a YAML file or a checkpoint's folder" +
                    pull_hint(path, process_environment()));
  return ConfigLayers::read(path, options);
}

LogLevel level_of(const std::string& name) {
  if (name == "debug") return LogLevel::kDebug;
  if (name == "info") return LogLevel::kInfo;
  if (name == "error") return LogLevel::kError;
  return LogLevel::kWarn;
}

// An id that the model does not have never comes: it would stop nothing.
Status check_stop_ids(const Runtime& runtime, const Model& model) {
  for (int32_t id : runtime.settings().generate.stop_ids)
    if (id >= model.vocab_size())
      return invalid(runtime.config().find("generate")->find("stop_ids")->origin().str() +
                     ": generate.stop_ids has " + std::to_string(id) +
                     ", expected ids of the vocabulary of " + std::to_string(model.vocab_size()));
  return Status::ok();
}

bool holds_gguf(const fs::path& folder) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ".gguf") return true;
  return false;
}

}  // namespace

bool names_a_config(const std::string& text) {
  std::error_code error;
  const fs::path path(text);
  if (fs::is_directory(path, error) &&
      (fs::exists(path / "config.json", error) || holds_gguf(path)))
    return true;
  const bool is_named_so = ends_with_any(text, {".yaml", ".yml", ".gguf", ".safetensors"});
  const bool is_below_a_folder =
      path.has_parent_path() && fs::is_directory(path.parent_path(), error);
  const bool is_one_word = text.find_first_of(" \t\r\n") == std::string::npos;
  return is_one_word ? is_named_so || is_below_a_folder : is_named_so && fs::exists(path, error);
}

Status split_words(const std::vector<std::string>& words, std::string& config, std::string& text) {
  if (words.empty()) return Status::ok();
  std::error_code error;
  const bool has_config =
      names_a_config(words[0]) || (words.size() == 2 && fs::exists(words[0], error));
  if (words.size() > (has_config ? 2 : 1)) {
    std::string all;
    for (size_t i = has_config ? 1 : 0; i < words.size(); ++i)
      all += (all.empty() ? "" : " ") + words[i];
    return invalid((has_config
                        ? std::string()
                        : "\"" + words[0] + "\" is neither a YAML file nor a model's folder" +
                              pull_hint(words[0], process_environment()) + "; ") +
                   "a text of several words needs quotes: \"" + all + "\"");
  }
  if (has_config) config = words[0];
  if (words.size() > (has_config ? 1 : 0)) text = words.back();
  return Status::ok();
}

Status Runtime::start(const std::string& program, const std::vector<std::string>& plugin_paths) {
  const Settings::Backend& b = settings_.backend;
  const uint32_t n_lanes =
      b.n_threads ? static_cast<uint32_t>(*b.n_threads) : ThreadPool::default_lanes();
  pool_ = std::make_unique<ThreadPool>(n_lanes,
                                       b.pin ? cores_first(allowed_cpus()) : std::vector<int>{});
  host_ = std::make_unique<HostServices>(*pool_);
  SearchOptions search;
  for (const std::string& path : plugin_paths) search.paths.push_back(path);
  search.program = program;
  search.allow = settings_.plugins.allow;
  search.deny = settings_.plugins.deny;
  DVT_TRY(plugins_, PluginRegistry::create(search, *host_));
  return Status::ok();
}

Result<std::unique_ptr<Runtime>> Runtime::open_plugins_only(const std::string& program,
                                                            const std::vector<std::string>& paths) {
  auto runtime = std::unique_ptr<Runtime>(new Runtime);
  DVT_TRY(runtime->start(program, paths));
  return runtime;
}

Result<std::unique_ptr<Runtime>> Runtime::open(const std::string& program,
                                               const ModelOptions& options) {
  auto runtime = std::unique_ptr<Runtime>(new Runtime);
  DVT_TRY(const ConfigLayers layers, read_layers(program, options));
  Result<Node> first = layers.without_sampler();
  if (!first) {  // with all faults, those of the sampler too
    const Result<Node> all = layers.effective();
    return all ? first.status() : all.status();
  }
  runtime->config_ = std::move(*first);
  runtime->config_name_ = options.config.empty() ? "the embedded model" : options.config;
  Settings& s = runtime->settings_;
  DVT_TRY(s, read_settings(runtime->config_));
  set_log_level(level_of(s.log_level));
  if (const Status started = runtime->start(program, s.plugins.path); !started) {
    const Node* plugins = runtime->config_.find("plugins");
    const Node* path = plugins ? plugins->find("path") : nullptr;
    return path ? started.in(path->origin().str()) : started;
  }

  DVT_TRY(const Node of_checkpoint, runtime->open_checkpoint());
  DVT_TRY(runtime->config_, layers.effective(of_checkpoint));
  DVT_TRY(s, read_settings(runtime->config_));
  DVT_TRY(runtime->check_named_plugins());
  const PluginParams params = runtime->plugin_params();
  DVT_TRY(validate(runtime->config_, params));
  DVT_TRY(runtime->complete("arch", params, s.model.arch));
  DVT_TRY(runtime->complete("backend", params, s.backend.plugin));
  DVT_TRY(runtime->complete("tokenizer", params, s.tokenizer.plugin));
  for (PluginUse& stage : s.sampler) DVT_TRY(runtime->complete("sampler", params, stage));
  return runtime;
}

Status Runtime::complete(std::string_view kind, const PluginParams& params, PluginUse& use) {
  if (use.name.empty()) return Status::ok();
  DVT_TRY([[maybe_unused]] LoadedPlugin * plugin,
          plugins_->load(kind, use.name));  // with the reason if it cannot
  const std::vector<ParamSpec>* specs = params.find(kind, use.name);
  if (!specs)
    return internal_error("the parameters of " + std::string(kind) + " \"" + use.name +
                          "\" are not known");
  DVT_TRY(use.params, complete_params(use.params, *specs, use.path));
  return Status::ok();
}

Result<Settings::Backend> Runtime::other_backend(const std::string& name,
                                                 const std::string& asked_by) {
  if (name == settings_.backend.plugin.name) return settings_.backend;
  const PluginParams params = plugin_params();
  Node config = config_;
  const Node* section = config.find("backend");
  Node changed = section && section->is_map() ? *section : Node::make_map();
  changed.set("plugin", Node::make_string(name))
      .set_origin({std::make_shared<const std::string>(asked_by)});
  const std::vector<ParamSpec>* own = params.find("backend", name);
  if (own) {
    const std::vector<ParamSpec>& fixed = find_section("backend")->keys;
    std::erase_if(changed.entries(), [&](const Node::Entry& entry) {
      const auto is_it = [&](const ParamSpec& spec) { return spec.name == entry.first; };
      return std::none_of(fixed.begin(), fixed.end(), is_it) &&
             std::none_of(own->begin(), own->end(), is_it);
    });
  }
  config.set("backend", std::move(changed));
  DVT_TRY(validate(config, params));
  DVT_TRY(Settings settings, read_settings(config));
  DVT_TRY(complete("backend", params, settings.backend.plugin));
  return std::move(settings.backend);
}

Result<Node> Runtime::open_checkpoint() {
  if (settings_.model.path.empty()) {
    checkpoint_ = Checkpoint::none();
    return Node();
  }
  Result<std::unique_ptr<Checkpoint>> opened =
      Checkpoint::open(settings_.model.path, settings_.model.formats, *plugins_);
  if (!opened) {  // whoever needs it says so
    checkpoint_status_ = opened.status();
    return Node();
  }
  checkpoint_ = std::move(*opened);
  DVT_TRY(const Node* generation, checkpoint_->document("generation"));
  return generation ? defaults_of_generation(*generation) : Node();
}

Result<std::unique_ptr<Checkpoint>> Runtime::take_checkpoint() {
  DVT_TRY(checkpoint_status_);
  return std::move(checkpoint_);
}

// validate() knows only the plugins that load. One that is there but broken is reported with its own
// reason, not as a name that nobody knows.
Status Runtime::check_named_plugins() {
  const auto check = [this](std::string_view kind, const PluginUse& use) -> Status {
    const auto& all = plugins_->candidates();
    const bool is_there = std::any_of(all.begin(), all.end(), [&](const Candidate& c) {
      return c.kind == kind && is_meant(c, use.name);
    });
    if (use.name.empty() || !is_there) return Status::ok();
    const Result<LoadedPlugin*> plugin = plugins_->load(kind, use.name);
    return plugin ? Status::ok() : plugin.status();
  };
  DVT_TRY(check("arch", settings_.model.arch));
  DVT_TRY(check("backend", settings_.backend.plugin));
  DVT_TRY(check("tokenizer", settings_.tokenizer.plugin));
  for (const PluginUse& stage : settings_.sampler) DVT_TRY(check("sampler", stage));
  return Status::ok();
}

PluginParams Runtime::plugin_params() {
  PluginParams out;
  out.find = [this](std::string_view kind, std::string_view name) -> const std::vector<ParamSpec>* {
    static const std::vector<ParamSpec> kNone;
    if (name.empty()) return &kNone;  // the checkpoint decides: no keys of its own
    const std::pair<std::string, std::string> key(kind, name);
    if (const auto it = params_.find(key); it != params_.end()) return &it->second;
    Result<LoadedPlugin*> plugin = plugins_->load(kind, name);
    if (!plugin) return nullptr;
    Result<std::vector<ParamSpec>> specs = param_specs(*(*plugin)->table);
    if (!specs) {
      log_error("plugins", specs.status().message());
      return nullptr;
    }
    return &(params_[key] = std::move(*specs));
  };
  out.names = [this](std::string_view kind) { return plugins_->names(kind); };
  out.places = [this] { return plugins_->looked_in() + "; plugins.path adds folders"; };
  return out;
}

Result<std::unique_ptr<Session>> Session::open(const std::string& program,
                                               const ModelOptions& options,
                                               const SessionOptions& session) {
  auto self = std::unique_ptr<Session>(new Session);
  DVT_TRY(self->runtime_, Runtime::open(program, options));
  Runtime& runtime = *self->runtime_;
  Progress progress;
  ModelLoad load{runtime.settings(), runtime.plugins(), runtime.host(), runtime.ops()};
  load.observed = session.observed;
  load.observe_layers = session.observe_layers;
  load.all_rows = session.all_rows;
  load.least_context = session.least_context;
  load.plan_only = session.plan_only;
  load.cancel = interrupt_flag();
  load.progress = [&progress](uint64_t done, uint64_t total, std::string_view what) {
    progress.update(what, done, total);
  };
  DVT_TRY(std::unique_ptr<Checkpoint> checkpoint, runtime.take_checkpoint());
  DVT_TRY(self->model_, Model::load(load, std::move(checkpoint)));
  progress.finish();
  DVT_TRY(check_stop_ids(runtime, *self->model_));
  for (const PluginUse& stage : runtime.settings().sampler) {
    DVT_TRY(LoadedPlugin * plugin, runtime.plugins().load("sampler", stage.name));
    const auto* table = plugin->interface<dvt_sampler_v1>("dovetail.sampler/1");
    if (!table)
      return unsupported("plugin \"" + stage.name + "\" has no interface dovetail.sampler/1");
    DVT_TRY(std::vector<ParamSpec> declared, param_specs(*plugin->table));
    DVT_TRY(self->chain_.add(stage.name, table, plugin->self, stage.params,
                             static_cast<uint32_t>(self->model_->vocab_size()),
                             std::move(declared)));
  }
  self->chain_.set_pool(&runtime.pool());
  if (self->model_->tokenizer()) self->chain_.set_n_ids(self->model_->tokenizer()->n_ids());
  return self;
}

std::unique_ptr<Engine> Session::make_engine() const {
  const Settings::Scheduler& s = runtime_->settings().scheduler;
  SchedulerLimits limits;
  limits.max_batch_tokens = static_cast<uint32_t>(s.max_batch_tokens);
  limits.max_seqs = static_cast<uint32_t>(s.max_seqs);
  limits.prefill_chunk = static_cast<uint32_t>(s.prefill_chunk);
  return std::make_unique<Engine>(*model_, chain_, limits);
}

Result<BackendMove> Session::move_to(const std::string& name, const std::string& asked_by,
                                     Engine& engine) {
  const auto start = Clock::now();
  Settings settings = runtime_->settings();
  DVT_TRY(settings.backend, runtime_->other_backend(name, asked_by));
  Progress progress;
  StageLoad load{settings, runtime_->plugins(), runtime_->ops(), interrupt_flag()};
  load.progress = [&progress](uint64_t done, uint64_t total, std::string_view what) {
    progress.update(what, done, total);
  };
  const Result<StateMove> states = engine.move_to(load);
  progress.finish();
  DVT_TRY(states);
  return BackendMove{*states, std::chrono::duration<double>(Clock::now() - start).count()};
}

std::string Session::backend_text() const {
  const std::string &plugin = model_->backend_name(), &variant = model_->backend_variant();
  return variant == plugin ? plugin : plugin + " (" + variant + ")";
}

RequestParams Session::request_params() const {
  const Settings::Generate& g = runtime_->settings().generate;
  RequestParams params;
  params.max_tokens = static_cast<uint32_t>(g.max_tokens);
  params.stop = g.stop;
  for (int32_t id : g.stop_ids) params.stop_ids.push_back(static_cast<TokenId>(id));
  if (!g.ignore_eos)
    params.stop_ids.insert(params.stop_ids.end(), model_->eos_ids().begin(),
                           model_->eos_ids().end());
  if (g.seed) params.seed = static_cast<uint64_t>(*g.seed);
  return params;
}

}  // namespace dovetail::core
