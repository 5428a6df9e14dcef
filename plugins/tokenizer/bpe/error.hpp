// Error: how the tokenizer refuses a file, a text or a setting.
//
// The plugin's edge (bpe_plugin.cpp) turns it into the interface's code and message; nothing inside
// the tokenizer knows about the interface.
#pragma once

#include <dovetail/quote.hpp>

#include <stdexcept>
#include <string>

namespace dovetail::bpe {

class Error : public std::runtime_error {
 public:
  enum class Kind { kInvalid, kUnsupported, kFormat };

  Error(Kind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  Kind kind() const { return kind_; }

 private:
  Kind kind_;
};

[[noreturn]] inline void fail_invalid(const std::string& message) {
  throw Error(Error::Kind::kInvalid, message);
}
[[noreturn]] inline void fail_unsupported(const std::string& message) {
  throw Error(Error::Kind::kUnsupported, message);
}
[[noreturn]] inline void fail_format(const std::string& message) {
  throw Error(Error::Kind::kFormat, message);
}

}  // namespace dovetail::bpe
