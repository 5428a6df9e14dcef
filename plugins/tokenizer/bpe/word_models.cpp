#include "word_models.hpp"

#include "error.hpp"
#include "utf8.hpp"

namespace dovetail::bpe {
namespace {

[[noreturn]] void fail_unknown(std::string_view piece) {
  fail_invalid("the text has a word without a token, \"" + std::string(piece.substr(0, 64)) +
               "\", and the vocabulary no unk_token to stand for it");
}

uint32_t count_chars(std::string_view text) {
  uint32_t n = 0;
  for (const char c : text) n += (static_cast<uint8_t>(c) & 0xC0) != 0x80;
  return n;
}

// The reference lets an unk_token be missing from the vocabulary until a text needs it.
uint32_t read_unk(const JsonView& section, const std::string& path, const char* otherwise,
                  const Vocabulary& vocabulary) {
  const std::string_view unk = section.get_string_or_empty("unk_token", path);
  return vocabulary.find(unk.empty() ? otherwise : unk);
}

}  // namespace

WordPieceModel::WordPieceModel(const JsonView& section, const std::string& path) {
  vocabulary_.read(section, path);
  unk_id_ = read_unk(section, path, "[UNK]", vocabulary_);
  if (!section.find("max_input_chars_per_word").is_null()) {
    max_chars_ = section.get_int("max_input_chars_per_word", path);
  }
  trie_ = ByteTrie(vocabulary_);
  const bool has_prefix = section.find("continuing_subword_prefix").is_string();
  continuing_node_ = trie_.walk(
      ByteTrie::kRoot, has_prefix ? section.get_string("continuing_subword_prefix", path) : "##");
}

void WordPieceModel::encode(std::string_view text, std::span<const Piece> pieces,
                            ModelScratch* scratch, std::vector<Token>* out) const {
  encode_cached(text, pieces, scratch, out, [&](const Piece& p) { encode_piece(text, p, out); });
}

void WordPieceModel::encode_piece(std::string_view text, const Piece& piece,
                                  std::vector<Token>* out) const {
  const std::string_view word = text.substr(piece.begin, piece.end - piece.begin);
  const size_t first = out->size();
  const auto give_up = [&] {
    if (unk_id_ == kNoId) fail_unknown(word);
    out->resize(first);
    out->push_back({unk_id_, 0, piece.begin, piece.end});
  };
  if (int64_t{count_chars(word)} > max_chars_) return give_up();
  for (uint32_t begin = 0; begin < word.size();) {
    uint32_t node = begin == 0 ? ByteTrie::kRoot : continuing_node_;
    uint32_t id = kNoId, end = begin;
    for (uint32_t i = begin; i < word.size() && node != ByteTrie::kNoNode;) {
      node = trie_.child(node, static_cast<uint8_t>(word[i++]));
      if (node == ByteTrie::kNoNode) break;
      const uint32_t found = trie_.id_at(node);
      if (found == kNoId || is_barred(found)) continue;
      id = found;
      end = i;
    }
    if (id == kNoId) return give_up();
    out->push_back({id, 0, uint64_t{piece.begin} + begin, uint64_t{piece.begin} + end});
    begin = end;
  }
}

WordLevelModel::WordLevelModel(const JsonView& section, const std::string& path) {
  vocabulary_.read(section, path);
  unk_id_ = read_unk(section, path, "<unk>", vocabulary_);
}

void WordLevelModel::encode(std::string_view text, std::span<const Piece> pieces, ModelScratch*,
                            std::vector<Token>* out) const {
  for (const Piece& p : pieces) {
    const std::string_view word = text.substr(p.begin, p.end - p.begin);
    uint32_t id = find_unbarred(word);
    if (id == kNoId) id = unk_id_;
    if (id == kNoId) fail_unknown(word);
    out->push_back({id, 0, p.begin, p.end});
  }
}

}  // namespace dovetail::bpe
