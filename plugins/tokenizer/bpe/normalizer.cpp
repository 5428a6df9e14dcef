#include "normalizer.hpp"

#include <optional>

#include "byte_symbols.hpp"
#include "charsmap.hpp"
#include "error.hpp"
#include "lowercase.hpp"
#include "replacer.hpp"
#include "rewrite.hpp"
#include "unicode.hpp"
#include "unicode_forms.hpp"
#include "utf8.hpp"

namespace dovetail::bpe {
namespace {

using Step = Normalizer::Step;

constexpr int kMaxDepth = 16;
constexpr size_t kMaxSteps = 256;

// A step that looks at each character alone. fn(code point, &by) says whether the character gives
// way to what it put into `by`, which is empty before.
using CharFn = bool(uint32_t code_point, std::string* by);

class CharStep : public Step {
 public:
  explicit CharStep(CharFn* fn) : fn_(fn) {}
  bool rewrite(std::string_view text, Layer* layer, RegexScratch*) const override {
    Rewrite result(text, layer);
    std::string by;
    for (size_t pos = 0; pos < text.size();) {
      const auto* p = reinterpret_cast<const uint8_t*>(text.data()) + pos;
      const size_t end = pos + utf8_len(*p);
      by.clear();
      if (fn_(decode_valid(p), &by)) result.replace_char(pos, end, by);
      pos = end;
    }
    return result.finish();
  }

 private:
  CharFn* fn_;
};

bool put_space(std::string* by) {
  by->push_back(' ');
  return true;
}

bool strip_accent(uint32_t c, std::string*) {
  return (class_of(c) & kAccent) != 0;
}
bool strip_nonspacing(uint32_t c, std::string*) {
  return (class_of(c) & kNonspacingMark) != 0;
}

// SentencePiece's nmt rules: controls vanish, odd spaces become plain.
bool nmt(uint32_t c, std::string* by) {
  const bool is_removed = (c >= 0x01 && c <= 0x08) || c == 0x0B || (c >= 0x0E && c <= 0x1F) ||
                          c == 0x7F || c == 0x8F || c == 0x9F;
  if (is_removed) return true;
  const bool is_space = c == 0x09 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 ||
                        (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
                        c == 0xFEFF || c == 0xFFFD;
  return is_space && put_space(by);
}

bool bert_clean(uint32_t c, std::string* by) {
  const uint16_t classes = class_of(c);
  if (c == 0 || c == 0xFFFD || (classes & kBertRemoved)) return true;
  return c != ' ' && (classes & kSpace) && put_space(by);
}

bool space_ideograph(uint32_t c, std::string* by) {
  const bool is_ideograph = (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
                            (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B73F) ||
                            (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
                            (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
  if (!is_ideograph) return false;
  by->push_back(' ');
  append_utf8(c, by);
  by->push_back(' ');
  return true;
}

class FormStep : public Step {
 public:
  explicit FormStep(UnicodeForm form) : form_(form) {}
  bool rewrite(std::string_view text, Layer* layer, RegexScratch*) const override {
    return to_form(form_, text, layer);
  }

 private:
  UnicodeForm form_;
};

class StripStep : public Step {
 public:
  StripStep(bool left, bool right) : left_(left), right_(right) {}
  bool rewrite(std::string_view text, Layer* layer, RegexScratch*) const override {
    const auto is_space = [&](size_t pos) {
      return class_of(decode_valid(reinterpret_cast<const uint8_t*>(text.data()) + pos)) & kSpace;
    };
    size_t begin = 0, end = text.size();
    while (left_ && begin < end && is_space(begin)) {
      begin += utf8_len(static_cast<uint8_t>(text[begin]));
    }
    while (right_ && end > begin && is_space(previous_char(text, end))) {
      end = previous_char(text, end);
    }
    Rewrite result(text, layer);
    result.replace(0, begin, "");
    result.replace(end, text.size(), "");
    return result.finish();
  }

 private:
  bool left_, right_;
};

class PrependStep : public Step {
 public:
  explicit PrependStep(std::string_view prefix) : prefix_(prefix) {}
  bool rewrite(std::string_view text, Layer* layer, RegexScratch*) const override {
    Rewrite result(text, layer);
    if (!text.empty()) result.replace(0, 0, prefix_);
    return result.finish();
  }

 private:
  std::string prefix_;
};

class ReplaceStep : public Step {
 public:
  explicit ReplaceStep(Replacer replacer) : replacer_(std::move(replacer)) {}
  bool rewrite(std::string_view text, Layer* layer, RegexScratch* scratch) const override {
    return replacer_.rewrite(text, scratch, layer);
  }

 private:
  Replacer replacer_;
};

class CharsmapStep : public Step {
 public:
  explicit CharsmapStep(Charsmap map) : map_(std::move(map)) {}
  bool rewrite(std::string_view text, Layer* layer, RegexScratch*) const override {
    return map_.rewrite(text, layer);
  }

 private:
  Charsmap map_;
};

class ByteSymbolsStep : public Step {
 public:
  bool rewrite(std::string_view text, Layer* layer, RegexScratch*) const override {
    Rewrite result(text, layer);
    replace_by_symbols(text, 0, text.size(), &result);
    return result.finish();
  }
};

using StepList = std::vector<std::unique_ptr<Step>>;

// clean_text, handle_chinese_chars, strip_accents and lowercase, in this order.
void read_bert(const JsonView& section, const std::string& path, StepList* steps) {
  const bool lowercase = section.get_bool("lowercase", true, path);
  if (section.get_bool("clean_text", true, path)) {
    steps->push_back(std::make_unique<CharStep>(bert_clean));
  }
  if (section.get_bool("handle_chinese_chars", true, path)) {
    steps->push_back(std::make_unique<CharStep>(space_ideograph));
  }
  if (section.get_bool("strip_accents", lowercase, path)) {
    steps->push_back(std::make_unique<FormStep>(UnicodeForm::kNfd));
    steps->push_back(std::make_unique<CharStep>(strip_nonspacing));
  }
  if (lowercase) steps->push_back(std::make_unique<CharStep>(append_lowercase));
}

std::optional<UnicodeForm> form_of(std::string_view type) {
  if (type == "NFC") return UnicodeForm::kNfc;
  if (type == "NFD") return UnicodeForm::kNfd;
  if (type == "NFKC") return UnicodeForm::kNfkc;
  if (type == "NFKD") return UnicodeForm::kNfkd;
  return std::nullopt;
}

std::unique_ptr<Step> read_step(std::string_view type, const JsonView& section,
                                const std::string& path) {
  if (const auto form = form_of(type)) return std::make_unique<FormStep>(*form);
  if (type == "Lowercase") return std::make_unique<CharStep>(append_lowercase);
  if (type == "StripAccents") return std::make_unique<CharStep>(strip_accent);
  if (type == "Nmt") return std::make_unique<CharStep>(nmt);
  if (type == "ByteLevel") return std::make_unique<ByteSymbolsStep>();
  if (type == "Strip") {
    return std::make_unique<StripStep>(section.get_bool("strip_left", true, path),
                                       section.get_bool("strip_right", true, path));
  }
  if (type == "Prepend") {
    return std::make_unique<PrependStep>(section.get_string("prepend", path));
  }
  if (type == "Replace") return std::make_unique<ReplaceStep>(Replacer::from_json(section, path));
  if (type == "Precompiled") {
    return std::make_unique<CharsmapStep>(
        Charsmap(section.get_string("precompiled_charsmap", path), path + ".precompiled_charsmap"));
  }
  fail_unsupported(path + ".type is " + quote(type) +
                   ", which is not supported (supported: NFC, NFD, NFKC, NFKD, Lowercase, Strip, "
                   "StripAccents, Replace, Prepend, Nmt, Precompiled, BertNormalizer, ByteLevel, "
                   "Sequence)");
}

}  // namespace

Normalizer::Normalizer() = default;
Normalizer::~Normalizer() = default;
Normalizer::Normalizer(Normalizer&&) noexcept = default;
Normalizer& Normalizer::operator=(Normalizer&&) noexcept = default;

Normalizer Normalizer::from_json(const JsonView& section, const std::string& path) {
  Normalizer n;
  if (!section.is_null()) n.read(section, path, 0);
  return n;
}

void Normalizer::read(const JsonView& section, const std::string& path, int depth) {
  if (depth > kMaxDepth) fail_format(path + " is nested too deep");
  if (steps_.size() > kMaxSteps) {
    fail_unsupported(path + " is step " + std::to_string(steps_.size() + 1) + ", at most " +
                     std::to_string(kMaxSteps) + " are supported");
  }
  const std::string_view type = section.get_string("type", path);
  if (type == "BertNormalizer") return read_bert(section, path, &steps_);
  if (type != "Sequence") {
    steps_.push_back(read_step(type, section, path));
    return;
  }
  const JsonView list = section.get_list("normalizers", path);
  for (uint64_t i = 0; i < list.len(); ++i) {
    read(list.at(i), path + ".normalizers[" + std::to_string(i) + "]", depth + 1);
  }
}

MappedText Normalizer::apply(MappedText text, LayerStack* layers, RegexScratch* scratch) const {
  for (const auto& step : steps_) {
    Layer& layer = layers->push(text);
    if (step->rewrite(text.text, &layer, scratch)) {
      text = layer.mapped();
    } else {
      layers->pop();
    }
  }
  return text;
}

}  // namespace dovetail::bpe
