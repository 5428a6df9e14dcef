#pragma once
#include <dovetail/abi/plugin.h>
#include <map>
#include <memory>
#include <string>
#include <vector>
#include "core/plugin/host.hpp"
namespace dovetail::core {
struct LoadedPlugin {
  const dvt_plugin_v1* table = nullptr;
  void* self = nullptr;
  template <class T>
  const T* interface(const char* name) const { return static_cast<const T*>(table->get_interface(self, abi_text(name))); }
};
struct SearchOptions { std::vector<std::string> paths, allow, deny; std::string program; };
class PluginRegistry {
 public:
  explicit PluginRegistry(std::vector<std::string> dirs, HostServices& host) : dirs_(std::move(dirs)), host_(host) {}
  Result<LoadedPlugin*> load(std::string_view kind, std::string_view name);
  Result<LoadedPlugin*> find_by_key(std::string_view kind, std::string_view key) { return load(kind, key); }
  static Result<std::unique_ptr<PluginRegistry>> create(SearchOptions o, HostServices& host);
  std::vector<std::string> names(std::string_view kind) const;
 private:
  std::vector<std::string> dirs_;
  HostServices& host_;
  std::map<std::string, LoadedPlugin> loaded_;
};
}
