#include "core/hub/pull.hpp"

#include <chrono>
#include <optional>
#include <set>
#include <thread>

#include "core/base/files.hpp"
#include "core/base/folder_lock.hpp"
#include "core/base/log.hpp"
#include "core/hub/fetch_files.hpp"
#include "core/hub/local_files.hpp"
#include "core/hub/record.hpp"

namespace dovetail::core {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kLongestIndex = 64 << 20;

Status interrupted() {
  return {Code::kCancelled, "interrupted"};
}

// A small file that is there already, if it is the right one.
std::optional<std::string> local_text(const fs::path& path, const Checksum& wanted) {
  const Result<std::shared_ptr<File>> file = File::open(path);
  if (!file || wanted.kind == Checksum::Kind::kNone) return std::nullopt;
  Result<std::string> text = (*file)->read_all(kLongestIndex);
  const Result<Checksum> got = checksum_of(wanted.kind, text ? *text : "");
  return text && got && *got == wanted ? std::optional(std::move(*text)) : std::nullopt;
}

// Only one pull at a time writes a folder; the next one waits and finds what this one brought. A file system
// without locks is no error.
Status take_lock(const fs::path& folder, const PullProgress& progress,
                 std::optional<FolderLock>& out) {
  for (bool has_told = false;;) {
    Result<std::optional<FolderLock>> lock = FolderLock::try_take(folder, FolderLock::Kind::kAlone);
    if (!lock) return Status::ok();
    if (lock->has_value()) {
      out.emplace(std::move(**lock));
      return Status::ok();
    }
    if (!has_told)
      progress.note(folder.string() + ": another pull is at work there; waiting for it");
    has_told = true;
    if (progress.interrupted()) return interrupted();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

// The folder of a pull that failed before anything came goes with it.
class NewFolder {
 public:
  Status create(const fs::path& path) {
    std::error_code error;
    if (fs::create_directories(path, error)) path_ = path;
    if (!fs::is_directory(path, error))
      return io_error(path.string() + ": cannot make the folder" +
                      (error ? ": " + errno_text(error.value()) : ""));
    return Status::ok();
  }
  ~NewFolder() {
    std::error_code ignored;
    if (path_.empty() || is_kept_) return;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(path_, ignored))
      if (entry.is_regular_file(ignored) && entry.path() != PullRecord::path_in(path_)) return;
    fs::remove_all(path_, ignored);
  }
  void keep() { is_kept_ = true; }

 private:
  fs::path path_;
  bool is_kept_ = false;
};

Result<PullRecord> load_record(const PullRequest& request) {
  DVT_TRY(std::optional<PullRecord> record, PullRecord::load(request.folder));
  if (!record) return PullRecord{};
  if (record->id != request.id)
    return invalid(request.folder.string() + ": holds " + printable(record->id) + ", not " +
                   request.id + "; -o names another folder");
  return std::move(*record);
}

Status refuse_foreign(const std::vector<PulledFile>& files, const PullRequest& request) {
  std::string names;
  for (const PulledFile& f : files)
    if (f.before == FileState::kForeign)
      names += (names.empty() ? "" : ", ") + printable(f.file.name);
  if (names.empty() || request.force) return Status::ok();
  return invalid(request.folder.string() +
                 ": is not changed: in it are files of other content than " + request.id +
                 "'s, which no pull put there or which were changed since: " + names +
                 "; --force replaces them, -o names another folder");
}

Status check_room(const PullReport& report, const fs::path& folder) {
  const std::optional<uint64_t> n_free = free_disk_bytes(folder);
  if (!n_free || *n_free >= report.n_missing()) return Status::ok();
  return io_error(folder.string() + ": " + bytes_text(report.n_missing()) +
                  " are to be fetched, but the disk has " + bytes_text(*n_free) +
                  " free; free some space, or -o names a folder elsewhere");
}

PullRecord new_record(PullRecord record, const PullRequest& request, const HubListing& listing,
                      const std::vector<PulledFile>& files) {
  record.id = request.id;
  record.revision = request.revision.empty() ? "main" : request.revision;
  record.commit = listing.commit;
  // What another pull began and nobody asks for now is not missed.
  std::erase_if(record.files, [](const auto& f) { return f.second.version.empty(); });
  for (const PulledFile& f : files) {
    PullRecord::Entry& entry = record.files[f.file.name];
    entry.size = f.file.size;
    entry.checksum = f.file.checksum;
    entry.is_whole = f.is_whole;
    if (!f.is_whole) continue;
    if (const auto file = File::open(request.folder / f.file.name))
      entry.version = (*file)->version();
  }
  return record;
}

std::vector<std::string> stale_files(const PullRecord& record, const HubListing& listing,
                                     const fs::path& folder) {
  std::set<std::string> names;
  for (const HubFile& file : listing.files) names.insert(file.name);
  std::vector<std::string> out;
  std::error_code error;
  for (const auto& [name, entry] : record.files)
    if (!names.contains(name) && fs::exists(folder / name, error)) out.push_back(name);
  return out;
}

// What the folder's record says is wanted, beside what is there.
Result<PullReport> look_offline(const PullRequest& request, const PullProgress& progress) {
  DVT_TRY(PullRecord record, load_record(request));
  if (record.id.empty())
    return io_error(request.folder.string() + ": no pull has been here, and the hub is not asked " +
                    "(--offline or HF_HUB_OFFLINE)");
  if (!request.revision.empty() && request.revision != record.revision &&
      request.revision != record.commit)
    return invalid(request.folder.string() + ": holds revision " + printable(record.revision) +
                   ", not " + printable(request.revision) + ", and the hub is not asked");
  const HubListing listing = record.listing();
  Wanted wanted = request.wanted;
  if (wanted.names.empty() && wanted.include.empty()) wanted.include = {"*"};
  DVT_TRY(const Selection selection,
          select_files(listing, wanted, [](const HubFile&) { return Result<std::string>(""); }));
  PullReport report{listing.commit, {}, {}, {}};
  DVT_TRY(report.files, look_at_files(selection.files, request, record, listing.commit, progress));
  return report;
}

}  // namespace

uint64_t PullReport::n_bytes() const {
  uint64_t n = 0;
  for (const PulledFile& f : files) n += f.file.size.value_or(0);
  return n;
}
uint64_t PullReport::n_fetched() const {
  uint64_t n = 0;
  for (const PulledFile& f : files) n += f.n_fetched;
  return n;
}
uint64_t PullReport::n_missing() const {
  uint64_t n = 0;
  for (const PulledFile& f : files)
    if (!f.is_whole && f.file.size.value_or(0) > f.n_there) n += *f.file.size - f.n_there;
  return n;
}
bool PullReport::is_whole() const {
  for (const PulledFile& f : files)
    if (!f.is_whole) return false;
  return true;
}

Result<PullReport> pull(const PullRequest& request, const HubAccess& access,
                        const PullProgress& progress) {
  if (access.is_offline) return look_offline(request, progress);
  const PullEvents events{progress.interrupted, progress.note};
  DVT_TRY(const std::unique_ptr<HttpClient> client,
          HttpClient::create(access, progress.interrupted));
  const std::string revision = request.revision.empty() ? "main" : request.revision;
  DVT_TRY(const HubListing listing,
          fetch_listing(*client, access, request.id, revision, request.n_retries, events));
  const auto read_index = [&](const HubFile& file) -> Result<std::string> {
    if (std::optional<std::string> text = local_text(request.folder / file.name, file.checksum))
      return std::move(*text);
    return fetch_text(*client, access, listing, file, kLongestIndex, request.n_retries, events);
  };
  DVT_TRY(Selection selection, select_files(listing, request.wanted, read_index));

  NewFolder folder;
  std::optional<FolderLock> lock;
  if (!request.dry_run) {
    DVT_TRY(folder.create(request.folder));
    DVT_TRY(take_lock(request.folder, progress, lock));
  }
  DVT_TRY(PullRecord record, load_record(request));
  PullReport report{listing.commit, {}, std::move(selection.refused), {}};
  DVT_TRY(report.files, look_at_files(selection.files, request, record, listing.commit, progress));
  report.stale = stale_files(record, listing, request.folder);
  if (request.dry_run) return report;
  DVT_TRY(refuse_foreign(report.files, request));
  DVT_TRY(check_room(report, request.folder));

  record = new_record(std::move(record), request, listing, report.files);
  DVT_TRY(record.save(request.folder));
  DVT_TRY(fetch_files(request, access, listing, record, report, progress));
  folder.keep();
  return report;
}

}  // namespace dovetail::core
