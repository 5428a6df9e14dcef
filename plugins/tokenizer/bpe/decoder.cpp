#include "decoder.hpp"

#include <algorithm>

#include "byte_symbols.hpp"
#include "error.hpp"
#include "utf8.hpp"

namespace dovetail::bpe {
namespace {

// Appends `bytes` as valid UTF-8 and returns how many bytes at the end are a character cut short.
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

}  // namespace

Decoder Decoder::from_json(const JsonView& section, const std::string& path,
                           const Vocabulary& vocabulary, const AddedTokens& added) {
  Decoder d;
  bool byte_level = false;
  if (!section.is_null()) {
    const std::string_view type = section.get_string("type", path);
    if (type != "ByteLevel") {
      fail_unsupported(path + ".type is \"" + std::string(type) +
                       "\", which is not supported (supported: ByteLevel, null)");
    }
    byte_level = true;
  }
  d.spaced_ = !byte_level;

  uint32_t n_ids = vocabulary.n_ids();
  for (const AddedToken& t : added.all()) n_ids = std::max(n_ids, t.id + 1);
  d.tokens_.resize(n_ids);
  for (uint32_t id = 0; id < n_ids; ++id) {
    const AddedToken* token = added.find_id(id);
    const auto content =
        token != nullptr ? std::optional<std::string_view>(token->content) : vocabulary.content(id);
    if (!content) continue;
    Entry& e = d.tokens_[id];
    e.exists = true;
    e.added = token != nullptr;
    e.special = e.added && token->special;
    e.begin = d.text_.size();
    if (!byte_level || !append_bytes(*content, &d.text_)) d.text_.append(*content);
    e.len = static_cast<uint32_t>(d.text_.size() - e.begin);
    d.max_token_bytes_ = std::max(d.max_token_bytes_, e.len);
  }
  return d;
}

std::string_view Decoder::bytes(uint32_t id) const {
  if (!has(id)) return {};
  return std::string_view(text_).substr(tokens_[id].begin, tokens_[id].len);
}

std::string Decoder::decode(std::span<const uint32_t> ids, bool skip_special) const {
  std::string joined;
  bool is_first = true;
  for (const uint32_t id : ids) {
    if (!takes(id, skip_special)) continue;
    if (spaced_ && !is_first) joined.push_back(' ');
    is_first = false;
    joined.append(bytes(id));
  }
  if (valid_utf8_prefix(joined) == joined.size()) return joined;
  std::string out;
  if (append_repaired(joined, &out) > 0) out.append(kReplacementChar);
  return out;
}

std::string DecodeStream::step(uint32_t id) {
  if (!decoder_.takes(id, skip_special_)) return {};
  if (decoder_.spaced_ && !is_first_) tail_.push_back(' ');
  is_first_ = false;
  tail_.append(decoder_.bytes(id));
  std::string out;
  const size_t cut = append_repaired(tail_, &out);
  tail_.erase(0, tail_.size() - cut);
  return out;
}

std::string DecodeStream::flush() {
  std::string out;
  if (!tail_.empty()) out.append(kReplacementChar);
  tail_.clear();
  return out;
}

}  // namespace dovetail::bpe
