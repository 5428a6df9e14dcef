// Fault: how the template engine stops, on its way to becoming a Status.
//
// Inside this folder a fault is an exception: an evaluator that threads a Result through every
// operand of every operator reads as error plumbing and little else. ChatTemplate::parse and
// ChatTemplate::render catch every Fault, add the place in the template, and return a Status.
#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/status.hpp"

namespace dovetail::core::jinja {

class Fault : public std::exception {
 public:
  enum class Kind {
    kError,   // of the template or its input: gets the place in front
    kRaised,  // by raise_exception: the message belongs to the template's author, kept as it is
  };

  Fault(Code code, std::string message, Kind kind = Kind::kError)
      : code_(code), kind_(kind), message_(std::move(message)) {}

  Code code() const { return code_; }
  Kind kind() const { return kind_; }
  const std::string& message() const { return message_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  Code code_;
  Kind kind_;
  std::string message_;
};

/// A name as messages show it: 'name'.
inline std::string in_quotes(std::string_view name) {
  std::string quoted(1, '\'');
  quoted += name;
  quoted += '\'';
  return quoted;
}

[[noreturn]] inline void fail(std::string message) {
  throw Fault(Code::kInvalid, std::move(message));
}
[[noreturn]] inline void fail_unsupported(std::string message) {
  throw Fault(Code::kUnsupported, std::move(message));
}

}  // namespace dovetail::core::jinja
