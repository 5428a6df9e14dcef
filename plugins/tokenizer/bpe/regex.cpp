#define PCRE2_CODE_UNIT_WIDTH 8
#include "regex.hpp"

#include <pcre2.h>

#include <algorithm>
#include <map>

#include "code_point_set.hpp"
#include "error.hpp"
#include "regex_parser.hpp"
#include "utf8.hpp"

namespace dovetail::bpe {
namespace {

constexpr size_t kJitStackBytes = size_t{1} << 20;
constexpr uint32_t kMaxSteps = 10'000'000;
constexpr size_t kMaxSets = 64;  // one bit each in a code point's signature
constexpr uint32_t kBlockLen = 256;

std::string byte_syntax(uint32_t byte) {
  static const char kHex[] = "0123456789abcdef";
  return {'\\', 'x', kHex[byte >> 4 & 15], kHex[byte & 15]};
}

/// "[\x01\x03-\x05]" for the class numbers whose signature has bit `set`.
std::string set_syntax_of(size_t set, const std::vector<uint64_t>& signatures) {
  std::string body;
  for (uint32_t c = 0; c < signatures.size(); ++c) {
    if ((signatures[c] >> set & 1) == 0) continue;
    uint32_t last = c;
    while (last + 1 < signatures.size() && (signatures[last + 1] >> set & 1)) ++last;
    body += byte_syntax(c);
    if (last > c) body += "-" + byte_syntax(last);
    c = last;
  }
  return body.empty() ? "(?!)" : "[" + body + "]";
}

std::string pcre2_message(int code) {
  PCRE2_UCHAR buffer[256];
  pcre2_get_error_message(code, buffer, sizeof buffer);
  return reinterpret_cast<const char*>(buffer);
}

}  // namespace

RegexScratch::RegexScratch()
    : match_data_(pcre2_match_data_create(1, nullptr)),
      context_(pcre2_match_context_create(nullptr)),
      jit_stack_(pcre2_jit_stack_create(size_t{32} * 1024, kJitStackBytes, nullptr)) {
  if (context_ != nullptr) {
    pcre2_set_match_limit(context_, kMaxSteps);
    if (jit_stack_ != nullptr) pcre2_jit_stack_assign(context_, nullptr, jit_stack_);
  }
}

RegexScratch::~RegexScratch() {
  pcre2_match_data_free(match_data_);
  pcre2_match_context_free(context_);
  pcre2_jit_stack_free(jit_stack_);
}

Regex::Regex(std::string_view pattern) : pattern_(pattern) {
  const RegexProgram program = parse_regex(pattern);
  std::vector<std::string> set_syntax;
  build_classes(program.sets, &set_syntax);
  std::string bytes;
  for (const RegexItem& item : program.items) {
    bytes += item.set < 0 ? item.syntax : set_syntax[static_cast<size_t>(item.set)];
  }
  int error = 0;
  PCRE2_SIZE where = 0;
  code_ = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(bytes.data()), bytes.size(), PCRE2_NEVER_UTF,
                        &error, &where, nullptr);
  if (code_ == nullptr) {
    fail_unsupported("pattern \"" + pattern_ + "\" does not compile: " + pcre2_message(error));
  }
  has_jit_ = pcre2_jit_compile(code_, PCRE2_JIT_COMPLETE) == 0;
}

Regex::~Regex() {
  pcre2_code_free(code_);
}

void Regex::build_classes(const std::vector<CodePointSet>& sets,
                          std::vector<std::string>* set_syntax) {
  if (sets.size() > kMaxSets) {
    fail_unsupported("pattern \"" + pattern_ + "\" has " + std::to_string(sets.size()) +
                     " distinct characters and classes, at most 64 are supported");
  }
  // Sweep over all range borders; between two borders every code point has the same signature.
  std::vector<std::pair<uint32_t, uint64_t>> borders;  // position, bits that flip there
  for (size_t s = 0; s < sets.size(); ++s) {
    for (const CodePointRange& r : sets[s].ranges()) {
      borders.emplace_back(r.first, uint64_t{1} << s);
      borders.emplace_back(r.last + 1, uint64_t{1} << s);
    }
  }
  borders.emplace_back(kCodePointEnd, 0);
  std::sort(borders.begin(), borders.end());

  std::vector<uint8_t> class_of_code_point(kCodePointEnd);
  std::map<uint64_t, uint32_t> numbers;
  std::vector<uint64_t> signatures;
  uint64_t signature = 0;
  uint32_t begin = 0;
  for (const auto& [end, flip] : borders) {
    if (end > begin) {
      const auto [it, is_new] = numbers.emplace(signature, signatures.size());
      if (is_new) signatures.push_back(signature);
      if (signatures.size() > 256) {
        fail_unsupported("pattern \"" + pattern_ +
                         "\" tells more than 256 kinds of characters apart");
      }
      std::fill(class_of_code_point.begin() + begin, class_of_code_point.begin() + end,
                static_cast<uint8_t>(it->second));
      begin = end;
    }
    signature ^= flip;
  }

  std::map<std::string_view, uint16_t> blocks;
  const std::string_view all(reinterpret_cast<const char*>(class_of_code_point.data()),
                             kCodePointEnd);
  for (uint32_t start = 0; start < kCodePointEnd; start += kBlockLen) {
    const std::string_view block = all.substr(start, kBlockLen);
    const auto [it, is_new] = blocks.emplace(block, static_cast<uint16_t>(blocks.size()));
    if (is_new) class_blocks_.insert(class_blocks_.end(), block.begin(), block.end());
    class_index_.push_back(it->second);
  }
  for (size_t s = 0; s < sets.size(); ++s) set_syntax->push_back(set_syntax_of(s, signatures));
}

bool Regex::find(uint32_t from, RegexScratch* scratch, uint32_t* begin, uint32_t* end) const {
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(scratch->classes_.data());
  const size_t n = scratch->classes_.size();
  int rc = has_jit_ ? pcre2_jit_match(code_, subject, n, from, 0, scratch->match_data_,
                                      scratch->context_)
                    : PCRE2_ERROR_JIT_STACKLIMIT;
  if (rc == PCRE2_ERROR_JIT_STACKLIMIT) {
    rc =
        pcre2_match(code_, subject, n, from, PCRE2_NO_JIT, scratch->match_data_, scratch->context_);
  }
  if (rc == PCRE2_ERROR_NOMATCH) return false;
  if (rc < 0)
    fail_invalid("splitting by pattern \"" + pattern_ + "\" failed: " + pcre2_message(rc));
  const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(scratch->match_data_);
  *begin = static_cast<uint32_t>(ends[0]);
  *end = static_cast<uint32_t>(ends[1]);
  return true;
}

void Regex::find_all(std::string_view text, RegexScratch* scratch,
                     std::vector<RegexMatch>* out) const {
  if (scratch->match_data_ == nullptr || scratch->context_ == nullptr) throw std::bad_alloc();
  std::string& classes = scratch->classes_;
  classes.resize(text.size());
  size_t n = 0;
  const auto* p = reinterpret_cast<const uint8_t*>(text.data());
  const auto* text_end = p + text.size();
  while (p < text_end) {
    const uint32_t c = decode_valid(p);
    classes[n++] =
        static_cast<char>(class_blocks_[class_index_[c / kBlockLen] * kBlockLen + c % kBlockLen]);
    p += utf8_len(*p);
  }
  classes.resize(n);

  // Matches come in order, so one walk turns positions in code points into bytes.
  uint32_t at_char = 0, at_byte = 0;
  const auto to_byte = [&](uint32_t position) {
    for (; at_char < position; ++at_char) at_byte += utf8_len(static_cast<uint8_t>(text[at_byte]));
    return at_byte;
  };
  uint32_t begin = 0, end = 0, from = 0;
  bool has_last = false;
  uint32_t last_end = 0;
  while (from <= n && find(from, scratch, &begin, &end)) {
    if (begin == end && has_last && last_end == end) {
      ++from;
      continue;
    }
    const uint32_t begin_byte = to_byte(begin);
    out->push_back({begin_byte, to_byte(end)});
    from = last_end = end;
    has_last = true;
  }
}

}  // namespace dovetail::bpe
