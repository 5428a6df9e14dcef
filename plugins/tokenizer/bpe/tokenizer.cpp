#include "tokenizer.hpp"

#include <dovetail/sha256.hpp>

#include <algorithm>

#include "byte_symbols.hpp"
#include "error.hpp"
#include "repair_utf8.hpp"
#include "utf8.hpp"

namespace dovetail::bpe {
namespace {

constexpr uint64_t kMaxTextBytes = UINT32_MAX - 16;   // pieces hold 32-bit positions
constexpr size_t kPooledTextBytes = size_t{4} << 20;  // longer texts leave no scratch behind
constexpr size_t kBytesPerToken = 4;  // or more, in most text: a first guess at the result's size
constexpr int kMaxDepth = 16;
constexpr std::string_view kSpaceMark = "\u2581";

void check_len(size_t len, const char* once) {
  if (len > kMaxTextBytes) {
    fail_invalid("the text has 4 GiB or more once " + std::string(once));
  }
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
      out->append("d" + std::to_string(value.as_float()) + ";");
      break;
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
  ModelScratch model;
  LayerStack layers;
  std::vector<Stretch> outer, inner;
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
    fail_format("version is " + quote(version) + ", expected \"1.0\"");
  }
  normalizer_ = Normalizer::from_json(definition.find("normalizer"), "normalizer");
  pre_tokenizer_ = PreTokenizer::from_json(definition.find("pre_tokenizer"), "pre_tokenizer");
  const JsonView model = definition.find("model");
  if (!Model::works_on_bytes(model, "model")) pre_tokenizer_.write_byte_symbols();
  model_ = Model::from_json(model, "model", pre_tokenizer_.byte_level());
  const Vocabulary& vocabulary = model_->vocabulary();
  added_ = AddedTokens::from_json(definition.find("added_tokens"), "added_tokens", vocabulary);
  std::vector<uint32_t> barred;
  for (const AddedToken& t : added_.all()) {
    // One that stands only for whole words may be part of a word all the same.
    if (t.special || !t.single_word) barred.push_back(t.id);
  }
  model_->bar(barred);
  LayerStack layers;
  RegexScratch regex;
  added_.set_normalized_forms([&](const std::string& content) {
    layers.start(content.size());
    return std::string(normalizer_.apply({content}, &layers, &regex).text);
  });
  post_processor_ = PostProcessor::from_json(definition.find("post_processor"), "post_processor");
  decoder_ = Decoder::from_json(definition.find("decoder"), "decoder", vocabulary, added_);
  for (const auto* items : {&post_processor_.single, &post_processor_.pair}) {
    for (const TemplateItem& item : *items) {
      if (item.kind == TemplateItem::Kind::kToken && item.id >= decoder_.n_ids()) {
        fail_format("post_processor: id " + std::to_string(item.id) +
                    " is put about a text, expected ids below " + std::to_string(decoder_.n_ids()));
      }
    }
  }
  encoding_rules_ = EncodingRules::from_json(definition);
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
  scratch->layers.start(text.size());
  MappedText valid{text};
  if (const size_t prefix = valid_utf8_prefix(text); prefix != text.size()) {
    if (options.strict_utf8)
      fail_invalid("the text is not valid UTF-8 at byte " + std::to_string(prefix));
    Layer& layer = scratch->layers.push(valid);
    repair_utf8(text, &layer.text, &layer.alignment);
    check_len(layer.text.size(), "repaired");
    valid = layer.mapped();
  }

  out->reserve(out->size() + text.size() / kBytesPerToken);
  add_special(post_processor_.before, 0);
  const MatchRules rules{options.matching, options.literal};
  scratch->outer.clear();
  added_.cut(valid, AddedTokens::Pass::kRaw, rules, &scratch->outer);
  const size_t height = scratch->layers.height();
  for (const Stretch& s : scratch->outer) {
    if (s.token != Stretch::kText) {
      out->push_back(added_token(s, valid));
    } else {
      encode_stretch(valid.part(s.begin, s.end), rules, scratch, out);
      scratch->layers.drop_to(height);
    }
  }
  add_special(post_processor_.after, text.size());
}

// A stretch between added tokens: normalized on its own, then searched for the tokens that are
// matched in normalized text.
void Tokenizer::encode_stretch(MappedText text, const MatchRules& rules, Scratch* scratch,
                               std::vector<Token>* out) const {
  text = normalizer_.apply(text, &scratch->layers, &scratch->cut.regex);
  check_len(text.text.size(), "normalized");
  scratch->inner.clear();
  added_.cut(text, AddedTokens::Pass::kNormalized, rules, &scratch->inner);
  const size_t height = scratch->layers.height();
  for (const Stretch& s : scratch->inner) {
    if (s.token != Stretch::kText) {
      out->push_back(added_token(s, text));
    } else {
      encode_plain(text.part(s.begin, s.end), scratch, out);
      scratch->layers.drop_to(height);
    }
  }
}

void Tokenizer::encode_plain(const MappedText& text, Scratch* scratch,
                             std::vector<Token>* out) const {
  const MappedText cut = pre_tokenizer_.cut(text, &scratch->layers, &scratch->cut);
  const size_t first = out->size();
  model_->encode(cut.text, scratch->cut.pieces, &scratch->model, out);
  if (cut.is_original() && cut.origin == 0) return;
  for (size_t i = first; i < out->size(); ++i) {
    Token& t = (*out)[i];
    t.begin = cut.to_original(t.begin);
    t.end = cut.to_original(t.end);
  }
}

Token Tokenizer::added_token(const Stretch& stretch, const MappedText& text) const {
  const AddedToken& t = added_.all()[static_cast<size_t>(stretch.token)];
  return {t.id, kTokenAdded | (t.special ? kTokenSpecial : 0), text.to_original(stretch.begin),
          text.to_original(stretch.end)};
}

Encoding Tokenizer::encode_fully(std::string_view text, std::optional<std::string_view> pair,
                                 const EncodeOptions& options) const {
  EncodeOptions plain = options;
  plain.add_special = false;
  std::vector<Token> first, second;
  encode(text, plain, &first);
  if (!pair)
    return encoding_rules_.apply(first, std::nullopt, options.add_special, post_processor_);
  plain.literal = {};
  encode(*pair, plain, &second);
  return encoding_rules_.apply(first, second, options.add_special, post_processor_);
}

uint32_t Tokenizer::find(std::string_view text) const {
  if (const AddedToken* token = added_.find_content(text)) return token->id;
  const Vocabulary& vocabulary = model_->vocabulary();
  std::string symbols;
  if (pre_tokenizer_.byte_level()) {
    append_symbols(text, &symbols);
    return vocabulary.find(symbols);
  }
  if (const uint32_t id = vocabulary.find(text); id != kNoId) return id;
  // SentencePiece's way to write a space.
  for (const char c : text) symbols += c == ' ' ? std::string(kSpaceMark) : std::string(1, c);
  return vocabulary.find(symbols);
}

std::array<uint8_t, 32> Tokenizer::identity() const {
  std::string said = "dovetail.bpe/1\n" + settings_;
  const auto number = [&](uint32_t v) {
    for (int i = 0; i < 4; ++i) said += static_cast<char>(v >> 8 * i);
  };
  const Vocabulary& vocabulary = model_->vocabulary();
  number(vocabulary.n_tokens());
  for (uint32_t id = 0; id < vocabulary.n_ids(); ++id) {
    const auto content = vocabulary.content(id);
    if (!content) continue;
    number(id);
    number(static_cast<uint32_t>(content->size()));
    said += *content;
  }
  model_->append_identity(&said);
  return sha256(std::as_bytes(std::span(said)));
}

}  // namespace dovetail::bpe
