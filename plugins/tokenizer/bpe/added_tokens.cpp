#include "added_tokens.hpp"

#include <algorithm>

#include "error.hpp"
#include "unicode.hpp"
#include "utf8.hpp"

namespace dovetail::bpe {
namespace {

uint16_t class_at(std::string_view text, size_t pos) {
  return class_of(decode_valid(reinterpret_cast<const uint8_t*>(text.data()) + pos));
}

bool is_inside_word(std::string_view text, size_t begin, size_t end) {
  return (begin > 0 && (class_at(text, previous_char(text, begin)) & kWord)) ||
         (end < text.size() && (class_at(text, end) & kWord));
}

size_t skip_space_left(std::string_view text, size_t pos, size_t floor) {
  while (pos > floor) {
    const size_t before = previous_char(text, pos);
    if (!(class_at(text, before) & kSpace)) break;
    pos = before;
  }
  return pos;
}

size_t skip_space_right(std::string_view text, size_t pos) {
  while (pos < text.size() && (class_at(text, pos) & kSpace)) {
    pos += utf8_len(static_cast<uint8_t>(text[pos]));
  }
  return pos;
}

// Answers "does [begin, end) meet a literal range" for rising begin.
class LiteralCursor {
 public:
  explicit LiteralCursor(std::span<const ByteRange> ranges) : ranges_(ranges) {}

  bool meets(uint64_t begin, uint64_t end) {
    const auto is_past = [begin](const ByteRange& r) { return r.end <= begin || r.begin == r.end; };
    while (next_ < ranges_.size() && is_past(ranges_[next_])) ++next_;
    return next_ < ranges_.size() && ranges_[next_].begin < end;
  }
  bool empty() const { return ranges_.empty(); }

 private:
  std::span<const ByteRange> ranges_;
  size_t next_ = 0;
};

}  // namespace

void AddedTokens::Trie::add(std::string_view content, int32_t token) {
  if (content.empty()) return;
  starts[static_cast<uint8_t>(content[0])] = true;
  uint32_t node = 0;
  for (const char c : content) {
    const uint64_t edge = uint64_t{node} << 8 | static_cast<uint8_t>(c);
    const auto [it, is_new] = children.emplace(edge, static_cast<uint32_t>(token_at.size()));
    if (is_new) token_at.push_back(Stretch::kText);
    node = it->second;
  }
  token_at[node] = token;
}

template <class Fn>
int32_t AddedTokens::Trie::longest_at(std::string_view text, size_t pos, Fn&& is_barred,
                                      size_t* end) const {
  if (!starts[static_cast<uint8_t>(text[pos])]) return Stretch::kText;
  int32_t token = Stretch::kText;
  uint32_t node = 0;
  for (size_t i = pos; i < text.size(); ++i) {
    const auto it = children.find(uint64_t{node} << 8 | static_cast<uint8_t>(text[i]));
    if (it == children.end()) break;
    node = it->second;
    if (token_at[node] == Stretch::kText) continue;
    if (is_barred(i + 1)) break;
    token = token_at[node];
    *end = i + 1;
  }
  return token;
}

AddedTokens AddedTokens::from_json(const JsonView& list, const std::string& path,
                                   const Vocabulary& vocabulary) {
  AddedTokens added;
  if (list.is_null()) return added;
  if (!list.is_list()) list.refuse(path, "", "a list");
  uint64_t next_id = vocabulary.n_tokens();
  for (uint64_t i = 0; i < list.len(); ++i) {
    const JsonView entry = list.at(i);
    const std::string at = path + "[" + std::to_string(i) + "]";
    const std::string content(entry.get_string("content", at));
    if (content.empty() || added.by_content_.contains(content)) continue;
    const uint32_t known = vocabulary.find(content);
    const int64_t file_id = entry.get_int("id", at);
    const uint64_t id = known != kNoId ? known : next_id;
    if (file_id < 0 || static_cast<uint64_t>(file_id) != id) {
      added.warnings_.push_back(
          at + ": " + quote(content) + " has id " + std::to_string(file_id) +
          " in the file but gets " + std::to_string(id) +
          (known != kNoId ? ", its id in model.vocab" : ", the next free id"));
    }
    if (id >= kMaxIds)
      fail_format(at + ".id is " + std::to_string(id) + ", expected at most 9999999");
    next_id = std::max(next_id, id + 1);
    const auto flag = [&](const char* key) { return entry.get_bool(key, false, at); };
    const auto index = static_cast<uint32_t>(added.tokens_.size());
    added.tokens_.push_back(
        {static_cast<uint32_t>(id), content, flag("single_word"), flag("lstrip"), flag("rstrip"),
         entry.get_bool("normalized", !flag("special"), at), flag("special"), content});
    added.by_id_.insert_or_assign(static_cast<uint32_t>(id), index);
    added.by_content_.emplace(content, index);
    if (!added.tokens_.back().normalized) added.in_raw_.add(content, static_cast<int32_t>(index));
  }
  return added;
}

const AddedToken* AddedTokens::find_id(uint32_t id) const {
  const auto it = by_id_.find(id);
  return it == by_id_.end() ? nullptr : &tokens_[it->second];
}

const AddedToken* AddedTokens::find_content(std::string_view content) const {
  const auto it = by_content_.find(std::string(content));
  return it == by_content_.end() ? nullptr : &tokens_[it->second];
}

void AddedTokens::cut(const MappedText& mapped, Pass pass, const MatchRules& rules,
                      std::vector<Stretch>* out) const {
  const std::string_view text = mapped.text;
  const Trie& trie = pass == Pass::kRaw ? in_raw_ : in_normalized_;
  LiteralCursor literal(rules.literal);
  size_t done = 0;  // text before is in `out`
  const bool has_tokens = trie.token_at.size() > 1 && rules.matching != AddedMatching::kNone;
  for (size_t pos = 0; has_tokens && pos < text.size();) {
    const auto is_literal = [&](size_t end) {
      return !literal.empty() && literal.meets(mapped.to_original(pos), mapped.to_original(end));
    };
    size_t end = pos;
    const int32_t token = trie.longest_at(text, pos, is_literal, &end);
    if (token == Stretch::kText) {
      ++pos;
      continue;
    }
    const AddedToken& t = tokens_[static_cast<size_t>(token)];
    const bool rejected = (t.special && rules.matching == AddedMatching::kNotSpecial) ||
                          (t.single_word && is_inside_word(text, pos, end));
    if (rejected) {
      pos = end;
      continue;
    }
    const size_t begin = t.lstrip ? skip_space_left(text, pos, done) : pos;
    if (t.rstrip) end = skip_space_right(text, end);
    if (begin > done) out->push_back({done, begin, Stretch::kText});
    out->push_back({begin, end, token});
    pos = done = end;
  }
  if (done < text.size()) out->push_back({done, text.size(), Stretch::kText});
}

}  // namespace dovetail::bpe
