// Calls in tags: <function=NAME> and <parameter=KEY> of Qwen3-Coder, <arg_key> and <arg_value> of GLM.
//
// A value is text. It becomes a JSON string where the function's schema says so, else what it is as
// JSON (or as Python spells true, false and none), else a string.
#include <algorithm>

#include "core/base/json.hpp"
#include "core/text/reply/call_scanner.hpp"

namespace dovetail::core {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

struct Tags {
  std::string_view before_name,
      after_name;  // after_name empty: the name ends at a line break or "<"
  std::string_view before_key, after_key;
  std::string_view before_value, after_value;
  std::string_view end;
};

constexpr Tags kFunctionTags = {"<function=",   ">",          "<parameter=", ">", "",
                                "</parameter>", "</function>"};
constexpr Tags kArgTags = {"", "", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>", ""};

std::string_view trimmed(std::string_view s) {
  const size_t begin = s.find_first_not_of(kBlanks);
  if (begin == s.npos) return {};
  return s.substr(begin, s.find_last_not_of(kBlanks) + 1 - begin);
}

std::string json_value(std::string_view text, int is_string) {
  const std::string quoted = to_json(Node::make_string(std::string(text)));
  if (is_string == 1) return quoted;
  const std::string_view bare = trimmed(text);
  if (bare == "True") return "true";
  if (bare == "False") return "false";
  if (bare == "None") return "null";
  return parse_json(bare, "value") ? std::string(bare) : quoted;
}

class TagScanner : public CallScanner {
 public:
  TagScanner(const ToolStyle& style, const ToolSet& tools)
      : style_(style),
        tools_(tools),
        tags_(style.body == CallBody::kArgTags ? kArgTags : kFunctionTags) {}

  State scan(std::string_view text, bool is_end) override {
    is_end_ = is_end;
    while (stage_ != Stage::kClose) {
      const State state = advance(text);
      if (state != State::kDone) return state;
    }
    const State state = scan_close(text, at_, style_.close, is_end);
    if (state == State::kDone) calls_ = {{"", name_, "{" + members_ + "}"}};
    return state;
  }

 private:
  enum class Stage : uint8_t { kName, kNext, kKey, kBeforeValue, kValue, kClose };

  // One stage further: kDone if it could.
  State advance(std::string_view text) {
    switch (stage_) {
      case Stage::kName:
        return read_name(text);
      case Stage::kNext:
        return read_next(text);
      case Stage::kKey: {
        if (!read_until(text, tags_.after_key, key_)) return State::kMore;
        stage_ = Stage::kBeforeValue;
        return State::kDone;
      }
      case Stage::kBeforeValue: {
        if (!tags_.before_value.empty()) {
          const State state = skip_tag(text, tags_.before_value);
          if (state != State::kDone) return state;
        }
        stage_ = Stage::kValue;
        return State::kDone;
      }
      case Stage::kValue: {
        std::string value;
        if (!read_until(text, tags_.after_value, value)) return State::kMore;
        if (!add_member(value)) return State::kNoCall;
        stage_ = Stage::kNext;
        return State::kDone;
      }
      case Stage::kClose:
        break;
    }
    return State::kDone;
  }

  State read_name(std::string_view text) {
    if (!is_in_name_ && !tags_.before_name.empty()) {
      const State state = skip_tag(text, tags_.before_name);
      if (state != State::kDone) return state;
    }
    is_in_name_ = true;
    if (!tags_.after_name.empty()) {
      if (!read_until(text, tags_.after_name, name_)) return State::kMore;
    } else {
      at_ = std::min(text.find_first_not_of(kBlanks, at_), text.size());
      const size_t end = text.find_first_of("\n<", at_);
      if (end == text.npos) return State::kMore;
      name_ = text.substr(at_, end - at_);
      at_ = searched_ = end;
    }
    name_ = trimmed(name_);
    if (name_.empty() || name_.find_first_of("<>{}\"\n ") != name_.npos) return State::kNoCall;
    stage_ = Stage::kNext;
    return State::kDone;
  }

  // A further parameter or the end.
  State read_next(std::string_view text) {
    const size_t at = std::min(text.find_first_not_of(kBlanks, at_), text.size());
    const std::string_view rest = text.substr(at);
    const std::string_view end = tags_.end.empty() ? style_.close : tags_.end;
    if (rest.starts_with(tags_.before_key)) {
      at_ = searched_ = at + tags_.before_key.size();
      stage_ = Stage::kKey;
      return State::kDone;
    }
    if (rest.starts_with(end) || (is_end_ && tags_.end.empty() && may_begin_with(rest, end))) {
      at_ = at + tags_.end.size();
      stage_ = Stage::kClose;
      return State::kDone;
    }
    return may_begin_with(rest, tags_.before_key) || may_begin_with(rest, end) ? State::kMore
                                                                               : State::kNoCall;
  }

  State skip_tag(std::string_view text, std::string_view tag) {
    const size_t at = std::min(text.find_first_not_of(kBlanks, at_), text.size());
    const std::string_view rest = text.substr(at);
    if (!may_begin_with(rest, tag)) return State::kNoCall;
    if (rest.size() < tag.size()) return State::kMore;
    at_ = searched_ = at + tag.size();
    return State::kDone;
  }

  bool read_until(std::string_view text, std::string_view tag, std::string& out) {
    const size_t end = text.find(tag, searched_);
    if (end == text.npos) {
      searched_ = std::max(at_, text.size() - std::min(text.size(), tag.size() - 1));
      return false;
    }
    out = text.substr(at_, end - at_);
    at_ = searched_ = end + tag.size();
    return true;
  }

  // False for a key that is there already.
  bool add_member(std::string_view value) {
    const std::string key = to_json(Node::make_string(std::string(trimmed(key_))));
    if (std::find(keys_.begin(), keys_.end(), key) != keys_.end()) return false;
    keys_.push_back(key);
    if (style_.body == CallBody::kFunctionTags) {  // each value stands on lines of its own
      if (value.starts_with('\n')) value.remove_prefix(1);
      if (value.ends_with('\n')) value.remove_suffix(1);
    }
    members_ += members_.empty() ? "" : ", ";
    members_ += key + ": " + json_value(value, tools_.is_string(name_, trimmed(key_)));
    return true;
  }

  const ToolStyle& style_;
  ToolSet tools_;
  const Tags& tags_;
  Stage stage_ = Stage::kName;
  bool is_in_name_ = false, is_end_ = false;
  size_t at_ = 0, searched_ = 0;
  std::string name_, key_, members_;
  std::vector<std::string> keys_;
};

}  // namespace

std::unique_ptr<CallScanner> make_tag_scanner(const ToolStyle& style, const ToolSet& tools) {
  return std::make_unique<TagScanner>(style, tools);
}

}  // namespace dovetail::core
