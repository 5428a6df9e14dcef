// DocSource: a document that the host parsed, as the loader's JsonSource.
#pragma once

#include <dovetail/tokenizer.hpp>

#include "json_view.hpp"

namespace dovetail::bpe {

static_assert(static_cast<int>(JsonKind::kNull) == DVT_DOC_NULL &&
              static_cast<int>(JsonKind::kInt) == DVT_DOC_INT &&
              static_cast<int>(JsonKind::kString) == DVT_DOC_STR &&
              static_cast<int>(JsonKind::kMap) == DVT_DOC_MAP);

class DocSource : public JsonSource {
 public:
  explicit DocSource(const Host& host) : host_(*host.table()) {}

  JsonKind kind(uint64_t h) const override {
    return static_cast<JsonKind>(host_.doc_kind(host_.self, h));
  }
  uint64_t len(uint64_t h) const override { return host_.doc_len(host_.self, h); }
  uint64_t find(uint64_t h, std::string_view key) const override {
    return host_.doc_find(host_.self, h, to_abi(key));
  }
  uint64_t at(uint64_t h, uint64_t i, std::string_view* key) const override {
    dvt_str name{};
    const uint64_t value = host_.doc_at(host_.self, h, i, &name);
    if (key != nullptr) *key = to_view(name);
    return value;
  }
  std::string_view as_string(uint64_t h) const override {
    dvt_str out{};
    check(host_.doc_str(host_.self, h, &out));
    return to_view(out);
  }
  int64_t as_int(uint64_t h) const override {
    int64_t out = 0;
    check(host_.doc_i64(host_.self, h, &out));
    return out;
  }
  double as_float(uint64_t h) const override {
    double out = 0;
    check(host_.doc_f64(host_.self, h, &out));
    return out;
  }
  bool as_bool(uint64_t h) const override {
    uint32_t out = 0;
    check(host_.doc_bool(host_.self, h, &out));
    return out != 0;
  }

 private:
  // JsonView asks for the kind first, so a refusal here is the host contradicting itself.
  static void check(dvt_code code) {
    if (code != DVT_OK)
      throw dovetail::Error("the host gave no value for its own handle", DVT_EINTERNAL);
  }

  const dvt_host_v1& host_;
};

}  // namespace dovetail::bpe
