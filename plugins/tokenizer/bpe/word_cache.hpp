// WordCache: the ids of pieces seen before. Natural text repeats its words, so most pieces cost one
// look-up here.
//
// A table of one cache line per word in sets of two; a newcomer takes the place of the older one.
// Bounded (8 MiB, of which only what is used becomes memory) and owned by one thread at a time.
#pragma once

#include <dovetail/abi/tokenizer.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string_view>

#include "hash.hpp"

namespace dovetail::bpe {

inline constexpr uint32_t kMaxCachedBytes = 24;  // of a piece
inline constexpr uint32_t kMaxCachedTokens = 7;

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

  // calloc: pages that no word falls into are never touched.
  WordCache() : memory_(std::calloc(kEntries + 1, sizeof(Entry)), std::free) {
    if (memory_ == nullptr) throw std::bad_alloc();
    const auto address = reinterpret_cast<uintptr_t>(memory_.get());
    entries_ = reinterpret_cast<Entry*>((address + sizeof(Entry) - 1) & ~(sizeof(Entry) - 1));
  }

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

  /// Where the key's set of two starts.
  uint32_t set_of(const Key& key) const {
    const uint64_t h =
        mix(key.words[0] ^ kHashSeed, key.words[1] ^ mix(key.words[2] ^ key.len, kHashStep));
    return static_cast<uint32_t>(h ^ h >> 32) & (kEntries - 2);
  }
  void prefetch(uint32_t set) const {
    __builtin_prefetch(&entries_[set]);
    __builtin_prefetch(&entries_[set + 1]);
  }
  /// The key's entry, or null.
  const Entry* find(uint32_t set, const Key& key) const {
    if (matches(entries_[set], key)) return &entries_[set];
    if (matches(entries_[set + 1], key)) return &entries_[set + 1];
    return nullptr;
  }

  /// Remembers a piece that starts at `begin`, if its tokens are few enough and tile it: where a
  /// character vanished, spans have gaps.
  void keep(uint32_t set, const Key& key, std::span<const dvt_tok> tokens, uint64_t begin) {
    if (tokens.empty() || tokens.size() > kMaxCachedTokens) return;
    uint64_t end = begin;
    for (const dvt_tok& t : tokens) {
      if (t.begin != end) return;
      end = t.end;
    }
    if (end != begin + key.len) return;
    Entry* entry = &entries_[set];
    if (entry->n_tokens != 0) entries_[set + 1] = *entry;
    std::copy_n(key.words, 3, entry->key);
    for (size_t i = 0; i < tokens.size(); ++i) {
      entry->ids[i] = tokens[i].id;
      entry->ends[i] = static_cast<uint8_t>(tokens[i].end - begin);
    }
    entry->key_len = key.len;
    entry->n_tokens = static_cast<uint8_t>(tokens.size());
  }

 private:
  static bool matches(const Entry& e, const Key& key) {
    return e.key_len == key.len && e.key[0] == key.words[0] && e.key[1] == key.words[1] &&
           e.key[2] == key.words[2] && e.n_tokens != 0;
  }

  static constexpr uint32_t kEntries = 1u << 17;
  std::unique_ptr<void, void (*)(void*)> memory_;
  Entry* entries_;
};

}  // namespace dovetail::bpe
