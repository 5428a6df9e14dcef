// The header of one safetensors file: eight bytes of length, that many of JSON, then the data.
#pragma once

#include <dovetail/format.hpp>

#include <string>
#include <vector>

namespace dovetail::safetensors {

struct Entry {
  std::string name;
  std::string_view format;  // "bf16"; static
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0;  // in the file
};

/// Reads and checks the header: every span lies in the file, equals shape times element size, and the
/// spans cover the data without holes or overlaps.
std::vector<Entry> read_header(const FormatOpen& in, const File& file, Call call);

}  // namespace dovetail::safetensors
