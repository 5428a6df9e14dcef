// Node: one parsed document value, whatever file it came from.
//
// YAML configs, config.json, tokenizer.json and checkpoint metadata all become this tree, so that
// strictness (numbers, duplicates, depth) lives in the parsers and everything after them reads one
// type. Maps keep the order of the file. A node knows where it came from.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dovetail::core {

/// Where a value was written: "configs/a.yaml:3:7", "--set sampler", "built-in default".
struct Origin {
  std::shared_ptr<const std::string> source;  // file path or another name; null if unknown
  int32_t line = 0;                           // 1-based; 0 means the source has no lines
  int32_t column = 0;                         // 1-based, in bytes

  std::string str() const;
};

class Node {
 public:
  enum class Kind : uint8_t { kNull, kBool, kInt, kFloat, kString, kList, kMap };
  using Entry = std::pair<std::string, Node>;

  Node() = default;
  static Node make_bool(bool v);
  static Node make_int(int64_t v);
  static Node make_float(double v);
  static Node make_string(std::string v);
  static Node make_list();
  static Node make_map();

  Kind kind() const { return kind_; }
  const char* kind_name() const;  // "null", "a boolean", "an integer", "a number", "a string", ...
  bool is_null() const { return kind_ == Kind::kNull; }
  bool is_bool() const { return kind_ == Kind::kBool; }
  bool is_int() const { return kind_ == Kind::kInt; }
  bool is_number() const { return kind_ == Kind::kInt || kind_ == Kind::kFloat; }
  bool is_string() const { return kind_ == Kind::kString; }
  bool is_list() const { return kind_ == Kind::kList; }
  bool is_map() const { return kind_ == Kind::kMap; }

  // Each needs its own kind (DVT_ASSERT); as_float also takes an integer.
  bool as_bool() const;
  int64_t as_int() const;
  double as_float() const;
  const std::string& as_string() const;
  const std::vector<Node>& items() const;  // of a list
  std::vector<Node>& items();
  const std::vector<Entry>& entries() const;  // of a map, in file order
  std::vector<Entry>& entries();              // drops the map's index: keys may change

  /// The value under `key`, or null if this is not a map or lacks it. Maps over 16 entries are
  /// indexed on the first call that needs it (not thread-safe until then; parsers index at once).
  const Node* find(std::string_view key) const;
  Node* find(std::string_view key);
  /// Adds or replaces a map entry and returns it.
  Node& set(std::string_view key, Node value);
  /// The first entry of this map whose key an earlier entry has; null if all keys differ.
  const Entry* find_duplicate() const;
  /// Builds the index of every large map below this node.
  void build_index() const;

  /// The number exactly as the file spells it ("1e-6", "18446744073709551615"); empty if not parsed.
  const std::string& number_text() const { return kind_ == Kind::kString ? empty_text() : text_; }
  void set_number_text(std::string text) { text_ = std::move(text); }

  const Origin& origin() const { return origin_; }
  void set_origin(Origin origin) { origin_ = std::move(origin); }

 private:
  struct Index;
  const Index& index() const;
  static const std::string& empty_text();

  Kind kind_ = Kind::kNull;
  bool bool_ = false;
  // NOLINTBEGIN(readability-identifier-naming): private, which the check does not see in a union
  union {
    int64_t int_ = 0;
    double float_;
  };
  // NOLINTEND(readability-identifier-naming)
  std::string text_;  // the string, or the spelling of a number
  std::vector<Node> items_;
  std::vector<Entry> entries_;
  mutable std::shared_ptr<const Index> index_;
  Origin origin_;
};

}  // namespace dovetail::core
