// The state behind the host table; the table's functions are in host_table.cpp.
#include "core/plugin/host.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <utility>

#include "core/base/log.hpp"
#include "core/plugin/host_table.hpp"

namespace dovetail::core {

dvt_doc HostScope::keep(Node document) {
  const std::lock_guard lock(mutex_);
  document.build_index();  // find() on any thread
  return doc_handle(documents_.emplace_back(std::move(document)));
}

dvt_file HostScope::keep(std::shared_ptr<File> file) {
  const std::lock_guard lock(mutex_);
  return reinterpret_cast<uintptr_t>(files_.emplace_back(std::move(file)).get());
}

Result<dvt_file> HostScope::open_file(std::string_view name) {
  if (!folder_) return invalid("there is no folder to open \"" + printable(name) + "\" in");
  const std::lock_guard lock(mutex_);
  if (const auto it = by_name_.find(name); it != by_name_.end()) return it->second;
  DVT_TRY(std::shared_ptr<File> file, folder_->open_file(name));
  const dvt_file handle = reinterpret_cast<uintptr_t>(files_.emplace_back(std::move(file)).get());
  by_name_.emplace(name, handle);
  return handle;
}

const std::vector<std::string>& HostScope::files() {
  const std::lock_guard lock(mutex_);
  if (!listing_) listing_ = folder_ ? folder_->files() : std::vector<std::string>();
  return *listing_;
}

HostServices::HostServices(ThreadPool& pool) : pool_(pool) {
  offer("dovetail.ops/1", ops_.table());
}

HostServices::~HostServices() {
  for (const auto& [p, allocation] : allocations_) std::free(p);
}

const dvt_host_v1* HostServices::table_for(std::string plugin) {
  const std::lock_guard lock(mutex_);
  Client& client = *clients_.emplace_back(std::make_unique<Client>());
  client.host = this;
  client.plugin = std::move(plugin);
  client.table = HostTable::make(&client);
  return &client.table;
}

void HostServices::offer(std::string name, const void* interface) {
  const std::lock_guard lock(mutex_);
  offered_[std::move(name)] = interface;
}

const void* HostServices::find_interface(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  const auto it = offered_.find(name);
  return it == offered_.end() ? nullptr : it->second;
}

std::vector<HostMemoryRow> HostServices::memory() const {
  const std::lock_guard lock(mutex_);
  std::vector<HostMemoryRow> out;
  for (const auto& [key, row] : memory_) out.push_back(row);
  return out;
}

void* HostServices::alloc(const std::string& plugin, uint64_t n, uint64_t align,
                          std::string_view tag) {
  if (!std::has_single_bit(align) || align > (uint64_t{1} << 30) || n > (uint64_t{1} << 62))
    return nullptr;
  align = std::max<uint64_t>(align, alignof(std::max_align_t));
  const uint64_t rounded = (std::max<uint64_t>(n, 1) + align - 1) / align * align;
  void* p = std::aligned_alloc(align, rounded);
  if (p == nullptr) return nullptr;
  try {
    const std::lock_guard lock(mutex_);
    HostMemoryRow& row = memory_[{plugin, std::string(tag)}];
    allocations_.emplace(p, Allocation{&row, n});
    if (row.plugin.empty()) row.plugin = plugin, row.tag = tag;
    row.live_bytes += n;
    row.peak_bytes = std::max(row.peak_bytes, row.live_bytes);
    return p;
  } catch (const std::bad_alloc&) {
    std::free(p);
    return nullptr;
  }
}

void HostServices::release(const std::string& plugin, void* p) {
  if (p == nullptr) return;
  {
    const std::lock_guard lock(mutex_);
    const auto it = allocations_.find(p);
    if (it != allocations_.end()) {
      it->second.row->live_bytes -= it->second.bytes;
      allocations_.erase(it);
      std::free(p);
      return;
    }
  }
  log_error(plugin, "released memory that it did not get from the host, or released it twice");
}

dvt_doc HostServices::add_document(Node document) {
  auto owned = std::make_unique<Node>(std::move(document));
  const dvt_doc handle = doc_handle(*owned);
  const std::lock_guard lock(mutex_);
  documents_.emplace(handle, std::move(owned));
  return handle;
}

void HostServices::release_document(dvt_doc root) {
  std::unique_ptr<Node> dropped;  // destroyed without the lock: a vocabulary takes a while
  const std::lock_guard lock(mutex_);
  const auto it = documents_.find(root);
  if (it == documents_.end()) return;
  dropped = std::move(it->second);
  documents_.erase(it);
}

}  // namespace dovetail::core
