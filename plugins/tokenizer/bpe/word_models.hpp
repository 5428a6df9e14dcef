// The two models that look whole words up: WordPiece, which cuts a word greedily, and WordLevel.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "byte_trie.hpp"
#include "model.hpp"

namespace dovetail::bpe {

/// The longest token that a piece starts with, then the longest of what is left among the tokens with
/// the continuing prefix, and so on; a piece that gets stuck or is too long is one unknown token.
class WordPieceModel : public Model {
 public:
  WordPieceModel(const JsonView& section, const std::string& path);
  void encode(std::string_view text, std::span<const Piece> pieces, ModelScratch* scratch,
              std::vector<Token>* out) const override;
  void append_identity(std::string*) const override {}

 private:
  void encode_piece(std::string_view text, const Piece& piece, std::vector<Token>* out) const;

  ByteTrie trie_;
  uint32_t continuing_node_ = ByteTrie::kNoNode;  // after the prefix
  uint32_t unk_id_ = kNoId;
  int64_t max_chars_ = 100;
};

/// A piece is a token or unknown.
class WordLevelModel : public Model {
 public:
  WordLevelModel(const JsonView& section, const std::string& path);
  void encode(std::string_view text, std::span<const Piece> pieces, ModelScratch* scratch,
              std::vector<Token>* out) const override;
  void append_identity(std::string*) const override {}

 private:
  uint32_t unk_id_ = kNoId;
};

}  // namespace dovetail::bpe
