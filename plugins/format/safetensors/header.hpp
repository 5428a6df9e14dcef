// The header of one safetensors file: eight bytes of length, that many of JSON, then the data.
#pragma once

#include <dovetail/format.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace dovetail::safetensors {

struct Entry {
  std::string name;
  std::string format;           // "bf16", "int4.1"
  std::vector<int64_t> shape;   // of the numbers
  uint64_t begin = 0, end = 0;  // in the file
};

/// Reads and checks the header: every span lies in the file, equals the stored shape times element size,
/// and the spans cover the data without holes or overlaps. Entries are in the order of the data.
/// errors   DVT_EFORMAT "FILE: what"; nothing is allocated by a number that was not checked.
std::vector<Entry> read_header(const FormatOpen& in, const File& file, Call call);

/// "2.5", "\"4\"", "a list": a value for a message.
std::string describe(Doc value);
/// "[512, 128]"
std::string shape_text(const std::vector<int64_t>& shape);
/// Throws DVT_EFORMAT "FILE: what", or "FILE: tensor \"NAME\" what".
[[noreturn]] void refuse(const File& file, const std::string& what);
[[noreturn]] void refuse(const File& file, std::string_view tensor, const std::string& what);

}  // namespace dovetail::safetensors
