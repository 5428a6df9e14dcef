#include "core/cli/pull_hint.hpp"

#include "core/cli/command.hpp"
#include "core/hub/listing.hpp"

namespace dovetail::core {
namespace {

namespace fs = std::filesystem;

fs::path models_folder(const Environment& environment) {
  const std::string named = environment("DOVETAIL_MODELS").value_or("");
  return named.empty() ? fs::path("models") : fs::path(named);
}

// "models/" is "models".
fs::path without_slash(const fs::path& path) {
  const fs::path normal = path.lexically_normal();
  return normal.has_filename() ? normal : normal.parent_path();
}

}  // namespace

fs::path pull_folder(const std::string& id, const Environment& environment) {
  return models_folder(environment) / id.substr(id.find('/') + 1);
}

std::string pull_hint(const std::string& path, const Environment& environment) {
  const fs::path given = without_slash(path);
  const std::string name = given.filename().string();
  if (name.ends_with(".yaml") || name.ends_with(".yml") || !given.has_parent_path()) return "";
  if (given.parent_path() == without_slash(models_folder(environment)))
    return "; dovetail pull ORG/" + name + " fetches it";
  if (path.front() == '.' || !model_id(path, HubAccess{"-"})) return "";
  std::error_code error;
  const fs::path pulled = pull_folder(path, environment);
  if (fs::is_directory(pulled, error)) return "; did you mean " + shell_word(pulled.string()) + "?";
  return "; for a model of a hub: dovetail pull " + path;
}

}  // namespace dovetail::core
