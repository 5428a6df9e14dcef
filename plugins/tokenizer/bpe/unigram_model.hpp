// UnigramModel: one piece to the tokens with the highest sum of scores (SentencePiece's unigram).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "byte_trie.hpp"
#include "model.hpp"

namespace dovetail::bpe {

class UnigramModel : public Model {
 public:
  UnigramModel(const JsonView& section, const std::string& path);

  /// numerics  double throughout, added from left to right; of equal sums the path whose last token
  ///           starts first wins, as in the reference. Linear in the piece times the longest token.
  void encode(std::string_view text, std::span<const Piece> pieces, ModelScratch* scratch,
              std::vector<Token>* out) const override;
  void append_identity(std::string* said) const override;

 private:
  void find_best_path(std::string_view piece, ModelScratch* scratch) const;
  void encode_piece(std::string_view piece, uint32_t base, ModelScratch* scratch,
                    std::vector<Token>* out) const;
  void add_unknown(std::string_view piece, const Token& token, std::vector<Token>* out) const;

  std::vector<double> scores_;  // by id
  ByteTrie trie_;
  uint32_t unk_id_ = kNoId;
  double unk_score_ = 0;
  std::vector<uint32_t> fallback_of_byte_;  // byte_fallback: <0xHH>; kNoId if it has none
};

}  // namespace dovetail::bpe
