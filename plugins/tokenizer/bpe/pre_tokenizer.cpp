#include "pre_tokenizer.hpp"

#include <algorithm>

#include "error.hpp"
#include "unicode.hpp"
#include "utf8.hpp"

namespace dovetail::bpe {
namespace {

constexpr int kMaxDepth = 16;

// A stretch of text and whether the pattern matched it.
struct Part {
  uint32_t begin, end;
  bool is_match;
};

// Each digit is a match of its own, as for every predicate over characters.
void find_digits(std::string_view text, std::vector<RegexMatch>* out) {
  for (size_t pos = 0; pos < text.size();) {
    const auto* p = reinterpret_cast<const uint8_t*>(text.data()) + pos;
    const uint32_t len = utf8_len(*p);
    const auto begin = static_cast<uint32_t>(pos);
    if (class_of(decode_valid(p)) & kNumeric) out->push_back({begin, begin + len});
    pos += len;
  }
}

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
  fail_format(path + ".behavior is \"" + std::string(name) +
              "\", expected Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous");
}

}  // namespace

struct PreTokenizer::Step {
  enum class Kind { kQwen2, kRegex, kLiteral, kDigits };
  Kind kind;
  SplitBehavior behavior;
  bool invert;
  std::unique_ptr<Regex> regex;
  std::string literal;

  void cut(std::string_view text, Piece piece, CutScratch* scratch, std::vector<Piece>* out) const {
    if (kind == Kind::kQwen2) return scan_qwen2(text, piece.begin, piece.end, out);
    const std::string_view stretch = text.substr(piece.begin, piece.end - piece.begin);
    scratch->matches.clear();
    if (kind == Kind::kRegex) regex->find_all(stretch, &scratch->regex, &scratch->matches);
    if (kind == Kind::kLiteral) find_literal(stretch, literal, &scratch->matches);
    if (kind == Kind::kDigits) find_digits(stretch, &scratch->matches);
    append_pieces(parts_of(piece.end - piece.begin, scratch->matches, invert), behavior,
                  piece.begin, out);
  }
};

PreTokenizer::PreTokenizer() = default;
PreTokenizer::~PreTokenizer() = default;
PreTokenizer::PreTokenizer(PreTokenizer&&) noexcept = default;
PreTokenizer& PreTokenizer::operator=(PreTokenizer&&) noexcept = default;

void PreTokenizer::add_split_regex(std::string_view pattern, SplitBehavior behavior, bool invert,
                                   Engine engine) {
  if (engine == Engine::kAuto && pattern == kQwen2Pattern && behavior == SplitBehavior::kIsolated &&
      !invert) {
    steps_.push_back(
        std::make_unique<Step>(Step{Step::Kind::kQwen2, behavior, invert, nullptr, ""}));
    return;
  }
  steps_.push_back(std::make_unique<Step>(
      Step{Step::Kind::kRegex, behavior, invert, std::make_unique<Regex>(pattern), ""}));
}

void PreTokenizer::add_split_string(std::string_view literal, SplitBehavior behavior, bool invert) {
  steps_.push_back(std::make_unique<Step>(
      Step{Step::Kind::kLiteral, behavior, invert, nullptr, std::string(literal)}));
}

void PreTokenizer::add_digits(bool individual) {
  const auto behavior = individual ? SplitBehavior::kIsolated : SplitBehavior::kContiguous;
  steps_.push_back(std::make_unique<Step>(Step{Step::Kind::kDigits, behavior, false, nullptr, ""}));
}

void PreTokenizer::set_byte_level(bool add_prefix_space, bool use_regex) {
  byte_level_ = true;
  add_prefix_space_ = add_prefix_space;
  if (use_regex) {
    byte_level_split_ =
        std::make_unique<Step>(Step{Step::Kind::kRegex, SplitBehavior::kIsolated, false,
                                    std::make_unique<Regex>(kGpt2Pattern), ""});
  }
}

std::string_view PreTokenizer::cut(std::string_view text, CutScratch* scratch,
                                   Alignment* alignment) const {
  std::vector<Piece>& pieces = scratch->pieces;
  pieces.clear();
  if (text.empty()) return text;
  pieces.push_back({0, static_cast<uint32_t>(text.size())});
  const auto run = [&](const Step& step) {
    scratch->next.clear();
    for (const Piece& piece : pieces) step.cut(text, piece, scratch, &scratch->next);
    std::swap(pieces, scratch->next);
  };
  for (const auto& step : steps_) run(*step);

  if (add_prefix_space_) {
    std::string& out = scratch->prefixed;
    out.clear();
    uint32_t copied = 0;
    for (Piece& piece : pieces) {
      out.append(text, copied, piece.begin - copied);
      copied = piece.end;
      const auto begin = static_cast<uint32_t>(out.size());
      if (text[piece.begin] != ' ') {
        alignment->add(begin, begin + 1, piece.begin, piece.begin);
        out.push_back(' ');
      }
      out.append(text, piece.begin, piece.end - piece.begin);
      piece = {begin, static_cast<uint32_t>(out.size())};
    }
    text = out;
  }
  if (byte_level_split_ != nullptr) run(*byte_level_split_);
  return text;
}

PreTokenizer PreTokenizer::from_json(const JsonView& section, const std::string& path) {
  PreTokenizer p;
  if (!section.is_null()) p.read(section, path, 0);
  return p;
}

void PreTokenizer::read(const JsonView& section, const std::string& path, int depth) {
  if (!section.is_map()) section.refuse(path, "", "null or a map with \"type\"");
  if (depth > kMaxDepth) fail_format(path + " is nested too deep");
  const std::string_view type = section.get_string("type", path);
  if (byte_level_) {
    fail_unsupported(path + ": " + std::string(type) + " after ByteLevel is not supported");
  }
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
    set_byte_level(section.get_bool("add_prefix_space", true, path),
                   section.get_bool("use_regex", true, path));
  } else {
    fail_unsupported(path + ".type is \"" + std::string(type) +
                     "\", which is not supported (supported: Sequence, Split, Digits, ByteLevel)");
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
