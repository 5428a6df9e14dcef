#include "lowercase.hpp"

#include <algorithm>

#include "unicode.hpp"
#include "utf8.hpp"

namespace dovetail::bpe {

bool append_lowercase(uint32_t code_point, std::string* out) {
  if (code_point < 0x80) {
    if (code_point < 'A' || code_point > 'Z') return false;
    out->push_back(static_cast<char>(code_point | 0x20));
    return true;
  }
  if (code_point == 0x130) {
    append_utf8('i', out);
    append_utf8(0x307, out);
    return true;
  }
  auto it = std::upper_bound(kLowercase.begin(), kLowercase.end(), code_point,
                             [](uint32_t c, const LowercaseRange& r) { return c < r.first; });
  if (it == kLowercase.begin()) return false;
  const LowercaseRange& r = *--it;
  if (code_point > r.last || (code_point - r.first) % r.stride != 0) return false;
  append_utf8(code_point + static_cast<uint32_t>(r.delta), out);
  return true;
}

}  // namespace dovetail::bpe
