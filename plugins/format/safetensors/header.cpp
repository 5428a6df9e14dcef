#include "header.hpp"

#include <algorithm>
#include <cstring>

namespace dovetail::safetensors {
namespace {

constexpr uint64_t kMaxHeader = 100'000'000;  // the format's own limit

struct Dtype {
  std::string_view stored, format;
  uint64_t bytes;
};
constexpr Dtype kDtypes[] = {
    {"F64", "f64", 8}, {"F32", "f32", 4}, {"F16", "f16", 2},   {"BF16", "bf16", 2},       {"I64", "i64", 8},
    {"I32", "i32", 4}, {"I16", "i16", 2}, {"I8", "i8", 1},     {"U64", "u64", 8},         {"U32", "u32", 4},
    {"U16", "u16", 2}, {"U8", "u8", 1},   {"BOOL", "bool", 1}, {"F8_E4M3", "f8_e4m3", 1}, {"F8_E5M2", "f8_e5m2", 1},
};

[[noreturn]] void refuse(const File& file, const std::string& what) { throw Error(file.name() + ": " + what, DVT_EFORMAT); }
[[noreturn]] void refuse(const File& file, std::string_view tensor, const std::string& what) {
  refuse(file, "tensor \"" + std::string(tensor) + "\" " + what);
}

const Dtype& dtype_of(const File& file, std::string_view tensor, Doc value) {
  if (!value.is_string()) refuse(file, tensor, std::string("has ") + value.kind_name() + " as dtype, expected a string");
  for (const Dtype& d : kDtypes)
    if (d.stored == value.as_string()) return d;
  refuse(file, tensor, "has dtype \"" + std::string(value.as_string()) + "\", which this reader does not know");
}

// Elements times element size, checked before each multiplication.
uint64_t bytes_of(const File& file, std::string_view tensor, const std::vector<int64_t>& shape, uint64_t element) {
  uint64_t n = element;
  for (int64_t d : shape)
    if (__builtin_mul_overflow(n, static_cast<uint64_t>(d), &n)) refuse(file, tensor, "has a shape whose size overflows 64 bits");
  return n;
}

uint64_t offset_of(const File& file, std::string_view tensor, Doc value) {
  if (!value.is_int() || value.as_int() < 0) refuse(file, tensor, "has data_offsets that are not whole numbers from 0 on");
  return static_cast<uint64_t>(value.as_int());
}

Entry read_entry(const File& file, std::string_view name, Doc value, uint64_t data_begin, uint64_t data_bytes) {
  if (!value.is_map()) refuse(file, name, std::string("is ") + value.kind_name() + ", expected dtype, shape and data_offsets");
  Entry e;
  e.name = name;
  const Dtype& dtype = dtype_of(file, name, value["dtype"]);
  e.format = dtype.format;
  const Doc shape = value["shape"], offsets = value["data_offsets"];
  if (!shape.is_list()) refuse(file, name, "has no list \"shape\"");
  if (shape.size() > DVT_MAX_DIMS) refuse(file, name, "has " + std::to_string(shape.size()) + " dimensions, at most 6 are possible");
  for (uint64_t i = 0; i < shape.size(); ++i) {
    const Doc d = shape.at(i);
    if (!d.is_int() || d.as_int() < 0) refuse(file, name, "has a dimension that is not a whole number from 0 on");
    e.shape.push_back(d.as_int());
  }
  if (!offsets.is_list() || offsets.size() != 2) refuse(file, name, "has no pair \"data_offsets\"");
  const uint64_t begin = offset_of(file, name, offsets.at(0)), end = offset_of(file, name, offsets.at(1));
  const uint64_t need = bytes_of(file, name, e.shape, dtype.bytes);
  if (end < begin || end - begin != need)
    refuse(file, name, "spans bytes " + std::to_string(begin) + " to " + std::to_string(end) + ", its shape and dtype need " + std::to_string(need));
  if (end > data_bytes)
    refuse(file, name, "ends at byte " + std::to_string(end) + " of the data, the file has " + std::to_string(data_bytes) + ": " +
                           std::to_string(end - data_bytes) + " bytes are missing; download incomplete?");
  e.begin = data_begin + begin;
  e.end = data_begin + end;
  return e;
}

void check_metadata(const File& file, Doc metadata) {
  if (metadata.is_null()) return;
  if (!metadata.is_map()) refuse(file, std::string("\"__metadata__\" is ") + metadata.kind_name() + ", expected a map of strings");
  for (uint64_t i = 0; i < metadata.size(); ++i)
    if (const auto [key, value] = metadata.entry(i); !value.is_string())
      refuse(file, "\"__metadata__\" key \"" + std::string(key) + "\" is " + value.kind_name() + ", expected a string");
}

}  // namespace

std::vector<Entry> read_header(const FormatOpen& in, const File& file, Call call) {
  const uint64_t size = file.size();
  if (size < 8) refuse(file, "has " + std::to_string(size) + " bytes, a safetensors file has at least 8; download incomplete?");
  uint8_t raw[8];
  file.read(call, 0, raw, sizeof raw);
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = length << 8 | raw[i];
  if (length > kMaxHeader) refuse(file, "says that its header has " + std::to_string(length) + " bytes, at most 100000000 are allowed; is it a safetensors file?");
  if (length > size - 8)
    refuse(file, "ends inside its header: " + std::to_string(length - (size - 8)) + " bytes are missing; download incomplete?");
  std::string text(length, '\0');
  file.read(call, 8, text.data(), length);
  if (text.find('\0') != std::string::npos) refuse(file, "has NUL bytes in its header; padding must be spaces");
  const dvt_host_v1* host = in.host.table();
  dvt_doc handle = 0;
  call.check(host->parse_json(host->self, call.frame(), {text.data(), text.size()}, to_abi(file.name() + " (header)"), &handle));
  const struct Release {
    const dvt_host_v1* host;
    dvt_doc handle;
    ~Release() { host->doc_release(host->self, handle); }
  } release{host, handle};
  const Doc root = in.host.doc(handle);
  if (!root.is_map()) refuse(file, std::string("has ") + root.kind_name() + " as header, expected a map of tensors");

  const uint64_t data_bytes = size - 8 - length;
  std::vector<Entry> entries;
  for (uint64_t i = 0; i < root.size(); ++i) {
    const auto [name, value] = root.entry(i);
    if (name == "__metadata__") check_metadata(file, value);
    else entries.push_back(read_entry(file, name, value, 8 + length, data_bytes));
  }
  // The format wants the data covered exactly: a hole or an overlap means a wrong header.
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.begin != b.begin ? a.begin < b.begin : a.end < b.end; });
  uint64_t at = 8 + length;
  for (const Entry& e : entries) {
    if (e.begin != at) refuse(file, e.name, std::string(e.begin < at ? "overlaps the tensor before it" : "leaves a hole before it") + " at byte " + std::to_string(e.begin));
    at = e.end;
  }
  if (at != size) refuse(file, "has " + std::to_string(size - at) + " bytes after its last tensor; is it cut together from several files?");
  return entries;
}

}  // namespace dovetail::safetensors
