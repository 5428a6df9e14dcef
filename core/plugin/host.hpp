// HostServices: dvt_host_v1 over the core's documents, files, pool and log. HostScope: what a
// plugin's object may hold handles into.
//
// Handles are addresses: a dvt_doc of a Node, a dvt_file of a File, a dvt_dir of a HostScope. They
// stay valid as long as the HostScope (or whoever owns the Node) lives; the core keeps it for as long
// as the plugin's object.
#pragma once

#include <dovetail/abi/host.h>

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/files.hpp"
#include "core/base/folder.hpp"
#include "core/base/node.hpp"
#include "core/base/status.hpp"
#include "core/base/thread_pool.hpp"
#include "core/plugin/call_frame.hpp"
#include "core/plugin/op_set.hpp"

namespace dovetail::core {

/// What one of the core's own handles names: its address is the handle.
template <class T>
T* named_by(uint64_t handle) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): a handle of the C ABI is a number
  return reinterpret_cast<T*>(static_cast<uintptr_t>(handle));
}

/// The handle of a document that somebody else owns; its large maps must be indexed (parsers do it,
/// or Node::build_index), so that any thread may look things up.
inline dvt_doc doc_handle(const Node& node) {
  return reinterpret_cast<uintptr_t>(&node);
}
/// Null for handle 0.
inline const Node* doc_node(dvt_doc doc) {
  return named_by<const Node>(doc);
}

inline std::string_view text_of(dvt_str s) {
  return s.p ? std::string_view(s.p, s.n) : std::string_view();
}
inline dvt_str abi_text(std::string_view s) {
  return {s.data(), s.size()};
}

class HostScope {
 public:
  HostScope() = default;
  explicit HostScope(Folder folder) : folder_(std::move(folder)) {}
  HostScope(const HostScope&) = delete;
  HostScope& operator=(const HostScope&) = delete;

  /// The folder's handle; 0 without a folder.
  dvt_dir dir() const { return folder_ ? reinterpret_cast<uintptr_t>(this) : 0; }
  const Folder* folder() const { return folder_ ? &*folder_ : nullptr; }

  // Takes over a document or a file and gives its handle. Any thread.
  dvt_doc keep(Node document);
  dvt_file keep(std::shared_ptr<File> file);
  /// Opens a file of the folder; the same name again gives the same handle.
  Result<dvt_file> open_file(std::string_view name);
  /// The folder's files (Folder::files), as they were when they were first asked for. Any thread.
  const std::vector<std::string>& files();

  static HostScope* of(dvt_dir dir) { return named_by<HostScope>(dir); }
  static const File* file_of(dvt_file file) { return named_by<const File>(file); }

 private:
  std::optional<Folder> folder_;
  std::mutex mutex_;
  std::deque<Node> documents_;
  std::vector<std::shared_ptr<File>> files_;
  std::map<std::string, dvt_file, std::less<>> by_name_;
  std::optional<std::vector<std::string>> listing_;
};

/// Memory that a plugin asked the host for.
struct HostMemoryRow {
  std::string plugin, tag;
  uint64_t live_bytes = 0, peak_bytes = 0;
};

class HostServices {
 public:
  explicit HostServices(ThreadPool& pool);
  ~HostServices();
  HostServices(const HostServices&) = delete;
  HostServices& operator=(const HostServices&) = delete;

  /// A table for one plugin, which its log lines and memory are accounted to; lives as long as this.
  const dvt_host_v1* table_for(std::string plugin);

  ThreadPool& pool() { return pool_; }
  OpSet& ops() { return ops_; }
  /// Offers an interface by name; plugins get it with get_interface().
  void offer(std::string name, const void* interface);
  std::vector<HostMemoryRow> memory() const;

 private:
  friend struct HostTable;
  struct Client;
  struct Allocation {
    HostMemoryRow* row;
    uint64_t bytes;
  };

  void* alloc(const std::string& plugin, uint64_t n, uint64_t align, std::string_view tag);
  void release(const std::string& plugin, void* p);
  dvt_doc add_document(Node document);
  void release_document(dvt_doc root);
  const void* find_interface(std::string_view name) const;

  ThreadPool& pool_;
  OpSet ops_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::map<std::pair<std::string, std::string>, HostMemoryRow> memory_;
  std::unordered_map<void*, Allocation> allocations_;
  std::unordered_map<dvt_doc, std::unique_ptr<Node>> documents_;  // of parse_json
  std::map<std::string, const void*, std::less<>> offered_;
};

}  // namespace dovetail::core
