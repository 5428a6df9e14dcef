#include "tokenizer.hpp"

#include <dovetail/sha256.hpp>

#include <algorithm>

#include "byte_symbols.hpp"
#include "error.hpp"
#include "nfc.hpp"
#include "repair_utf8.hpp"
#include "utf8.hpp"

namespace dovetail::bpe {
namespace {

constexpr uint64_t kMaxTextBytes = UINT32_MAX - 16;   // pieces hold 32-bit positions
constexpr size_t kPooledTextBytes = size_t{4} << 20;  // longer texts leave no scratch behind
constexpr int kMaxDepth = 16;

// True if the section normalizes to NFC; a null section or an empty Sequence does nothing.
bool read_normalizer(const JsonView& section, const std::string& path, int depth) {
  if (section.is_null()) return false;
  if (depth > kMaxDepth) fail_format(path + " is nested too deep");
  const std::string_view type = section.get_string("type", path);
  if (type == "NFC") return true;
  if (type == "Sequence") {
    const JsonView list = section.get_list("normalizers", path);
    bool nfc = false;
    for (uint64_t i = 0; i < list.len(); ++i) {
      nfc |=
          read_normalizer(list.at(i), path + ".normalizers[" + std::to_string(i) + "]", depth + 1);
    }
    return nfc;
  }
  fail_unsupported(path + ".type is \"" + std::string(type) +
                   "\", which is not supported (supported: NFC, Sequence, null)");
}

// Appends `value` with sorted keys and lengths before strings, leaving out vocabulary and merges.
void append_canonical(const JsonView& value, int depth, std::string* out) {
  if (depth > kMaxDepth) fail_format("the settings are nested too deep");
  const auto text = [out](std::string_view s) {
    out->append(std::to_string(s.size()) + ":").append(s);
  };
  switch (value.kind()) {
    case JsonKind::kNull:
      out->append("n");
      break;
    case JsonKind::kBool:
      out->append(value.as_bool() ? "t" : "f");
      break;
    case JsonKind::kInt:
      out->append("i" + std::to_string(value.as_int()) + ";");
      break;
    case JsonKind::kFloat:
      out->append("d");
      break;  // only dropout could be one, and it is refused
    case JsonKind::kString:
      out->append("s");
      text(value.as_string());
      break;
    case JsonKind::kList:
      out->append("[");
      for (uint64_t i = 0; i < value.len(); ++i) append_canonical(value.at(i), depth + 1, out);
      out->append("]");
      break;
    case JsonKind::kMap: {
      std::vector<std::pair<std::string_view, JsonView>> entries;
      for (uint64_t i = 0; i < value.len(); ++i) {
        std::string_view key;
        const JsonView member = value.at(i, &key);
        if (key != "vocab" && key != "merges" && !member.is_null())
          entries.emplace_back(key, member);
      }
      std::sort(entries.begin(), entries.end(), [](auto& a, auto& b) { return a.first < b.first; });
      out->append("{");
      for (const auto& [key, member] : entries) {
        text(key);
        append_canonical(member, depth + 1, out);
      }
      out->append("}");
      break;
    }
  }
}

void check_literal_ranges(std::span<const ByteRange> ranges, size_t text_len) {
  uint64_t done = 0;
  for (const ByteRange& r : ranges) {
    if (r.begin < done || r.end < r.begin || r.end > text_len) {
      fail_invalid("literal range [" + std::to_string(r.begin) + ", " + std::to_string(r.end) +
                   ") is out of order or beyond the text of " + std::to_string(text_len) +
                   " bytes");
    }
    done = r.end;
  }
}

}  // namespace

struct Tokenizer::Scratch {
  CutScratch cut;
  MergeScratch merge;
  std::vector<Stretch> outer, inner;
  std::string normalized;
};

// Takes a scratch out of the pool, or makes one; gives it back at the end of the call.
class Tokenizer::ScratchLoan {
 public:
  ScratchLoan(const Tokenizer& owner, bool keep) : owner_(owner), keep_(keep) {
    for (auto& slot : owner_.pool_) {
      scratch_.reset(slot.exchange(nullptr, std::memory_order_acquire));
      if (scratch_ != nullptr) return;
    }
    scratch_ = std::make_unique<Scratch>();
  }
  ~ScratchLoan() {
    for (auto& slot : owner_.pool_) {
      if (!keep_) return;
      Scratch* expected = nullptr;
      if (slot.compare_exchange_strong(expected, scratch_.get(), std::memory_order_release,
                                       std::memory_order_relaxed)) {
        (void)scratch_.release();
        return;
      }
    }
  }
  Scratch* get() { return scratch_.get(); }

 private:
  const Tokenizer& owner_;
  const bool keep_;
  std::unique_ptr<Scratch> scratch_;
};

Tokenizer::Tokenizer(const JsonView& definition) {
  if (!definition.is_map()) definition.refuse("", "the tokenizer definition", "a map");
  if (const std::string_view version = definition.get_string("version", ""); version != "1.0") {
    fail_format("version is \"" + std::string(version) + "\", expected \"1.0\"");
  }
  nfc_ = read_normalizer(definition.find("normalizer"), "normalizer", 0);
  pre_tokenizer_ = PreTokenizer::from_json(definition.find("pre_tokenizer"), "pre_tokenizer");
  model_ = BpeModel::from_json(definition.find("model"), "model", pre_tokenizer_.byte_level());
  added_ =
      AddedTokens::from_json(definition.find("added_tokens"), "added_tokens", model_.vocabulary());
  added_.set_normalized_forms([this](const std::string& content) {
    std::string out;
    Alignment ignored;
    return nfc_ && nfc(content, &out, &ignored) ? out : content;
  });
  post_processor_ = PostProcessor::from_json(definition.find("post_processor"), "post_processor");
  decoder_ = Decoder::from_json(definition.find("decoder"), "decoder", model_.vocabulary(), added_);
  for (const char* key :
       {"added_tokens", "normalizer", "pre_tokenizer", "model", "post_processor"}) {
    append_canonical(definition.find(key), 0, &settings_);
  }
}

Tokenizer::~Tokenizer() {
  for (auto& slot : pool_) delete slot.load();
}

void Tokenizer::encode(std::string_view text, const EncodeOptions& options,
                       std::vector<Token>* out) const {
  if (text.size() > kMaxTextBytes) fail_invalid("the text has 4 GiB or more");
  check_literal_ranges(options.literal, text.size());
  const auto add_special = [&](const std::vector<uint32_t>& ids, uint64_t at) {
    if (!options.add_special) return;
    for (const uint32_t id : ids) {
      const uint32_t flags = decoder_.is_added(id) ? kTokenAdded : 0;
      out->push_back({id, flags | (decoder_.is_special(id) ? kTokenSpecial : 0), at, at});
    }
  };

  ScratchLoan loan(*this, text.size() <= kPooledTextBytes);
  Scratch* scratch = loan.get();
  std::string repaired;
  Alignment repairs;
  const Alignment* alignment = nullptr;
  std::string_view valid = text;
  if (const size_t prefix = valid_utf8_prefix(text); prefix != text.size()) {
    if (options.strict_utf8)
      fail_invalid("the text is not valid UTF-8 at byte " + std::to_string(prefix));
    repair_utf8(text, &repaired, &repairs);
    if (repaired.size() > kMaxTextBytes) fail_invalid("the text has 4 GiB or more once repaired");
    valid = repaired;
    alignment = &repairs;
  }

  add_special(post_processor_.before, 0);
  const MatchRules rules{options.matching, options.literal};
  scratch->outer.clear();
  added_.cut(valid, AddedTokens::Pass::kRaw, rules, alignment, 0, &scratch->outer);
  for (const Stretch& s : scratch->outer) {
    if (s.token != Stretch::kText) {
      out->push_back(added_token(s, alignment, 0));
    } else {
      encode_stretch(valid.substr(s.begin, s.end - s.begin), alignment, s.begin, rules, scratch,
                     out);
    }
  }
  add_special(post_processor_.after, text.size());
}

// A stretch between added tokens: normalized on its own, then searched for the tokens that are
// matched in normalized text. `origin` is its place in the text that `alignment` maps.
void Tokenizer::encode_stretch(std::string_view text, const Alignment* alignment, uint64_t origin,
                               const MatchRules& rules, Scratch* scratch,
                               std::vector<Token>* out) const {
  Alignment normalization(alignment, origin);
  if (nfc_ && nfc(text, &scratch->normalized, &normalization)) {
    text = scratch->normalized;
    alignment = &normalization;
    origin = 0;
  }
  scratch->inner.clear();
  added_.cut(text, AddedTokens::Pass::kNormalized, rules, alignment, origin, &scratch->inner);
  for (const Stretch& s : scratch->inner) {
    if (s.token != Stretch::kText) {
      out->push_back(added_token(s, alignment, origin));
    } else {
      encode_plain(text.substr(s.begin, s.end - s.begin), alignment, origin + s.begin, scratch,
                   out);
    }
  }
}

void Tokenizer::encode_plain(std::string_view text, const Alignment* alignment, uint64_t origin,
                             Scratch* scratch, std::vector<Token>* out) const {
  Alignment prefixes(alignment, origin);
  const std::string_view cut_text = pre_tokenizer_.cut(text, &scratch->cut, &prefixes);
  const bool prefixed = cut_text.data() != text.data();
  const size_t first = out->size();
  for (const Piece& p : scratch->cut.pieces)
    model_.encode(cut_text, p.begin, p.end, &scratch->merge, out);

  if (!prefixed && alignment == nullptr) {
    if (origin == 0) return;
    for (size_t i = first; i < out->size(); ++i) {
      (*out)[i].begin += origin;
      (*out)[i].end += origin;
    }
    return;
  }
  for (size_t i = first; i < out->size(); ++i) {
    Token& t = (*out)[i];
    t.begin = prefixed ? prefixes.to_original(t.begin) : alignment->to_original(origin + t.begin);
    t.end = prefixed ? prefixes.to_original(t.end) : alignment->to_original(origin + t.end);
  }
}

Token Tokenizer::added_token(const Stretch& stretch, const Alignment* alignment,
                             uint64_t origin) const {
  const AddedToken& t = added_.all()[static_cast<size_t>(stretch.token)];
  const auto original = [&](uint64_t pos) {
    return alignment == nullptr ? origin + pos : alignment->to_original(origin + pos);
  };
  return {t.id, kTokenAdded | (t.special ? kTokenSpecial : 0), original(stretch.begin),
          original(stretch.end)};
}

uint32_t Tokenizer::find(std::string_view text) const {
  if (const AddedToken* token = added_.find_content(text)) return token->id;
  if (!pre_tokenizer_.byte_level()) return model_.vocabulary().find(text);
  std::string symbols;
  append_symbols(text, &symbols);
  return model_.vocabulary().find(symbols);
}

std::array<uint8_t, 32> Tokenizer::identity() const {
  std::string said = "dovetail.bpe/1\n" + settings_;
  const auto number = [&](uint32_t v) {
    for (int i = 0; i < 4; ++i) said += static_cast<char>(v >> 8 * i);
  };
  const Vocabulary& vocabulary = model_.vocabulary();
  number(vocabulary.n_tokens());
  for (uint32_t id = 0; id < vocabulary.n_ids(); ++id) {
    const auto content = vocabulary.content(id);
    if (!content) continue;
    number(id);
    number(static_cast<uint32_t>(content->size()));
    said += *content;
  }
  model_.for_each_merge([&](uint32_t left, uint32_t right, uint32_t result) {
    number(left);
    number(right);
    number(result);
  });
  return sha256(std::as_bytes(std::span(said)));
}

}  // namespace dovetail::bpe
