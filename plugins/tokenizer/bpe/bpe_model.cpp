#include "bpe_model.hpp"

#include <algorithm>

#include "byte_fallback.hpp"
#include "byte_symbols.hpp"
#include "error.hpp"
#include "utf8.hpp"

namespace dovetail::bpe {
namespace {

constexpr std::string_view kSpaceMark = "\u2581";

// Up to this many symbols scanning beats the queue (measured on the Qwen3 vocabulary).
constexpr size_t kQuadraticSymbols = 48;

}  // namespace

void BpeModel::encode(std::string_view text, std::span<const Piece> pieces, ModelScratch* scratch,
                      std::vector<Token>* out) const {
  if (!joins_mark_.empty()) {
    scratch->pieces.clear();
    for (const Piece& p : pieces) cut_at_marks(text, p, &scratch->pieces);
    pieces = scratch->pieces;
  }
  encode_cached(text, pieces, scratch, out,
                [&](const Piece& p) { encode_piece(text, p, scratch, out); });
}

// Cuts a piece into parts that no merge joins, so that long stretches without a pre-tokenizer are
// encoded word by word, with the cache. The outcome is the same.
void BpeModel::cut_at_marks(std::string_view text, const Piece& piece,
                            std::vector<Piece>* out) const {
  const std::string_view stretch = text.substr(piece.begin, piece.end - piece.begin);
  size_t begin = 0;
  for (size_t pos = stretch.find(kSpaceMark, 1); pos != std::string_view::npos;
       pos = stretch.find(kSpaceMark, pos + kSpaceMark.size())) {
    const auto* p = reinterpret_cast<const uint8_t*>(stretch.data());
    const uint32_t before = decode_valid(p + previous_char(stretch, pos));
    if (std::binary_search(joins_mark_.begin(), joins_mark_.end(), before)) continue;
    out->push_back(
        {piece.begin + static_cast<uint32_t>(begin), piece.begin + static_cast<uint32_t>(pos)});
    begin = pos;
  }
  out->push_back({piece.begin + static_cast<uint32_t>(begin), piece.end});
}

void BpeModel::encode_piece(std::string_view text, const Piece& piece, ModelScratch* scratch,
                            std::vector<Token>* out) const {
  const std::string_view bytes = text.substr(piece.begin, piece.end - piece.begin);
  const uint32_t whole = ignore_merges_ ? find_piece(bytes, scratch) : kNoId;
  if (whole != kNoId) return out->push_back({whole, 0, piece.begin, piece.end});
  encode_uncached(bytes, piece.begin, Merger::kAuto, scratch, out);
}

void BpeModel::encode_uncached(std::string_view piece, uint32_t base, Merger merger,
                               ModelScratch* scratch, std::vector<Token>* out) const {
  split_into_symbols(piece, scratch);
  std::vector<ModelScratch::Symbol>& symbols = scratch->symbols;
  if (merger == Merger::kAuto) {
    merger = symbols.size() <= kQuadraticSymbols ? Merger::kQuadratic : Merger::kLinear;
  }
  if (symbols.size() > 1)
    merger == Merger::kQuadratic ? merge_quadratic(scratch) : merge_linear(scratch);
  for (const auto& s : symbols) {
    out->push_back({s.id, 0, uint64_t{base} + s.begin, uint64_t{base} + s.end});
  }
}

uint32_t BpeModel::find_piece(std::string_view piece, ModelScratch* scratch) const {
  if (!byte_level_) return find_unbarred(piece);
  scratch->text.clear();
  append_symbols(piece, &scratch->text);
  return find_unbarred(scratch->text);
}

// ---- the first symbols, each with the rank of its pair

void BpeModel::split_into_symbols(std::string_view piece, ModelScratch* scratch) const {
  scratch->symbols.clear();
  if (byte_level_) return split_into_bytes(piece, scratch);
  split_into_characters(piece, scratch);
  auto& symbols = scratch->symbols;
  for (size_t i = 0; i + 1 < symbols.size(); ++i) {
    symbols[i].rank = merges_.rank(symbols[i].id, symbols[i + 1].id);
  }
  if (!symbols.empty()) symbols.back().rank = kNoRank;
  scratch->work.pair_lookups += symbols.size();
}

void BpeModel::split_into_bytes(std::string_view piece, ModelScratch* scratch) const {
  auto& symbols = scratch->symbols;
  uint8_t last = 0;
  for (uint32_t i = 0; i < piece.size(); ++i) {
    const auto byte = static_cast<uint8_t>(piece[i]);
    uint32_t id = id_of_byte_[byte];
    if (id == kNoId) {  // a vocabulary that lacks this byte
      if (unk_id_ == kNoId) continue;
      id = unk_id_;
      if (fuse_unk_ && !symbols.empty() && symbols.back().id == id && symbols.back().end == i) {
        symbols.back().end = i + 1;
        continue;
      }
    }
    if (!symbols.empty()) {
      ModelScratch::Symbol& before = symbols.back();
      const bool both_known = id != unk_id_ && before.id != unk_id_;
      before.rank =
          both_known ? rank_of_bytes_[size_t{last} << 8 | byte] : merges_.rank(before.id, id);
    }
    symbols.push_back({id, i, i + 1, kNoRank});
    last = byte;
  }
  scratch->work.pair_lookups += symbols.size();
}

void BpeModel::split_into_characters(std::string_view piece, ModelScratch* scratch) const {
  for (uint32_t pos = 0; pos < piece.size();) {
    const uint32_t end = pos + utf8_len(static_cast<uint8_t>(piece[pos]));
    std::string_view text = piece.substr(pos, end - pos);
    if (!prefix_.empty() || !suffix_.empty()) {
      scratch->text.assign(pos > 0 ? prefix_ : "");
      scratch->text.append(text);
      if (end == piece.size()) scratch->text.append(suffix_);
      text = scratch->text;
    }
    const uint32_t id = vocabulary_.find(text);
    if (id != kNoId) {
      scratch->symbols.push_back({id, pos, end, kNoRank});
    } else {
      add_unknown(text, pos, end, scratch);
    }
    pos = end;
  }
}

// A character without a token: its bytes, or the unknown token, or nothing.
void BpeModel::add_unknown(std::string_view looked_up, uint32_t begin, uint32_t end,
                           ModelScratch* scratch) const {
  auto& symbols = scratch->symbols;
  if (has_all_bytes(fallback_of_byte_, looked_up)) {
    // Where a prefix or suffix was added, its bytes share the ends of the character's span.
    for (uint32_t i = 0; i < looked_up.size(); ++i) {
      const uint32_t from = std::min(begin + i, end);
      const uint32_t to = i + 1 == looked_up.size() ? end : std::min(begin + i + 1, end);
      symbols.push_back({fallback_of_byte_[static_cast<uint8_t>(looked_up[i])], from, to, kNoRank});
    }
    return;
  }
  if (unk_id_ == kNoId) return;
  if (fuse_unk_ && !symbols.empty() && symbols.back().id == unk_id_ &&
      symbols.back().end == begin) {
    symbols.back().end = end;
    return;
  }
  symbols.push_back({unk_id_, begin, end, kNoRank});
}

// ---- the two mergers

// For at most kQuadraticSymbols. Ids, ends and ranks lie in arrays of their own, so that the search
// for the lowest rank runs over neighbouring words.
void BpeModel::merge_quadratic(ModelScratch* scratch) const {
  std::vector<ModelScratch::Symbol>& symbols = scratch->symbols;
  size_t n = symbols.size();
  scratch->ids.resize(n);
  scratch->begins.resize(n);
  scratch->ends.resize(n);
  scratch->ranks.resize(n);
  uint32_t* const ids = scratch->ids.data();
  uint32_t* const begins = scratch->begins.data();
  uint32_t* const ends = scratch->ends.data();
  uint32_t* const ranks = scratch->ranks.data();
  for (size_t i = 0; i < n; ++i) {
    ids[i] = symbols[i].id;
    begins[i] = symbols[i].begin;
    ends[i] = symbols[i].end;
    ranks[i] = symbols[i].rank;
  }
  const auto close_gap = [&n](uint32_t* list, size_t gap) {
    for (size_t i = gap; i + 1 < n; ++i) list[i] = list[i + 1];
  };
  while (n > 1) {
    uint32_t lowest = kNoRank;
    size_t best = 0;
    for (size_t i = 0; i + 1 < n; ++i) {
      const bool is_lower = ranks[i] < lowest;
      lowest = is_lower ? ranks[i] : lowest;
      best = is_lower ? i : best;
    }
    scratch->work.steps += n;
    if (lowest == kNoRank) break;
    ids[best] = merges_.result(lowest);
    ends[best] = ends[best + 1];
    const uint32_t before = best > 0 ? merges_.rank(ids[best - 1], ids[best]) : kNoRank;
    ranks[best] = best + 2 < n ? merges_.rank(ids[best], ids[best + 2]) : kNoRank;
    if (best > 0) ranks[best - 1] = before;
    close_gap(ids, best + 1);
    close_gap(begins, best + 1);
    close_gap(ends, best + 1);
    close_gap(ranks, best + 1);
    --n;
    scratch->work.pair_lookups += 2;
  }
  symbols.resize(n);
  for (size_t i = 0; i < n; ++i) symbols[i] = {ids[i], begins[i], ends[i], kNoRank};
}

void BpeModel::merge_linear(ModelScratch* scratch) const {
  auto& symbols = scratch->symbols;
  auto& linked = scratch->linked;
  RankQueue& queue = scratch->queue;
  const auto n = static_cast<uint32_t>(symbols.size());
  constexpr uint32_t kNone = RankQueue::kNone;
  linked.resize(n);
  queue.start(merges_.n_merges(), linked.data(), &scratch->work.steps);
  for (uint32_t i = 0; i < n; ++i) {
    const ModelScratch::Symbol& s = symbols[i];
    const uint32_t next = i + 1 < n ? i + 1 : kNone;
    linked[i] = {s.id, s.rank, s.begin, s.end, i > 0 ? i - 1 : kNone, next, kNone, kNone};
    if (s.rank != kNoRank) queue.push(i);
  }

  const auto pair_again = [&](uint32_t left) {
    LinkedSymbol& s = linked[left];
    queue.remove(left);
    s.rank = s.next != kNone ? merges_.rank(s.id, linked[s.next].id) : kNoRank;
    if (s.rank != kNoRank) queue.push(left);
    ++scratch->work.pair_lookups;
  };
  uint32_t rank = kNoRank;
  for (uint32_t i = queue.pop(&rank); i != kNone; i = queue.pop(&rank)) {
    LinkedSymbol& left = linked[i];
    const LinkedSymbol& right = linked[left.next];
    queue.remove(left.next);
    left.id = merges_.result(rank);
    left.end = right.end;
    left.next = right.next;
    if (left.next != kNone) linked[left.next].previous = i;
    if (left.previous != kNone) pair_again(left.previous);
    pair_again(i);
  }

  scratch->work.late += queue.n_late();
  symbols.clear();
  for (uint32_t i = 0; i != kNone; i = linked[i].next)
    symbols.push_back({linked[i].id, linked[i].begin, linked[i].end, kNoRank});
}

}  // namespace dovetail::bpe
