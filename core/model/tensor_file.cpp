#include "core/model/tensor_file.hpp"

#include <algorithm>
#include <optional>

#include "core/base/files.hpp"
#include "core/base/json.hpp"

namespace dovetail::core {
namespace {

constexpr uint64_t kLengthBytes = 8;  // of the header, in little-endian order
constexpr const char* kMetadata = "__metadata__";

std::optional<uint64_t> size_of(std::string_view dtype, const std::vector<int64_t>& shape) {
  uint64_t n = array_element_bytes(dtype);
  for (const int64_t d : shape)
    if (d < 0 || __builtin_mul_overflow(n, static_cast<uint64_t>(d), &n)) return {};
  return n;
}

Status fault(const Node& at, const std::string& what) {
  return bad_format(at.origin().str() + ": " + what);
}

Result<std::vector<int64_t>> integers(const Node& entry, const char* key) {
  const Node* list = entry.find(key);
  if (!list || !list->is_list()) return fault(entry, std::string("\"") + key + "\" is no list");
  std::vector<int64_t> out;
  for (const Node& n : list->items()) {
    if (!n.is_int() || n.as_int() < 0)
      return fault(n, std::string("\"") + key + "\" holds something else than integers from 0 up");
    out.push_back(n.as_int());
  }
  return out;
}

Result<NamedArray> array_of(const std::string& name, const Node& entry,
                            std::span<const std::byte> data) {
  const Node* dtype = entry.find("dtype");
  if (!dtype || !dtype->is_string() || array_element_bytes(dtype->as_string()) == 0)
    return fault(entry, "array \"" + name + "\" has no dtype of F32, BF16, F16, U8");
  NamedArray out{name, dtype->as_string(), {}, {}};
  DVT_TRY(out.shape, integers(entry, "shape"));
  DVT_TRY(const std::vector<int64_t> at, integers(entry, "data_offsets"));
  const std::optional<uint64_t> need = size_of(out.dtype, out.shape);
  if (at.size() != 2 || at[0] > at[1] || static_cast<uint64_t>(at[1]) > data.size())
    return fault(entry, "array \"" + name + "\" does not lie in the file's " +
                            std::to_string(data.size()) + " bytes of data; is the file cut short?");
  const auto n = static_cast<uint64_t>(at[1] - at[0]);
  if (need != n)
    return fault(entry, "array \"" + name + "\" has " + std::to_string(n) +
                            " bytes, its shape and dtype need " +
                            (need ? std::to_string(*need) : "more than there can be"));
  out.bytes = data.subspan(static_cast<size_t>(at[0]), n);
  return out;
}

}  // namespace

uint64_t array_element_bytes(std::string_view dtype) {
  if (dtype == "F32") return 4;
  if (dtype == "BF16" || dtype == "F16") return 2;
  return dtype == "U8" ? 1 : 0;
}

Status write_tensor_file(const std::filesystem::path& path, std::span<const NamedArray> arrays,
                         const TensorMetadata& metadata) {
  Node header = Node::make_map();
  if (!metadata.empty()) {
    Node texts = Node::make_map();
    for (const auto& [key, text] : metadata) texts.set(key, Node::make_string(text));
    header.set(kMetadata, std::move(texts));
  }
  int64_t at = 0;
  for (const NamedArray& a : arrays) {
    Node t = Node::make_map(), shape = Node::make_list(), span = Node::make_list();
    for (const int64_t d : a.shape) shape.items().push_back(Node::make_int(d));
    span.items().push_back(Node::make_int(at));
    span.items().push_back(Node::make_int(at += static_cast<int64_t>(a.bytes.size())));
    t.set("dtype", Node::make_string(a.dtype));
    t.set("shape", std::move(shape));
    t.set("data_offsets", std::move(span));
    header.set(a.name, std::move(t));
  }
  std::string text = to_json(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');  // data begins on an 8-byte line
  std::string length(kLengthBytes, '\0');
  for (size_t i = 0; i < kLengthBytes; ++i)
    length[i] = static_cast<char>(text.size() >> (8 * i) & 0xff);
  DVT_TRY(const std::unique_ptr<FileWriter> out, FileWriter::create(path));
  DVT_TRY(out->write(length));
  DVT_TRY(out->write(text));
  for (const NamedArray& a : arrays) DVT_TRY(out->write(a.bytes));
  return out->commit();
}

const NamedArray* TensorFile::find(std::string_view name) const {
  const auto it = std::find_if(arrays.begin(), arrays.end(),
                               [name](const NamedArray& a) { return a.name == name; });
  return it == arrays.end() ? nullptr : &*it;
}

Result<TensorFile> read_tensor_file(const std::filesystem::path& path) {
  DVT_TRY(const std::shared_ptr<File> file, File::open(path));
  TensorFile out;
  DVT_TRY(out.content, file->read_all());
  const std::span<const std::byte> all = std::as_bytes(std::span<const char>(out.content));
  uint64_t length = 0;
  for (size_t i = 0; i < std::min<size_t>(all.size(), kLengthBytes); ++i)
    length |= std::to_integer<uint64_t>(all[i]) << (8 * i);
  if (all.size() < kLengthBytes || length > all.size() - kLengthBytes)
    return bad_format(file->name() + ": is no safetensors file, or cut short: its " +
                      std::to_string(all.size()) + " bytes hold no header");
  DVT_TRY(const Node header,
          parse_json(std::string_view(out.content).substr(kLengthBytes, length), file->name()));
  if (!header.is_map())
    return fault(header, std::string("the header is ") + header.kind_name() + ", expected a map");
  out.data = all.subspan(static_cast<size_t>(kLengthBytes + length));
  for (const auto& [name, entry] : header.entries()) {
    if (name != kMetadata) {
      DVT_TRY(NamedArray array, array_of(name, entry, out.data));
      out.arrays.push_back(std::move(array));
      continue;
    }
    if (!entry.is_map()) return fault(entry, "\"__metadata__\" is no map");
    for (const auto& [key, text] : entry.entries()) {
      if (!text.is_string()) return fault(text, "\"__metadata__\" holds something else than texts");
      out.metadata[key] = text.as_string();
    }
  }
  return out;
}

}  // namespace dovetail::core
