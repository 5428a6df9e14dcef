// pull(): a model of a hub becomes a folder. The order of a pull is here and nowhere else:
// listing -> selection -> lock -> what is there -> room on the disk -> files, several at once -> record.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.hpp"
#include "core/hub/access.hpp"
#include "core/hub/listing.hpp"
#include "core/hub/selection.hpp"

namespace dovetail::core {

struct PullRequest {
  std::string id;        // as model_id() gives it
  std::string revision;  // empty: main, or without the hub what the folder has
  Wanted wanted;
  std::filesystem::path folder;
  bool force = false;    // replace files that no pull put there
  bool verify = false;   // read files that are there, whatever the record says
  bool dry_run = false;  // change nothing
  uint32_t n_jobs = 4, n_retries = 5;
};

/// How a pull tells what it does; all of it on the thread that called.
struct PullProgress {
  std::function<bool()> interrupted = [] { return false; };
  std::function<void(std::string_view what, uint64_t done, uint64_t total)> update =
      [](std::string_view, uint64_t, uint64_t) {};
  std::function<void(const std::string&)> note = [](const std::string&) {};
};

enum class FileState : uint8_t {
  kWhole,
  kPartial,  // begun
  kMissing,
  kForeign,  // another content of that name, which no pull put there
};

struct PulledFile {
  HubFile file;
  FileState before = FileState::kMissing;
  uint64_t n_there = 0;    // bytes before
  uint64_t n_fetched = 0;  // bytes that came
  bool is_whole = false;   // now
};

struct PullReport {
  std::string commit;
  std::vector<PulledFile> files;
  std::vector<std::string> refused;  // pickles
  std::vector<std::string> stale;    // of an earlier pull, not of this commit
  uint64_t n_bytes() const;
  uint64_t n_fetched() const;
  /// Bytes that a pull would still fetch.
  uint64_t n_missing() const;
  bool is_whole() const;
};

/// Without the hub (access.is_offline) and with dry_run it only looks at what is there.
/// errors  kInvalid: no such model, revision or file; the folder holds another model, or files that no pull put
///         there. kIo: the hub, the network, the disk. kFormat: what comes is not what the hub lists.
///         kUnsupported: no weights that Dovetail reads. kCancelled: what came is kept.
Result<PullReport> pull(const PullRequest& request, const HubAccess& access,
                        const PullProgress& progress);

}  // namespace dovetail::core
