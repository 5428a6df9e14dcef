#include "core/hub/local_files.hpp"

#include "core/base/files.hpp"
#include "core/base/log.hpp"
#include "core/hub/download.hpp"

namespace dovetail::core {
namespace {

namespace fs = std::filesystem;

class Looker {
 public:
  Looker(const PullRequest& request, const PullRecord& record, const std::string& commit,
         const PullProgress& progress)
      : request_(request), record_(record), commit_(commit), progress_(progress) {}

  Result<PulledFile> look(const HubFile& wanted) const {
    PulledFile out{wanted};
    const fs::path path = request_.folder / wanted.name;
    std::error_code error;
    if (fs::exists(path, error)) {
      DVT_TRY(const std::shared_ptr<File> file, File::open(path));
      const auto it = record_.files.find(wanted.name);
      const PullRecord::Entry* entry = it == record_.files.end() ? nullptr : &it->second;
      const bool is_ours = entry && entry->version == file->version();
      DVT_TRY(const bool is_whole, is_wanted(wanted, path, *file, is_ours ? entry : nullptr));
      if (is_whole) {
        out.before = FileState::kWhole;
        out.is_whole = true;
        out.n_there = file->size();
        out.file.size = file->size();
        return out;
      }
      if (!is_ours) out.before = FileState::kForeign;
    }
    const fs::path part = partial_path(path, wanted);
    if (wanted.checksum.hex.empty() || !fs::is_regular_file(part, error)) return out;
    out.n_there = fs::file_size(part, error);
    if (out.before == FileState::kMissing && out.n_there > 0) out.before = FileState::kPartial;
    return out;
  }

 private:
  // `entry` is the record's, if a pull put this very version of the file there.
  Result<bool> is_wanted(const HubFile& wanted, const fs::path& path, const File& file,
                         const PullRecord::Entry* entry) const {
    if (wanted.size && *wanted.size != file.size()) return false;
    if (wanted.checksum.kind == Checksum::Kind::kNone)
      return entry && entry->is_whole && record_.commit == commit_;
    if (!request_.verify && entry && entry->is_whole && entry->checksum == wanted.checksum)
      return true;
    DVT_TRY(Hasher hasher, Hasher::begin(wanted.checksum.kind, file.size()));
    uint64_t done = 0;
    DVT_TRY(hash_file(path, file.size(), hasher, [&](uint64_t n) {
      progress_.update("checking " + printable(wanted.name), done += n, file.size());
      return !progress_.interrupted();
    }));
    return hasher.finish() == wanted.checksum;
  }

  const PullRequest& request_;
  const PullRecord& record_;
  const std::string& commit_;
  const PullProgress& progress_;
};

}  // namespace

Result<std::vector<PulledFile>> look_at_files(const std::vector<HubFile>& files,
                                              const PullRequest& request, const PullRecord& record,
                                              const std::string& commit,
                                              const PullProgress& progress) {
  const Looker looker(request, record, commit, progress);
  std::vector<PulledFile> out;
  for (const HubFile& file : files) {
    DVT_TRY(PulledFile found, looker.look(file));
    out.push_back(std::move(found));
  }
  return out;
}

}  // namespace dovetail::core
