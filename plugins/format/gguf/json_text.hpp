// JSON of a document, written value by value: the host parses it, so that documents of this format are like those
// of any other.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace dovetail::gguf {

class JsonText {
 public:
  JsonText& begin_map() { return open('{'); }
  JsonText& end_map() { return close('}'); }
  JsonText& begin_list() { return open('['); }
  JsonText& end_list() { return close(']'); }
  JsonText& key(std::string_view k);
  JsonText& string(std::string_view v);
  JsonText& integer(int64_t v) { return word(std::to_string(v)); }
  /// As short as it can be and read back as the same float; a number of a file is one of float32.
  JsonText& number(double v);
  JsonText& flag(bool v) { return word(v ? "true" : "false"); }
  JsonText& null() { return word("null"); }
  /// JSON that is written already.
  JsonText& raw(std::string_view v) { return word(v); }

  const std::string& text() const { return text_; }

 private:
  JsonText& open(char c);
  JsonText& close(char c);
  JsonText& word(std::string_view v);
  void comma();

  std::string text_;
  bool needs_comma_ = false;
};

}  // namespace dovetail::gguf
