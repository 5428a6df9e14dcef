// Reads the chat vectors under tests/data/chat (README there) and runs one case.
#pragma once

#include <ctime>
#include <fstream>
#include <sstream>
#include <string>

#include "core/base/json.hpp"
#include "core/text/template/chat_template.hpp"

namespace dovetail::core::test {

inline std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream out;
  out << in.rdbuf();
  return out.str();
}

inline std::string field(const Node& node, const char* key) {
  const Node* value = node.find(key);
  return value != nullptr && value->is_string() ? value->as_string() : "";
}

/// The clock of every vector: Saturday 2026-03-07 09:05:04.
inline RenderOptions vector_options() {
  RenderOptions options;
  options.clock = [] {
    std::tm t{};
    t.tm_year = 126;
    t.tm_mon = 2;
    t.tm_mday = 7;
    t.tm_hour = 9;
    t.tm_min = 5;
    t.tm_sec = 4;
    t.tm_wday = 6;
    t.tm_yday = 65;
    return t;
  };
  return options;
}

/// Empty if `got` is what the case (with "rendered", or "error" and its kind) expects, else why not.
inline std::string mismatch(const Node& expected, const std::string& error_kind,
                            const std::string& error_message, const Result<Rendered>& got) {
  if (const Node* rendered = expected.find("rendered")) {
    if (!got.is_ok()) return "failed: " + got.status().message();
    if (got->text != rendered->as_string()) {
      return "got:\n" + got->text + "\nexpected:\n" + rendered->as_string();
    }
    return "";
  }
  if (got.is_ok())
    return "rendered, expected " + error_kind + " (" + error_message + "):\n" + got->text;
  if (error_kind == "TemplateError" && got.status().message() != error_message) {
    return "message: " + got.status().message() + "\nexpected: " + error_message;
  }
  return "";
}

}  // namespace dovetail::core::test
