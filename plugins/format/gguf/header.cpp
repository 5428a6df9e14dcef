#include "header.hpp"

#include <algorithm>
#include <bit>
#include <set>

namespace dovetail::gguf {
namespace {

constexpr std::string_view kMagic = "GGUF";
constexpr uint64_t kMaxKeyBytes = 65535;  // the specification's limit
constexpr uint64_t kDefaultAlignment = 32;
constexpr uint32_t kMaxDims = 4;
constexpr uint64_t kLeastPairBytes = 8 + 1 + 4 + 1;  // a key of one letter, a type, a byte
constexpr uint64_t kLeastTensorBytes = 8 + 4 + 4 + 8;

// The part of a file that was not read yet.
class Cursor {
 public:
  Cursor(const File& file, std::string_view bytes) : file_(file), all_(bytes) {}

  uint64_t at() const { return at_; }
  uint64_t left() const { return all_.size() - at_; }
  std::string_view take(uint64_t n, const std::string& what) {
    if (n > left())
      refuse(file_, "ends inside " + what + " at byte " + std::to_string(at_) + ": it has " +
                        std::to_string(n) + " bytes, the file " + std::to_string(left()) +
                        " more; download incomplete?");
    at_ += n;
    return all_.substr(at_ - n, n);
  }
  uint32_t u32(const std::string& what) { return load_u32(take(4, what).data()); }
  uint64_t u64(const std::string& what) { return load_u64(take(8, what).data()); }
  std::string_view string(const std::string& what) {
    const uint64_t n = u64("the length of " + what);
    return take(n, what);
  }

 private:
  const File& file_;
  std::string_view all_;
  uint64_t at_ = 0;
};

ValueType read_type(const File& file, Cursor& in, const std::string& what) {
  const uint32_t number = in.u32("the type of " + what);
  const auto type = static_cast<ValueType>(number);
  if (type_name(type).empty())
    refuse(file, what + " has type " + std::to_string(number) +
                     ", expected 0 to 12; is the file damaged?");
  return type;
}

Value read_value(const File& file, Cursor& in, const std::string& what) {
  Value v;
  v.type = read_type(file, in, what);
  if (v.type == ValueType::kString) {
    v.bytes = in.string(what);
  } else if (v.type != ValueType::kArray) {
    v.bytes = in.take(value_bytes(v.type), what);
  } else {
    v.element = read_type(file, in, "an element of " + what);
    v.n = in.u64("the length of " + what);
    if (v.element == ValueType::kArray)
      throw Error(file.name() + ": " + what + " is an array of arrays, which is not supported",
                  DVT_EUNSUPPORTED);
    const uint64_t least =
        v.element == ValueType::kString ? sizeof(uint64_t) : value_bytes(v.element);
    if (v.n > in.left() / least)
      refuse(file, what + " has " + std::to_string(v.n) +
                       " elements, more than the file has bytes for (" + std::to_string(in.left()) +
                       "); is it damaged?");
    if (v.element != ValueType::kString) {
      v.bytes = in.take(v.n * least, what);
    } else {
      const char* const begin = in.take(0, what).data();
      const uint64_t from = in.at();
      for (uint64_t i = 0; i < v.n; ++i) in.string(what);
      v.bytes = {begin, in.at() - from};
    }
  }
  const ValueType kind = v.type == ValueType::kArray ? v.element : v.type;
  if (kind == ValueType::kBool)
    for (const char c : v.bytes)
      if (c != 0 && c != 1)
        refuse(file, what + " has a BOOL of " + std::to_string(static_cast<uint8_t>(c)) +
                         ", expected 0 or 1");
  return v;
}

void read_metadata(const File& file, Cursor& in, uint64_t n, Metadata& out) {
  for (uint64_t i = 0; i < n; ++i) {
    const std::string place = "key " + std::to_string(i) + " of " + std::to_string(n);
    const uint64_t length = in.u64("the length of " + place);
    if (length == 0 || length > kMaxKeyBytes)
      refuse(file, place + " has " + std::to_string(length) + " bytes, expected 1 to " +
                       std::to_string(kMaxKeyBytes));
    const std::string_view key = in.take(length, place);
    out.add(key, read_value(file, in, "key " + quote(key)));
  }
}

uint64_t read_alignment(const Metadata& metadata) {
  constexpr std::string_view kKey = "general.alignment";
  const Value* v = metadata.find(kKey);
  if (!v) return kDefaultAlignment;
  const bool is_right =
      v->type == ValueType::kU32 && std::has_single_bit(load_u32(v->bytes.data()));
  if (!is_right) metadata.refuse_value(kKey, "a power of two of type UINT32");
  return load_u32(v->bytes.data());
}

const TensorType& type_of(const File& file, std::string_view tensor, uint32_t number) {
  std::string known;
  for (const TensorType& t : kTensorTypes) {
    if (t.number == number) return t;
    known += (known.empty() ? "" : ", ") + std::string(t.name);
  }
  for (const UnknownType& t : kOtherTypes)
    if (t.number == number)
      throw Error(file.name() + ": tensor " + quote(tensor) + " has type " + std::string(t.name) +
                      ", which is not supported; take a file of one of " + known,
                  DVT_EUNSUPPORTED);
  refuse(file, "tensor " + quote(tensor) + " has type number " + std::to_string(number) +
                   ", which is none; is the file damaged?");
}

// Numbers, then bytes, each product checked before it is made.
uint64_t bytes_of(const File& file, const Entry& e) {
  uint64_t n = 1;
  bool is_empty = false;
  for (const int64_t d : e.shape) {
    is_empty |= d == 0;
    if (__builtin_mul_overflow(n, static_cast<uint64_t>(std::max<int64_t>(d, 1)), &n) ||
        n > INT64_MAX)
      refuse(file, "tensor " + quote(e.name) + " has a shape whose size overflows 63 bits");
  }
  const uint64_t row = e.shape.empty() ? 1 : static_cast<uint64_t>(e.shape.back());
  if (row % e.type->block_len != 0)
    refuse(file, "tensor " + quote(e.name) + " has rows of " + std::to_string(row) +
                     ", expected whole blocks of " + std::string(e.type->name) +
                     ", a multiple of " + std::to_string(e.type->block_len));
  if (is_empty) return 0;
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(n / e.type->block_len, e.type->block_bytes, &bytes) ||
      bytes > INT64_MAX)
    refuse(file, "tensor " + quote(e.name) + " has a shape whose bytes overflow 63 bits");
  return bytes;
}

// The offset is relative to the data until read_header() knows where they begin.
Entry read_entry(const File& file, Cursor& in, const std::string& place) {
  Entry e{};
  e.name = in.string("the name of " + place);
  if (e.name.empty()) refuse(file, place + " has no name");
  const std::string what = "tensor " + quote(e.name);
  const uint32_t n_dims = in.u32("the number of dimensions of " + what);
  if (n_dims > kMaxDims)
    refuse(file, what + " has " + std::to_string(n_dims) + " dimensions, expected at most 4");
  for (uint32_t i = 0; i < n_dims; ++i) {
    const uint64_t d = in.u64("a dimension of " + what);
    if (d > INT64_MAX)
      refuse(file, what + " has " + std::to_string(d) + " as dimension " + std::to_string(i) +
                       ", expected less than 2^63");
    e.shape.push_back(static_cast<int64_t>(d));
  }
  std::reverse(e.shape.begin(), e.shape.end());  // the file counts from the innermost one
  e.type = &type_of(file, e.name, in.u32("the type of " + what));
  e.offset = in.u64("the offset of " + what);
  e.bytes = bytes_of(file, e);
  return e;
}

void check_places(const File& file, const std::vector<Entry>& entries, uint64_t alignment,
                  uint64_t data_bytes) {
  std::vector<const Entry*> by_offset;
  for (const Entry& e : entries) {
    if (e.offset % alignment != 0)
      refuse(file, "tensor " + quote(e.name) + " begins at byte " + std::to_string(e.offset) +
                       " of the data, expected a multiple of the alignment " +
                       std::to_string(alignment));
    if (e.bytes > data_bytes || e.offset > data_bytes - e.bytes) {
      uint64_t end = 0;
      const std::string where =
          __builtin_add_overflow(e.offset, e.bytes, &end) ? "beyond 2^64" : std::to_string(end);
      refuse(file, "tensor " + quote(e.name) + " ends at byte " + where +
                       " of the data, the file has " + std::to_string(data_bytes) +
                       "; download incomplete?");
    }
    if (e.bytes > 0) by_offset.push_back(&e);
  }
  std::sort(by_offset.begin(), by_offset.end(),
            [](const Entry* a, const Entry* b) { return a->offset < b->offset; });
  for (size_t i = 1; i < by_offset.size(); ++i) {
    const Entry &before = *by_offset[i - 1], &e = *by_offset[i];
    if (e.offset < before.offset + before.bytes)
      refuse(file, "tensor " + quote(e.name) + " begins at byte " + std::to_string(e.offset) +
                       " of the data, inside tensor " + quote(before.name) + ", which ends at " +
                       std::to_string(before.offset + before.bytes));
  }
}

void read_version(const File& file, Cursor& in) {
  const uint32_t version = in.u32("the version");
  if (version == 2 || version == 3) return;
  const uint32_t swapped = __builtin_bswap32(version);
  if (swapped >= 1 && swapped <= 3)
    throw Error(
        file.name() + ": is big-endian, which is not supported; take a little-endian GGUF file",
        DVT_EUNSUPPORTED);
  if (version == 1)
    throw Error(
        file.name() +
            ": has GGUF version 1, which is not supported; convert the model again for version 3",
        DVT_EUNSUPPORTED);
  throw Error(file.name() + ": has GGUF version " + std::to_string(version) + ", expected 2 or 3",
              DVT_EUNSUPPORTED);
}

uint64_t read_count(const File& file, Cursor& in, const char* what, uint64_t least_bytes) {
  const uint64_t n = in.u64(std::string("the number of ") + what);
  if (n > in.left() / least_bytes)
    refuse(file, "says that it has " + std::to_string(n) + " " + what +
                     ", more than it has bytes for (" + std::to_string(in.left()) +
                     "); is it damaged or cut short?");
  return n;
}

}  // namespace

bool has_magic(std::string_view head) {
  return head.starts_with(kMagic);
}

Header read_header(const File& file, std::string_view mapped) {
  Cursor in(file, mapped);
  const std::string_view magic = in.take(std::min<uint64_t>(kMagic.size(), in.left()), "the magic");
  if (magic != kMagic)
    refuse(file, "begins with " + quote(magic) + ", expected \"GGUF\"; is it a GGUF file?");
  read_version(file, in);
  const uint64_t n_tensors = read_count(file, in, "tensors", kLeastTensorBytes);
  const uint64_t n_pairs = read_count(file, in, "keys", kLeastPairBytes);

  Header out(file);
  read_metadata(file, in, n_pairs, out.metadata);
  const uint64_t alignment = read_alignment(out.metadata);
  std::set<std::string_view> names;
  for (uint64_t i = 0; i < n_tensors; ++i) {
    out.entries.push_back(
        read_entry(file, in, "tensor " + std::to_string(i) + " of " + std::to_string(n_tensors)));
    if (!names.insert(out.entries.back().name).second)
      refuse(file,
             "has tensor " + quote(out.entries.back().name) + " twice, expected each name once");
  }
  // A file without data may end where its table does.
  const uint64_t padding = (alignment - in.at() % alignment) % alignment;
  const uint64_t begin = in.at() + std::min(padding, in.left());
  check_places(file, out.entries, alignment, mapped.size() - begin);
  for (Entry& e : out.entries) e.offset += begin;
  return out;
}

}  // namespace dovetail::gguf
