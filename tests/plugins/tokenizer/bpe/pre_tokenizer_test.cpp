// Splitting: every regex family against the reference's pieces, both engines, every behaviour.
#include "plugins/tokenizer/bpe/pre_tokenizer.hpp"

#include <gtest/gtest.h>

#include <set>

#include "json_support.hpp"
#include "plugins/tokenizer/bpe/byte_symbols.hpp"
#include "plugins/tokenizer/bpe/error.hpp"
#include "plugins/tokenizer/bpe/unicode.hpp"
#include "plugins/tokenizer/bpe/utf8.hpp"

namespace dovetail::bpe::test {
namespace {

std::vector<std::string> cut(const PreTokenizer& p, std::string_view text) {
  static CutScratch scratch;
  Alignment alignment;
  const std::string_view cut_text = p.cut(text, &scratch, &alignment);
  std::vector<std::string> pieces;
  for (const Piece& piece : scratch.pieces) {
    pieces.emplace_back(cut_text.substr(piece.begin, piece.end - piece.begin));
  }
  return pieces;
}

uint32_t n_code_points(std::string_view text) {
  uint32_t n = 0;
  for (size_t pos = 0; pos < text.size(); pos += utf8_len(static_cast<uint8_t>(text[pos]))) ++n;
  return n;
}

PreTokenizer split_by(std::string_view pattern, PreTokenizer::Engine engine) {
  PreTokenizer p;
  p.add_split_regex(pattern, SplitBehavior::kIsolated, false, engine);
  return p;
}

constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen35 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kO200k =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kTekken =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kDeepSeek3 =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

void expect_family(const char* family, const PreTokenizer& p) {
  const auto lines = vectors("pretok-fuzz.jsonl");
  ASSERT_EQ(lines.size(), 1500u);
  for (const Node& line : lines) {
    const std::string& text = line.find("text")->as_string();
    std::vector<uint32_t> lens;
    for (const std::string& piece : cut(p, text)) lens.push_back(n_code_points(piece));
    EXPECT_EQ(lens, ids_of(*line.find(family))) << family << ": " << text;
  }
}

TEST(PretokFuzz, Qwen2ByHandAgreesWithTheReference) {
  expect_family("qwen2", split_by(kQwen2Pattern, PreTokenizer::Engine::kAuto));
}
TEST(PretokFuzz, Qwen2ByRegexAgreesWithTheReference) {
  expect_family("qwen2", split_by(kQwen2Pattern, PreTokenizer::Engine::kRegex));
}
TEST(PretokFuzz, Gpt2AgreesWithTheReference) {
  expect_family("gpt2", split_by(kGpt2Pattern, PreTokenizer::Engine::kAuto));
}
TEST(PretokFuzz, Llama3AgreesWithTheReference) {
  expect_family("llama3", split_by(kLlama3, PreTokenizer::Engine::kAuto));
}
TEST(PretokFuzz, Qwen35AgreesWithTheReference) {
  expect_family("qwen35", split_by(kQwen35, PreTokenizer::Engine::kAuto));
}
TEST(PretokFuzz, O200kAgreesWithTheReference) {
  expect_family("o200k", split_by(kO200k, PreTokenizer::Engine::kAuto));
}
TEST(PretokFuzz, TekkenAgreesWithTheReference) {
  expect_family("tekken", split_by(kTekken, PreTokenizer::Engine::kAuto));
}
TEST(PretokFuzz, DeepSeek3AgreesWithTheReference) {
  expect_family("ds3", split_by(kDeepSeek3, PreTokenizer::Engine::kAuto));
}

TEST(Qwen2Scanner, AgreesWithTheRegexOnEveryCodePoint) {
  const PreTokenizer by_hand = split_by(kQwen2Pattern, PreTokenizer::Engine::kAuto);
  const PreTokenizer by_regex = split_by(kQwen2Pattern, PreTokenizer::Engine::kRegex);
  std::string text;
  for (uint32_t c = 0; c < kCodePointEnd; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    text = "a '";
    append_utf8(c, &text);
    append_utf8(c, &text);
    text += "b \n";
    append_utf8(c, &text);
    text += "1";
    ASSERT_EQ(cut(by_hand, text), cut(by_regex, text)) << std::hex << c;
  }
}

// components.jsonl holds every type of the reference; these are the types that the plugin claims.
bool is_claimed(const Node& config) {
  const std::string& type = config.find("type")->as_string();
  if (type == "Sequence") {
    for (const Node& step : config.find("pretokenizers")->items()) {
      if (!is_claimed(step)) return false;
    }
    return true;
  }
  return std::set<std::string>{"Split", "Digits", "ByteLevel"}.contains(type);
}

TEST(Components, EveryClaimedPreTokenizerAgreesWithTheReference) {
  int n_groups = 0, n_cases = 0, n_refused = 0;
  for (const Node& group : vectors("components.jsonl")) {
    if (group.find("kind")->as_string() != "pre_tokenizer") continue;
    const Node& config = *group.find("config");
    if (!is_claimed(config)) {
      EXPECT_THROW((void)PreTokenizer::from_json(view(config), "pre_tokenizer"), Error);
      ++n_refused;
      continue;
    }
    ++n_groups;
    const PreTokenizer p = PreTokenizer::from_json(view(config), "pre_tokenizer");
    for (const Node& c : group.find("cases")->items()) {
      ++n_cases;
      std::vector<std::string> expected, got = cut(p, c.find("in")->as_string());
      for (const Node& piece : c.find("out")->items()) expected.push_back(piece.as_string());
      if (p.byte_level()) {  // the reference writes byte symbols
        for (std::string& piece : got) {
          std::string symbols;
          append_symbols(piece, &symbols);
          piece = symbols;
        }
      }
      EXPECT_EQ(got, expected) << group.find("name")->as_string() << ": "
                               << c.find("in")->as_string();
    }
  }
  EXPECT_EQ(n_groups, 36);
  EXPECT_EQ(n_cases, 309);
  EXPECT_EQ(n_refused, 20);
}

TEST(PreTokenizer, RefusesUnknownTypesByTheirPath) {
  const Node config = parse(R"({"type": "Sequence", "pretokenizers": [{"type": "Whitespace"}]})");
  try {
    (void)PreTokenizer::from_json(view(config), "pre_tokenizer");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), Error::Kind::kUnsupported);
    EXPECT_EQ(
        std::string(e.what()),
        "pre_tokenizer.pretokenizers[0].type is \"Whitespace\", which is not supported (supported: "
        "Sequence, Split, Digits, ByteLevel)");
  }
}

TEST(PreTokenizer, MapsPrefixSpacesBackToTheText) {
  PreTokenizer p;
  p.add_digits(false);
  p.set_byte_level(true, false);
  CutScratch scratch;
  Alignment alignment;
  EXPECT_EQ(p.cut("ab12", &scratch, &alignment), " ab 12");
  ASSERT_EQ(scratch.pieces.size(), 2u);
  EXPECT_EQ(alignment.to_original(scratch.pieces[0].begin), 0u);
  EXPECT_EQ(alignment.to_original(scratch.pieces[0].end), 2u);
  EXPECT_EQ(alignment.to_original(scratch.pieces[1].begin), 2u);
  EXPECT_EQ(alignment.to_original(scratch.pieces[1].end), 4u);
}

}  // namespace
}  // namespace dovetail::bpe::test
