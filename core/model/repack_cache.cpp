// A file: "DVTPACK1", the header's length (8 bytes), a JSON header, then the items, each at a multiple of
// kAlign. The header repeats what the name hashes, so that a file can be listed and checked.
#include "core/model/repack_cache.hpp"

#include <dovetail/sha256.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <system_error>

#include "core/base/json.hpp"
#include "core/base/log.hpp"
#include "core/plugin/search.hpp"

namespace dovetail::core {
namespace {

namespace fs = std::filesystem;

constexpr char kMagic[8] = {'D', 'V', 'T', 'P', 'A', 'C', 'K', '1'};
constexpr uint64_t kAlign = 4096;
constexpr const char* kEnding = ".dvtpack";

uint64_t aligned(uint64_t n) {
  return (n + kAlign - 1) / kAlign * kAlign;
}

Result<Node> read_header(const fs::path& path) {
  DVT_TRY(const std::shared_ptr<File> file, File::open(path));
  std::array<char, 16> start{};
  DVT_TRY(file->read_at(0, start.data(), start.size()));
  uint64_t n = 0;
  std::memcpy(&n, start.data() + 8, sizeof n);
  if (std::memcmp(start.data(), kMagic, sizeof kMagic) != 0 || n > file->size() - start.size())
    return bad_format(path.string() + ": no packed weights");
  std::string text(n, ' ');
  DVT_TRY(file->read_at(start.size(), text.data(), n));
  return parse_json(text, path.string());
}

std::string text_in(const Node& map, std::string_view key) {
  const Node* n = map.is_map() ? map.find(key) : nullptr;
  return n && n->is_string() ? n->as_string() : std::string();
}

// Of the file's bytes, wherever it lies; of its name where it cannot be read.
std::string content_hash(const fs::path& path) {
  if (const Result<std::shared_ptr<File>> file = File::open(path))
    if (const Result<std::span<const std::byte>> bytes = (*file)->map()) return sha256_hex(*bytes);
  return path.string();
}

bool is_ours(const fs::path& path) {
  return path.extension() == kEnding ||
         path.filename().string().find(std::string(kEnding) + ".part-") != std::string::npos;
}

// Which bytes of which file.
std::string identity(const TensorInfo::Part& p) {
  return " " + std::to_string(p.offset) + " " + std::to_string(p.bytes.size()) + " " +
         (p.source ? p.source->version() : std::string()) + samples(p.bytes);
}

}  // namespace

std::optional<fs::path> RepackCache::default_folder() {
  const std::optional<fs::path> folder = user_cache_folder(PluginEnvironment::read());
  if (!folder) return std::nullopt;
  return *folder / "weights";
}

void RepackCache::open(const std::vector<Item>& items, const fs::path& backend) {
  std::string text;
  backend_ = backend.stem().string();
  uint64_t at = 0;
  for (const Item& item : items) {
    names_.push_back(item.name);
    layouts_.push_back(item.layout_hash);
    sizes_.push_back(item.bytes);
    text += item.name + " " + std::to_string(item.layout_hash) + " " + std::to_string(item.bytes);
    for (const TensorInfo* t : item.sources) {
      text += " " + t->stored_as();
      if (t->parts.empty()) text += identity({t->bytes, t->source, t->offset});
      for (const TensorInfo::Part& p : t->parts) text += identity(p);
      if (t->paired_rows > 0) text += " pairs " + std::to_string(t->paired_rows) + " ";
    }
    text += "\n";
    at += item.bytes;
  }
  if (!is_on() || at < kLeast) return;
  text += "backend " + content_hash(backend) + "\n";
  key_ = sha256_hex(std::as_bytes(std::span(text)));
  const fs::path path = folder_ / (key_ + kEnding);
  std::error_code error;
  if (!fs::exists(path, error)) return;
  if (const Status s = map(path); !s.is_ok()) {
    log_warn("cache", s.message() + "; the weights are packed again");
    file_.reset();
    fs::remove(path, error);
    return;
  }
  fs::last_write_time(path, fs::file_time_type::clock::now(), error);  // when it was used
}

Status RepackCache::map(const fs::path& path) {
  DVT_TRY(const Node header, read_header(path));
  DVT_TRY(file_, File::open(path));
  const Node* items = header.is_map() ? header.find("items") : nullptr;
  Status damaged = bad_format(path.string() + ": damaged");
  if (!items || !items->is_list() || items->items().size() != sizes_.size()) return damaged;
  offsets_.clear();
  uint64_t end = 0;
  for (size_t i = 0; i < sizes_.size(); ++i) {
    const Node& item = items->items()[i];
    const Node* offset = item.is_map() ? item.find("offset") : nullptr;
    if (!offset || !offset->is_int() || offset->as_int() < 0 || text_in(item, "name") != names_[i])
      return damaged;
    offsets_.push_back(static_cast<uint64_t>(offset->as_int()));
    if (offsets_.back() % kAlign != 0 || offsets_.back() < end) return damaged;
    end = offsets_.back() + sizes_[i];
  }
  if (end != file_->size()) return damaged;
  DVT_TRY(bytes_, file_->map());
  return Status::ok();
}

Status RepackCache::store(const std::vector<std::span<const std::byte>>& packed,
                          const std::string& model, const uint32_t* cancel,
                          const ProgressFn& progress) {
  if (key_.empty() || is_open()) return Status::ok();
  uint64_t total = 0;
  for (const auto& p : packed) total += aligned(p.size());
  if (total > max_bytes_) return Status::ok();
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) return io_error(folder_.string() + ": cannot make the folder: " + error.message());

  // The header's length depends on the offsets, and they on it: offsets count from the first item first.
  Node header = Node::make_map(), items = Node::make_list();
  uint64_t at = aligned(packed.size() * 256 + 4096);
  const uint64_t first = at;
  for (size_t i = 0; i < packed.size(); ++i) {
    Node item = Node::make_map();
    item.set("name", Node::make_string(names_[i]));
    item.set("layout", Node::make_string(std::to_string(layouts_[i])));
    item.set("offset", Node::make_int(static_cast<int64_t>(at)));
    items.items().push_back(std::move(item));
    at = aligned(at + packed[i].size());
  }
  header.set("model", Node::make_string(model));
  header.set("backend", Node::make_string(backend_));
  header.set("items", std::move(items));
  const std::string text = to_json(header, 0);
  if (text.size() + 16 > first)
    return Status::ok();  // names of more than 200 characters: not worth a second way

  const fs::path path = folder_ / (key_ + kEnding);
  DVT_TRY(const std::unique_ptr<FileWriter> writer, FileWriter::create(path));
  const uint64_t n = text.size();
  std::string start(kMagic, sizeof kMagic);
  start.append(reinterpret_cast<const char*>(&n), sizeof n);
  start += text;
  start.resize(first, '\0');
  DVT_TRY(writer->write(start));
  uint64_t done = 0;
  for (size_t i = 0; i < packed.size(); ++i) {
    DVT_TRY(writer->write(packed[i]));
    if (i + 1 < packed.size())
      DVT_TRY(writer->write(std::string(aligned(packed[i].size()) - packed[i].size(), '\0')));
    done += aligned(packed[i].size());
    if (cancel && __atomic_load_n(cancel, __ATOMIC_RELAXED))
      return {Code::kCancelled, "cancelled while the packed weights were saved"};
    if (progress) progress(done, total, "saving the packed weights");
  }
  DVT_TRY(writer->commit());
  make_room();
  return Status::ok();
}

void RepackCache::make_room() const {
  std::vector<Entry> entries = list(folder_);
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.used > b.used; });
  uint64_t sum = 0;
  std::error_code error;
  for (const Entry& e : entries) {
    sum += e.bytes;
    const bool is_new = e.path.stem() == key_;
    const bool is_left_behind = e.path.extension() != kEnding &&
                                fs::file_time_type::clock::now() - e.used > std::chrono::hours(24);
    if ((sum > max_bytes_ && !is_new) || is_left_behind) {
      fs::remove(e.path, error);
      sum -= e.bytes;
    }
  }
}

std::vector<RepackCache::Entry> RepackCache::list(const fs::path& folder) {
  std::vector<Entry> out;
  std::error_code error;
  for (const fs::directory_entry& f : fs::directory_iterator(folder, error)) {
    if (!is_ours(f.path()) || !f.is_regular_file(error)) continue;
    Entry e;
    e.path = f.path();
    e.bytes = f.file_size(error);
    e.used = f.last_write_time(error);
    if (const Result<Node> header = read_header(f.path())) {
      e.model = text_in(*header, "model");
      e.backend = text_in(*header, "backend");
    }
    out.push_back(std::move(e));
  }
  std::sort(out.begin(), out.end(), [](const Entry& a, const Entry& b) { return a.used > b.used; });
  return out;
}

Result<uint64_t> RepackCache::clear(const fs::path& folder) {
  uint64_t freed = 0;
  for (const Entry& e : list(folder)) {
    std::error_code error;
    fs::remove(e.path, error);
    if (error) return io_error(e.path.string() + ": cannot remove: " + error.message());
    freed += e.bytes;
  }
  return freed;
}

}  // namespace dovetail::core
