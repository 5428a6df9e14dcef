#include "json_text.hpp"

#include <dovetail/json_string.hpp>

#include <charconv>

namespace dovetail::gguf {

void JsonText::comma() {
  if (needs_comma_) text_ += ',';
  needs_comma_ = true;
}
JsonText& JsonText::open(char c) {
  comma();
  text_ += c;
  needs_comma_ = false;
  return *this;
}
JsonText& JsonText::close(char c) {
  text_ += c;
  needs_comma_ = true;
  return *this;
}
JsonText& JsonText::word(std::string_view v) {
  comma();
  text_ += v;
  return *this;
}

JsonText& JsonText::key(std::string_view k) {
  comma();
  append_json_string(k, text_);
  text_ += ':';
  needs_comma_ = false;
  return *this;
}

JsonText& JsonText::string(std::string_view v) {
  comma();
  append_json_string(v, text_);
  return *this;
}

JsonText& JsonText::number(double v) {
  char digits[64];
  const auto narrow = static_cast<float>(v);
  const auto end = static_cast<double>(narrow) == v
                       ? std::to_chars(digits, digits + sizeof digits, narrow)
                       : std::to_chars(digits, digits + sizeof digits, v);
  std::string text(digits, end.ptr);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return word(text);
}

}  // namespace dovetail::gguf
