#include "unigram_model.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include "byte_fallback.hpp"
#include "error.hpp"
#include "utf8.hpp"

namespace dovetail::bpe {
namespace {

constexpr double kUnknownPenalty = 10;  // below the lowest score of the vocabulary
constexpr uint32_t kUnreached = UINT32_MAX;

}  // namespace

UnigramModel::UnigramModel(const JsonView& section, const std::string& path) {
  const JsonView list = section.get_list("vocab", path);
  const std::string at = path + ".vocab";
  vocabulary_.reserve(list.len());
  scores_.reserve(list.len());
  double lowest = std::numeric_limits<double>::infinity();
  for (uint64_t i = 0; i < list.len(); ++i) {
    const JsonView entry = list.at(i);
    const std::string here = at + "[" + std::to_string(i) + "]";
    if (!entry.is_list() || entry.len() != 2 || !entry.at(0).is_string()) {
      entry.refuse(here, "", "[token, score]");
    }
    vocabulary_.add_or_take_over(entry.at(0).as_string(), static_cast<int64_t>(i));
    scores_.push_back(entry.at(1).get_float(here + "[1]"));
    lowest = std::min(lowest, scores_.back());
  }
  if (scores_.empty()) fail_format(at + " is empty, expected at least one token");
  unk_score_ = lowest - kUnknownPenalty;
  if (!section.find("unk_id").is_null()) {
    const int64_t id = section.get_int("unk_id", path);
    if (id < 0 || id >= static_cast<int64_t>(scores_.size())) {
      fail_format(path + ".unk_id is " + std::to_string(id) + ", expected 0 to " +
                  std::to_string(scores_.size() - 1) + ", an index of vocab");
    }
    unk_id_ = static_cast<uint32_t>(id);
  }
  if (section.get_bool("byte_fallback", false, path)) {
    fallback_of_byte_ = find_byte_tokens(vocabulary_);
  }
  trie_ = ByteTrie(vocabulary_);
}

void UnigramModel::append_identity(std::string* said) const {
  for (const double score : scores_) {
    const auto bits = std::bit_cast<uint64_t>(score);
    for (int i = 0; i < 8; ++i) *said += static_cast<char>(bits >> 8 * i);
  }
}

void UnigramModel::encode(std::string_view text, std::span<const Piece> pieces,
                          ModelScratch* scratch, std::vector<Token>* out) const {
  encode_cached(text, pieces, scratch, out, [&](const Piece& p) {
    encode_piece(text.substr(p.begin, p.end - p.begin), p.begin, scratch, out);
  });
}

// Fills scratch->paths for every end in the piece, from left to right.
void UnigramModel::find_best_path(std::string_view piece, ModelScratch* scratch) const {
  std::vector<ModelScratch::BestPath>& paths = scratch->paths;
  paths.assign(piece.size() + 1, {0, kNoId, kUnreached});
  for (uint32_t begin = 0; begin < piece.size();) {
    const double score_here = paths[begin].score;
    const auto offer = [&](uint32_t end, uint32_t id, double score) {
      ModelScratch::BestPath& best = paths[end];
      if (best.begin == kUnreached || score > best.score) best = {score, id, begin};
    };
    const uint32_t char_len = utf8_len(static_cast<uint8_t>(piece[begin]));
    bool has_single = false;
    uint32_t node = ByteTrie::kRoot;
    for (uint32_t end = begin; end < piece.size();) {
      node = trie_.child(node, static_cast<uint8_t>(piece[end++]));
      if (node == ByteTrie::kNoNode) break;
      const uint32_t id = trie_.id_at(node);
      if (id == kNoId || is_barred(id)) continue;
      offer(end, id, score_here + scores_[id]);
      has_single |= end - begin == char_len;
    }
    scratch->work.steps += 1;
    if (!has_single) {
      if (unk_id_ == kNoId) {
        fail_invalid("the text has a character without a token, \"" +
                     std::string(piece.substr(begin, char_len)) +
                     "\", and the model no unk_id to stand for it");
      }
      offer(begin + char_len, unk_id_, score_here + unk_score_);
    }
    begin += char_len;
  }
}

void UnigramModel::encode_piece(std::string_view piece, uint32_t base, ModelScratch* scratch,
                                std::vector<Token>* out) const {
  find_best_path(piece, scratch);
  // Backwards into `ends`, then forwards; unknown neighbours become one.
  std::vector<uint32_t>& ends = scratch->ends;
  ends.clear();
  for (auto end = static_cast<uint32_t>(piece.size()); end > 0; end = scratch->paths[end].begin) {
    ends.push_back(end);
  }
  std::reverse(ends.begin(), ends.end());
  uint32_t begin = 0;
  for (size_t i = 0; i < ends.size(); ++i) {
    const uint32_t id = scratch->paths[ends[i]].id;
    if (id != unk_id_) {
      out->push_back({id, 0, uint64_t{base} + begin, uint64_t{base} + ends[i]});
    } else {
      while (i + 1 < ends.size() && scratch->paths[ends[i + 1]].id == unk_id_) ++i;
      add_unknown(piece.substr(begin, ends[i] - begin),
                  {id, 0, uint64_t{base} + begin, uint64_t{base} + ends[i]}, out);
    }
    begin = ends[i];
  }
}

// The tokens of a run of unknown characters: its bytes if each has one, else `token`.
void UnigramModel::add_unknown(std::string_view piece, const Token& token,
                               std::vector<Token>* out) const {
  if (!has_all_bytes(fallback_of_byte_, piece)) return out->push_back(token);
  for (size_t i = 0; i < piece.size(); ++i) {
    const uint32_t id = fallback_of_byte_[static_cast<uint8_t>(piece[i])];
    out->push_back({id, 0, token.begin + i, token.begin + i + 1});
  }
}

}  // namespace dovetail::bpe
