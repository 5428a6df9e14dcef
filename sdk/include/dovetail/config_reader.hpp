// ConfigReader: a model's config.json by key, with every problem collected instead of the first.
//
// Each getter names one key of the model's own file. A missing or wrong value is remembered and a
// harmless one returned, so that an architecture's read_config is a plain list; the SDK reports all
// problems at once when the architecture has been constructed.
#pragma once

#include <dovetail/doc.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace dovetail {

class ConfigReader {
 public:
  explicit ConfigReader(Doc root) : root_(root) {}

  Doc root() const { return root_; }
  /// The value under `key`, also inside "text_config" (multimodal configs); null if absent.
  Doc find(std::string_view key) const {
    const Doc here = root_[key];
    if (!here.is_null()) return here;
    return root_["text_config"][key];
  }
  bool has(std::string_view key) const { return !find(key).is_null(); }
  /// The file has the key and says null, which some models mean otherwise than to leave it out.
  bool says_null(std::string_view key) const {
    if (has(key)) return false;
    for (const Doc& map : {root_, root_["text_config"]})
      for (uint64_t i = 0; map.is_map() && i < map.size(); ++i)
        if (map.entry(i).first == key) return true;
    return false;
  }

  int64_t i64(std::string_view key, int64_t min = 1) {
    const Doc v = find(key);
    if (v.is_null()) return problem(root_, quoted(key) + " is missing, expected an integer"), min;
    return integer(v, key, min);
  }
  int32_t i32(std::string_view key, int32_t min = 1) {
    return static_cast<int32_t>(bounded(i64(key, min), key, min));
  }
  int64_t i64_or(std::string_view key, int64_t fallback, int64_t min = 1) {
    const Doc v = find(key);
    return v.is_null() ? fallback : integer(v, key, min);
  }
  int32_t i32_or(std::string_view key, int32_t fallback, int32_t min = 1) {
    return static_cast<int32_t>(bounded(i64_or(key, fallback, min), key, min));
  }
  double f64(std::string_view key) {
    const Doc v = find(key);
    if (v.is_null()) return problem(root_, quoted(key) + " is missing, expected a number"), 1.0;
    return number(v, key);
  }
  double f64_or(std::string_view key, double fallback,
                double min = -std::numeric_limits<double>::infinity()) {
    const Doc v = find(key);
    if (v.is_null()) return fallback;
    const double value = number(v, key);
    if (v.is_number() && value < min)
      problem(v, quoted(key) + " is " + std::to_string(value) + ", expected at least " +
                     std::to_string(min));
    return value;
  }
  bool flag_or(std::string_view key, bool fallback) {
    const Doc v = find(key);
    if (v.is_null()) return fallback;
    if (!v.is_bool())
      return problem(v, quoted(key) + " is " + v.kind_name() + ", expected true or false"),
             fallback;
    return v.as_bool();
  }
  std::string string_or(std::string_view key, std::string_view fallback) {
    const Doc v = find(key);
    if (v.is_null()) return std::string(fallback);
    if (!v.is_string())
      return problem(v, quoted(key) + " is " + v.kind_name() + ", expected a string"),
             std::string(fallback);
    return std::string(v.as_string());
  }
  /// Refuses a value that the architecture does not implement.
  void require_string(std::string_view key, std::string_view only, std::string_view fallback) {
    const std::string v = string_or(key, fallback);
    if (v != only)
      problem(find(key), quoted(key) + " is \"" + v + "\", this architecture has only \"" +
                             std::string(only) + "\"");
  }

  void problem(Doc at, const std::string& what) {
    std::string where = at.where();
    if (where.empty()) where = root_.where();  // an absent key: the whole file
    problems_.push_back(where.empty() ? what : where + ": " + what);
  }
  const std::vector<std::string>& problems() const { return problems_; }
  /// Tells of a choice that the config leaves open (log.level: info).
  void note(const std::string& what) const {
    if (const dvt_host_v1* h = root_.host())
      h->log(h->self, DVT_LOG_INFO, to_abi("config"), to_abi(what));
  }

  static std::string quoted(std::string_view key) { return "\"" + std::string(key) + "\""; }

 private:
  int64_t integer(Doc v, std::string_view key, int64_t min) {
    if (!v.is_int())
      return problem(v, quoted(key) + " is " + v.kind_name() + ", expected an integer"), min;
    const int64_t value = v.as_int();
    if (value < min) {
      problem(v, quoted(key) + " is " + std::to_string(value) + ", expected at least " +
                     std::to_string(min));
      return min;
    }
    return value;
  }
  int64_t bounded(int64_t value, std::string_view key, int64_t min) {
    if (value <= INT32_MAX) return value;
    problem(find(key),
            quoted(key) + " is " + std::to_string(value) + ", expected at most 2147483647");
    return min;
  }
  double number(Doc v, std::string_view key) {
    if (!v.is_number())
      return problem(v, quoted(key) + " is " + v.kind_name() + ", expected a number"), 1.0;
    return v.as_float();
  }

  Doc root_;
  std::vector<std::string> problems_;
};

}  // namespace dovetail
