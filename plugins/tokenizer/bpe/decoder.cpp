#include "decoder.hpp"

#include <algorithm>

#include "byte_fallback.hpp"
#include "byte_symbols.hpp"
#include "repair_utf8.hpp"
#include "utf8.hpp"

namespace dovetail::bpe {

Decoder Decoder::from_json(const JsonView& section, const std::string& path,
                           const Vocabulary& vocabulary, const AddedTokens& added) {
  Decoder d;
  d.steps_ = DecoderSteps::from_json(section, path);
  d.spaced_ = section.is_null();
  d.byte_level_ = section.is_map() && section.get_string("type", path) == "ByteLevel";

  uint32_t n_ids = vocabulary.n_ids();
  for (const AddedToken& t : added.all()) n_ids = std::max(n_ids, t.id + 1);
  d.tokens_.resize(n_ids);
  uint32_t max_token_bytes = 0;
  for (uint32_t id = 0; id < n_ids; ++id) {
    const AddedToken* token = added.find_id(id);
    const auto content = token != nullptr ? std::optional<std::string_view>(token->searched)
                                          : vocabulary.content(id);
    if (!content) continue;
    Entry& e = d.tokens_[id];
    e.exists = true;
    e.added = token != nullptr;
    e.special = e.added && token->special;
    e.begin = d.text_.size();
    if (!d.byte_level_ || !append_bytes(*content, &d.text_)) d.text_.append(*content);
    e.len = static_cast<uint32_t>(d.text_.size() - e.begin);
    max_token_bytes = std::max(max_token_bytes, e.len);
  }
  d.max_step_bytes_ = d.steps_.max_bytes(max_token_bytes);
  return d;
}

std::string_view Decoder::stored(uint32_t id) const {
  return std::string_view(text_).substr(tokens_[id].begin, tokens_[id].len);
}

std::string Decoder::piece(uint32_t id) const {
  if (!has(id)) return {};
  if (byte_level_ || is_added(id)) return std::string(stored(id));
  const int byte = byte_of_token(stored(id));
  if (byte >= 0) return std::string(1, static_cast<char>(byte));
  if (spaced_) return std::string(stored(id));
  // What it adds between two other tokens.
  const auto text_of = [this](std::initializer_list<std::string_view> tokens) {
    DecoderSteps::Stream stream(steps_);
    std::string text;
    for (const std::string_view token : tokens) stream.feed(token, &text);
    stream.finish(&text);
    return text;
  };
  const size_t n_before = text_of({"a"}).size(), n_around = text_of({"a", "b"}).size();
  const std::string text = text_of({"a", stored(id), "b"});
  return text.size() < n_around ? "" : text.substr(n_before, text.size() - n_around);
}

std::string Decoder::decode(std::span<const uint32_t> ids, bool skip_special) const {
  std::string out;
  if (!byte_level_) {
    DecodeStream stream(*this, skip_special);
    for (const uint32_t id : ids) out += stream.step(id);
    return out + stream.flush();
  }
  std::string joined;
  for (const uint32_t id : ids) {
    if (takes(id, skip_special)) joined.append(stored(id));
  }
  if (valid_utf8_prefix(joined) == joined.size()) return joined;
  if (append_repaired(joined, &out) > 0) out.append(kReplacementChar);
  return out;
}

DecodeStream::DecodeStream(const Decoder& decoder, bool skip_special)
    : decoder_(decoder), skip_special_(skip_special) {
  if (!decoder.byte_level_) steps_.emplace(decoder.steps_);
}

std::string DecodeStream::step(uint32_t id) {
  if (!decoder_.takes(id, skip_special_)) return {};
  std::string out;
  if (steps_) {
    steps_->feed(decoder_.stored(id), &out);
    return out;
  }
  tail_.append(decoder_.stored(id));
  const size_t cut = append_repaired(tail_, &out);
  tail_.erase(0, tail_.size() - cut);
  return out;
}

std::string DecodeStream::flush() {
  std::string out;
  if (steps_) {
    steps_->finish(&out);
    steps_.emplace(decoder_.steps_);
  } else if (!tail_.empty()) {
    out.append(kReplacementChar);
  }
  tail_.clear();
  return out;
}

}  // namespace dovetail::bpe
