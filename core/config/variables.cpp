#include "core/config/variables.hpp"

#include <cstdlib>

#include "core/base/utf8.hpp"
#include "core/config/source_text.hpp"

namespace dovetail::core {
namespace {

bool is_name_char(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

bool is_name(std::string_view text) {
  if (text.empty() || (text[0] >= '0' && text[0] <= '9')) return false;
  for (const char c : text) {
    if (!is_name_char(c)) return false;
  }
  return true;
}

// `inside` is what stands between the braces.
Result<std::string> value_of(std::string_view inside, const Environment& environment) {
  const size_t split = inside.find(":-");
  const std::string name(inside.substr(0, split));
  if (!is_name(name)) {
    return invalid("\"${" + std::string(inside) +
                   "}\" names no variable, expected ${NAME} or ${NAME:-default}; for a literal "
                   "\"${\" write \"$${\"");
  }
  const std::optional<std::string> value = environment(name);
  if (split != std::string_view::npos && (!value || value->empty())) {
    return std::string(inside.substr(split + 2));
  }
  if (!value) {
    return invalid("the variable " + name + " is not set; set it, or give a default: ${" + name +
                   ":-...}");
  }
  if (find_invalid_utf8(*value) != std::string::npos) {
    return invalid("the variable " + name + " is not valid UTF-8");
  }
  return *value;
}

Status expand_string(Node& node, const std::string& path, const Environment& environment) {
  if (node.as_string().find('$') == std::string::npos) return Status::ok();
  Result<std::string> text = expand_variables(node.as_string(), environment);
  if (!text) return text.status().in(node.origin().str() + ": " + path);
  Node expanded = Node::make_string(std::move(text).value());
  expanded.set_origin(node.origin());
  node = std::move(expanded);
  return Status::ok();
}

Status expand_below(Node& node, const std::string& path, const Environment& environment) {
  const auto below = [&](const std::string& key) { return path.empty() ? key : path + "." + key; };
  Status status;
  if (node.is_string()) {
    status = expand_string(node, path, environment);
  } else if (node.is_list()) {
    for (size_t i = 0; i < node.items().size() && status.is_ok(); ++i) {
      status = expand_below(node.items()[i], below(std::to_string(i)), environment);
    }
  } else if (node.is_map()) {
    for (Node::Entry& entry : node.entries()) {
      if (status.is_ok()) status = expand_below(entry.second, below(entry.first), environment);
    }
  }
  return status;
}

}  // namespace

Environment process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) return std::nullopt;
    return std::string(value);
  };
}

Result<std::string> expand_variables(std::string_view text, const Environment& environment) {
  std::string out;
  while (!text.empty()) {
    if (text.starts_with("$${")) {
      out += "${";
      text.remove_prefix(3);
    } else if (text.starts_with("${")) {
      const size_t end = text.find('}');
      if (end == std::string_view::npos) {
        return invalid(quote_for_message(text) +
                       " has no closing \"}\"; for a literal \"${\" write \"$${\"");
      }
      DVT_TRY(const std::string value, value_of(text.substr(2, end - 2), environment));
      out += value;
      text.remove_prefix(end + 1);
    } else {
      out += text[0];
      text.remove_prefix(1);
    }
  }
  return out;
}

std::string escape_variables(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i).starts_with("${")) out += '$';
    out += text[i];
  }
  return out;
}

Status expand_all(Node& node, const Environment& environment) {
  return expand_below(node, "", environment);
}

}  // namespace dovetail::core
