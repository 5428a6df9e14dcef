// PluginRegistry: every plugin there is, which of them counts, and those that are loaded.
//
// Finding reads files and loads nothing. The first candidate in search order wins, by id and by kind
// and name; one that cannot be used stands in nobody's way. A plugin is loaded when it is asked for,
// started once, and never unloaded.
#pragma once

#include <dovetail/abi/plugin.h>

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.hpp"
#include "core/plugin/host.hpp"
#include "core/plugin/inspection.hpp"
#include "core/plugin/search.hpp"
#include "core/plugin/verdicts.hpp"

namespace dovetail::core {

/// A file that may be a plugin, and what became of it.
struct Candidate {
  enum class State : uint8_t { kFound, kLoaded, kRefused, kShadowed };

  Inspection file;
  std::string origin;       // the place it was found in
  std::string kind, name;   // of the manifest; of the path where there is none
  bool is_trusted = false;  // loads in place, without a probe
  State state = State::kFound;
  LoadStep step = LoadStep::kFile;  // where it was refused
  Status reason;                    // why
  std::string shadowed_by;          // path of the candidate that counts instead
};

/// Whether a user who says `plugin` (an id, name, KIND/NAME or path) means this one.
bool is_meant(const Candidate& candidate, std::string_view plugin);

struct LoadedPlugin {
  Manifest manifest;
  std::filesystem::path file;  // as found, also where a copy of it runs
  const dvt_plugin_v1* table = nullptr;
  void* self = nullptr;

  /// Null if the plugin does not have it.
  template <class T>
  const T* interface(std::string_view interface_name) const {
    return static_cast<const T*>(table->get_interface(self, abi_text(interface_name)));
  }
  /// The declared parameters.
  std::vector<dvt_param> params() const;
};

class PluginRegistry {
 public:
  /// Looks for plugins. `host` must outlive the registry. A place of the environment that cannot be
  /// searched is a warning.
  /// errors  kIo: a place that the config names cannot be searched
  static Result<std::unique_ptr<PluginRegistry>> create(const SearchOptions& options,
                                                        HostServices& host);
  /// Drains and stops the plugins, last started first.
  ~PluginRegistry();
  PluginRegistry(const PluginRegistry&) = delete;
  PluginRegistry& operator=(const PluginRegistry&) = delete;

  /// The plugin of that kind with that name or id, loaded and started; valid as long as the registry.
  ///
  /// threads  any; one load at a time
  /// errors   kInvalid: there is none, with the nearest name and where was looked. Else the first
  ///          candidate's reason.
  Result<LoadedPlugin*> load(std::string_view kind, std::string_view name_or_id);

  /// The plugin of that kind whose manifest has `key`: an architecture by model_type.
  /// errors  kUnsupported: no plugin provides it, with the nearest key. Else as load()
  Result<LoadedPlugin*> find_by_key(std::string_view kind, std::string_view key);

  /// Tries each usable candidate that `plugin` (an id, name, KIND/NAME or path) may mean in a child
  /// process, so that its candidates say whether they would load.
  void try_out(std::string_view plugin);

  /// Names of the usable plugins of a kind, sorted.
  std::vector<std::string> names(std::string_view kind) const;

  const std::vector<Candidate>& candidates() const { return candidates_; }
  const std::vector<SearchPlace>& places() const { return places_; }
  /// "looked in /a (does not exist), /b": the places, for a message that something is not there.
  std::string looked_in() const;

 private:
  PluginRegistry(const SearchOptions& options, HostServices& host);
  void look();
  void apply_policy(Candidate& candidate) const;
  void shadow();
  Result<LoadedPlugin*> load_first(const std::vector<Candidate*>& matches);
  Result<LoadedPlugin*> load_candidate(Candidate& candidate);
  Result<const dvt_plugin_v1*> bring_in(const Candidate& candidate, LoadStep* step);
  std::string not_found(const std::string& what, std::string_view wanted,
                        const std::vector<std::string>& known) const;

  const SearchOptions options_;
  HostServices& host_;
  Verdicts verdicts_;
  LibraryFinder libraries_;
  std::vector<SearchPlace> places_;
  std::vector<Candidate> candidates_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<LoadedPlugin>> loaded_;  // in the order they were started
  std::vector<const Candidate*> loaded_from_;          // beside loaded_
};

}  // namespace dovetail::core
