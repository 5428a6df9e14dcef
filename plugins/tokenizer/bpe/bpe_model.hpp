// BpeModel: one piece of text to token ids, by byte-pair merges.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "merge_table.hpp"
#include "model.hpp"

namespace dovetail::bpe {

enum class Merger { kAuto, kQuadratic, kLinear };

class BpeModel : public Model {
 public:
  /// With `byte_level`, pieces are bytes and the vocabulary is written in byte symbols; else a
  /// piece's symbols are its characters.
  BpeModel(const JsonView& section, const std::string& path, bool byte_level);

  /// The outcome is that of merging the pair with the lowest rank, leftmost first, until none is
  /// left.
  void encode(std::string_view text, std::span<const Piece> pieces, ModelScratch* scratch,
              std::vector<Token>* out) const override;
  void append_identity(std::string* said) const override;

  /// The same for one piece, without cache and vocabulary short cuts, by a given method.
  void encode_uncached(std::string_view piece, uint32_t base, Merger merger, ModelScratch* scratch,
                       std::vector<Token>* out) const;

  uint32_t n_merges() const { return merges_.n_merges(); }

 private:
  void read_merges(const JsonView& section, const std::string& path);
  void fill_byte_tables();
  void split_into_symbols(std::string_view piece, ModelScratch* scratch) const;
  void split_into_bytes(std::string_view piece, ModelScratch* scratch) const;
  void split_into_characters(std::string_view piece, ModelScratch* scratch) const;
  void add_unknown(std::string_view looked_up, uint32_t begin, uint32_t end,
                   ModelScratch* scratch) const;
  void merge_quadratic(ModelScratch* scratch) const;
  void merge_linear(ModelScratch* scratch) const;
  uint32_t find_piece(std::string_view piece, ModelScratch* scratch) const;

  void find_cuts();
  void cut_at_marks(std::string_view text, const Piece& piece, std::vector<Piece>* out) const;
  void encode_piece(std::string_view text, const Piece& piece, ModelScratch* scratch,
                    std::vector<Token>* out) const;

  MergeTable merges_;
  bool byte_level_ = true;
  bool ignore_merges_ = false;
  bool fuse_unk_ = false;
  bool byte_fallback_ = false;
  uint32_t unk_id_ = kNoId;
  std::string prefix_, suffix_;          // continuing_subword_prefix, end_of_word_suffix
  std::vector<uint32_t> id_of_byte_;     // byte level: the byte's symbol; kNoId if it has none
  std::vector<uint32_t> rank_of_bytes_;  // byte level: rank of each pair of bytes
  // SentencePiece's vocabularies start their words with a mark, and no merge reaches over it from the
  // left but from the characters listed here. Empty: cuts at marks would not be exact, or gain nothing.
  std::vector<uint32_t> joins_mark_;        // sorted code points
  std::vector<uint32_t> fallback_of_byte_;  // byte_fallback: <0xHH>; kNoId if it has none
};

}  // namespace dovetail::bpe
