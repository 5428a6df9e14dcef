// Charsmap: SentencePiece's compiled normalization map (the Precompiled normalizer).
//
// A little-endian length, that many bytes of a double-array trie over UTF-8 keys, and a pool of
// NUL-terminated strings that the trie's values point into.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mapped_text.hpp"

namespace dovetail::bpe {

class Charsmap {
 public:
  /// errors  kFormat: not base64, or not such a map; `path` says where it was.
  Charsmap(std::string_view base64, const std::string& path);

  /// Rewrites `text` (valid UTF-8) as the reference does: by extended grapheme clusters, each as a
  /// whole when it is shorter than six bytes and the map has it, else by its code points.
  /// Returns false when nothing changes, and leaves `layer` as it was.
  bool rewrite(std::string_view text, Layer* layer) const;

  /// What the map puts for `key`: the entry of the shortest key that `key` starts with.
  std::optional<std::string_view> find(std::string_view key) const;

 private:
  std::vector<uint32_t> units_;
  std::string pool_;
  std::array<bool, 256> starts_{};  // bytes that some key starts with
};

}  // namespace dovetail::bpe
