// Reading a BPE model section of tokenizer.json.
#include <utility>

#include "bpe_model.hpp"
#include "byte_symbols.hpp"
#include "error.hpp"

namespace dovetail::bpe {
namespace {

std::string quote(std::string_view s) {
  return "\"" + std::string(s) + "\"";
}

// The two tokens of a merge: "a b" or ["a", "b"].
template <class Refuse>
std::pair<std::string_view, std::string_view> tokens_of(const JsonView& merge,
                                                        const Refuse& refuse) {
  if (merge.is_string()) {
    const std::string_view line = merge.as_string();
    const size_t space = line.find(' ');
    if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos)
      refuse(quote(line) + " is not two tokens with one space between");
    return {line.substr(0, space), line.substr(space + 1)};
  }
  if (!merge.is_list() || merge.len() != 2 || !merge.at(0).is_string() || !merge.at(1).is_string())
    refuse("expected \"a b\" or [\"a\", \"b\"]");
  return {merge.at(0).as_string(), merge.at(1).as_string()};
}

}  // namespace

BpeModel BpeModel::from_json(const JsonView& section, const std::string& path, bool byte_level) {
  if (!section.is_map()) section.refuse(path, "", "a map");
  const JsonView type = section.find("type");
  // Old files have no type: merges tell a BPE model.
  if (type.is_null() ? !section.find("merges").is_list()
                     : section.get_string("type", path) != "BPE") {
    fail_unsupported(path + ".type is " + (type.is_null() ? "absent" : quote(type.as_string())) +
                     ", which this tokenizer does not support (supported: BPE)");
  }
  if (const JsonView dropout = section.find("dropout"); !dropout.is_null()) {
    const bool is_zero = dropout.kind() == JsonKind::kInt && dropout.as_int() == 0;
    if (!is_zero)
      fail_unsupported(path + ".dropout is set, which is for training only; expected null");
  }

  BpeModel model;
  model.byte_level_ = byte_level;
  model.ignore_merges_ = section.get_bool("ignore_merges", false, path);
  model.fuse_unk_ = section.get_bool("fuse_unk", false, path);
  model.byte_fallback_ = section.get_bool("byte_fallback", false, path);
  model.prefix_ = section.get_string_or_empty("continuing_subword_prefix", path);
  model.suffix_ = section.get_string_or_empty("end_of_word_suffix", path);
  if (byte_level && (model.byte_fallback_ || !model.prefix_.empty() || !model.suffix_.empty())) {
    fail_unsupported(path +
                     ": byte_fallback, continuing_subword_prefix and end_of_word_suffix are not "
                     "supported together with the ByteLevel pre-tokenizer");
  }
  model.read_vocabulary(section, path);
  if (const std::string_view unk = section.get_string_or_empty("unk_token", path); !unk.empty()) {
    model.unk_id_ = model.vocabulary_.find(unk);
    if (model.unk_id_ == kNoId)
      fail_format(path + ".unk_token " + quote(unk) + " is not in the vocabulary");
  }
  model.read_merges(section, path);
  model.fill_byte_tables();
  return model;
}

void BpeModel::read_vocabulary(const JsonView& section, const std::string& path) {
  const JsonView vocab = section.find("vocab");
  if (!vocab.is_map()) vocab.refuse(path, "vocab", "a map of token to id");
  try {
    vocabulary_.reserve(vocab.len());
    std::string_view content;
    for (uint64_t i = 0; i < vocab.len(); ++i) {
      const JsonView id = vocab.at(i, &content);
      if (id.kind() != JsonKind::kInt) id.refuse("", quote(content), "an integer id");
      vocabulary_.add(content, id.as_int());
    }
  } catch (const Error& e) {
    throw Error(e.kind(), path + ".vocab: " + e.what());
  }
}

void BpeModel::read_merges(const JsonView& section, const std::string& path) {
  const JsonView list = section.get_list("merges", path);
  const uint64_t n = list.len();
  if (n > kMaxIds)
    fail_format(path + ".merges has " + std::to_string(n) +
                " entries, at most 10000000 are supported");
  merges_.reserve(n);
  std::string joined;
  for (uint64_t i = 0; i < n; ++i) {
    const JsonView entry = list.at(i);
    if (i == 0 && entry.is_string() && entry.as_string().starts_with("#version")) continue;
    const auto refuse = [&](const std::string& what) {
      fail_format(path + ".merges[" + std::to_string(i) + "]: " + what);
    };
    const auto [left, right] = tokens_of(entry, refuse);
    const auto id_of = [&](std::string_view token) {
      const uint32_t id = vocabulary_.find(token);
      if (id == kNoId) refuse("token " + quote(token) + " is not in the vocabulary");
      return id;
    };
    std::string_view tail = right;
    if (!prefix_.empty() && tail.starts_with(prefix_)) tail.remove_prefix(prefix_.size());
    joined.assign(left).append(tail);
    const uint32_t left_id = id_of(left), right_id = id_of(right);
    merges_.add(left_id, right_id, id_of(joined));
  }
}

void BpeModel::fill_byte_tables() {
  static const char kHex[] = "0123456789ABCDEF";
  std::string text;
  if (byte_fallback_) {
    for (uint32_t b = 0; b < 256; ++b) {
      text = std::string("<0x") + kHex[b >> 4] + kHex[b & 15] + ">";
      fallback_of_byte_.push_back(vocabulary_.find(text));
    }
  }
  if (!byte_level_) return;
  for (uint32_t b = 0; b < 256; ++b) {
    text.clear();
    append_symbols(std::string(1, static_cast<char>(b)), &text);
    id_of_byte_.push_back(vocabulary_.find(text));
  }
  rank_of_bytes_.assign(size_t{256} * 256, kNoRank);
  for (uint32_t a = 0; a < 256; ++a) {
    for (uint32_t b = 0; b < 256; ++b) {
      if (id_of_byte_[a] == kNoId || id_of_byte_[b] == kNoId) continue;
      rank_of_bytes_[size_t{a} << 8 | b] = merges_.rank(id_of_byte_[a], id_of_byte_[b]);
    }
  }
}

}  // namespace dovetail::bpe
