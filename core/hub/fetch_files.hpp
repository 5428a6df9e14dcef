// The files that a folder lacks, fetched several at once.
#pragma once

#include "core/base/status.hpp"
#include "core/hub/pull.hpp"
#include "core/hub/record.hpp"

namespace dovetail::core {

/// Fetches what is not whole in `report` and says so there; the record is saved after each file. The first
/// failure stops the others, which keep what they have.
/// errors  download()'s; kIo: a folder for the files, or the record, cannot be written.
Status fetch_files(const PullRequest& request, const HubAccess& access, const HubListing& listing,
                   PullRecord& record, PullReport& report, const PullProgress& progress);

}  // namespace dovetail::core
