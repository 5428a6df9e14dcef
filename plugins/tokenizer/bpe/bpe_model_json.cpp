// Reading a BPE model section of tokenizer.json.
#include <algorithm>
#include <utility>

#include "bpe_model.hpp"
#include "byte_fallback.hpp"
#include "byte_symbols.hpp"
#include "error.hpp"
#include "utf8.hpp"

namespace dovetail::bpe {
namespace {

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

BpeModel::BpeModel(const JsonView& section, const std::string& path, bool byte_level)
    : byte_level_(byte_level) {
  if (const JsonView dropout = section.find("dropout"); !dropout.is_null()) {
    if (dropout.get_float(path + ".dropout") != 0) {
      fail_unsupported(path + ".dropout is set, which is for training only; expected null or 0");
    }
  }
  ignore_merges_ = section.get_bool("ignore_merges", false, path);
  fuse_unk_ = section.get_bool("fuse_unk", false, path);
  byte_fallback_ = section.get_bool("byte_fallback", false, path);
  prefix_ = section.get_string_or_empty("continuing_subword_prefix", path);
  suffix_ = section.get_string_or_empty("end_of_word_suffix", path);
  vocabulary_.read(section, path);
  if (const std::string_view unk = section.get_string_or_empty("unk_token", path); !unk.empty()) {
    unk_id_ = vocabulary_.find(unk);
    if (unk_id_ == kNoId)
      fail_format(path + ".unk_token " + quote(unk) + " is not in the vocabulary");
  }
  read_merges(section, path);
  fill_byte_tables();
  if (!byte_level && !ignore_merges_ && prefix_.empty() && suffix_.empty()) find_cuts();
}

// Finds the characters that stand before a space mark inside any token. A merge over the border of
// such a pair would make a token that holds it, unless it merges tokens that do not spell themselves
// out: those for bytes and the unknown one.
void BpeModel::find_cuts() {
  constexpr uint32_t kMark = 0x2581;
  std::string mark;
  append_utf8(kMark, &mark);
  if (vocabulary_.find(mark) == kNoId) return;
  if (unk_id_ == kNoId) return;  // characters may vanish, and others become neighbours
  bool is_exact = true;
  merges_.for_each([&](uint32_t left, uint32_t right, uint32_t) {
    for (const uint32_t id : {left, right}) {
      is_exact &= id != unk_id_ && byte_of_token(*vocabulary_.content(id)) < 0;
    }
  });
  if (!is_exact) return;
  joins_mark_.push_back(kMark);
  for (uint32_t id = 0; id < vocabulary_.n_ids(); ++id) {
    const std::string_view token = vocabulary_.content(id).value_or("");
    for (size_t pos = token.find(mark, 1); pos != std::string_view::npos;
         pos = token.find(mark, pos + 1)) {
      const auto* p = reinterpret_cast<const uint8_t*>(token.data());
      joins_mark_.push_back(decode_valid(p + previous_char(token, pos)));
    }
  }
  std::sort(joins_mark_.begin(), joins_mark_.end());
  joins_mark_.erase(std::unique(joins_mark_.begin(), joins_mark_.end()), joins_mark_.end());
}

void BpeModel::append_identity(std::string* said) const {
  const auto number = [&](uint32_t v) {
    for (int i = 0; i < 4; ++i) *said += static_cast<char>(v >> 8 * i);
  };
  merges_.for_each([&](uint32_t left, uint32_t right, uint32_t result) {
    number(left);
    number(right);
    number(result);
  });
}

void BpeModel::read_merges(const JsonView& section, const std::string& path) {
  const JsonView list = section.get_list("merges", path);
  const uint64_t n = list.len();
  if (n > kMaxIds)
    fail_format(path + ".merges has " + std::to_string(n) +
                " entries, at most 10000000 are supported");
  std::vector<MergeTable::Merge> merges;
  merges.reserve(n);
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
    merges.push_back({left_id, right_id, id_of(joined)});
  }
  merges_ = MergeTable(merges);
}

void BpeModel::fill_byte_tables() {
  if (byte_fallback_) fallback_of_byte_ = find_byte_tokens(vocabulary_);
  if (!byte_level_) return;
  std::string text;
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
