// One file of a hub, fetched to its place: resumed, tried again, held to its size and checksum.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "core/base/status.hpp"
#include "core/hub/listing.hpp"

namespace dovetail::core {

struct Download {
  HubFile file;
  std::string url, name;       // for messages: with its folder
  std::filesystem::path path;  // its folder is there; nobody else writes it (FolderLock)
  uint32_t n_retries = 5;
};

/// What is known of it in the end, and what came over the network.
struct Downloaded {
  HubFile file;
  uint64_t n_fetched = 0, n_resumed = 0;
};

/// The file appears under its name when it is whole and has its checksum. What came until a failure stays
/// beside it, under a name that says of which version it is, for the next call.
/// `moved` is told of bytes that are there now, or, below zero, are not any more.
/// errors  refusal()'s; kIo: the disk is full, or the hub fails in n_retries tries that bring nothing new.
///         kFormat: another size or checksum, twice. kCancelled.
Result<Downloaded> download(HttpClient& client, const HubAccess& access, const Download& what,
                            const PullEvents& events, const std::function<void(int64_t)>& moved);

/// Where it keeps what there is of a file that is not whole; `file` has a checksum.
std::filesystem::path partial_path(const std::filesystem::path& path, const HubFile& file);

}  // namespace dovetail::core
