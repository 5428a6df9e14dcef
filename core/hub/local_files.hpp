// What a folder has of the files that are wanted.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/hub/pull.hpp"
#include "core/hub/record.hpp"

namespace dovetail::core {

/// Compares each file with what is there: by the record where that knows it and `verify` does not ask for more,
/// else by reading it. `record` is the folder's, an empty one if it has none.
/// errors  kIo: a file cannot be read, a folder has its name. kCancelled.
Result<std::vector<PulledFile>> look_at_files(const std::vector<HubFile>& files,
                                              const PullRequest& request, const PullRecord& record,
                                              const std::string& commit,
                                              const PullProgress& progress);

}  // namespace dovetail::core
