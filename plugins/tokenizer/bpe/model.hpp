// Model: pieces of text to token ids. The four models of tokenizer.json stand behind this one seam;
// what is around them (added tokens, normalizer, pre-tokenizer, decoder) does not know which it is.
#pragma once

#include <dovetail/abi/tokenizer.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "json_view.hpp"
#include "rank_queue.hpp"
#include "split_scanner.hpp"
#include "vocabulary.hpp"
#include "word_cache.hpp"

namespace dovetail::bpe {

/// A token and the bytes [begin, end) of the text that it stands for; flags are kTokenAdded,
/// kTokenSpecial.
using Token = dvt_tok;
inline constexpr uint32_t kTokenSpecial = DVT_PIECE_SPECIAL;
inline constexpr uint32_t kTokenAdded = DVT_PIECE_ADDED;

/// How much was done: tests hold the encoder to linear work with it, clocks being noisy.
struct Work {
  uint64_t pieces = 0;
  uint64_t cache_hits = 0;
  uint64_t pair_lookups = 0;
  uint64_t late = 0;   // places that the queue kept in its heap
  uint64_t steps = 0;  // symbols looked at by the quadratic merger, moves in the queue by the other
};

/// What one thread needs to encode pieces; one model's at a time.
struct ModelScratch {
  struct Symbol {  // of BPE
    uint32_t id;
    uint32_t begin, end;  // bytes of the piece
    uint32_t rank;        // of the pair with the next symbol
  };
  struct BestPath {  // of Unigram: the best way to the end of a prefix of the piece
    double score;
    uint32_t id;
    uint32_t begin;  // of its last token
  };
  WordCache cache;
  std::vector<Symbol> symbols;
  std::vector<uint32_t> ids, begins, ends, ranks;  // of symbols, in the quadratic merger; of a path
  std::vector<LinkedSymbol> linked;                // of a long piece
  RankQueue queue;
  std::vector<Piece> pieces;  // cut finer than the pre-tokenizer did
  std::vector<BestPath> paths;
  std::string text;
  Work work;
};

class Model {
 public:
  /// Reads the model section at `path`, of whichever type. With `byte_level`, pieces are bytes and
  /// the vocabulary is written in byte symbols; works_on_bytes() says whether the model can do that.
  /// errors  kFormat, kUnsupported (by the name of the setting).
  static std::unique_ptr<Model> from_json(const JsonView& section, const std::string& path,
                                          bool byte_level);
  static bool works_on_bytes(const JsonView& section, const std::string& path);
  virtual ~Model() = default;

  /// Appends the tokens of the pieces, whose positions count from the start of `text`.
  /// errors   kInvalid: text that the vocabulary has no token for, not even an unknown one.
  /// threads  reentrant, with a scratch of one's own.
  virtual void encode(std::string_view text, std::span<const Piece> pieces, ModelScratch* scratch,
                      std::vector<Token>* out) const = 0;

  const Vocabulary& vocabulary() const { return vocabulary_; }

  /// Tokens that no text may become, by whole-word or longest-match look-up: added tokens are matched
  /// before the model, or are meant to be plain text. Merges are not affected.
  void bar(const std::vector<uint32_t>& ids) {
    barred_.resize(vocabulary_.n_ids());
    for (const uint32_t id : ids) {
      if (id < barred_.size()) barred_[id] = true;
    }
  }

  /// Appends what distinguishes this model from others with the same settings, beside the vocabulary.
  virtual void append_identity(std::string* said) const = 0;

 protected:
  bool is_barred(uint32_t id) const { return id < barred_.size() && barred_[id]; }
  /// The id of exactly this content if a text may become it, else kNoId.
  uint32_t find_unbarred(std::string_view content) const {
    const uint32_t id = vocabulary_.find(content);
    return is_barred(id) ? kNoId : id;
  }

  Vocabulary vocabulary_;

 private:
  std::vector<bool> barred_;  // by id; empty: none
};

/// Appends the tokens of the pieces, from the cache or else from fresh(piece), which appends them.
template <class Fresh>
void encode_cached(std::string_view text, std::span<const Piece> pieces, ModelScratch* scratch,
                   std::vector<Token>* out, Fresh&& fresh) {
  constexpr size_t kBlock = 8;  // pieces that are on their way from memory together
  WordCache& cache = scratch->cache;
  scratch->work.pieces += pieces.size();
  for (size_t first = 0; first < pieces.size(); first += kBlock) {
    const auto block = pieces.subspan(first, std::min(kBlock, pieces.size() - first));
    WordCache::Key keys[kBlock];
    uint32_t sets[kBlock];
    for (size_t i = 0; i < block.size(); ++i) {
      const uint32_t len = block[i].end - block[i].begin;
      if (len > kMaxCachedBytes) continue;
      keys[i] = WordCache::key_of(text.substr(block[i].begin, len), text.size() - block[i].begin);
      sets[i] = cache.set_of(keys[i]);
      cache.prefetch(sets[i]);
    }
    for (size_t i = 0; i < block.size(); ++i) {
      const Piece& piece = block[i];
      if (piece.end - piece.begin > kMaxCachedBytes) {
        fresh(piece);
        continue;
      }
      if (const WordCache::Entry* entry = cache.find(sets[i], keys[i])) {
        ++scratch->work.cache_hits;
        uint64_t begin = piece.begin;
        for (uint32_t k = 0; k < entry->n_tokens; ++k) {
          const uint64_t end = uint64_t{piece.begin} + entry->ends[k];
          out->push_back({entry->ids[k], 0, begin, end});
          begin = end;
        }
        continue;
      }
      const size_t n_before = out->size();
      fresh(piece);
      cache.keep(sets[i], keys[i], std::span(*out).subspan(n_before), piece.begin);
    }
  }
}

}  // namespace dovetail::bpe
