// Vocabulary: token strings as tokenizer.json writes them, by id and by content.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json_view.hpp"

namespace dovetail::bpe {

inline constexpr uint32_t kMaxIds = 10'000'000;
inline constexpr uint32_t kNoId = UINT32_MAX;

class Vocabulary {
 public:
  /// Makes room for n tokens; before the first one.
  void reserve(uint64_t n);

  /// errors  kFormat: id taken, or far beyond the number of tokens; content taken.
  void add(std::string_view content, int64_t id);

  /// The same for a list in which a content may stand twice: the last one gives the id. Both count
  /// as tokens and keep their contents.
  void add_or_take_over(std::string_view content, int64_t id);

  /// Reads the "vocab" of the model section at `path`, a map of token to id.
  void read(const JsonView& section, const std::string& path);

  /// The id of exactly this content, or kNoId.
  uint32_t find(std::string_view content) const;

  /// The content of an id; empty optional where the ids have a hole or end.
  std::optional<std::string_view> content(uint32_t id) const;

  uint32_t n_ids() const { return static_cast<uint32_t>(places_.size()); }  // largest id plus one
  uint32_t n_tokens() const { return n_tokens_; }

 private:
  struct Place {
    uint64_t begin = 0;
    uint32_t len = kNoId;  // kNoId: no such token
  };

  // Makes room for the id and gives the slot where the content is or belongs.
  size_t place(std::string_view content, int64_t id);
  void put(std::string_view content, uint32_t id, size_t slot);
  std::string_view at(uint32_t id) const {
    return {text_.data() + places_[id].begin, places_[id].len};
  }
  void rehash(size_t n_slots);

  std::string text_;             // all contents, one after another
  std::vector<Place> places_;    // by id
  std::vector<uint32_t> slots_;  // open addressing, kNoId is free
  uint32_t n_tokens_ = 0;
  uint64_t n_reserved_ = 0;
  int64_t end_ = kMaxIds;  // of the ids that may be
};

}  // namespace dovetail::bpe
