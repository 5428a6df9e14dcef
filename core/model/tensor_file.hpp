// A file of named arrays as safetensors, written and read whole: what commands keep for other programs to read.
// Checkpoints are read by format plugins, and mapped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.hpp"

namespace dovetail::core {

struct NamedArray {
  std::string name, dtype;  // "F32", "BF16", "F16", "U8"
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;
};
using TensorMetadata = std::map<std::string, std::string>;

/// Bytes of an element; 0 for a dtype that is not one of those above.
uint64_t array_element_bytes(std::string_view dtype);

/// errors  kIo
Status write_tensor_file(const std::filesystem::path& path, std::span<const NamedArray> arrays,
                         const TensorMetadata& metadata = {});

struct TensorFile {
  std::string content;             // of the file; the arrays lie in it, one after the other
  std::vector<NamedArray> arrays;  // in the order of the header
  TensorMetadata metadata;
  std::span<const std::byte> data;  // of all arrays

  /// Null if there is none of that name.
  const NamedArray* find(std::string_view name) const;
};

/// errors  kIo; kFormat: no such file, cut short, an array whose bytes do not fit its shape or lie outside.
Result<TensorFile> read_tensor_file(const std::filesystem::path& path);

}  // namespace dovetail::core
