// Metadata of a GGUF file: typed values by key, read where they lie in the mapped file.
#pragma once

#include <dovetail/format.hpp>
#include <dovetail/quote.hpp>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dovetail::gguf {

/// The types of values, by their numbers in the file.
enum class ValueType : uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};
/// "UINT32"; empty for no type.
std::string_view type_name(ValueType type);
/// Bytes of one value; 0 for a string, an array and no type.
uint64_t value_bytes(ValueType type);

[[noreturn]] void refuse(const File& file, const std::string& what);

/// Little-endian, at any address.
uint32_t load_u32(const char* p);
uint64_t load_u64(const char* p);

/// One value. `bytes` are those of a number, of the characters of a string, or of all elements of an array
/// (strings with their lengths before them).
struct Value {
  ValueType type = ValueType::kU8;
  ValueType element = ValueType::kU8;  // of an array
  uint64_t n = 1;                      // elements
  std::string_view bytes;
};

/// Walks the elements of an array of strings that was checked when it was read.
class Strings {
 public:
  explicit Strings(const Value& array) : left_(array.bytes), n_(array.n) {}
  uint64_t size() const { return n_; }
  std::string_view next();

 private:
  std::string_view left_;
  uint64_t n_;
};

/// Absent keys give nothing; a value of another type is refused by name.
/// errors   DVT_EFORMAT "FILE: key "general.name" is UINT32, expected a string"
class Metadata {
 public:
  explicit Metadata(File file) : file_(file) {}
  /// errors   DVT_EFORMAT: the key is there already.
  void add(std::string_view key, const Value& value);
  size_t size() const { return values_.size(); }

  const File& file() const { return file_; }
  const Value* find(std::string_view key) const;
  bool has(std::string_view key) const { return find(key) != nullptr; }
  std::optional<int64_t> integer(std::string_view key) const;
  std::optional<double> number(std::string_view key) const;
  std::optional<bool> flag(std::string_view key) const;
  std::optional<std::string_view> string(std::string_view key) const;
  /// Of these elements; null if absent.
  const Value* array(std::string_view key, ValueType element) const;
  [[noreturn]] void refuse_value(std::string_view key, const std::string& expected) const;

  /// In the order of keys.
  const std::map<std::string_view, Value>& values() const { return values_; }

 private:
  File file_;
  std::map<std::string_view, Value> values_;
};

/// A number of an array or of its own; integers and floats of any width.
std::optional<int64_t> integer_at(const Value& value, uint64_t i);
std::optional<double> number_at(const Value& value, uint64_t i);

}  // namespace dovetail::gguf
