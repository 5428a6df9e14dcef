// JSON through Boost.JSON's streaming parser, with one handler that builds Nodes.
//
// The library checks syntax and UTF-8. The handler does what the library's own value type would
// lose: number text, duplicate keys, integers beyond 64 bits, positions, limits.
#include "core/base/json.hpp"

#include <boost/json/basic_parser_impl.hpp>
#include <dovetail/json_string.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <memory>
#include <new>
#include <system_error>
#include <utility>
#include <vector>

#include "core/base/utf8.hpp"

namespace dovetail::core {
namespace {

namespace bj = boost::json;

struct Position {
  int32_t line = 1;
  int32_t column = 1;
};

// Walks the text beside the parser, one token per event: the parser reports no positions.
class Cursor {
 public:
  explicit Cursor(std::string_view text)
      : at_(text.data()), end_(at_ + text.size()), line_start_(at_) {}

  /// Skips to the next token and returns where it begins.
  Position next_token() {
    for (; at_ != end_; ++at_) {
      const char c = *at_;
      if (c == '\n') {
        ++line_;
        line_start_ = at_ + 1;
      } else if (c != ' ' && c != '\t' && c != '\r' && c != ',' && c != ':') {
        break;
      }
    }
    return {line_, static_cast<int32_t>(at_ - line_start_) + 1};
  }

  void skip(size_t n_bytes) { at_ += std::min<size_t>(n_bytes, static_cast<size_t>(end_ - at_)); }

  void skip_string() {  // at_ is on the opening quote; a string holds no raw line breaks
    for (++at_; at_ < end_ && *at_ != '"'; ++at_) {
      if (*at_ == '\\') ++at_;
    }
    skip(1);
  }

 private:
  const char* at_;
  const char* end_;
  const char* line_start_;
  int32_t line_ = 1;
};

Position position_of(std::string_view text, size_t offset) {
  Position p;
  size_t line_start = 0;
  for (size_t i = 0; i < offset && i < text.size(); ++i) {
    if (text[i] == '\n') {
      ++p.line;
      line_start = i + 1;
    }
  }
  p.column = static_cast<int32_t>(offset - line_start) + 1;
  return p;
}

std::string quote(std::string_view s) {
  constexpr size_t kShown = 60;
  return to_json(
      Node::make_string(std::string(s.substr(0, kShown)) + (s.size() > kShown ? "..." : "")));
}

class NodeBuilder {
 public:
  // The library wants these limits as constants; JsonLimits are checked below.
  // NOLINTBEGIN(readability-identifier-naming): the library's names
  static constexpr size_t max_array_size = static_cast<size_t>(-1);
  static constexpr size_t max_object_size = static_cast<size_t>(-1);
  static constexpr size_t max_string_size = static_cast<size_t>(-1);
  static constexpr size_t max_key_size = static_cast<size_t>(-1);
  // NOLINTEND(readability-identifier-naming)

  NodeBuilder(std::string_view text, std::shared_ptr<const std::string> source,
              const JsonLimits& limits)
      : cursor_(text), source_(std::move(source)), limits_(limits) {}

  /// Why an event was refused; empty if the library itself found the fault.
  const std::string& failure() const { return failure_; }
  size_t n_open() const { return open_.size(); }
  Node take_root() { return std::move(values_.front()); }

  bool on_document_begin(bj::error_code&) { return true; }
  bool on_document_end(bj::error_code&) { return true; }

  bool on_array_begin(bj::error_code& ec) { return open(Node::make_list(), ec); }
  bool on_object_begin(bj::error_code& ec) { return open(Node::make_map(), ec); }

  bool on_array_end(size_t, bj::error_code&) {
    const size_t first = close();
    std::vector<Node>& items = values_[first - 1].items();
    items.assign(std::make_move_iterator(values_.begin() + static_cast<ptrdiff_t>(first)),
                 std::make_move_iterator(values_.end()));
    values_.resize(first);
    return true;
  }

  bool on_object_end(size_t n, bj::error_code& ec) {
    const size_t first = close();
    const size_t first_key = keys_.size() - n;
    Node& map = values_[first - 1];
    std::vector<Node::Entry>& entries = map.entries();
    entries.reserve(n);
    for (size_t i = 0; i < n; ++i) {
      entries.emplace_back(std::move(keys_[first_key + i].text), std::move(values_[first + i]));
    }
    if (const Node::Entry* twice = map.find_duplicate()) {
      const Position& at = keys_[first_key + static_cast<size_t>(twice - entries.data())].position;
      const std::string first_at = map.find(twice->first)->origin().str();
      return fail(at,
                  "key " + quote(twice->first) + " appears twice (first value at " + first_at +
                      "), expected each key once",
                  ec);
    }
    keys_.resize(first_key);
    values_.resize(first);
    return true;
  }

  bool on_string_part(bj::string_view s, size_t n, bj::error_code& ec) { return part(s, n, ec); }
  bool on_key_part(bj::string_view s, size_t n, bj::error_code& ec) { return part(s, n, ec); }

  bool on_string(bj::string_view s, size_t n, bj::error_code& ec) {
    if (!part(s, n, ec)) return false;
    const Position at = cursor_.next_token();
    cursor_.skip_string();
    return push(Node::make_string(std::exchange(text_, {})), at, ec);
  }

  bool on_key(bj::string_view s, size_t n, bj::error_code& ec) {
    if (!part(s, n, ec)) return false;
    const Position at = cursor_.next_token();
    cursor_.skip_string();
    keys_.push_back({std::exchange(text_, {}), at});
    return true;
  }

  bool on_number_part(bj::string_view s, bj::error_code& ec) { return part(s, s.size(), ec); }
  bool on_int64(int64_t, bj::string_view s, bj::error_code& ec) { return number(s, ec); }
  bool on_uint64(uint64_t, bj::string_view s, bj::error_code& ec) { return number(s, ec); }
  bool on_double(double, bj::string_view s, bj::error_code& ec) { return number(s, ec); }

  bool on_bool(bool b, bj::error_code& ec) { return literal(Node::make_bool(b), b ? 4 : 5, ec); }
  bool on_null(bj::error_code& ec) { return literal(Node(), 4, ec); }

  bool on_comment_part(bj::string_view, bj::error_code&) { return true; }
  bool on_comment(bj::string_view, bj::error_code&) { return true; }

 private:
  struct Key {
    std::string text;
    Position position;
  };

  bool fail(Position at, const std::string& what, bj::error_code& ec) {
    failure_ = Origin{source_, at.line, at.column}.str() + ": " + what;
    ec = bj::make_error_code(bj::error::exception);
    return false;
  }

  bool push(Node node, Position at, bj::error_code& ec) {
    if (++n_values_ > limits_.max_values) {
      return fail(at, "more than " + std::to_string(limits_.max_values) + " values", ec);
    }
    node.set_origin({source_, at.line, at.column});
    values_.push_back(std::move(node));
    return true;
  }

  bool open(Node container, bj::error_code& ec) {
    const Position at = cursor_.next_token();
    cursor_.skip(1);
    if (open_.size() >= limits_.max_depth) {
      return fail(
          at,
          "lists and maps are nested deeper than " + std::to_string(limits_.max_depth) + " levels",
          ec);
    }
    if (!push(std::move(container), at, ec)) return false;
    open_.push_back(values_.size());
    return true;
  }

  // Leaves the innermost container, which is values_[result - 1]; its children follow it.
  size_t close() {
    cursor_.next_token();
    cursor_.skip(1);
    const size_t first = open_.back();
    open_.pop_back();
    return first;
  }

  bool part(bj::string_view s, size_t n_so_far, bj::error_code& ec) {
    if (n_so_far > limits_.max_string_bytes) {
      return fail(cursor_.next_token(),
                  "a string is longer than " + std::to_string(limits_.max_string_bytes) + " bytes",
                  ec);
    }
    text_.append(s.data(), s.size());
    return true;
  }

  bool literal(Node node, size_t n_bytes, bj::error_code& ec) {
    const Position at = cursor_.next_token();
    cursor_.skip(n_bytes);
    return push(std::move(node), at, ec);
  }

  bool number(bj::string_view s, bj::error_code& ec) {
    text_.append(s.data(), s.size());
    const Position at = cursor_.next_token();
    cursor_.skip(text_.size());
    std::string text = std::exchange(text_, {});
    const char* const end = text.data() + text.size();

    Node node;
    int64_t integer = 0;
    const auto as_int = std::from_chars(text.data(), end, integer);
    if (as_int.ec == std::errc() && as_int.ptr == end) {
      node = Node::make_int(integer);
    } else {
      double value = 0;
      if (std::from_chars(text.data(), end, value).ec == std::errc::result_out_of_range) {
        value = std::strtod(text.c_str(), nullptr);  // tells too small, a zero, from too large
      }
      if (std::isinf(value)) {
        return fail(at, "number " + text.substr(0, 40) + " is beyond the range of a double", ec);
      }
      node = Node::make_float(value);
    }
    node.set_number_text(std::move(text));
    return push(std::move(node), at, ec);
  }

  Cursor cursor_;
  std::shared_ptr<const std::string> source_;
  const JsonLimits& limits_;
  std::string failure_;
  std::string text_;          // the string, key or number that is being read
  std::vector<Node> values_;  // open containers and their children so far, in document order
  std::vector<Key> keys_;     // keys of open maps
  std::vector<size_t> open_;  // for each open container, where its children begin in values_
  size_t n_values_ = 0;
};

// Turns escaped lone surrogates into \ufffd, which has the same length, so positions stay true.
std::string replace_lone_surrogates(std::string_view text) {
  std::string out(text);
  const auto unit_at = [&](size_t i) -> int {  // the code unit of a \uXXXX escape at i, or -1
    if (i + 6 > out.size() || out[i] != '\\' || out[i + 1] != 'u') return -1;
    int unit = 0;
    const auto r = std::from_chars(&out[i + 2], &out[i + 2] + 4, unit, 16);
    return r.ptr == &out[i + 2] + 4 && unit >= 0 ? unit : -1;
  };
  for (size_t i = out.find('\\'); i < out.size(); i = out.find('\\', i)) {
    const int unit = unit_at(i);
    if (unit < 0xD800 || unit > 0xDFFF) {
      i += 2;  // another escape, or a fault that the parser will name
      continue;
    }
    const int next = unit_at(i + 6);
    if (unit < 0xDC00 && next >= 0xDC00 && next <= 0xDFFF) {
      i += 12;
      continue;
    }
    out.replace(i + 2, 4, "fffd");
    i += 6;
  }
  return out;
}

// What the library's error means, for a reader who has only the file.
std::string describe(bj::error_code ec, std::string_view text, size_t offset, size_t n_open) {
  const auto is = [&](bj::error e) { return ec == bj::make_error_code(e); };
  if (is(bj::error::incomplete)) {
    if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
      return "the file is empty, expected a json value";
    }
    return "the text ends in the middle of a json value, with " + std::to_string(n_open) +
           " lists or maps still open";
  }
  const std::string got = offset < text.size() ? quote(text.substr(offset, 1)) : "the end";
  if (is(bj::error::extra_data)) return "got more text after the json value, expected its end";
  if (is(bj::error::exponent_overflow)) return "a number is beyond the range of a double";
  if (is(bj::error::too_deep)) return "lists and maps are nested too deep";
  if (is(bj::error::expected_hex_digit)) return "expected four hex digits after \\u, got " + got;
  if (is(bj::error::illegal_leading_surrogate) || is(bj::error::illegal_trailing_surrogate) ||
      is(bj::error::expected_utf16_escape)) {
    return "a \\u escape is half of a surrogate pair without its other half";
  }
  if (!is(bj::error::syntax)) return "not valid json: " + ec.message();
  if (offset < text.size() && static_cast<unsigned char>(text[offset]) >= 0x80) {
    return "got a byte that is not valid UTF-8 here, expected json in UTF-8";
  }
  if (offset < text.size() && static_cast<unsigned char>(text[offset]) < 0x20) {
    return "got a raw control character, expected json (inside a string write it as an escape)";
  }
  return "got " + got +
         ", which json does not allow here (it has no comments, trailing commas, "
         "single quotes or NaN)";
}

void write_string(std::string_view s, std::string& out) {
  const bool is_utf8 = find_invalid_utf8(s) == std::string_view::npos;
  if (is_utf8) return append_json_string(s, out);
  append_json_string(replace_invalid_utf8(s), out);
}

bool is_integer_text(std::string_view s) {
  if (!s.empty() && s[0] == '-') s.remove_prefix(1);
  return !s.empty() && s.find_first_not_of("0123456789") == std::string_view::npos &&
         (s[0] != '0' || s.size() == 1);
}

void write_float(const Node& node, std::string& out) {
  const double v = node.as_float();
  if (!std::isfinite(v)) {
    out += "null";
    return;
  }
  if (is_integer_text(node.number_text())) {  // an integer beyond int64
    out += node.number_text();
    return;
  }
  char buffer[40];
  const auto r = std::to_chars(buffer, buffer + sizeof buffer, v);
  const std::string_view text(buffer, static_cast<size_t>(r.ptr - buffer));
  out += text;
  if (text.find_first_of(".e") == std::string_view::npos) out += ".0";
}

class JsonWriter {
 public:
  explicit JsonWriter(int indent) : indent_(indent) {}

  void write(const Node& node) {
    switch (node.kind()) {
      case Node::Kind::kNull:
        out_ += "null";
        break;
      case Node::Kind::kBool:
        out_ += node.as_bool() ? "true" : "false";
        break;
      case Node::Kind::kInt:
        out_ += std::to_string(node.as_int());
        break;
      case Node::Kind::kFloat:
        write_float(node, out_);
        break;
      case Node::Kind::kString:
        write_string(node.as_string(), out_);
        break;
      case Node::Kind::kList:
        write_list(node.items());
        break;
      case Node::Kind::kMap:
        write_map(node.entries());
        break;
    }
  }

  std::string take() { return std::move(out_); }

 private:
  void write_list(const std::vector<Node>& items) {
    out_ += '[';
    ++depth_;
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out_ += ',';
      break_line();
      write(items[i]);
    }
    --depth_;
    if (!items.empty()) break_line();
    out_ += ']';
  }

  void write_map(const std::vector<Node::Entry>& entries) {
    out_ += '{';
    ++depth_;
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) out_ += ',';
      break_line();
      write_string(entries[i].first, out_);
      out_ += indent_ > 0 ? ": " : ":";
      write(entries[i].second);
    }
    --depth_;
    if (!entries.empty()) break_line();
    out_ += '}';
  }

  void break_line() {
    if (indent_ <= 0) return;
    out_ += '\n';
    out_.append(static_cast<size_t>(indent_) * depth_, ' ');
  }

  int indent_;
  size_t depth_ = 0;
  std::string out_;
};

}  // namespace

Result<Node> parse_json(std::string_view text, std::string source_name, const JsonLimits& limits) {
  const auto source = std::make_shared<const std::string>(std::move(source_name));
  const auto fault = [&](const std::string& what) { return bad_format(*source + ": " + what); };
  if (text.size() > limits.max_bytes) {
    return fault("the json text has " + std::to_string(text.size()) + " bytes, expected at most " +
                 std::to_string(limits.max_bytes));
  }
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
    return fault("the text is UTF-16, expected json in UTF-8; convert it, for example with iconv");
  }
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);

  std::string replaced;
  if (limits.lone_surrogates == LoneSurrogates::kReplace &&
      (text.find("\\ud") != std::string_view::npos ||
       text.find("\\uD") != std::string_view::npos)) {
    replaced = replace_lone_surrogates(text);
    text = replaced;
  }

  try {
    bj::parse_options options;
    options.max_depth = limits.max_depth + 1;  // one more, so that the handler's message wins
    bj::basic_parser<NodeBuilder> parser(options, text, source, limits);
    bj::error_code ec;
    size_t used = parser.write_some(false, text.data(), text.size(), ec);
    if (!ec) {
      used = std::min(text.find_first_not_of(" \t\r\n", used), text.size());
      if (used < text.size()) ec = bj::make_error_code(bj::error::extra_data);
    }
    if (!ec) return parser.handler().take_root();
    if (!parser.handler().failure().empty()) return bad_format(parser.handler().failure());
    const Position at = position_of(text, used);
    return bad_format(Origin{source, at.line, at.column}.str() + ": " +
                      describe(ec, text, used, parser.handler().n_open()));
  } catch (const std::bad_alloc&) {
    return {Code::kNoMemory, *source + ": not enough memory to parse " +
                                 std::to_string(text.size()) + " bytes of json"};
  } catch (const std::exception& e) {
    return internal_error(*source + ": parsing json failed: " + e.what());
  }
}

std::string to_json(const Node& node, int indent) {
  JsonWriter writer(indent);
  writer.write(node);
  return writer.take();
}

}  // namespace dovetail::core
