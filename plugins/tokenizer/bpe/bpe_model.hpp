// BpeModel: one piece of text to token ids, by byte-pair merges.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "json_view.hpp"
#include "merge_table.hpp"
#include "vocabulary.hpp"
#include "word_cache.hpp"

namespace dovetail::bpe {

/// A token and the bytes [begin, end) of the text that it stands for.
struct Token {
  uint32_t id;
  uint32_t flags;  // kTokenAdded, kTokenSpecial
  uint64_t begin, end;
};
inline constexpr uint32_t kTokenSpecial = 1;
inline constexpr uint32_t kTokenAdded = 2;

/// How much was done: tests hold the encoder to linear work with it, clocks being noisy.
struct Work {
  uint64_t pieces = 0;
  uint64_t cache_hits = 0;
  uint64_t pair_lookups = 0;
  uint64_t steps = 0;  // symbols looked at by the quadratic merger, heap moves by the other
};

/// What one thread needs to encode pieces.
struct MergeScratch {
  struct Symbol {
    uint32_t id;
    uint32_t begin, end;  // bytes of the piece
    uint32_t rank;        // of the pair with the next symbol
  };
  WordCache cache;
  std::vector<Symbol> symbols;
  std::vector<uint32_t> previous, next;
  std::vector<uint64_t> heap;
  std::string text;
  Work work;
};

enum class Merger { kAuto, kQuadratic, kHeap };

class BpeModel {
 public:
  /// Reads the model section at `path`. With `byte_level`, pieces are bytes and the vocabulary is
  /// written in byte symbols; else a piece's symbols are its characters.
  /// errors  kFormat, kUnsupported (by the name of the setting).
  static BpeModel from_json(const JsonView& section, const std::string& path, bool byte_level);

  /// Appends the tokens of text[begin, end), whose positions count from the start of text. The
  /// outcome is that of merging the pair with the lowest rank, leftmost first, until none is left.
  /// threads  reentrant, with a scratch of one's own.
  void encode(std::string_view text, uint32_t begin, uint32_t end, MergeScratch* scratch,
              std::vector<Token>* out) const;

  /// The same without cache and vocabulary short cuts, by a given method.
  void encode_uncached(std::string_view piece, uint32_t base, Merger merger, MergeScratch* scratch,
                       std::vector<Token>* out) const;

  const Vocabulary& vocabulary() const { return vocabulary_; }
  uint32_t n_merges() const { return merges_.n_merges(); }
  /// Calls fn(left, right, result) for every merge in rank order.
  template <class Fn>
  void for_each_merge(Fn&& fn) const {
    merges_.for_each(fn);
  }

 private:
  void read_vocabulary(const JsonView& section, const std::string& path);
  void read_merges(const JsonView& section, const std::string& path);
  void fill_byte_tables();
  void split_into_symbols(std::string_view piece, MergeScratch* scratch) const;
  void split_into_bytes(std::string_view piece, MergeScratch* scratch) const;
  void split_into_characters(std::string_view piece, MergeScratch* scratch) const;
  void add_unknown(std::string_view looked_up, uint32_t begin, uint32_t end,
                   MergeScratch* scratch) const;
  void merge_quadratic(MergeScratch* scratch) const;
  void merge_with_heap(MergeScratch* scratch) const;
  uint32_t find_piece(std::string_view piece, MergeScratch* scratch) const;

  Vocabulary vocabulary_;
  MergeTable merges_;
  bool byte_level_ = true;
  bool ignore_merges_ = false;
  bool fuse_unk_ = false;
  bool byte_fallback_ = false;
  uint32_t unk_id_ = kNoId;
  std::string prefix_, suffix_;             // continuing_subword_prefix, end_of_word_suffix
  std::vector<uint32_t> id_of_byte_;        // byte level: the byte's symbol; kNoId if it has none
  std::vector<uint32_t> rank_of_bytes_;     // byte level: rank of each pair of bytes
  std::vector<uint32_t> fallback_of_byte_;  // byte_fallback: <0xHH>; kNoId if it has none
};

}  // namespace dovetail::bpe
