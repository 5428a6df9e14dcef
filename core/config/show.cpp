#include "core/config/show.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <string_view>

#include "core/config/variables.hpp"
#include "core/config/yaml.hpp"
#include "core/config/yaml_scalar.hpp"

namespace dovetail::core {
namespace {

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

// Few strings go without quotes: those made of letters, digits and marks that mean nothing in YAML.
bool can_be_plain(const std::string& text) {
  if (text.empty() || text.size() > kYamlMaxKeyBytes) return false;
  if (!is_letter(text[0]) && text[0] != '/') return false;
  for (const char c : text) {
    const bool is_safe =
        is_letter(c) || (c >= '0' && c <= '9') || c == '.' || c == '/' || c == '-' || c == '+';
    if (!is_safe) return false;
  }
  const Result<Node> read = read_plain_scalar(text);
  return read && read->is_string();
}

std::string in_quotes(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte == 0x7F) {
      out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string show_key(const std::string& key) {
  return can_be_plain(key) ? key : in_quotes(key);
}

// Shortest text that reads back the same, and as a number that is not an integer.
std::string float_text(double value) {
  std::array<char, 32> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  std::string text(buffer.data(), end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string show_scalar(const Node& node) {
  switch (node.kind()) {
    case Node::Kind::kBool:
      return node.as_bool() ? "true" : "false";
    case Node::Kind::kInt:
      return node.number_text().empty() ? std::to_string(node.as_int()) : node.number_text();
    case Node::Kind::kFloat:
      return node.number_text().empty() ? float_text(node.as_float()) : node.number_text();
    case Node::Kind::kString: {
      const std::string text = escape_variables(node.as_string());
      return can_be_plain(text) ? text : in_quotes(text);
    }
    case Node::Kind::kList:
      return "[]";
    case Node::Kind::kMap:
      return "{}";
    case Node::Kind::kNull:
      break;
  }
  return "null";
}

class Writer {
 public:
  explicit Writer(bool with_origins) : with_origins_(with_origins) {}

  std::string write(const Node& root) {
    if (is_leaf(root)) {
      value(root);
    } else {
      block(root, 0);
    }
    return std::move(out_);
  }

 private:
  static bool is_leaf(const Node& node) {
    return !(node.is_list() && !node.items().empty()) &&
           !(node.is_map() && !node.entries().empty());
  }

  // `out_` stands where the block's first line begins, already indented.
  void block(const Node& node, size_t indent) {
    bool is_first = true;
    const auto begin_line = [&] {
      if (!is_first) out_.append(indent, ' ');
      is_first = false;
    };
    if (node.is_map()) {
      for (const auto& [key, below] : node.entries()) {
        begin_line();
        out_ += show_key(key) + ":";
        entry(below, indent);
      }
    } else {
      for (const Node& item : node.items()) {
        begin_line();
        out_ += "- ";
        if (is_leaf(item)) {
          value(item);
        } else {
          block(item, indent + 2);
        }
      }
    }
  }

  void entry(const Node& below, size_t indent) {
    if (is_leaf(below)) {
      out_ += ' ';
      value(below);
    } else {
      out_ += '\n';
      out_.append(indent + 2, ' ');
      block(below, indent + 2);
    }
  }

  void value(const Node& leaf) {
    out_ += show_scalar(leaf);
    if (with_origins_) {
      std::string origin = leaf.origin().str();
      std::replace_if(
          origin.begin(), origin.end(), [](char c) { return static_cast<uint8_t>(c) < 0x20; }, '?');
      out_ += "  # " + origin;
    }
    out_ += '\n';
  }

  bool with_origins_;
  std::string out_;
};

}  // namespace

std::string show_config(const Node& config, bool with_origins) {
  return Writer(with_origins).write(config);
}

}  // namespace dovetail::core
