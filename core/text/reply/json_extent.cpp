#include "core/text/reply/json_extent.hpp"

#include "core/base/json.hpp"

namespace dovetail::core {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

// Walks a text that is known to be JSON.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}

  bool take(char c) {
    skip_blanks();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  std::string_view take_value() {
    skip_blanks();
    const size_t begin = at_;
    if (text_[at_] == '"') {
      skip_string();
    } else if (text_[at_] == '{' || text_[at_] == '[') {
      JsonExtent extent;
      extent.scan(text_.substr(begin));
      at_ += extent.end();
    } else {
      at_ = text_.find_first_of(",]} \t\r\n", at_);
      if (at_ == text_.npos) at_ = text_.size();
    }
    return text_.substr(begin, at_ - begin);
  }

 private:
  void skip_blanks() {
    while (at_ < text_.size() && kBlanks.find(text_[at_]) != kBlanks.npos) ++at_;
  }
  void skip_string() {
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] == '\\') ++at_;
    }
    ++at_;
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

JsonExtent::State JsonExtent::scan(std::string_view text) {
  constexpr std::string_view kOutsideStrings = " \t\r\n{}[]:,\"+-.0123456789truefalsnE";
  for (; at_ < text.size(); ++at_) {
    const char c = text[at_];
    if (in_string_) {
      if (is_escaped_)
        is_escaped_ = false;
      else if (c == '\\')
        is_escaped_ = true;
      else
        in_string_ = c != '"';
      continue;
    }
    const bool opens = c == '{' || c == '[';
    if (kOutsideStrings.find(c) == kOutsideStrings.npos) return State::kBroken;
    if (depth_ == 0 && !opens && kBlanks.find(c) == kBlanks.npos) return State::kBroken;
    in_string_ = c == '"';
    if (opens) ++depth_;
    if ((c == '}' || c == ']') && --depth_ == 0) {
      ++at_;
      return State::kWhole;
    }
  }
  return State::kMore;
}

std::string_view member_text(std::string_view object, std::string_view key) {
  Cursor at(object);
  for (at.take('{'); !at.take('}'); at.take(',')) {
    const std::string_view name = at.take_value();
    at.take(':');
    const std::string_view value = at.take_value();
    const Result<Node> parsed = parse_json(name, "key");
    if (parsed && parsed->is_string() && parsed->as_string() == key) return value;
  }
  return {};
}

std::string_view item_text(std::string_view list, size_t i) {
  Cursor at(list);
  at.take('[');
  for (; i > 0; --i) {
    at.take_value();
    at.take(',');
  }
  return at.take_value();
}

}  // namespace dovetail::core
