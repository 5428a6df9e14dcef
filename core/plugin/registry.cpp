#include "core/plugin/registry.hpp"
#include <dlfcn.h>
#include <filesystem>
namespace dovetail::core {
Result<LoadedPlugin*> PluginRegistry::load(std::string_view kind, std::string_view name) {
  const std::string key = std::string(kind) + "/" + std::string(name);
  if (auto it = loaded_.find(key); it != loaded_.end()) return &it->second;
  for (const std::string& d : dirs_) {
    const std::string path = d + "/" + key + ".so";
    if (!std::filesystem::exists(path)) continue;
    void* h = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!h) return invalid(dlerror());
    auto q = reinterpret_cast<dvt_plugin_query_fn>(dlsym(h, "dvt_plugin_query"));
    LoadedPlugin p;
    p.table = q(0, 1);
    CallFrame call;
    DVT_TRY(call.check(p.table->start(call, host_.table_for(key), &p.self)));
    return &(loaded_[key] = p);
  }
  return invalid("no plugin " + key);
}

Result<std::unique_ptr<PluginRegistry>> PluginRegistry::create(SearchOptions o, HostServices& host) {
  std::vector<std::string> dirs = o.paths;
  dirs.push_back((std::filesystem::path(o.program).parent_path().parent_path() / "lib/dovetail/plugins").string());
  return std::make_unique<PluginRegistry>(dirs, host);
}
std::vector<std::string> PluginRegistry::names(std::string_view kind) const {
  std::vector<std::string> out;
  for (const auto& d : dirs_) {
    std::error_code e;
    for (const auto& f : std::filesystem::directory_iterator(d + "/" + std::string(kind), e)) out.push_back(f.path().stem().string());
  }
  return out;
}
}
