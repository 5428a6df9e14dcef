// AddedTokens: the tokens that are cut out of a text before anything else happens to it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "json_view.hpp"
#include "mapped_text.hpp"
#include "vocabulary.hpp"

namespace dovetail::bpe {

struct AddedToken {
  uint32_t id;
  std::string content;
  bool single_word, lstrip, rstrip, normalized, special;
  std::string searched;  // what is looked for and decoded: the content, normalized if it is to be
};

/// Bytes [begin, end) of the caller's text.
struct ByteRange {
  uint64_t begin, end;
};

/// Which added tokens are matched in the text outside of literal ranges.
enum class AddedMatching : uint8_t { kAll, kNotSpecial, kNone };

/// Where added tokens stand for themselves. `literal` ranges are sorted and do not overlap; no
/// added token is matched there, nor across their borders.
struct MatchRules {
  AddedMatching matching = AddedMatching::kAll;
  std::span<const ByteRange> literal;
};

/// A stretch of text: one added token, or what lies between two.
struct Stretch {
  static constexpr int32_t kText = -1;
  uint64_t begin, end;
  int32_t token;  // index into AddedTokens::all(), or kText
};

class AddedTokens {
 public:
  /// Registers the added_tokens list in file order. An id is that of the content in the model's
  /// vocabulary if it is there, else the next free one, as in the reference; where the file says
  /// otherwise there is a warning.
  static AddedTokens from_json(const JsonView& list, const std::string& path,
                               const Vocabulary& vocabulary);

  const std::vector<AddedToken>& all() const { return tokens_; }
  const std::vector<std::string>& warnings() const { return warnings_; }
  const AddedToken* find_id(uint32_t id) const;
  const AddedToken* find_content(std::string_view content) const;

  /// Sets the forms that the second pass looks for: `normalized(content)` of each normalized token.
  template <class Fn>
  void set_normalized_forms(Fn&& normalized) {
    for (size_t i = 0; i < tokens_.size(); ++i) {
      AddedToken& t = tokens_[i];
      if (!t.normalized) continue;
      t.searched = normalized(t.content);
      in_normalized_.add(t.searched, static_cast<int32_t>(i));
    }
  }

  enum class Pass { kRaw, kNormalized };

  /// Cuts `text` into stretches, empty ones left out: tokens with normalized: false in the raw
  /// pass, those with normalized: true in the other. Leftmost-longest; a match that single_word or
  /// `rules` rejects is consumed.
  void cut(const MappedText& text, Pass pass, const MatchRules& rules,
           std::vector<Stretch>* out) const;

 private:
  // The contents as a tree of bytes.
  struct Trie {
    std::unordered_map<uint64_t, uint32_t> children;  // node << 8 | byte -> node
    std::vector<int32_t> token_at{Stretch::kText};    // by node
    std::array<bool, 256> starts{};

    void add(std::string_view content, int32_t token);
    /// The longest token at `pos` of text, which ends at `*end`, or kText. No token may reach an end
    /// that `is_barred`.
    template <class Fn>
    int32_t longest_at(std::string_view text, size_t pos, Fn&& is_barred, size_t* end) const;
  };

  std::vector<AddedToken> tokens_;
  std::vector<std::string> warnings_;
  std::unordered_map<uint32_t, uint32_t> by_id_;
  std::unordered_map<std::string, uint32_t> by_content_;
  Trie in_raw_, in_normalized_;
};

}  // namespace dovetail::bpe
