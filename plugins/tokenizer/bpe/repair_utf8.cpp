#include "repair_utf8.hpp"

#include "utf8.hpp"

namespace dovetail::bpe {

void repair_utf8(std::string_view text, std::string* out, Alignment* alignment) {
  for (size_t pos = 0; pos < text.size();) {
    const size_t valid = valid_utf8_prefix(text.substr(pos));
    out->append(text, pos, valid);
    pos += valid;
    if (pos == text.size()) break;
    const uint32_t len = next_utf8(text, pos).len;
    alignment->add(out->size(), out->size() + kReplacementChar.size(), pos, pos + len);
    out->append(kReplacementChar);
    pos += len;
  }
}

size_t append_repaired(std::string_view bytes, std::string* out) {
  size_t pos = 0;
  while (pos < bytes.size()) {
    const size_t valid = valid_utf8_prefix(bytes.substr(pos));
    out->append(bytes, pos, valid);
    pos += valid;
    if (pos == bytes.size()) break;
    const Utf8Step step = next_utf8(bytes, pos);
    if (step.kind == Utf8Step::Kind::kCut) return step.len;
    out->append(kReplacementChar);
    pos += step.len;
  }
  return 0;
}

}  // namespace dovetail::bpe
