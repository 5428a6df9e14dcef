// HubListing: the files of one commit of a hub's model, with sizes and checksums.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/status.hpp"
#include "core/hub/checksum.hpp"
#include "core/hub/http.hpp"
#include "core/hub/retries.hpp"

namespace dovetail::core {

struct HubFile {
  std::string name;              // with "/", as the hub has it: not yet known to be a safe one
  std::optional<uint64_t> size;  // some mirrors say neither before the file is asked for
  Checksum checksum;
};

struct HubListing {
  std::string id;  // "ORG/NAME"
  std::string
      commit;  // all files are fetched of this one, whatever happens to the branch meanwhile
  std::vector<HubFile> files;
};

/// A model's id of what users type: ORG/NAME, NAME, or the model's page below the endpoint.
/// errors  kInvalid
Result<std::string> model_id(const std::string& text, const HubAccess& access);

/// errors  kInvalid: no such model or revision, a token is missing or wrong. kIo: not reached, or only errors
///         in `n_retries` tries more. kFormat: what came is no listing. kCancelled.
Result<HubListing> fetch_listing(HttpClient& client, const HubAccess& access, const std::string& id,
                                 const std::string& revision, uint32_t n_retries,
                                 const PullEvents& events);

/// The hub's answer to "api/models/ID/revision/REVISION?blobs=true".
Result<HubListing> parse_listing(const std::string& text, const std::string& source,
                                 const std::string& id);

/// A whole file as text, held to its checksum.
/// errors  as fetch_listing(); kInvalid: longer than max_bytes.
Result<std::string> fetch_text(HttpClient& client, const HubAccess& access,
                               const HubListing& listing, const HubFile& file, uint64_t max_bytes,
                               uint32_t n_retries, const PullEvents& events);

/// Where a file's bytes are asked for.
std::string file_url(const HubAccess& access, const HubListing& listing, const HubFile& file);

/// Why a reply that is not good is none, in the user's words. `what` is the model or the file.
Status refusal(const HttpReply& reply, const HubAccess& access, const std::string& what);

}  // namespace dovetail::core
