#include "header.hpp"

#include <dovetail/quote.hpp>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <map>
#include <optional>
#include <set>

#include "dtypes.hpp"

namespace dovetail::safetensors {
namespace {

constexpr uint64_t kMaxHeader = 100'000'000;  // the format's own limit
constexpr uint64_t kLengthBytes = 8;

// The keys of a JSON map that may be damaged, as they are spelled, until one comes twice.
std::string find_duplicate_key(std::string_view json) {
  std::set<std::string_view> keys;
  int depth = 0;
  bool at_key = false;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (c == '{' || c == '[') {
      at_key = ++depth == 1;
    } else if (c == '}' || c == ']') {
      --depth;
    } else if (c == ',') {
      at_key = depth == 1;
    } else if (c == '"') {
      const size_t begin = ++i;
      while (i < json.size() && json[i] != '"') i += json[i] == '\\' ? 2 : 1;
      const std::string_view key = json.substr(begin, std::min(i, json.size()) - begin);
      if (at_key && !keys.insert(key).second) return std::string(key);
      at_key = false;
    }
  }
  return {};
}

// The parsed header, for as long as this lives.
class Header {
 public:
  Header(const FormatOpen& in, const File& file, std::string_view text, Call call)
      : host_(in.host.table()) {
    const std::string source = file.name() + " (header)";
    const dvt_code code = host_->parse_json(host_->self, call.frame(), {text.data(), text.size()},
                                            to_abi(source), &handle_);
    if (code == DVT_OK) return;
    if (const std::string twice = find_duplicate_key(text);
        !twice.empty() && twice != "__metadata__") {
      std::string name = quote(twice);
      name.front() = name.back() = '`';
      refuse(file, "has duplicate tensor " + name + ", expected each name once");
    }
    call.check(code);
  }
  ~Header() {
    if (handle_ != 0) host_->doc_release(host_->self, handle_);
  }
  Header(const Header&) = delete;
  Header& operator=(const Header&) = delete;
  Doc root() const { return {host_, handle_}; }

 private:
  const dvt_host_v1* host_;
  dvt_doc handle_ = 0;
};

const Dtype& dtype_of(const File& file, std::string_view tensor, Doc value) {
  std::string known;
  for (const Dtype& d : kDtypes) {
    if (value.is_string() && d.stored == value.as_string()) return d;
    known += (known.empty() ? "" : ", ") + std::string(d.stored);
  }
  refuse(file, tensor, "has dtype " + describe(value) + ", expected one of " + known);
}

std::vector<int64_t> shape_of(const File& file, std::string_view tensor, Doc value) {
  if (!value.is_list()) refuse(file, tensor, "has shape " + describe(value) + ", expected a list");
  if (value.size() > DVT_MAX_DIMS)
    refuse(file, tensor,
           "has " + std::to_string(value.size()) + " dimensions, expected at most " +
               std::to_string(DVT_MAX_DIMS));
  std::vector<int64_t> shape;
  for (uint64_t i = 0; i < value.size(); ++i) {
    const Doc d = value.at(i);
    if (!d.is_int() || d.as_int() < 0)
      refuse(file, tensor,
             "has " + describe(d) + " as dimension " + std::to_string(i) +
                 ", expected a whole number from 0 on");
    shape.push_back(d.as_int());
  }
  return shape;
}

// Elements times element size, checked before each multiplication; a zero hides no overflow, wherever it stands.
uint64_t bytes_of(const File& file, std::string_view tensor, const std::vector<int64_t>& shape,
                  uint64_t element_bytes) {
  uint64_t n = element_bytes;
  bool is_empty = false;
  for (int64_t d : shape) {
    is_empty |= d == 0;
    if (__builtin_mul_overflow(n, static_cast<uint64_t>(std::max<int64_t>(d, 1)), &n))
      refuse(file, tensor, "has a shape whose size overflows 64 bits");
  }
  return is_empty ? 0 : n;
}

uint64_t offset_of(const File& file, std::string_view tensor, Doc value) {
  if (!value.is_int() || value.as_int() < 0)
    refuse(file, tensor,
           "has " + describe(value) + " in data_offsets, expected a whole number from 0 on");
  return static_cast<uint64_t>(value.as_int());
}

// Offsets are relative to the data until read_header() knows that all lie in the file.
Entry read_entry(const File& file, std::string_view name, Doc value) {
  if (!value.is_map())
    refuse(file, name,
           "is " + describe(value) + ", expected a map with dtype, shape and data_offsets");
  const Dtype& dtype = dtype_of(file, name, value["dtype"]);
  Entry e{std::string(name), std::string(dtype.format), shape_of(file, name, value["shape"]), 0, 0};
  const Doc offsets = value["data_offsets"];
  if (!offsets.is_list() || offsets.size() != 2)
    refuse(file, name, "has data_offsets " + describe(offsets) + ", expected [begin, end]");
  e.begin = offset_of(file, name, offsets.at(0));
  e.end = offset_of(file, name, offsets.at(1));
  const uint64_t need = bytes_of(file, name, e.shape, dtype.bytes);
  if (e.end < e.begin || e.end - e.begin != need)
    refuse(file, name,
           "spans bytes " + std::to_string(e.begin) + " to " + std::to_string(e.end) +
               ", but its shape and dtype need " + std::to_string(need) + " bytes");
  return e;
}

// Block formats that the metadata tells of, by tensor: "int4.1 [3072, 1024]".
using Carried = std::map<std::string, std::string, std::less<>>;

Carried read_metadata(const File& file, Doc metadata) {
  Carried out;
  if (metadata.is_null()) return out;  // as if it were absent
  if (!metadata.is_map())
    refuse(file, "has __metadata__ " + describe(metadata) + ", expected a map of strings");
  for (uint64_t i = 0; i < metadata.size(); ++i) {
    const auto [key, value] = metadata.entry(i);
    if (!value.is_string())
      refuse(file,
             "has __metadata__ " + quote(key) + " = " + describe(value) + ", expected a string");
    if (key.starts_with(kFormatKey)) out.emplace(key.substr(kFormatKey.size()), value.as_string());
  }
  return out;
}

// "[3072, 1024]", or nothing.
std::optional<std::vector<int64_t>> parse_shape(std::string_view text) {
  if (text.size() < 3 || text.front() != '[' || text.back() != ']') return std::nullopt;
  text = text.substr(1, text.size() - 2);
  std::vector<int64_t> out;
  for (const char *p = text.data(), *end = p + text.size();; p += 2) {
    int64_t value = -1;
    const auto [next, error] = std::from_chars(p, end, value);
    if (error != std::errc() || value < 0 || out.size() == DVT_MAX_DIMS) return std::nullopt;
    out.push_back(value);
    p = next;
    if (p == end) return out;
    if (end - p < 2 || p[0] != ',' || p[1] != ' ') return std::nullopt;
  }
}

// Gives tensors of bytes the format and the shape that the metadata says they hold.
void apply_formats(const File& file, const Carried& carried, std::vector<Entry>& entries) {
  std::map<std::string_view, Entry*> by_name;
  for (Entry& e : entries) by_name.emplace(e.name, &e);
  for (const auto& [name, text] : carried) {
    const auto found = by_name.find(name);
    if (found == by_name.end())
      refuse(file,
             "has __metadata__ with the format of tensor " + quote(name) + ", but no such tensor");
    Entry& e = *found->second;
    if (e.format != "u8" || e.shape.size() != 1)
      refuse(file, name,
             "has format " + quote(text) + " in __metadata__, so it must be bytes (" +
                 std::string(kBytes) + ", one dimension); it is " + e.format + " of " +
                 std::to_string(e.shape.size()) + " dimensions");
    const size_t space = std::min(text.find(' '), text.size());
    auto shape = parse_shape(std::string_view(text).substr(std::min(space + 1, text.size())));
    if (space == 0 || !shape)
      refuse(file, name,
             "has format " + quote(text) +
                 " in __metadata__, expected a name and a shape, as \"int4.1 [512, 128]\"");
    e.format = text.substr(0, space);
    e.shape = std::move(*shape);
  }
}

// The format wants the data covered exactly: a hole or an overlap means a wrong header.
void check_cover(const File& file, const std::vector<Entry>& entries, uint64_t data_bytes) {
  uint64_t at = 0;
  for (const Entry& e : entries) {
    if (e.begin < at)
      refuse(file, e.name,
             "begins at byte " + std::to_string(e.begin) +
                 " of the data, inside the tensor before it, "
                 "which ends at " +
                 std::to_string(at));
    if (e.begin > at)
      refuse(file, e.name,
             "begins at byte " + std::to_string(e.begin) + " of the data, expected " +
                 std::to_string(at) + ": a hole that no tensor covers");
    at = e.end;
  }
  if (at > data_bytes) {
    const auto cut = std::find_if(entries.begin(), entries.end(),
                                  [&](const Entry& e) { return e.end > data_bytes; });
    refuse(file, cut->name,
           "ends at byte " + std::to_string(cut->end) + " of the data, but the file has " +
               std::to_string(data_bytes) + ": " + std::to_string(at - data_bytes) +
               " bytes are missing in all; download incomplete?");
  }
  if (at < data_bytes)
    refuse(file, "has " + std::to_string(data_bytes - at) +
                     " bytes after its last tensor, expected none; download it again");
}

}  // namespace

void refuse(const File& file, const std::string& what) {
  throw Error(file.name() + ": " + what, DVT_EFORMAT);
}
void refuse(const File& file, std::string_view tensor, const std::string& what) {
  refuse(file, "tensor " + quote(tensor) + " " + what);
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string out;
  for (const int64_t d : shape) out += (out.empty() ? "[" : ", ") + std::to_string(d);
  return out.empty() ? "[]" : out + "]";
}

std::string describe(Doc value) {
  if (value.is_string()) return quote(value.as_string());
  if (value.is_int()) return std::to_string(value.as_int());
  if (value.is_bool()) return value.as_bool() ? "true" : "false";
  if (value.is_number()) {
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", value.as_float());
    return text;
  }
  if (value.is_list()) return "a list of " + std::to_string(value.size());
  return value.kind_name();
}

std::vector<Entry> read_header(const FormatOpen& in, const File& file, Call call) {
  const uint64_t size = file.size();
  if (size < kLengthBytes)
    refuse(file, "has " + std::to_string(size) +
                     " bytes, expected at least 8 of a safetensors file; download incomplete?");
  uint8_t raw[kLengthBytes];
  file.read(call, 0, raw, sizeof raw);
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = length << 8 | raw[i];
  if (length > kMaxHeader)
    refuse(file, "says that its header has " + std::to_string(length) +
                     " bytes, expected at most " + std::to_string(kMaxHeader) +
                     "; is it a safetensors file?");
  if (length > size - kLengthBytes)
    refuse(file, "ends inside its header: " + std::to_string(length - (size - kLengthBytes)) +
                     " of its " + std::to_string(length) +
                     " bytes are missing; download incomplete?");

  std::string text(length, '\0');
  file.read(call, kLengthBytes, text.data(), length);
  if (text.empty() || text[0] != '{')
    refuse(file, "has a header that does not begin with {; is it a safetensors file?");
  if (const size_t nul = text.find('\0'); nul != std::string::npos)
    refuse(file, "has a NUL at byte " + std::to_string(kLengthBytes + nul) +
                     ", in its header; expected spaces as padding");
  const Header header(in, file, text, call);
  const Doc root = header.root();
  std::vector<Entry> entries;
  Carried carried;
  for (uint64_t i = 0; i < root.size(); ++i) {
    const auto [name, value] = root.entry(i);
    if (name == "__metadata__") {
      carried = read_metadata(file, value);
    } else {
      entries.push_back(read_entry(file, name, value));
    }
  }
  apply_formats(file, carried, entries);
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  const uint64_t data_begin = kLengthBytes + length;
  check_cover(file, entries, size - data_begin);
  for (Entry& e : entries) {
    e.begin += data_begin;
    e.end += data_begin;
  }
  return entries;
}

}  // namespace dovetail::safetensors
