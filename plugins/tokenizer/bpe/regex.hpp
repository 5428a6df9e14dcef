// Regex: a tokenizer.json pattern compiled so that Unicode is ours and speed is PCRE2's.
//
// Code points that no part of the pattern tells apart form one class, and there are few (at most
// 256). The text is turned into one byte per code point, its class, and PCRE2 with JIT matches over
// those bytes with plain byte sets. So results depend on our own class tables only, never on the
// Unicode version of the library, and every class test is one bit test.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct pcre2_real_code_8;
struct pcre2_real_match_data_8;
struct pcre2_real_match_context_8;
struct pcre2_real_jit_stack_8;

namespace dovetail::bpe {

/// What one thread needs to match; shared by all patterns.
class RegexScratch {
 public:
  RegexScratch();
  ~RegexScratch();
  RegexScratch(const RegexScratch&) = delete;
  RegexScratch& operator=(const RegexScratch&) = delete;

 private:
  friend class Regex;
  std::string classes_;  // the text, one class byte per code point
  pcre2_real_match_data_8* match_data_;
  pcre2_real_match_context_8* context_;
  pcre2_real_jit_stack_8* jit_stack_;
};

struct RegexMatch {
  uint32_t begin, end;  // bytes of the text
};

class Regex {
 public:
  /// errors  kFormat, kUnsupported, with the construct and its place.
  explicit Regex(std::string_view pattern);
  ~Regex();
  Regex(const Regex&) = delete;
  Regex& operator=(const Regex&) = delete;

  /// Appends all matches in `text` (valid UTF-8), leftmost first, as the reference iterates: an
  /// empty match counts unless it touches the end of the match before.
  /// errors   kInvalid when the pattern needs more than 10 million steps at one place.
  /// threads  reentrant, with a scratch of one's own.
  void find_all(std::string_view text, RegexScratch* scratch, std::vector<RegexMatch>* out) const;

 private:
  bool find(uint32_t from, RegexScratch* scratch, uint32_t* begin, uint32_t* end) const;
  void build_classes(const std::vector<class CodePointSet>& sets,
                     std::vector<std::string>* set_syntax);

  std::string pattern_;
  pcre2_real_code_8* code_ = nullptr;
  bool has_jit_ = false;
  std::vector<uint8_t>
      class_blocks_;  // block number per 256 code points, then class per code point
  std::vector<uint16_t> class_index_;
};

}  // namespace dovetail::bpe
