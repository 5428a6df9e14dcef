// Finding, choosing, loading, starting, stopping.
#include "core/plugin/registry.hpp"

#include <fnmatch.h>
#include <dovetail/sha256.hpp>

#include <algorithm>
#include <cstring>
#include <set>
#include <system_error>
#include <utility>

#include "core/base/log.hpp"
#include "core/base/nearest.hpp"
#include "core/plugin/library.hpp"
#include "core/plugin/private_copy.hpp"

namespace dovetail::core {
namespace {

namespace fs = std::filesystem;

std::optional<fs::path> verdict_folder(const PluginEnvironment& environment) {
  const std::optional<fs::path> cache = user_cache_folder(environment);
  return cache ? std::optional<fs::path>(*cache / "plugin-verdicts") : std::nullopt;
}

// By id, name or KIND/NAME.
bool matches_any(const std::vector<std::string>& globs, const Candidate& c) {
  const std::string names[] = {c.file.manifest->id, c.name, c.kind + "/" + c.name};
  return std::any_of(globs.begin(), globs.end(), [&](const std::string& glob) {
    return std::any_of(std::begin(names), std::end(names), [&](const std::string& name) {
      return fnmatch(glob.c_str(), name.c_str(), 0) == 0;
    });
  });
}

bool has_key(const Candidate& c, std::string_view key) {
  if (!c.file.manifest) return false;
  const std::vector<std::string>& keys = c.file.manifest->keys;
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

void refuse(Candidate& c, LoadStep step, Status reason) {
  c.state = Candidate::State::kRefused;
  c.step = step;
  c.reason = std::move(reason);
}

}  // namespace

bool is_meant(const Candidate& c, std::string_view plugin) {
  return c.name == plugin || c.kind + "/" + c.name == plugin || c.file.path == plugin ||
         (c.file.manifest && c.file.manifest->id == plugin);
}

std::vector<dvt_param> LoadedPlugin::params() const {
  std::vector<dvt_param> out;
  if (table->n_params == 0 || table->params == nullptr) return out;
  const size_t stride = table->params[0].struct_size;
  const auto* at = reinterpret_cast<const char*>(table->params);
  for (uint64_t i = 0; i < table->n_params && stride > 0; ++i, at += stride) {
    dvt_param& param = out.emplace_back();
    std::memcpy(&param, at, std::min(stride, sizeof param));
  }
  return out;
}

PluginRegistry::PluginRegistry(const SearchOptions& options, HostServices& host)
    : options_(options),
      host_(host),
      verdicts_(verdict_folder(options.environment)),
      places_(search_places(options)) {}

Result<std::unique_ptr<PluginRegistry>> PluginRegistry::create(const SearchOptions& options,
                                                               HostServices& host) {
  std::unique_ptr<PluginRegistry> registry(new PluginRegistry(options, host));
  for (const SearchPlace& place : registry->places_) {
    if (place.problem.empty() || place.wanted == SearchPlace::Wanted::kByDefault) continue;
    const std::string what = place.origin + ": \"" + printable(place.path.string()) + "\" " +
                             place.problem + ", expected a folder of plugins or one plugin's file";
    if (place.wanted == SearchPlace::Wanted::kByConfig) return io_error(what);
    log_warn("plugins", what);
  }
  registry->look();
  return registry;
}

PluginRegistry::~PluginRegistry() {
  for (auto it = loaded_.rbegin(); it != loaded_.rend(); ++it) {
    LoadedPlugin& plugin = **it;
    CallFrame call;
    if (plugin.table->drain != nullptr) {
      if (const Status drained = call.check(plugin.table->drain(call, plugin.self)); !drained) {
        log_warn("plugins", plugin.manifest.id + " did not finish its work: " + drained.message());
      }
    }
    plugin.table->stop(plugin.self);
  }
}

void PluginRegistry::look() {
  const std::vector<fs::path> trusted = trusted_folders(options_.program);
  std::set<fs::path> seen;  // a folder may be named twice
  for (const SearchPlace& place : places_) {
    for (const fs::path& path : plugin_files(place)) {
      std::error_code error;
      const fs::path real = fs::canonical(path, error);
      if (error || !seen.insert(real).second) continue;
      Candidate c;
      c.file = inspect_plugin(real, libraries_);
      c.origin = place.origin;
      c.kind = c.file.manifest ? c.file.manifest->kind : path.parent_path().filename().string();
      c.name = c.file.manifest ? c.file.manifest->name : path.stem().string();
      c.is_trusted = std::any_of(trusted.begin(), trusted.end(),
                                 [&](const fs::path& folder) { return is_below(real, folder); });
      if (!c.file.is_good()) {
        refuse(c, c.file.findings[0].step, c.file.findings[0].status);
      } else {
        apply_policy(c);
      }
      candidates_.push_back(std::move(c));
    }
  }
  shadow();
}

void PluginRegistry::apply_policy(Candidate& c) const {
  if (matches_any(options_.deny, c)) {
    refuse(c, LoadStep::kPolicy, unsupported("is denied by the config's plugins.deny"));
  } else if (!options_.allow.empty() && !matches_any(options_.allow, c)) {
    refuse(c, LoadStep::kPolicy, unsupported("is not in the config's plugins.allow"));
  }
}

void PluginRegistry::shadow() {
  for (size_t i = 0; i < candidates_.size(); ++i) {
    Candidate& later = candidates_[i];
    if (later.state != Candidate::State::kFound) continue;
    for (size_t k = 0; k < i; ++k) {
      const Candidate& first = candidates_[k];
      if (first.state != Candidate::State::kFound) continue;
      const bool same = first.file.manifest->id == later.file.manifest->id ||
                        (first.kind == later.kind && first.name == later.name);
      if (!same) continue;
      later.state = Candidate::State::kShadowed;
      later.shadowed_by = first.file.path.string();
      break;
    }
  }
}

Result<LoadedPlugin*> PluginRegistry::load(std::string_view kind, std::string_view name_or_id) {
  const std::lock_guard lock(mutex_);
  std::vector<Candidate*> matches;
  std::vector<std::string> known;
  for (Candidate& c : candidates_) {
    if (c.kind != kind) continue;
    known.push_back(c.name);
    if (c.name == name_or_id || (c.file.manifest && c.file.manifest->id == name_or_id))
      matches.push_back(&c);
  }
  if (!matches.empty()) return load_first(matches);
  return invalid(
      not_found("there is no " + std::string(kind) + " plugin \"" + printable(name_or_id) + "\"",
                name_or_id, known));
}

Result<LoadedPlugin*> PluginRegistry::find_by_key(std::string_view kind, std::string_view key) {
  const std::lock_guard lock(mutex_);
  std::vector<Candidate*> matches;
  std::vector<std::string> known;
  for (Candidate& c : candidates_) {
    if (c.kind != kind || !c.file.manifest) continue;
    known.insert(known.end(), c.file.manifest->keys.begin(), c.file.manifest->keys.end());
    if (has_key(c, key)) matches.push_back(&c);
  }
  if (!matches.empty()) return load_first(matches);
  const std::string what = kind == "arch" ? "architecture" : std::string(kind);
  return unsupported(
      not_found("no plugin provides " + what + " \"" + printable(key) + "\"", key, known));
}

Result<LoadedPlugin*> PluginRegistry::load_first(const std::vector<Candidate*>& matches) {
  std::optional<Status> first_reason;
  for (Candidate* c : matches) {
    if (c->state != Candidate::State::kRefused) {
      Result<LoadedPlugin*> loaded = load_candidate(*c);
      if (loaded) {
        if (first_reason)
          log_warn("plugins",
                   first_reason->message() + "; " + c->file.path.string() + " is used instead");
        return loaded;
      }
    }
    if (!first_reason) {
      first_reason = Status(c->reason.code(), c->kind + " plugin \"" + c->name +
                                                  "\" cannot be used: " + c->file.path.string() +
                                                  ": " + c->reason.message());
    }
  }
  return *first_reason;
}

Result<LoadedPlugin*> PluginRegistry::load_candidate(Candidate& c) {
  for (size_t i = 0; i < loaded_.size(); ++i) {
    if (loaded_from_[i] == &c) return loaded_[i].get();
  }
  LoadStep step = LoadStep::kLoad;
  const Result<const dvt_plugin_v1*> table = bring_in(c, &step);
  if (!table) {
    refuse(c, step, table.status());
    return table.status();
  }
  auto plugin = std::make_unique<LoadedPlugin>();
  plugin->manifest = *c.file.manifest;
  plugin->file = c.file.path;
  plugin->table = *table;
  CallFrame call;
  const Status started =
      call.check(plugin->table->start(call, host_.table_for(c.kind + "/" + c.name), &plugin->self));
  if (!started) {
    refuse(c, LoadStep::kStart, Status(started.code(), "does not start: " + started.message()));
    return c.reason;
  }
  if (Status complete = check_interfaces(*plugin->table, plugin->self, plugin->manifest);
      !complete) {
    plugin->table->stop(plugin->self);
    refuse(c, LoadStep::kStart, std::move(complete));
    return c.reason;
  }
  c.state = Candidate::State::kLoaded;
  loaded_.push_back(std::move(plugin));
  loaded_from_.push_back(&c);
  return loaded_.back().get();
}

Result<const dvt_plugin_v1*> PluginRegistry::bring_in(const Candidate& c, LoadStep* step) {
  *step = LoadStep::kLoad;
  if (c.is_trusted) return load_library(c.file.path, *c.file.manifest);

  DVT_TRY(const std::shared_ptr<File> file, File::open(c.file.path));
  // What runs is what was checked: a copy in memory, or in the user's cache where that cannot be.
  Result<SealedCopy> copy = c.file.brings_libraries()
                                ? Result<SealedCopy>(unsupported("finds libraries by its place"))
                                : SealedCopy::make(*file);
  fs::path path;
  std::string key;
  std::optional<FolderLock> in_use;  // of a private copy
  if (copy) {
    path = copy->path();
  } else {
    const std::optional<fs::path> cache = user_cache_folder(options_.environment);
    if (!cache)
      return unsupported(copy.status().message() +
                         ", and there is no folder for a private copy; set XDG_CACHE_HOME or HOME");
    DVT_TRY(PrivateCopy kept, private_copy(c.file.path, *c.file.elf, *cache / "plugin-copies"));
    path = std::move(kept.path);
    key = std::move(kept.key);
    in_use.emplace(std::move(kept.in_use));
  }

  DVT_TRY(const std::shared_ptr<File> what_runs, File::open(path, c.file.path.string()));
  DVT_TRY(const std::span<const std::byte> bytes, what_runs->map());
  // The file may have changed since it was found.
  const Inspection again = inspect_plugin(*what_runs, copy ? c.file.path : path, libraries_);
  if (!again.is_good()) {
    *step = again.findings[0].step;
    return again.findings[0].status;
  }
  *step = LoadStep::kProbe;
  const std::string sha256 = copy ? sha256_hex(bytes) : key;
  std::optional<Status> verdict = verdicts_.find(sha256);
  if (!verdict) {
    verdict = probe_in_child(path, *c.file.manifest);
    // Running out of time or processes says little about the plugin.
    if (verdict->code() == Code::kOk || verdict->code() == Code::kUnsupported)
      verdicts_.remember(sha256, *verdict);
  }
  DVT_TRY(*verdict);
  *step = LoadStep::kLoad;
  Result<const dvt_plugin_v1*> table = load_library(path, *c.file.manifest);
  if (table && copy) copy->leak();
  if (table && in_use) in_use->leak();
  return table;
}

void PluginRegistry::try_out(std::string_view plugin) {
  const std::lock_guard lock(mutex_);
  for (Candidate& c : candidates_) {
    const bool untried =
        c.state == Candidate::State::kFound || c.state == Candidate::State::kShadowed;
    if (!untried || !is_meant(c, plugin)) continue;
    if (Status tried = probe_in_child(c.file.path, *c.file.manifest); !tried)
      refuse(c, LoadStep::kProbe, std::move(tried));
  }
}

std::string PluginRegistry::not_found(const std::string& what, std::string_view wanted,
                                      const std::vector<std::string>& known) const {
  return what + did_you_mean(wanted, known) + "; " + looked_in();
}

std::string PluginRegistry::looked_in() const {
  std::string looked;
  for (const SearchPlace& place : places_) {
    looked += (looked.empty() ? "" : ", ") + place.path.string() +
              (place.problem.empty() ? "" : " (" + place.problem + ")");
  }
  return "looked in " + (looked.empty() ? "no folder" : looked);
}

std::vector<std::string> PluginRegistry::names(std::string_view kind) const {
  std::set<std::string> out;
  for (const Candidate& c : candidates_) {
    const bool usable = c.state == Candidate::State::kFound || c.state == Candidate::State::kLoaded;
    if (c.kind == kind && usable) out.insert(c.name);
  }
  return {out.begin(), out.end()};
}

}  // namespace dovetail::core
