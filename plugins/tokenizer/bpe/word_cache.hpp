// WordCache: the ids of pieces seen before. Natural text repeats its words, so most pieces cost one
// look-up here.
//
// A direct-mapped table of one cache line per word; a newcomer takes the place of what was there.
// Bounded (2 MiB) and owned by one thread at a time.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

#include "hash.hpp"

namespace dovetail::bpe {

inline constexpr uint32_t kMaxCachedBytes = 24;  // of a piece
inline constexpr uint32_t kMaxCachedTokens = 6;

class WordCache {
 public:
  struct alignas(64) Entry {
    uint64_t key[3];  // the piece, zero-padded
    uint32_t ids[kMaxCachedTokens];
    uint8_t ends[kMaxCachedTokens];  // where each token ends in the piece
    uint8_t key_len, n_tokens;       // n_tokens == 0: free
  };
  static_assert(sizeof(Entry) == 64);

  struct Key {
    uint64_t words[3] = {0, 0, 0};
    uint8_t len = 0;
  };

  WordCache() : entries_(new Entry[kEntries]()) {}

  /// piece.size() <= kMaxCachedBytes. `readable` bytes may be read from piece.data().
  static Key key_of(std::string_view piece, uint64_t readable) {
    Key key;
    key.len = static_cast<uint8_t>(piece.size());
    if (readable < sizeof key.words) {
      std::memcpy(key.words, piece.data(), piece.size());
      return key;
    }
    std::memcpy(key.words, piece.data(), sizeof key.words);
    for (uint32_t i = 0; i < 3; ++i) {  // blank what lies beyond the piece
      const uint32_t have = key.len > 8 * i ? key.len - 8 * i : 0;
      if (have < 8) key.words[i] &= (uint64_t{1} << (8 * have)) - 1;
    }
    return key;
  }

  /// The key's only place: its entry if matches(), else the one to overwrite.
  Entry& slot(const Key& key) {
    const uint64_t h =
        mix(key.words[0] ^ kHashSeed, key.words[1] ^ mix(key.words[2] ^ key.len, kHashStep));
    return entries_[(h ^ h >> 32) & (kEntries - 1)];
  }
  static bool matches(const Entry& e, const Key& key) {
    return e.n_tokens != 0 && e.key_len == key.len && e.key[0] == key.words[0] &&
           e.key[1] == key.words[1] && e.key[2] == key.words[2];
  }

 private:
  static constexpr uint32_t kEntries = 1u << 15;
  std::unique_ptr<Entry[]> entries_;
};

}  // namespace dovetail::bpe
