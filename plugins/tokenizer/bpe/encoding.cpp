#include "encoding.hpp"

#include <algorithm>

#include "error.hpp"
#include "vocabulary.hpp"

namespace dovetail::bpe {
namespace {

using Tokens = std::span<const Token>;

uint64_t read_count(const JsonView& section, const char* key, int64_t least,
                    const std::string& path) {
  const int64_t n = section.get_int(key, path);
  if (n < least || n > int64_t{UINT32_MAX}) {
    fail_format(path + "." + key + " is " + std::to_string(n) + ", expected " +
                std::to_string(least) + " to 4294967295");
  }
  return static_cast<uint64_t>(n);
}

bool read_is_left(const JsonView& section, const std::string& path) {
  const std::string_view direction = section.get_string_or_empty("direction", path);
  if (direction == "Left") return true;
  if (direction.empty() || direction == "Right") return false;
  fail_format(path + ".direction is " + quote(direction) + ", expected Left or Right");
}

// Parts of at most max_len tokens that share `stride` with their neighbours; the first is what stays.
std::vector<Tokens> parts_of(Tokens tokens, uint64_t max_len, uint64_t stride, bool from_left) {
  if (max_len >= tokens.size()) return {tokens};
  if (max_len == 0) return {tokens.first(0), tokens};
  const uint64_t step = max_len - stride;
  std::vector<Tokens> parts;
  for (uint64_t done = 0; done < tokens.size(); done += step) {
    const uint64_t n = std::min<uint64_t>(max_len, tokens.size() - done);
    parts.push_back(from_left ? tokens.subspan(tokens.size() - done - n, n)
                              : tokens.subspan(done, n));
    if (done + n == tokens.size()) break;
  }
  return parts;
}

Encoding assemble(Tokens text, Tokens pair, const std::vector<TemplateItem>& items) {
  Encoding out;
  const auto add = [&](const Token& token, uint32_t type_id, bool is_added) {
    out.tokens.push_back(token);
    out.type_ids.push_back(type_id);
    out.is_added.push_back(is_added);
    out.is_attended.push_back(1);
  };
  for (const TemplateItem& item : items) {
    if (item.kind == TemplateItem::Kind::kToken) {
      add({item.id, kTokenAdded | kTokenSpecial, 0, 0}, item.type_id, true);
      continue;
    }
    for (const Token& token : item.kind == TemplateItem::Kind::kText ? text : pair) {
      add(token, item.type_id, false);
    }
  }
  return out;
}

}  // namespace

EncodingRules EncodingRules::from_json(const JsonView& definition) {
  EncodingRules rules;
  if (const JsonView t = definition.find("truncation"); !t.is_null()) {
    const std::string path = "truncation";
    const std::string_view strategy = t.get_string_or_empty("strategy", path);
    if (!strategy.empty() && strategy != "LongestFirst" && strategy != "OnlyFirst" &&
        strategy != "OnlySecond") {
      fail_format(path + ".strategy is " + quote(strategy) +
                  ", expected LongestFirst, OnlyFirst or OnlySecond");
    }
    rules.truncation_ = {strategy == "OnlyFirst"    ? Strategy::kOnlyFirst
                         : strategy == "OnlySecond" ? Strategy::kOnlySecond
                                                    : Strategy::kLongestFirst,
                         read_is_left(t, path), read_count(t, "max_length", 0, path),
                         t.find("stride").is_null() ? 0 : read_count(t, "stride", 0, path)};
  }
  if (const JsonView p = definition.find("padding"); !p.is_null()) {
    const std::string path = "padding";
    Padding padding;
    if (const JsonView strategy = p.find("strategy"); strategy.is_map()) {
      padding.fixed_len = read_count(strategy, "Fixed", 0, path + ".strategy");
    } else if (p.get_string("strategy", path) != "BatchLongest") {
      fail_format(path + ".strategy is " + quote(strategy.as_string()) +
                  ", expected BatchLongest or {\"Fixed\": n}");
    }
    if (!p.find("pad_to_multiple_of").is_null()) {
      padding.multiple_of = std::max<uint64_t>(1, read_count(p, "pad_to_multiple_of", 0, path));
    }
    padding.on_left = read_is_left(p, path);
    padding.id = static_cast<uint32_t>(read_count(p, "pad_id", 0, path));
    padding.type_id = static_cast<uint32_t>(read_count(p, "pad_type_id", 0, path));
    rules.padding_ = padding;
  }
  return rules;
}

// Cuts both texts so that they and n_added tokens fit; the first part of each is what stays.
void EncodingRules::truncate(uint64_t n_added, std::vector<Tokens>* texts,
                             std::vector<Tokens>* pairs) const {
  const Truncation& t = *truncation_;
  const uint64_t max_len = t.max_len > n_added ? t.max_len - n_added : 0;
  uint64_t n_text = texts->front().size(), n_pair = pairs->empty() ? 0 : pairs->front().size();
  if (n_text + n_pair <= max_len) return;
  if (t.strategy == Strategy::kLongestFirst) {
    const bool is_pair_shorter = n_pair < n_text;
    uint64_t n1 = is_pair_shorter ? n_pair : n_text, n2 = is_pair_shorter ? n_text : n_pair;
    n2 = n1 > max_len ? n1 : std::max(n1, max_len - n1);
    if (n1 + n2 > max_len) {
      n1 = max_len / 2;
      n2 = n1 + max_len % 2;
    }
    n_text = is_pair_shorter ? n2 : n1;
    n_pair = is_pair_shorter ? n1 : n2;
    if (pairs->empty()) n_text = max_len;
  } else {
    const bool first = t.strategy == Strategy::kOnlyFirst;
    if (!first && pairs->empty()) {
      fail_invalid("truncation.strategy is OnlySecond, but there is no second text");
    }
    const uint64_t excess = n_text + n_pair - max_len;
    uint64_t& cut = first ? n_text : n_pair;
    if (cut <= excess) {
      fail_invalid("truncation: the " + std::string(first ? "first" : "second") + " text has " +
                   std::to_string(cut) + " tokens, and to cut off " + std::to_string(excess) +
                   " would leave none");
    }
    cut -= excess;
  }
  const auto cut_to = [&](std::vector<Tokens>* parts, uint64_t len) {
    if (len < parts->front().size() && len > 0 && t.stride >= len) {
      fail_invalid("truncation.stride is " + std::to_string(t.stride) +
                   ", expected less than the " + std::to_string(len) + " tokens left");
    }
    *parts = parts_of(parts->front(), len, t.stride, t.from_left);
  };
  cut_to(texts, n_text);
  if (!pairs->empty()) cut_to(pairs, n_pair);
}

void EncodingRules::pad(Encoding* encoding) const {
  const Padding& p = *padding_;
  uint64_t target = p.fixed_len > 0 ? p.fixed_len : encoding->tokens.size();
  target = (target + p.multiple_of - 1) / p.multiple_of * p.multiple_of;
  for (Encoding& part : encoding->overflowing) pad(&part);
  if (target <= encoding->tokens.size()) return;
  const uint64_t n = target - encoding->tokens.size();
  const auto grow = [&](auto* list, auto value) {
    list->insert(p.on_left ? list->begin() : list->end(), n, value);
  };
  grow(&encoding->tokens, Token{p.id, kTokenAdded | kTokenSpecial, 0, 0});
  grow(&encoding->type_ids, p.type_id);
  grow(&encoding->is_added, uint8_t{1});
  grow(&encoding->is_attended, uint8_t{0});
}

Encoding EncodingRules::apply(Tokens text, std::optional<Tokens> pair, bool add_special,
                              const PostProcessor& processor) const {
  std::vector<TemplateItem> items = pair ? processor.pair : processor.single;
  const auto is_token = [](const TemplateItem& i) { return i.kind == TemplateItem::Kind::kToken; };
  if (!add_special) items.erase(std::remove_if(items.begin(), items.end(), is_token), items.end());

  std::vector<Tokens> texts{text}, pairs;
  if (pair) pairs.push_back(*pair);
  if (truncation_) {
    truncate(static_cast<uint64_t>(std::count_if(items.begin(), items.end(), is_token)), &texts,
             &pairs);
  }
  // Every part of one with every part of the other; the first parts are the encoding itself.
  if (pairs.empty()) pairs.push_back({});
  Encoding out = assemble(texts[0], pairs[0], items);
  for (size_t i = 1; i <= texts.size(); ++i) {
    for (size_t k = i == texts.size() ? 1 : 0; k < pairs.size(); ++k) {
      out.overflowing.push_back(assemble(texts[i % texts.size()], pairs[k], items));
    }
  }
  if (padding_) pad(&out);
  return out;
}

}  // namespace dovetail::bpe
