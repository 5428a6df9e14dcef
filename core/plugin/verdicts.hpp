// Verdicts: what probes in a child process found, remembered by the content of the file.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "core/base/status.hpp"

namespace dovetail::core {

class Verdicts {
 public:
  /// Nothing is remembered without a folder.
  explicit Verdicts(std::optional<std::filesystem::path> folder) : folder_(std::move(folder)) {}

  /// What an earlier probe of these bytes, for this interface, found; nothing if there was none.
  std::optional<Status> find(const std::string& sha256) const;
  /// A verdict that cannot be written is not kept; the next start probes again.
  void remember(const std::string& sha256, const Status& verdict) const;

 private:
  std::filesystem::path file_of(const std::string& sha256) const;
  std::optional<std::filesystem::path> folder_;
};

}  // namespace dovetail::core
