#include "core/hub/download.hpp"

#include <optional>

#include "core/base/files.hpp"
#include "core/base/log.hpp"

namespace dovetail::core {
namespace {

namespace fs = std::filesystem;

// A part of a file without a checksum is not resumed by another process: nothing says that it belongs to it.
std::string tag_of(const HubFile& file) {
  return file.checksum.hex.empty() ? "unknown" : file.checksum.hex.substr(0, 16);
}

// Parts of other versions of the file, which nobody will ask for.
void remove_old_parts(const fs::path& path, const fs::path& but) {
  const std::string stem = FileWriter::resumable(path, "").filename().string();
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(path.parent_path(), error))
    if (entry.path().filename().string().starts_with(stem) && entry.path() != but)
      fs::remove(entry.path(), error);
}

// What there is of a file: on disk, and hashed as far.
class Part : public HttpBody {
 public:
  Part(HubFile file, const std::function<void(int64_t)>& moved)
      : file_(std::move(file)), moved_(moved) {}

  Status open(const Download& what, const PullEvents& events) {
    DVT_TRY(out_, FileWriter::resume(what.path, tag_of(file_)));
    remove_old_parts(what.path, FileWriter::resumable(what.path, tag_of(file_)));
    const bool is_ours =
        !file_.checksum.hex.empty() && file_.size && out_->n_written() <= *file_.size;
    if (!is_ours) DVT_TRY(out_->restart());
    DVT_TRY(begin_hash());
    if (out_->n_written() == 0) return Status::ok();
    return hash_file(FileWriter::resumable(what.path, tag_of(file_)), out_->n_written(), *hasher_,
                     [&](uint64_t n) {
                       moved_(static_cast<int64_t>(n));
                       return !events.stopped();
                     });
  }

  Status begin(const HttpReply& reply) override {
    etag_ = reply.etag.starts_with("W/") ? "" : reply.etag;
    if (reply.status == 206 && !reply.is_encoded && reply.range_begin == n_written())
      return Status::ok();
    if (reply.status == 206) {
      is_mistaken_ = true;
      return io_error("it was asked for the bytes from " + std::to_string(n_written()) +
                      ", and sends others");
    }
    local_ = restart();  // all of it comes, wherever we were
    return local_ ? learn(reply) : local_;
  }

  Status write(std::string_view bytes) override {
    if (file_.size && bytes.size() > *file_.size - n_written()) {
      is_wrong_ = true;
      return bad_format("has more than its " + std::to_string(*file_.size) + " bytes");
    }
    if (Status s = out_->write(bytes); !s) return local_ = std::move(s);
    if (hasher_) hasher_->add(bytes);
    n_fetched_ += bytes.size();
    moved_(static_cast<int64_t>(bytes.size()));
    return Status::ok();
  }

  Status restart() {
    moved_(-static_cast<int64_t>(n_written()));
    DVT_TRY(out_->restart());
    return begin_hash();
  }

  /// Whether all bytes are right. Without a checksum their number has to do.
  /// errors  kFormat: they are not.
  Status verify() {
    if (file_.size && n_written() != *file_.size)
      return bad_format("has " + std::to_string(n_written()) + " bytes, expected " +
                        std::to_string(*file_.size));
    if (!hasher_ || file_.checksum.kind == Checksum::Kind::kNone) return Status::ok();
    const Checksum got = hasher_->finish();
    if (got == file_.checksum) return Status::ok();
    return bad_format(std::string("has ") + got.name() + " " + got.hex + ", expected " +
                      file_.checksum.hex);
  }

  Status commit() { return out_->commit(); }
  const HubFile& file() const { return file_; }
  uint64_t n_written() const { return out_->n_written(); }
  uint64_t n_fetched() const { return n_fetched_; }
  bool has_all() const { return file_.size && n_written() == *file_.size; }
  /// Of the bytes that are there, to go on only with the same (empty: not known).
  const std::string& etag() const { return etag_; }
  /// What the disk said against it.
  const Status& local() const { return local_; }
  /// The last reply brought what is not the file's / what was not asked for.
  bool is_wrong() const { return is_wrong_; }
  bool is_mistaken() const { return is_mistaken_; }
  void forget_reply() { is_wrong_ = is_mistaken_ = false; }
  void forget_etag() { etag_.clear(); }

 private:
  // What the listing did not say, the reply may.
  Status learn(const HttpReply& reply) {
    if (!file_.size) file_.size = reply.linked_size;
    if (!file_.size && !reply.is_encoded) file_.size = reply.length;
    if (file_.checksum.kind != Checksum::Kind::kNone) return Status::ok();
    file_.checksum = Checksum::parse(reply.linked_etag.empty() ? reply.etag : reply.linked_etag);
    return begin_hash();
  }

  Status begin_hash() {
    hasher_.reset();
    // Git's hash begins with the size: where that is not known, nothing can be held to it.
    if (!file_.size && file_.checksum.kind == Checksum::Kind::kGitSha1) file_.checksum = {};
    DVT_TRY(Hasher hasher, Hasher::begin(file_.checksum.kind, file_.size.value_or(0)));
    hasher_ = std::move(hasher);
    return Status::ok();
  }

  HubFile file_;
  const std::function<void(int64_t)>& moved_;
  std::unique_ptr<FileWriter> out_;
  std::optional<Hasher> hasher_;
  std::string etag_;
  uint64_t n_fetched_ = 0;
  Status local_;
  bool is_wrong_ = false, is_mistaken_ = false;
};

// What a reply leaves to do: nothing (no failure), give up, try again, try again from the beginning.
struct Outcome {
  Status failure;
  bool is_to_try_again = false, from_beginning = false;
};

Outcome judge(const HttpReply& reply, const HubAccess& access, const Download& what,
              const Part& part) {
  if (!part.local().is_ok()) return {part.local()};
  if (part.is_wrong()) return {reply.transfer};
  const std::optional<uint64_t> size = part.file().size;
  if (reply.is_good() && (part.has_all() || !size)) return {};
  Outcome out{refusal(reply, access, what.name)};
  if (reply.is_good())
    out.failure = io_error(what.name + ": ends at byte " + std::to_string(part.n_written()) +
                           " of " + std::to_string(*size));
  // Without a size nobody can say which bytes are missing.
  const bool has_no_range = part.is_mistaken() || reply.status == 416;
  out.from_beginning = has_no_range || !size;
  out.is_to_try_again = reply.is_good() || reply.may_pass || has_no_range;
  return out;
}

// All bytes of the file, as far as the hub gives them: until there are enough, or no more of an unknown
// number. What they are worth, verify() says.
Status fetch_all(HttpClient& client, const HubAccess& access, const Download& what,
                 Retries& retries, Part& part) {
  constexpr uint64_t kNotable = 1 << 20;
  uint64_t furthest = part.n_written();
  while (!part.has_all()) {
    part.forget_reply();
    const HttpReply reply = client.get({what.url, part.n_written(), part.etag()}, part);
    const Outcome outcome = judge(reply, access, what, part);
    if (outcome.failure.is_ok() || !outcome.is_to_try_again) return outcome.failure;
    if (outcome.from_beginning) {
      part.forget_etag();
      DVT_TRY(part.restart());
    }
    if (part.n_written() >= furthest + kNotable) {
      furthest = part.n_written();
      retries.reset();
    }
    DVT_TRY(retries.wait(outcome.failure, reply.retry_after_s));
  }
  return Status::ok();
}

}  // namespace

fs::path partial_path(const fs::path& path, const HubFile& file) {
  return FileWriter::resumable(path, tag_of(file));
}

Result<Downloaded> download(HttpClient& client, const HubAccess& access, const Download& what,
                            const PullEvents& events, const std::function<void(int64_t)>& moved) {
  Part part(what.file, moved);
  DVT_TRY(part.open(what, events));
  const uint64_t n_resumed = part.n_written();
  Retries retries(what.n_retries, events);
  for (bool is_again = false;; is_again = true) {
    const Status fetched = fetch_all(client, access, what, retries, part);
    if (!fetched.is_ok() && !part.is_wrong()) return fetched;
    const Status right = (fetched.is_ok() ? part.verify() : fetched).in(what.name);
    if (right.is_ok()) break;
    // Something on the way may have changed bytes, or an earlier part was damaged on the disk.
    DVT_TRY(part.restart());
    part.forget_etag();
    if (is_again) return Status(right.code(), right.message() + ", twice; nothing of it is kept");
    events.note(right.message() + "; fetched once more from the beginning");
  }
  DVT_TRY(part.commit());
  return Downloaded{part.file(), part.n_fetched(), n_resumed};
}

}  // namespace dovetail::core
