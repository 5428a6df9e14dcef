// Detokenizer: one sequence of ids becoming text as they come, never half a character.
#pragma once

#include <dovetail/abi/tokenizer.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/status.hpp"

namespace dovetail::core {

class Detokenizer {
 public:
  /// `tokenizer` is an opened tokenizer object and outlives this. flags: DVT_DEC_*. `shown` are special
  /// tokens, with their text, that are given out although the flags skip special ones.
  static Result<std::unique_ptr<Detokenizer>> open(const dvt_tokenizer_v1* table, void* tokenizer,
                                                   uint32_t flags,
                                                   std::map<uint32_t, std::string> shown = {});
  ~Detokenizer();
  Detokenizer(const Detokenizer&) = delete;
  Detokenizer& operator=(const Detokenizer&) = delete;

  /// The characters that this id completes; valid until the next call.
  Result<std::string_view> step(uint32_t id);
  /// What is left at the end: U+FFFD for a broken tail.
  Result<std::string_view> flush();

 private:
  Detokenizer(const dvt_tokenizer_v1* table, void* stream) : table_(table), stream_(stream) {}
  const dvt_tokenizer_v1* table_;
  void* stream_;
  std::string buffer_;
  std::map<uint32_t, std::string> shown_;
  std::string text_;  // of a shown token, behind what was left before it
};

}  // namespace dovetail::core
