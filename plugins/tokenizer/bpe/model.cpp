#include "model.hpp"

#include "bpe_model.hpp"
#include "error.hpp"
#include "unigram_model.hpp"
#include "word_models.hpp"

namespace dovetail::bpe {
namespace {

// Old files have no type: the shape tells.
std::string_view type_of(const JsonView& section, const std::string& path) {
  if (!section.is_map()) section.refuse(path, "", "a map");
  if (!section.find("type").is_null()) return section.get_string("type", path);
  if (section.find("merges").is_list()) return "BPE";
  if (section.find("vocab").is_list()) return "Unigram";
  const bool is_word_piece = !section.find("continuing_subword_prefix").is_null() ||
                             !section.find("max_input_chars_per_word").is_null();
  return is_word_piece ? "WordPiece" : "WordLevel";
}

}  // namespace

bool Model::works_on_bytes(const JsonView& section, const std::string& path) {
  return type_of(section, path) == "BPE" && !section.get_bool("byte_fallback", false, path) &&
         section.get_string_or_empty("continuing_subword_prefix", path).empty() &&
         section.get_string_or_empty("end_of_word_suffix", path).empty();
}

std::unique_ptr<Model> Model::from_json(const JsonView& section, const std::string& path,
                                        bool byte_level) {
  const std::string_view type = type_of(section, path);
  if (type == "BPE") return std::make_unique<BpeModel>(section, path, byte_level);
  if (type == "Unigram") return std::make_unique<UnigramModel>(section, path);
  if (type == "WordPiece") return std::make_unique<WordPieceModel>(section, path);
  if (type == "WordLevel") return std::make_unique<WordLevelModel>(section, path);
  fail_unsupported(path + ".type is " + quote(type) +
                   ", which is not supported (supported: BPE, Unigram, WordPiece, WordLevel)");
}

}  // namespace dovetail::bpe
