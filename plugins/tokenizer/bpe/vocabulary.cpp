#include "vocabulary.hpp"

#include <algorithm>
#include <bit>

#include "error.hpp"
#include "hash.hpp"

namespace dovetail::bpe {
namespace {

// Tables have a place for every id, so ids may leave holes, but not be far more than there are tokens.
constexpr int64_t kMaxIdsPerToken = 16;
constexpr int64_t kFewIds = 1 << 16;

}  // namespace

void Vocabulary::reserve(uint64_t n) {
  if (n > kMaxIds)
    fail_format("vocabulary has " + std::to_string(n) + " tokens, at most 10000000 are supported");
  n_reserved_ = n;
  end_ = std::clamp<int64_t>(static_cast<int64_t>(n) * kMaxIdsPerToken, kFewIds, kMaxIds);
  places_.reserve(n);
  text_.reserve(n * 8);
  rehash(std::bit_ceil(n * 2 + 16));
}

void Vocabulary::rehash(size_t n_slots) {
  slots_.assign(n_slots, kNoId);
  for (uint32_t id = 0; id < places_.size(); ++id) {
    if (places_[id].len == kNoId) continue;
    size_t slot = hash_bytes(at(id)) & (n_slots - 1);
    while (slots_[slot] != kNoId && at(slots_[slot]) != at(id)) slot = (slot + 1) & (n_slots - 1);
    slots_[slot] = id;
  }
}

size_t Vocabulary::place(std::string_view content, int64_t id) {
  if (id < 0 || id >= end_) {
    fail_format("token " + quote(content) + " has id " + std::to_string(id) + ", expected 0 to " +
                std::to_string(end_ - 1) + " in a vocabulary of " + std::to_string(n_reserved_) +
                " tokens");
  }
  if ((uint64_t{n_tokens_} + 1) * 2 > slots_.size())
    rehash(std::bit_ceil((size_t{n_tokens_} + 16) * 4));
  size_t slot = hash_bytes(content) & (slots_.size() - 1);
  while (slots_[slot] != kNoId && at(slots_[slot]) != content) {
    slot = (slot + 1) & (slots_.size() - 1);
  }
  const auto index = static_cast<uint32_t>(id);
  if (index >= places_.size()) places_.resize(index + 1);
  if (places_[index].len != kNoId) {
    fail_format("id " + std::to_string(id) + " belongs to " + quote(at(index)) + " and to " +
                quote(content));
  }
  return slot;
}

void Vocabulary::add(std::string_view content, int64_t id) {
  const size_t slot = place(content, id);
  if (slots_[slot] != kNoId) {
    fail_format("token " + quote(content) + " is listed twice");
  }
  put(content, static_cast<uint32_t>(id), slot);
}

void Vocabulary::add_or_take_over(std::string_view content, int64_t id) {
  const size_t slot = place(content, id);
  put(content, static_cast<uint32_t>(id), slot);
}

void Vocabulary::put(std::string_view content, uint32_t id, size_t slot) {
  places_[id] = {text_.size(), static_cast<uint32_t>(content.size())};
  text_.append(content);
  slots_[slot] = id;
  ++n_tokens_;
}

void Vocabulary::read(const JsonView& section, const std::string& path) {
  const JsonView vocab = section.find("vocab");
  if (!vocab.is_map()) vocab.refuse(path, "vocab", "a map of token to id");
  try {
    reserve(vocab.len());
    std::string_view content;
    for (uint64_t i = 0; i < vocab.len(); ++i) {
      const JsonView id = vocab.at(i, &content);
      if (id.kind() != JsonKind::kInt) {
        id.refuse("", quote(content), "an integer id");
      }
      add(content, id.as_int());
    }
  } catch (const Error& e) {
    throw Error(e.kind(), path + ".vocab: " + e.what());
  }
}

uint32_t Vocabulary::find(std::string_view content) const {
  if (slots_.empty()) return kNoId;
  for (size_t slot = hash_bytes(content) & (slots_.size() - 1); slots_[slot] != kNoId;
       slot = (slot + 1) & (slots_.size() - 1)) {
    if (at(slots_[slot]) == content) return slots_[slot];
  }
  return kNoId;
}

std::optional<std::string_view> Vocabulary::content(uint32_t id) const {
  if (id >= places_.size() || places_[id].len == kNoId) return std::nullopt;
  return at(id);
}

}  // namespace dovetail::bpe
