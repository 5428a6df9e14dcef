// Doc: one value of a document that the host parsed (a YAML section, config.json, tokenizer.json).
//
// Reading a value of the wrong kind throws Error with the file, line and column of the value; an
// absent value is a Doc that is_null(). Cheap to copy; valid as long as the host said.
#pragma once

#include <dovetail/abi/host.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace dovetail {

inline dvt_str to_abi(std::string_view s) {
  return {s.data(), s.size()};
}
inline std::string_view to_view(dvt_str s) {
  return {s.p, static_cast<size_t>(s.n)};
}

/// What a plugin throws when its input is wrong. The SDK's edge turns it into a status.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message, dvt_code code = DVT_EINVAL, std::string where = {})
      : std::runtime_error(message), code_(code), where_(std::move(where)) {}
  dvt_code code() const { return code_; }
  const std::string& where() const { return where_; }

 private:
  dvt_code code_;
  std::string where_;
};

class Doc {
 public:
  Doc() = default;
  Doc(const dvt_host_v1* host, dvt_doc handle) : host_(host), handle_(handle) {}

  dvt_doc handle() const { return handle_; }
  const dvt_host_v1* host() const { return host_; }
  uint32_t kind() const {
    return host_ ? host_->doc_kind(host_->self, handle_) : uint32_t{DVT_DOC_NULL};
  }
  bool is_null() const { return kind() == DVT_DOC_NULL; }
  bool is_map() const { return kind() == DVT_DOC_MAP; }
  bool is_list() const { return kind() == DVT_DOC_LIST; }
  bool is_string() const { return kind() == DVT_DOC_STR; }
  bool is_bool() const { return kind() == DVT_DOC_BOOL; }
  bool is_int() const { return kind() == DVT_DOC_INT; }
  bool is_number() const { return kind() == DVT_DOC_INT || kind() == DVT_DOC_FLOAT; }

  uint64_t size() const { return host_ ? host_->doc_len(host_->self, handle_) : 0; }
  /// The value under `key`; null if this is no map or lacks it.
  Doc find(std::string_view key) const {
    return {host_, host_ ? host_->doc_find(host_->self, handle_, to_abi(key)) : 0};
  }
  Doc operator[](std::string_view key) const { return find(key); }
  Doc at(uint64_t i) const { return {host_, host_->doc_at(host_->self, handle_, i, nullptr)}; }
  std::pair<std::string_view, Doc> entry(uint64_t i) const {
    dvt_str key{};
    const dvt_doc value = host_->doc_at(host_->self, handle_, i, &key);
    return {to_view(key), Doc(host_, value)};
  }

  std::string_view as_string() const {
    dvt_str out{};
    if (!host_ || host_->doc_str(host_->self, handle_, &out) != DVT_OK) wrong_kind("a string");
    return to_view(out);
  }
  int64_t as_int() const {
    int64_t out = 0;
    if (!host_ || host_->doc_i64(host_->self, handle_, &out) != DVT_OK) wrong_kind("an integer");
    return out;
  }
  double as_float() const {
    double out = 0;
    if (!host_ || host_->doc_f64(host_->self, handle_, &out) != DVT_OK) wrong_kind("a number");
    return out;
  }
  bool as_bool() const {
    uint32_t out = 0;
    if (!host_ || host_->doc_bool(host_->self, handle_, &out) != DVT_OK)
      wrong_kind("true or false");
    return out != 0;
  }

  /// "config.json:3:7"; empty when the host does not know.
  std::string where() const {
    if (!host_ || handle_ == 0) return {};
    uint64_t need = 0;
    char buffer[512];
    if (host_->doc_where(host_->self, handle_, buffer, sizeof buffer, &need) != DVT_OK) return {};
    return {buffer, static_cast<size_t>(need)};
  }
  const char* kind_name() const {
    switch (kind()) {
      case DVT_DOC_NULL:
        return "nothing";
      case DVT_DOC_BOOL:
        return "true or false";
      case DVT_DOC_INT:
        return "an integer";
      case DVT_DOC_FLOAT:
        return "a number";
      case DVT_DOC_STR:
        return "a string";
      case DVT_DOC_LIST:
        return "a list";
      case DVT_DOC_MAP:
        return "a map";
      default:
        return "an unknown kind";
    }
  }

 private:
  [[noreturn]] void wrong_kind(const char* expected) const {
    throw Error(std::string("got ") + kind_name() + ", expected " + expected, DVT_EINVAL, where());
  }

  const dvt_host_v1* host_ = nullptr;
  dvt_doc handle_ = 0;
};

}  // namespace dovetail
