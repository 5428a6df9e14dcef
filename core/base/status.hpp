// Status and Result: how core code says that something went wrong, and why.
//
// A message says what, where, got, expected and what to try, in lower case with no full stop, on one
// line: the command line prints it as it is. Several faults are several lines of that form.
// Exceptions of libraries are caught in the file that calls the library and turned into a Status there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace dovetail::core {

/// What kind of failure it was. The values equal the plugin interface's dvt_code.
enum class Code : int32_t {
  kOk = 0,
  kInvalid = 1,      // wrong input: a config, a file, a request
  kUnsupported = 2,  // right, but not something this build or plugin can do
  kNoMemory = 3,
  kDevice = 4,
  kCancelled = 5,
  kIo = 6,      // the operating system refused to read or write
  kFormat = 7,  // a file is damaged or not what it claims to be
  kBusy = 8,
  kInternal = 9,
  kVersion = 10,
  kTooSmall = 11,
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  static Status ok() { return {}; }
  bool is_ok() const { return code_ == Code::kOk; }
  explicit operator bool() const { return is_ok(); }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }

  /// The same failure with "prefix: " in front of each line, for a caller that knows where it happened.
  Status in(const std::string& prefix) const {
    if (is_ok()) return *this;
    std::string message = prefix + ": " + message_;
    for (size_t at = message.find('\n', prefix.size()); at != std::string::npos;
         at = message.find('\n', at + prefix.size()))
      message.insert(at + 1, prefix + ": ");
    return Status(code_, std::move(message));
  }

 private:
  Code code_ = Code::kOk;
  std::string message_;
};

/// A value or the Status that says why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}          // NOLINT(google-explicit-constructor)
  Result(Status status) : status_(std::move(status)) {}  // NOLINT(google-explicit-constructor)
  Result(Code code, std::string message) : status_(code, std::move(message)) {}

  bool is_ok() const { return value_.has_value(); }
  explicit operator bool() const { return is_ok(); }
  const Status& status() const { return status_; }
  T& value() & { return *value_; }
  const T& value() const& { return *value_; }
  T&& value() && { return std::move(*value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }

 private:
  std::optional<T> value_;
  Status status_;
};

inline Status invalid(std::string message) {
  return {Code::kInvalid, std::move(message)};
}
inline Status unsupported(std::string message) {
  return {Code::kUnsupported, std::move(message)};
}
inline Status bad_format(std::string message) {
  return {Code::kFormat, std::move(message)};
}
inline Status io_error(std::string message) {
  return {Code::kIo, std::move(message)};
}
inline Status internal_error(std::string message) {
  return {Code::kInternal, std::move(message)};
}

inline Status status_of(const Status& s) {
  return s;
}
template <class T>
Status status_of(const Result<T>& r) {
  return r.status();
}

}  // namespace dovetail::core

// DVT_TRY(expr)              returns from the function if the Status is not ok
// DVT_TRY(declaration, expr) declares a variable from a Result, or returns its Status
#define DVT_TRY(...) DVT_TRY_PICK_(__VA_ARGS__, DVT_TRY_VALUE_, DVT_TRY_STATUS_, )(__VA_ARGS__)
#define DVT_TRY_PICK_(a, b, name, ...) name
#define DVT_TRY_STATUS_(expr)                              \
  do {                                                     \
    if (auto&& dvt_status_ = (expr); !dvt_status_.is_ok()) \
      return ::dovetail::core::status_of(dvt_status_);     \
  } while (false)
#define DVT_TRY_VALUE_(decl, expr) DVT_TRY_VALUE_2_(decl, expr, __LINE__)
#define DVT_TRY_VALUE_2_(decl, expr, line) DVT_TRY_VALUE_3_(decl, expr, line)
#define DVT_TRY_VALUE_3_(decl, expr, line)                           \
  auto dvt_result_##line = (expr);                                   \
  if (!dvt_result_##line.is_ok()) return dvt_result_##line.status(); \
  decl = std::move(dvt_result_##line).value()  // NOLINT(bugprone-macro-parentheses): a declaration
