// One GGUF file: magic, version, metadata and the table of tensors, then the data.
#pragma once

#include <string_view>
#include <vector>

#include "metadata.hpp"
#include "tensor_types.hpp"

namespace dovetail::gguf {

struct Entry {
  std::string_view name;  // as the file spells it
  const TensorType* type;
  std::vector<int64_t> shape;  // row-major: the dimension along which numbers lie together is last
  uint64_t offset, bytes;      // in the file
};

struct Header {
  explicit Header(File f) : metadata(f) {}
  Metadata metadata;           // strings lie in the mapped file
  std::vector<Entry> entries;  // in the order of the file
};

/// Reads and checks all of it, version 2 and 3: every length and offset lies in the file, every size is computed
/// without overflow, data begin at multiples of the alignment and do not overlap.
/// errors   DVT_EFORMAT "FILE: what". DVT_EUNSUPPORTED: version 1, big-endian, a tensor type that nothing here
///          reads. Nothing is allocated by a number that was not checked.
Header read_header(const File& file, std::string_view mapped);

/// Whether it begins as a GGUF file.
bool has_magic(std::string_view head);

}  // namespace dovetail::gguf
