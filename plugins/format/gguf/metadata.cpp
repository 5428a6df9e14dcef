#include "metadata.hpp"

#include <bit>
#include <cstring>

namespace dovetail::gguf {
namespace {

constexpr std::string_view kTypeNames[] = {"UINT8",  "INT8",    "UINT16", "INT16",  "UINT32",
                                           "INT32",  "FLOAT32", "BOOL",   "STRING", "ARRAY",
                                           "UINT64", "INT64",   "FLOAT64"};

template <class T>
T load(const char* p) {
  T out;
  std::memcpy(&out, p, sizeof out);
  return out;
}
static_assert(std::endian::native == std::endian::little,
              "numbers are read as they lie in the file");

}  // namespace

std::string_view type_name(ValueType type) {
  const auto i = static_cast<uint32_t>(type);
  return i < std::size(kTypeNames) ? kTypeNames[i] : std::string_view();
}

uint64_t value_bytes(ValueType type) {
  switch (type) {
    case ValueType::kU8:
    case ValueType::kI8:
    case ValueType::kBool:
      return 1;
    case ValueType::kU16:
    case ValueType::kI16:
      return 2;
    case ValueType::kU32:
    case ValueType::kI32:
    case ValueType::kF32:
      return 4;
    case ValueType::kU64:
    case ValueType::kI64:
    case ValueType::kF64:
      return 8;
    case ValueType::kString:
    case ValueType::kArray:
      break;
  }
  return 0;
}

void refuse(const File& file, const std::string& what) {
  throw Error(file.name() + ": " + what, DVT_EFORMAT);
}

uint32_t load_u32(const char* p) {
  return load<uint32_t>(p);
}
uint64_t load_u64(const char* p) {
  return load<uint64_t>(p);
}

std::string_view Strings::next() {
  const uint64_t n = load_u64(left_.data());
  const std::string_view out = left_.substr(sizeof n, n);
  left_.remove_prefix(sizeof n + n);
  return out;
}

std::optional<int64_t> integer_at(const Value& value, uint64_t i) {
  const ValueType type = value.type == ValueType::kArray ? value.element : value.type;
  const char* const p = value.bytes.data() + i * value_bytes(type);
  switch (type) {
    case ValueType::kU8:
      return load<uint8_t>(p);
    case ValueType::kI8:
      return load<int8_t>(p);
    case ValueType::kU16:
      return load<uint16_t>(p);
    case ValueType::kI16:
      return load<int16_t>(p);
    case ValueType::kU32:
      return load<uint32_t>(p);
    case ValueType::kI32:
      return load<int32_t>(p);
    case ValueType::kU64:
      if (const uint64_t v = load_u64(p); v <= INT64_MAX) return static_cast<int64_t>(v);
      return std::nullopt;
    case ValueType::kI64:
      return load<int64_t>(p);
    default:
      return std::nullopt;
  }
}

std::optional<double> number_at(const Value& value, uint64_t i) {
  const ValueType type = value.type == ValueType::kArray ? value.element : value.type;
  if (type == ValueType::kF32) return static_cast<double>(load<float>(value.bytes.data() + i * 4));
  if (type == ValueType::kF64) return load<double>(value.bytes.data() + i * 8);
  if (const std::optional<int64_t> whole = integer_at(value, i)) return static_cast<double>(*whole);
  return std::nullopt;
}

void Metadata::add(std::string_view key, const Value& value) {
  if (!values_.emplace(key, value).second)
    refuse(file_, "has key " + quote(key) + " twice, expected each once");
}

const Value* Metadata::find(std::string_view key) const {
  const auto it = values_.find(key);
  return it == values_.end() ? nullptr : &it->second;
}

void Metadata::refuse_value(std::string_view key, const std::string& expected) const {
  const Value* v = find(key);
  std::string got = v ? std::string(type_name(v->type)) : "absent";
  if (v && v->type == ValueType::kArray)
    got = "an array of " + std::to_string(v->n) + " " + std::string(type_name(v->element));
  if (v && v->type == ValueType::kString) got = quote(v->bytes);
  if (v && v->type != ValueType::kArray)
    if (const std::optional<int64_t> whole = integer_at(*v, 0)) got = std::to_string(*whole);
  refuse(file_, "key " + quote(key) + " is " + got + ", expected " + expected);
}

std::optional<int64_t> Metadata::integer(std::string_view key) const {
  const Value* v = find(key);
  if (!v) return std::nullopt;
  // Some files give a number of each layer: one value for all is what can be used.
  const uint64_t n = v->type == ValueType::kArray ? v->n : 1;
  std::optional<int64_t> out = n > 0 ? integer_at(*v, 0) : std::nullopt;
  for (uint64_t i = 1; out && i < n; ++i)
    if (integer_at(*v, i) != out)
      refuse_value(key, "one whole number, or the same for every layer");
  if (!out) refuse_value(key, "a whole number");
  return out;
}

std::optional<double> Metadata::number(std::string_view key) const {
  const Value* v = find(key);
  if (!v) return std::nullopt;
  const std::optional<double> out = v->type == ValueType::kArray ? std::nullopt : number_at(*v, 0);
  if (!out || *out != *out || *out - *out != 0) refuse_value(key, "a finite number");
  return out;
}

std::optional<bool> Metadata::flag(std::string_view key) const {
  const Value* v = find(key);
  if (!v) return std::nullopt;
  if (v->type != ValueType::kBool) refuse_value(key, "true or false");
  return v->bytes[0] != 0;
}

std::optional<std::string_view> Metadata::string(std::string_view key) const {
  const Value* v = find(key);
  if (!v) return std::nullopt;
  if (v->type != ValueType::kString) refuse_value(key, "a string");
  return v->bytes;
}

const Value* Metadata::array(std::string_view key, ValueType element) const {
  const Value* v = find(key);
  if (!v) return nullptr;
  if (v->type != ValueType::kArray || (v->element != element && v->n > 0))
    refuse_value(key, "an array of " + std::string(type_name(element)));
  return v;
}

}  // namespace dovetail::gguf
