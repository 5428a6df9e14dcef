#include "pre_tokenizer.hpp"

#include <algorithm>
#include <utility>

#include "byte_symbols.hpp"
#include "error.hpp"
#include "rewrite.hpp"
#include "unicode.hpp"
#include "utf8.hpp"

namespace dovetail::bpe {
namespace {

using State = PreTokenizer::State;
using Step = PreTokenizer::Step;

constexpr int kMaxDepth = 16;
constexpr size_t kMaxSteps = 256;

uint32_t code_point_at(std::string_view text, size_t pos) {
  return decode_valid(reinterpret_cast<const uint8_t*>(text.data()) + pos);
}
uint16_t class_at(std::string_view text, size_t pos) {
  return class_of(code_point_at(text, pos));
}
uint32_t len_at(std::string_view text, size_t pos) {
  return utf8_len(static_cast<uint8_t>(text[pos]));
}

// ---- matches to pieces

// A stretch of text and whether the pattern matched it.
struct Part {
  uint32_t begin, end;
  bool is_match;
};

void find_literal(std::string_view text, std::string_view literal, std::vector<RegexMatch>* out) {
  if (literal.empty()) return;
  for (size_t pos = text.find(literal); pos != std::string_view::npos;
       pos = text.find(literal, pos + literal.size())) {
    out->push_back({static_cast<uint32_t>(pos), static_cast<uint32_t>(pos + literal.size())});
  }
}

std::vector<Part> parts_of(uint32_t len, const std::vector<RegexMatch>& matches, bool invert) {
  std::vector<Part> parts;
  parts.reserve(matches.size() * 2 + 1);
  uint32_t previous = 0;
  for (const RegexMatch& m : matches) {
    if (m.begin != previous) parts.push_back({previous, m.begin, invert});
    parts.push_back({m.begin, m.end, !invert});
    previous = m.end;
  }
  if (previous != len) parts.push_back({previous, len, invert});
  return parts;
}

// Whether a part joins the piece before it; with kMergedWithNext, the one after it.
bool joins(SplitBehavior behavior, bool is_match, bool is_neighbour_match) {
  if (behavior == SplitBehavior::kContiguous) return is_match == is_neighbour_match;
  const bool merges =
      behavior == SplitBehavior::kMergedWithPrevious || behavior == SplitBehavior::kMergedWithNext;
  return merges && is_match && !is_neighbour_match;
}

// Turns matches and gaps into pieces; `base` is where the stretch starts in the text.
void append_pieces(const std::vector<Part>& parts, SplitBehavior behavior, uint32_t base,
                   std::vector<Piece>* out) {
  const size_t first = out->size();
  const bool is_backward = behavior == SplitBehavior::kMergedWithNext;
  bool is_neighbour_match = false;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Part& part = parts[is_backward ? parts.size() - 1 - i : i];
    if (behavior == SplitBehavior::kRemoved && part.is_match) continue;
    const Piece piece{base + part.begin, base + part.end};
    if (out->size() > first && joins(behavior, part.is_match, is_neighbour_match)) {
      Piece& joined = out->back();
      joined = {std::min(joined.begin, piece.begin), std::max(joined.end, piece.end)};
    } else {
      out->push_back(piece);
    }
    is_neighbour_match = part.is_match;
  }
  if (is_backward) std::reverse(out->begin() + static_cast<ptrdiff_t>(first), out->end());
  out->erase(std::remove_if(out->begin() + static_cast<ptrdiff_t>(first), out->end(),
                            [](const Piece& p) { return p.begin == p.end; }),
             out->end());
}

SplitBehavior read_behavior(std::string_view name, const std::string& path) {
  if (name == "Removed") return SplitBehavior::kRemoved;
  if (name == "Isolated") return SplitBehavior::kIsolated;
  if (name == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  if (name == "Contiguous") return SplitBehavior::kContiguous;
  fail_format(path + ".behavior is " + quote(name) +
              ", expected Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous");
}

// ---- steps that cut each piece by itself

// cut_piece() appends to scratch->next what becomes of one piece.
class CuttingStep : public Step {
 public:
  void apply(State* state) const final {
    std::vector<Piece>& pieces = state->scratch->pieces;
    std::vector<Piece>& next = state->scratch->next;
    next.clear();
    for (const Piece& piece : pieces) cut_piece(state->text.text, piece, state->scratch);
    std::swap(pieces, next);
  }

 private:
  virtual void cut_piece(std::string_view text, const Piece& piece, CutScratch* scratch) const = 0;
};

class ScanStep : public CuttingStep {
 public:
  explicit ScanStep(ScanFn* fn) : fn_(fn) {}

 private:
  void cut_piece(std::string_view text, const Piece& piece, CutScratch* scratch) const override {
    fn_(text, piece.begin, piece.end, &scratch->next);
  }
  ScanFn* fn_;
};

// Splits at what match() finds.
class MatchStep : public CuttingStep {
 public:
  MatchStep(SplitBehavior behavior, bool invert) : behavior_(behavior), invert_(invert) {}

 private:
  void cut_piece(std::string_view text, const Piece& piece, CutScratch* scratch) const final {
    scratch->matches.clear();
    match(text.substr(piece.begin, piece.end - piece.begin), scratch);
    append_pieces(parts_of(piece.end - piece.begin, scratch->matches, invert_), behavior_,
                  piece.begin, &scratch->next);
  }
  virtual void match(std::string_view stretch, CutScratch* scratch) const = 0;

  SplitBehavior behavior_;
  bool invert_;
};

class RegexStep : public MatchStep {
 public:
  RegexStep(std::string_view pattern, SplitBehavior behavior, bool invert)
      : MatchStep(behavior, invert), regex_(pattern) {}

 private:
  void match(std::string_view stretch, CutScratch* scratch) const override {
    regex_.find_all(stretch, &scratch->regex, &scratch->matches);
  }
  Regex regex_;
};

class LiteralStep : public MatchStep {
 public:
  LiteralStep(std::string_view literal, SplitBehavior behavior, bool invert)
      : MatchStep(behavior, invert), literal_(literal) {}

 private:
  void match(std::string_view stretch, CutScratch* scratch) const override {
    find_literal(stretch, literal_, &scratch->matches);
  }
  std::string literal_;
};

// Each character with one of the classes is a match of its own.
class ClassStep : public MatchStep {
 public:
  ClassStep(uint16_t classes, SplitBehavior behavior)
      : MatchStep(behavior, false), classes_(classes) {}

 private:
  void match(std::string_view stretch, CutScratch* scratch) const override {
    for (size_t pos = 0; pos < stretch.size();) {
      const uint32_t len = len_at(stretch, pos);
      const auto begin = static_cast<uint32_t>(pos);
      if (class_at(stretch, pos) & classes_) scratch->matches.push_back({begin, begin + len});
      pos += len;
    }
  }
  uint16_t classes_;
};

// Cuts wherever starts() says that a piece starts; starts() sees the characters in order.
template <class Starts>
void cut_where(std::string_view text, const Piece& piece, std::vector<Piece>* out, Starts starts) {
  uint32_t begin = piece.begin;
  for (uint32_t pos = piece.begin; pos < piece.end; pos += len_at(text, pos)) {
    if (starts(code_point_at(text, pos)) && pos > begin) {
      out->push_back({begin, pos});
      begin = pos;
    }
  }
  if (begin < piece.end) out->push_back({begin, piece.end});
}

// \w+|[^\w\s]+ ; what is between is dropped.
class WhitespaceStep : public CuttingStep {
  void cut_piece(std::string_view text, const Piece& piece, CutScratch* scratch) const override {
    enum class Kind { kNone, kSpace, kWord, kOther } last = Kind::kNone;
    const auto kind_of = [](uint32_t c) {
      const uint16_t classes = class_of(c);
      return classes & dovetail::bpe::kWord    ? Kind::kWord
             : classes & dovetail::bpe::kSpace ? Kind::kSpace
                                               : Kind::kOther;
    };
    const size_t first = scratch->next.size();
    cut_where(text, piece, &scratch->next, [&](uint32_t c) {
      const Kind kind = kind_of(c);
      return std::exchange(last, kind) != kind;
    });
    const auto is_space = [&](const Piece& p) {
      return kind_of(code_point_at(text, p.begin)) == Kind::kSpace;
    };
    auto& next = scratch->next;
    next.erase(std::remove_if(next.begin() + static_cast<ptrdiff_t>(first), next.end(), is_space),
               next.end());
  }
};

class ScriptsStep : public CuttingStep {
  static constexpr uint32_t kNoScript = UINT32_MAX;  // joins what is before

  static uint32_t script_of(uint32_t c) {
    const auto it = std::upper_bound(kScripts.begin(), kScripts.end(), c,
                                     [](uint32_t v, const ScriptRange& r) { return v < r.first; });
    if (it == kScripts.begin() || c > std::prev(it)->last) return kNoScript;
    return std::prev(it)->script;
  }
  void cut_piece(std::string_view text, const Piece& piece, CutScratch* scratch) const override {
    uint32_t last = kNoScript;
    cut_where(text, piece, &scratch->next, [&](uint32_t c) {
      const uint32_t script = script_of(c);
      if (script == kNoScript) return false;
      const bool changes = last != kNoScript && script != last;
      last = script;
      return changes;
    });
  }
};

class FixedLengthStep : public CuttingStep {
 public:
  explicit FixedLengthStep(uint64_t length) : length_(length) {}

 private:
  void cut_piece(std::string_view text, const Piece& piece, CutScratch* scratch) const override {
    uint64_t n = 0;
    cut_where(text, piece, &scratch->next, [&](uint32_t) { return n++ % length_ == 0; });
  }
  uint64_t length_;
};

// ---- steps that rewrite the text

// Writes each piece anew by rewrite_piece(text, piece, Rewrite*), and moves the pieces along.
template <class Fn>
void rewrite_pieces(State* state, Fn&& rewrite_piece) {
  std::string_view text = state->text.text;
  Layer& layer = state->layers->push(state->text);
  Rewrite rewrite(text, &layer);
  std::vector<Piece>& next = state->scratch->next;
  next.clear();
  for (const Piece& piece : state->scratch->pieces) {
    const auto begin = static_cast<uint32_t>(rewrite.position_of(piece.begin));
    rewrite_piece(text, piece, &rewrite);
    next.push_back({begin, static_cast<uint32_t>(rewrite.position_of(piece.end))});
  }
  if (!rewrite.finish()) return state->layers->pop();
  if (layer.text.size() > UINT32_MAX) fail_invalid("the text has 4 GiB or more once rewritten");
  state->text = layer.mapped();
  std::swap(state->scratch->pieces, next);
}

class PrefixSpaceStep : public Step {
 public:
  void apply(State* state) const override {
    rewrite_pieces(state, [](std::string_view text, const Piece& piece, Rewrite* rewrite) {
      if (text[piece.begin] != ' ') rewrite->replace(piece.begin, piece.begin, " ");
    });
  }
};

class ByteSymbolsStep : public Step {
 public:
  void apply(State* state) const override {
    rewrite_pieces(state, [](std::string_view text, const Piece& piece, Rewrite* rewrite) {
      replace_by_symbols(text, piece.begin, piece.end, rewrite);
    });
  }
};

enum class PrependScheme { kAlways, kFirst, kNever };

class MetaspaceStep : public Step {
 public:
  MetaspaceStep(std::string_view replacement, PrependScheme scheme, bool splits)
      : replacement_(replacement),
        scheme_(scheme),
        split_(replacement, SplitBehavior::kMergedWithNext, false),
        splits_(splits) {}

  void apply(State* state) const override {
    const MappedText before = state->text;
    rewrite_pieces(state, [&](std::string_view text, const Piece& piece, Rewrite* rewrite) {
      const bool is_prefixed =
          text[piece.begin] == ' ' ||
          text.substr(piece.begin, piece.end - piece.begin).starts_with(replacement_);
      const bool wants_prefix =
          scheme_ == PrependScheme::kAlways ||
          (scheme_ == PrependScheme::kFirst && before.to_original(piece.begin) == 0);
      if (wants_prefix && !is_prefixed) rewrite->replace(piece.begin, piece.begin, replacement_);
      for (size_t pos = text.find(' ', piece.begin); pos < piece.end;
           pos = text.find(' ', pos + 1)) {
        rewrite->replace(pos, pos + 1, replacement_);
      }
    });
    if (splits_) split_.apply(state);
  }

 private:
  std::string replacement_;
  PrependScheme scheme_;
  LiteralStep split_;
  bool splits_;
};

// ---- reading

std::unique_ptr<Step> read_metaspace(const JsonView& section, const std::string& path) {
  PrependScheme scheme = PrependScheme::kAlways;
  const std::string_view name = section.get_string_or_empty("prepend_scheme", path);
  if (name == "never" || !section.get_bool("add_prefix_space", true, path)) {
    scheme = PrependScheme::kNever;
  } else if (name == "first") {
    scheme = PrependScheme::kFirst;
  } else if (name != "always" && !name.empty()) {
    fail_format(path + ".prepend_scheme is " + quote(name) + ", expected always, first or never");
  }
  std::string_view replacement = section.get_string_or_empty("replacement", path);
  if (replacement.empty()) replacement = "\u2581";
  return std::make_unique<MetaspaceStep>(replacement, scheme,
                                         section.get_bool("split", true, path));
}

std::unique_ptr<Step> read_fixed_length(const JsonView& section, const std::string& path) {
  const int64_t length = section.find("length").is_null() ? 5 : section.get_int("length", path);
  if (length < 1) {
    fail_format(path + ".length is " + std::to_string(length) + ", expected at least 1");
  }
  return std::make_unique<FixedLengthStep>(static_cast<uint64_t>(length));
}

std::unique_ptr<Step> read_delimiter(const JsonView& section, const std::string& path) {
  const std::string_view delimiter = section.get_string("delimiter", path);
  if (delimiter.empty()) fail_format(path + ".delimiter is empty, expected one character");
  return std::make_unique<LiteralStep>(delimiter, SplitBehavior::kRemoved, false);
}

}  // namespace

PreTokenizer::PreTokenizer() = default;
PreTokenizer::~PreTokenizer() = default;
PreTokenizer::PreTokenizer(PreTokenizer&&) noexcept = default;
PreTokenizer& PreTokenizer::operator=(PreTokenizer&&) noexcept = default;

void PreTokenizer::add(std::unique_ptr<Step> step) {
  if (byte_level_) write_byte_symbols();  // no longer the last step
  steps_.push_back(std::move(step));
}

void PreTokenizer::write_byte_symbols() {
  if (byte_level_) steps_.push_back(std::make_unique<ByteSymbolsStep>());
  byte_level_ = false;
}

void PreTokenizer::add_split_regex(std::string_view pattern, SplitBehavior behavior, bool invert,
                                   Engine engine) {
  ScanFn* scanner = engine == Engine::kAuto && behavior == SplitBehavior::kIsolated && !invert
                        ? find_scanner(pattern)
                        : nullptr;
  if (scanner != nullptr) return add(std::make_unique<ScanStep>(scanner));
  add(std::make_unique<RegexStep>(pattern, behavior, invert));
}

void PreTokenizer::add_split_string(std::string_view literal, SplitBehavior behavior, bool invert) {
  add(std::make_unique<LiteralStep>(literal, behavior, invert));
}

void PreTokenizer::add_digits(bool individual) {
  add(std::make_unique<ClassStep>(
      kNumeric, individual ? SplitBehavior::kIsolated : SplitBehavior::kContiguous));
}

void PreTokenizer::add_byte_level(bool add_prefix_space, bool use_regex) {
  if (add_prefix_space) add(std::make_unique<PrefixSpaceStep>());
  if (use_regex) add(std::make_unique<ScanStep>(find_scanner(kGpt2Pattern)));
  if (byte_level_) write_byte_symbols();  // twice ByteLevel: the first one writes
  byte_level_ = true;
}

MappedText PreTokenizer::cut(const MappedText& text, LayerStack* layers,
                             CutScratch* scratch) const {
  scratch->pieces.clear();
  if (text.text.empty()) return text;
  scratch->pieces.push_back({0, static_cast<uint32_t>(text.text.size())});
  State state{text, layers, scratch};
  for (const auto& step : steps_) step->apply(&state);
  return state.text;
}

PreTokenizer PreTokenizer::from_json(const JsonView& section, const std::string& path) {
  PreTokenizer p;
  if (!section.is_null()) p.read(section, path, 0);
  return p;
}

void PreTokenizer::read(const JsonView& section, const std::string& path, int depth) {
  if (!section.is_map()) section.refuse(path, "", "null or a map with \"type\"");
  if (depth > kMaxDepth) fail_format(path + " is nested too deep");
  if (steps_.size() > kMaxSteps) {
    fail_unsupported(path + " is step " + std::to_string(steps_.size() + 1) + ", at most " +
                     std::to_string(kMaxSteps) + " are supported");
  }
  const std::string_view type = section.get_string("type", path);
  if (type == "Sequence") {
    const JsonView list = section.get_list("pretokenizers", path);
    for (uint64_t i = 0; i < list.len(); ++i) {
      read(list.at(i), path + ".pretokenizers[" + std::to_string(i) + "]", depth + 1);
    }
  } else if (type == "Split") {
    read_split(section, path);
  } else if (type == "Digits") {
    add_digits(section.get_bool("individual_digits", false, path));
  } else if (type == "ByteLevel") {
    add_byte_level(section.get_bool("add_prefix_space", true, path),
                   section.get_bool("use_regex", true, path));
  } else if (type == "Metaspace") {
    add(read_metaspace(section, path));
  } else if (type == "Punctuation") {
    const std::string_view behavior = section.get_string_or_empty("behavior", path);
    add(std::make_unique<ClassStep>(
        kPunctuation, behavior.empty() ? SplitBehavior::kIsolated : read_behavior(behavior, path)));
  } else if (type == "Whitespace") {
    add(std::make_unique<WhitespaceStep>());
  } else if (type == "WhitespaceSplit") {
    add(std::make_unique<ClassStep>(kSpace, SplitBehavior::kRemoved));
  } else if (type == "BertPreTokenizer") {
    add(std::make_unique<ClassStep>(kSpace, SplitBehavior::kRemoved));
    add(std::make_unique<ClassStep>(kPunctuation, SplitBehavior::kIsolated));
  } else if (type == "CharDelimiterSplit") {
    add(read_delimiter(section, path));
  } else if (type == "UnicodeScripts") {
    add(std::make_unique<ScriptsStep>());
  } else if (type == "FixedLength") {
    add(read_fixed_length(section, path));
  } else {
    fail_unsupported(path + ".type is " + quote(type) +
                     ", which is not supported (supported: Sequence, Split, Digits, ByteLevel, "
                     "Metaspace, Punctuation, Whitespace, WhitespaceSplit, BertPreTokenizer, "
                     "CharDelimiterSplit, UnicodeScripts, FixedLength)");
  }
}

void PreTokenizer::read_split(const JsonView& section, const std::string& path) {
  const SplitBehavior behavior = read_behavior(section.get_string("behavior", path), path);
  const bool invert = section.get_bool("invert", false, path);
  const JsonView pattern = section.find("pattern");
  if (const JsonView literal = pattern.find("String"); literal.is_string()) {
    return add_split_string(literal.as_string(), behavior, invert);
  }
  const std::string_view regex = pattern.get_string("Regex", path + ".pattern");
  try {
    add_split_regex(regex, behavior, invert);
  } catch (const Error& e) {
    throw Error(e.kind(), path + ".pattern.Regex: " + e.what());
  }
}

}  // namespace dovetail::bpe
