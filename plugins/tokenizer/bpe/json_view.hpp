// JsonView: one value of a parsed JSON document, whoever parsed it.
//
// The host parses tokenizer.json and hands out handles; unit tests walk the core's own tree. Both
// fill in JsonSource, so that the loader is written once and never sees either.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "error.hpp"

namespace dovetail::bpe {

enum class JsonKind : uint8_t { kNull, kBool, kInt, kFloat, kString, kList, kMap };

/// A document that can be walked by handle; handle 0 is "no value". Strings stay valid as long as
/// the document does.
class JsonSource {
 public:
  virtual ~JsonSource() = default;
  virtual JsonKind kind(uint64_t handle) const = 0;
  virtual uint64_t len(uint64_t handle) const = 0;  // of a list or map, else 0
  virtual uint64_t find(uint64_t handle, std::string_view key) const = 0;
  virtual uint64_t at(uint64_t handle, uint64_t i, std::string_view* key) const = 0;
  virtual std::string_view as_string(uint64_t handle) const = 0;
  virtual int64_t as_int(uint64_t handle) const = 0;
  virtual double as_float(uint64_t handle) const = 0;  // an integer too
  virtual bool as_bool(uint64_t handle) const = 0;
};

class JsonView {
 public:
  JsonView() = default;
  JsonView(const JsonSource* source, uint64_t handle) : source_(source), handle_(handle) {}

  JsonKind kind() const { return handle_ == 0 ? JsonKind::kNull : source_->kind(handle_); }
  bool is_null() const { return kind() == JsonKind::kNull; }
  bool is_string() const { return kind() == JsonKind::kString; }
  bool is_list() const { return kind() == JsonKind::kList; }
  bool is_map() const { return kind() == JsonKind::kMap; }
  uint64_t len() const { return handle_ == 0 ? 0 : source_->len(handle_); }

  /// The member, or a null view when it is absent (or this is not a map).
  JsonView find(std::string_view key) const {
    return handle_ == 0 ? JsonView() : JsonView(source_, source_->find(handle_, key));
  }
  JsonView at(uint64_t i) const { return {source_, source_->at(handle_, i, nullptr)}; }
  JsonView at(uint64_t i, std::string_view* key) const {
    return {source_, source_->at(handle_, i, key)};
  }

  // Each needs the kind that it names; the get_ forms below check it.
  std::string_view as_string() const { return source_->as_string(handle_); }
  int64_t as_int() const { return source_->as_int(handle_); }
  double as_float() const { return source_->as_float(handle_); }
  bool as_bool() const { return source_->as_bool(handle_); }

  /// The string member `key`; `path` says where this map is. Absent or of another kind: refused.
  std::string_view get_string(std::string_view key, const std::string& path) const {
    const JsonView v = find(key);
    if (!v.is_string()) v.refuse(path, key, "a string");
    return v.as_string();
  }
  /// The string member, or "" when it is absent or null.
  std::string_view get_string_or_empty(std::string_view key, const std::string& path) const {
    return find(key).is_null() ? std::string_view() : get_string(key, path);
  }
  /// The boolean member, or `otherwise` when it is absent or null.
  bool get_bool(std::string_view key, bool otherwise, const std::string& path) const {
    const JsonView v = find(key);
    if (v.is_null()) return otherwise;
    if (v.kind() != JsonKind::kBool) v.refuse(path, key, "true or false");
    return v.as_bool();
  }
  int64_t get_int(std::string_view key, const std::string& path) const {
    const JsonView v = find(key);
    if (v.kind() != JsonKind::kInt) v.refuse(path, key, "an integer");
    return v.as_int();
  }
  /// This value as a number; `path` is its own place.
  double get_float(const std::string& path) const {
    if (kind() != JsonKind::kInt && kind() != JsonKind::kFloat) refuse(path, "", "a number");
    return as_float();
  }
  JsonView get_list(std::string_view key, const std::string& path) const {
    const JsonView v = find(key);
    if (!v.is_list()) v.refuse(path, key, "a list");
    return v;
  }

  /// Throws "path.key is <what it is>, expected <what>".
  [[noreturn]] void refuse(const std::string& path, std::string_view key,
                           const char* expected) const {
    static constexpr const char* kNames[] = {
        "null or absent", "a boolean", "an integer", "a number", "a string", "a list", "a map"};
    fail_format(path + (path.empty() || key.empty() ? "" : ".") + std::string(key) + " is " +
                kNames[static_cast<int>(kind())] + ", expected " + expected);
  }

 private:
  const JsonSource* source_ = nullptr;
  uint64_t handle_ = 0;
};

}  // namespace dovetail::bpe
