#include "core/hub/fetch_files.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "core/base/files.hpp"
#include "core/base/signals_blocked.hpp"
#include "core/hub/download.hpp"

namespace dovetail::core {
namespace {

namespace fs = std::filesystem;

class Fetcher {
 public:
  Fetcher(const PullRequest& request, const HubAccess& access, const HubListing& listing,
          PullRecord& record, PullReport& report, const PullProgress& progress)
      : request_(request),
        access_(access),
        listing_(listing),
        record_(record),
        report_(report),
        progress_(progress) {
    events_.stopped = [this] { return is_stopped_ || progress_.interrupted(); };
    events_.note = [this](const std::string& text) {
      const std::lock_guard lock(mutex_);
      notes_.push_back(text);
    };
    for (PulledFile& f : report.files) {
      if (f.is_whole) continue;
      todo_.push_back(&f);
      n_bytes_ += f.file.size.value_or(0);
    }
  }

  Status run() {
    std::vector<std::thread> threads;
    const size_t n_threads = std::min<size_t>(request_.n_jobs, todo_.size());
    {
      const SignalsBlocked blocked;
      n_running_ = n_threads;
      for (size_t i = 0; i < n_threads; ++i) threads.emplace_back([this] { work(); });
    }
    watch();
    for (std::thread& thread : threads) thread.join();
    return failure_;
  }

 private:
  // A thread's part: one file after the other.
  void work() {
    const Result<std::unique_ptr<HttpClient>> client = HttpClient::create(access_, events_.stopped);
    Status status = status_of(client);
    while (status.is_ok()) {
      const size_t i = next_++;
      if (i >= todo_.size()) break;
      status = fetch(**client, *todo_[i]);
    }
    const std::lock_guard lock(mutex_);
    // The others end as cancelled because of the first.
    if (!status.is_ok() && failure_.is_ok()) failure_ = status;
    if (!status.is_ok()) is_stopped_ = true;
    --n_running_;
    changed_.notify_all();
  }

  Status fetch(HttpClient& client, PulledFile& f) {
    Download what{f.file, file_url(access_, listing_, f.file), "", request_.folder / f.file.name,
                  request_.n_retries};
    what.name = what.path.string();
    std::error_code error;
    fs::create_directories(what.path.parent_path(), error);
    if (error)
      return io_error(what.path.parent_path().string() +
                      ": cannot make the folder: " + errno_text(error.value()));
    DVT_TRY(const Downloaded done,
            download(client, access_, what, events_, [this](int64_t n) { n_done_ += n; }));
    DVT_TRY(const std::shared_ptr<File> file, File::open(what.path));
    const std::lock_guard lock(mutex_);
    f.file = done.file;
    f.file.size = file->size();
    f.n_fetched = done.n_fetched;
    f.is_whole = true;
    record_.files[f.file.name] = {f.file.size, f.file.checksum, file->version(), true};
    return record_.save(request_.folder);
  }

  // The calling thread shows what happens: it alone writes to the terminal.
  void watch() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait_for(lock, std::chrono::milliseconds(50), [this] { return n_running_ == 0; });
      const std::vector<std::string> notes = std::exchange(notes_, {});
      const bool is_done = n_running_ == 0;
      lock.unlock();
      for (const std::string& text : notes) progress_.note(text);
      progress_.update("pulling", static_cast<uint64_t>(std::max<int64_t>(0, n_done_)), n_bytes_);
      if (is_done) return;
      lock.lock();
    }
  }

  const PullRequest& request_;
  const HubAccess& access_;
  const HubListing& listing_;
  PullRecord& record_;
  PullReport& report_;
  const PullProgress& progress_;
  PullEvents events_;
  std::vector<PulledFile*> todo_;
  uint64_t n_bytes_ = 0;  // of all that is to do
  std::atomic<size_t> next_ = 0;
  std::atomic<int64_t> n_done_ = 0;
  std::atomic<bool> is_stopped_ = false;
  std::mutex mutex_;  // of all below, the record and the report
  std::condition_variable changed_;
  std::vector<std::string> notes_;
  Status failure_;
  size_t n_running_ = 0;
};

}  // namespace

Status fetch_files(const PullRequest& request, const HubAccess& access, const HubListing& listing,
                   PullRecord& record, PullReport& report, const PullProgress& progress) {
  Status status = Fetcher(request, access, listing, record, report, progress).run();
  if (status.code() == Code::kCancelled)
    return {Code::kCancelled, "interrupted; what came is kept in " + request.folder.string() +
                                  ", the same command goes on from there"};
  if (status.code() == Code::kIo)
    return io_error(status.message() + "; what came is kept, the same command goes on from there");
  return status;
}

}  // namespace dovetail::core
