// JsonExtent: where a JSON list or object that comes in pieces ends, and what its parts are spelled like.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace dovetail::core {

/// Looks at each byte once. It finds the closing bracket; whether the text is JSON parse_json says.
class JsonExtent {
 public:
  enum class State : uint8_t { kMore, kBroken, kWhole };

  /// `text` is all there is so far, from the same begin as before. kBroken: it cannot become a list or
  /// an object, whatever follows.
  State scan(std::string_view text);
  /// After kWhole: behind the closing bracket.
  size_t end() const { return at_; }

 private:
  size_t at_ = 0;
  uint32_t depth_ = 0;
  bool in_string_ = false, is_escaped_ = false;
};

/// The value under `key` as it is spelled in `object`, which parse_json took for a map that has it.
std::string_view member_text(std::string_view object, std::string_view key);
/// Item `i` of a list that has it, the same way.
std::string_view item_text(std::string_view list, size_t i);

}  // namespace dovetail::core
