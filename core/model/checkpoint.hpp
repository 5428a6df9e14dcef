// Checkpoint: the tensors and documents of a model's files, read by a format plugin and checked here.
//
// The format plugin says where each tensor lies; the core maps the file and checks every offset, so
// that a damaged or hostile file is refused before anything reads it.
#pragma once

#include <dovetail/abi/arch.h>
#include <dovetail/abi/format.h>

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/files.hpp"
#include "core/base/node.hpp"
#include "core/base/status.hpp"
#include "core/plugin/host.hpp"
#include "core/plugin/registry.hpp"

namespace dovetail::core {

struct TensorInfo {
  std::string name;    // canonical
  std::string format;  // "bf16", "int4.1"
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;  // mapped; none where there are parts
  const File* source =
      nullptr;              // the mapped file, of the first part; lives as long as the checkpoint
  uint64_t offset = 0;      // of the bytes in it
  int64_t paired_rows = 0;  // how rows are ordered: see dvt_tensor

  /// A matrix in parts: what makes its rows (Checkpoint::read_rows).
  struct Part {
    std::span<const std::byte> bytes;
    const File* source = nullptr;
    uint64_t offset = 0;
  };
  std::vector<Part> parts;
  std::string stored;    // what the parts are: see dvt_tensor
  uint64_t n_bytes = 0;  // of all rows in `format`

  /// In files.
  uint64_t stored_bytes() const;
  const std::string& stored_as() const { return parts.empty() ? format : stored; }
};

class Checkpoint {
 public:
  /// Opens a folder, or one file of it. `formats` are the plugins to ask, in order.
  /// errors   kIo: no such folder. kUnsupported: no format knows it. kFormat: damaged.
  static Result<std::unique_ptr<Checkpoint>> open(const std::string& path,
                                                  const std::vector<std::string>& formats,
                                                  PluginRegistry& plugins);
  /// A model without files.
  static std::unique_ptr<Checkpoint> none();
  ~Checkpoint();
  Checkpoint(const Checkpoint&) = delete;
  Checkpoint& operator=(const Checkpoint&) = delete;

  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  const TensorInfo* find(std::string_view name) const;
  /// Rows [first, first + n) of the first dimension to `out`, in order and in that format: the tensor's own, or, for
  /// a matrix in parts, float32 or bf16.
  /// errors   what the format plugin reports
  Status read_rows(const TensorInfo& tensor, std::string_view format, int64_t first, int64_t n,
                   std::byte* out, const uint32_t* cancel = nullptr) const;
  /// "config", "generation", "tokenizer", "tokenizer_config"; null if the checkpoint has none.
  Result<const Node*> document(std::string_view which);
  /// The document is not read any more; what was given is gone. The next document() reads it anew.
  void drop_document(std::string_view which);
  /// The folder, or the one that the file is in; null without one.
  const Folder* folder() const { return scope_ ? scope_->folder() : nullptr; }
  const dvt_catalogue_v1* catalogue() const { return &catalogue_; }
  /// The folder as plugins see it; 0 without one.
  dvt_dir dir() const { return scope_ ? scope_->dir() : 0; }
  const std::string& path() const { return path_; }
  const std::string& format_name() const { return format_name_; }

 private:
  Checkpoint();
  Status read_tensors();

  std::string path_, format_name_;
  std::unique_ptr<HostScope> scope_;  // the folder; keeps the reader's files and documents alive
  const dvt_format_v1* format_ = nullptr;
  void* reader_ = nullptr;
  std::vector<TensorInfo> tensors_;
  std::map<std::string, size_t, std::less<>> by_name_;
  dvt_catalogue_v1 catalogue_{};
};

/// 64 bytes at each of a few places of a tensor, its begin and its end among them: as good as never the same in
/// two tensors that differ.
std::string samples(std::span<const std::byte> bytes);

/// Rows [first, first + n) of the first dimension to `out`, in order, of a tensor without parts.
void copy_rows(const TensorInfo& tensor, int64_t first, int64_t n, std::byte* out);

/// Bytes of n elements of a plain format, or nothing for a block format.
std::optional<uint64_t> plain_bytes(std::string_view format, const std::vector<int64_t>& shape);

}  // namespace dovetail::core
