// Calls in JSON: {"name": "f", "arguments": {...}}, a list of such, and Mistral's NAME[ARGS]{...}.
#include "core/base/json.hpp"
#include "core/text/reply/call_scanner.hpp"
#include "core/text/reply/json_extent.hpp"

namespace dovetail::core {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";
constexpr std::string_view kCallId = "[CALL_ID]", kArgs = "[ARGS]";

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '.' || c == ':' || c == '/';
}

JsonLimits call_limits() {
  JsonLimits limits;
  limits.lone_surrogates = LoneSurrogates::kReplace;  // only the text is passed on
  return limits;
}

// A JSON object as text; what else may stand for one is turned into it.
bool read_arguments(const Node& value, std::string_view text, std::string& out) {
  if (value.is_map()) {
    out = text;
  } else if (value.is_null()) {
    out = "{}";
  } else if (value.is_string()) {  // an object that was written as text
    const Result<Node> inner = parse_json(value.as_string(), "arguments", call_limits());
    if (!inner || !inner->is_map()) return false;
    out = value.as_string();
  } else {
    return false;
  }
  return true;
}

bool read_call(const Node& object, std::string_view text, ToolCall& call) {
  if (!object.is_map()) return false;
  const Node* function = object.find("function");
  if (function != nullptr && function->is_map() && object.find("name") == nullptr)
    return read_call(*function, member_text(text, "function"), call);
  const Node* name = object.find("name");
  if (name == nullptr || !name->is_string() || name->as_string().empty()) return false;
  call.name = name->as_string();
  if (const Node* id = object.find("id"); id != nullptr && id->is_string())
    call.id = id->as_string();
  for (const char* key : {"arguments", "parameters"}) {
    if (const Node* value = object.find(key))
      return read_arguments(*value, member_text(text, key), call.arguments);
  }
  call.arguments = "{}";
  return true;
}

class JsonScanner : public CallScanner {
 public:
  JsonScanner(const ToolStyle& style, const ToolSet& tools) : style_(style), tools_(tools) {}

  State scan(std::string_view text, bool is_end) override {
    if (!is_past_name_) {
      const State named = style_.body == CallBody::kMistral ? scan_name(text) : State::kDone;
      if (named != State::kDone) return named;
      is_past_name_ = true;
    }
    if (!is_whole_) {
      if (style_.open.empty() && !may_be_bare_call(text)) return State::kNoCall;
      const JsonExtent::State state = extent_.scan(text.substr(begin_));
      if (state == JsonExtent::State::kBroken) return State::kNoCall;
      if (state == JsonExtent::State::kMore) return State::kMore;
      if (!read_calls(text.substr(begin_, extent_.end()))) return State::kNoCall;
      is_whole_ = true;
    }
    return scan_close(text, begin_ + extent_.end(), style_.close, is_end);
  }

 private:
  // NAME, [CALL_ID]ID and [ARGS], where the JSON does not begin at once.
  State scan_name(std::string_view text) {
    size_t at = text.find_first_not_of(kBlanks);
    if (at == text.npos) return State::kMore;
    if (text[at] == '[' || text[at] == '{') return State::kDone;
    const size_t name_begin = at;
    while (at < text.size() && is_name_char(text[at])) ++at;
    name_ = text.substr(name_begin, at - name_begin);
    if (at == text.size()) return State::kMore;
    if (name_.empty()) return State::kNoCall;
    std::string_view rest = text.substr(at);
    if (rest.starts_with(kCallId)) {
      rest.remove_prefix(kCallId.size());
      const size_t n = rest.find('[');
      if (n == rest.npos) return State::kMore;
      id_ = rest.substr(0, n);
      rest.remove_prefix(n);
    } else if (rest.size() < kCallId.size() && may_begin_with(rest, kCallId)) {
      return State::kMore;
    }
    if (rest.starts_with(kArgs)) {
      rest.remove_prefix(kArgs.size());
    } else if (may_begin_with(rest, kArgs)) {
      return State::kMore;
    } else if (rest[0] != '{') {
      return State::kNoCall;
    }
    begin_ = text.size() - rest.size();
    return State::kDone;
  }

  // An answer without a tag that begins with a brace may be any JSON: only one that begins as a call
  // does is waited for.
  static bool may_be_bare_call(std::string_view text) {
    size_t at = text.find('{');
    at = at == text.npos ? at : text.find_first_not_of(kBlanks, at + 1);
    if (at == text.npos) return true;
    const std::string_view rest = text.substr(at);
    for (const char* key :
         {"\"name\"", "\"type\"", "\"function\"", "\"parameters\"", "\"arguments\"", "\"id\""}) {
      if (may_begin_with(rest, key)) return true;
    }
    return false;
  }

  bool read_calls(std::string_view text) {
    const Result<Node> parsed = parse_json(text, "tool call", call_limits());
    if (!parsed) return false;
    if (!name_.empty()) {
      if (!parsed->is_map()) return false;
      calls_.push_back({id_, name_, std::string(text)});
      return true;
    }
    const size_t begin = text.find_first_not_of(kBlanks);
    const size_t n = parsed->is_list() ? parsed->items().size() : 1;
    for (size_t i = 0; i < n; ++i) {
      const Node& object = parsed->is_list() ? parsed->items()[i] : *parsed;
      const std::string_view own =
          parsed->is_list() ? item_text(text.substr(begin), i) : text.substr(begin);
      ToolCall call;
      if (!read_call(object, own, call)) return false;
      if (style_.open.empty() && tools_.is_known() && !tools_.has(call.name)) return false;
      calls_.push_back(std::move(call));
    }
    return n > 0;
  }

  const ToolStyle& style_;
  ToolSet tools_;
  JsonExtent extent_;
  std::string name_, id_;
  size_t begin_ = 0;  // of the JSON
  bool is_past_name_ = false, is_whole_ = false;
};

}  // namespace

std::unique_ptr<CallScanner> make_json_scanner(const ToolStyle& style, const ToolSet& tools) {
  return std::make_unique<JsonScanner>(style, tools);
}

}  // namespace dovetail::core
