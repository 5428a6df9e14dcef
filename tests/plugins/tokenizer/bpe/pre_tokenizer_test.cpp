// Splitting: every regex family against the reference's pieces, both engines, every behaviour.
#include "plugins/tokenizer/bpe/pre_tokenizer.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "json_support.hpp"
#include "plugins/tokenizer/bpe/error.hpp"
#include "plugins/tokenizer/bpe/unicode.hpp"
#include "plugins/tokenizer/bpe/utf8.hpp"

namespace dovetail::bpe::test {
namespace {

std::vector<std::string> cut(const PreTokenizer& p, std::string_view text) {
  static CutScratch scratch;
  LayerStack layers;
  const std::string_view cut_text = p.cut({text}, &layers, &scratch).text;
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

struct Family {
  const char* name;
  std::string_view pattern;
};
constexpr Family kFamilies[] = {{"qwen2", kQwen2Pattern},   {"qwen35", kQwen35Pattern},
                                {"llama3", kLlama3Pattern}, {"gpt2", kGpt2Pattern},
                                {"o200k", kO200kPattern},   {"tekken", kTekkenPattern}};

TEST(PretokFuzz, EveryScannerAgreesWithTheReference) {
  for (const Family& f : kFamilies) {
    EXPECT_NE(find_scanner(f.pattern), nullptr) << f.name;
    expect_family(f.name, split_by(f.pattern, PreTokenizer::Engine::kAuto));
  }
}
TEST(PretokFuzz, EveryPatternByRegexAgreesWithTheReference) {
  for (const Family& f : kFamilies) {
    expect_family(f.name, split_by(f.pattern, PreTokenizer::Engine::kRegex));
  }
  expect_family("ds3", split_by(kDeepSeek3, PreTokenizer::Engine::kAuto));
}

TEST(SplitScanner, EachAgreesWithItsRegexOnEveryCodePoint) {
  for (const Family& f : kFamilies) {
    const PreTokenizer by_hand = split_by(f.pattern, PreTokenizer::Engine::kAuto);
    const PreTokenizer by_regex = split_by(f.pattern, PreTokenizer::Engine::kRegex);
    std::string text;
    for (uint32_t c = 0; c < kCodePointEnd; ++c) {
      if (c >= 0xD800 && c < 0xE000) continue;
      text += "a '";
      append_utf8(c, &text);
      append_utf8(c, &text);
      text += "b \n";
      append_utf8(c, &text);
      text += "1";
      append_utf8(c, &text);
      text += "A";
      if (c % 64 != 63) continue;
      ASSERT_EQ(cut(by_hand, text), cut(by_regex, text)) << f.name << " up to " << std::hex << c;
      text.clear();
    }
  }
}

// Long random texts over alphabets that the patterns are picky about, so that runs cross the sixteen
// bytes which the scanners look at together.
TEST(SplitScanner, EachAgreesWithItsRegexOnRandomText) {
  const std::vector<std::string> parts = {"a",
                                          "b",
                                          "s",
                                          "t",
                                          "re",
                                          "ll",
                                          "A",
                                          "LL",
                                          "Zebra",
                                          "'",
                                          "'s",
                                          "'LL",
                                          "'\u017F",
                                          "\u2019",
                                          " ",
                                          "  ",
                                          "\t",
                                          "\n",
                                          "\r",
                                          "\r\n",
                                          "\u00A0",
                                          "\u3000",
                                          "0",
                                          "12",
                                          "345",
                                          "\u0663",
                                          "\u00BD",
                                          ".",
                                          ",",
                                          "!?",
                                          "/",
                                          "//",
                                          "_",
                                          "\u00E9",
                                          "\u00C9",
                                          "e\u0301",
                                          "\u0301",
                                          "\u01C5",
                                          "\u02B0",
                                          "\u00AA",
                                          "\u4E2D",
                                          "\u6587",
                                          "\u0915\u093F",
                                          "\u0E17\u0E22",
                                          "\U0001F600",
                                          "\U0001F469\u200D\U0001F4BB",
                                          "\u0000",
                                          "\u001F",
                                          "\u0085",
                                          "\uFEFF",
                                          "abcdefghijklmnopqrstuvwxyz",
                                          "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
                                          "internationalisation"};
  std::mt19937 random(20261130);
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    for (size_t n = random() % 24; n > 0; --n) text += parts[random() % parts.size()];
    for (const Family& f : kFamilies) {
      static const auto engines = [] {
        std::map<std::string_view, std::pair<PreTokenizer, PreTokenizer>> out;
        for (const Family& family : kFamilies) {
          out.emplace(family.pattern,
                      std::pair(split_by(family.pattern, PreTokenizer::Engine::kAuto),
                                split_by(family.pattern, PreTokenizer::Engine::kRegex)));
        }
        return out;
      }();
      const auto& [by_hand, by_regex] = engines.at(f.pattern);
      ASSERT_EQ(cut(by_hand, text), cut(by_regex, text)) << f.name << ": " << text;
    }
  }
}

TEST(PreTokenizer, RefusesUnknownTypesByTheirPath) {
  const Node config = parse(R"({"type": "Sequence", "pretokenizers": [{"type": "Magic"}]})");
  try {
    (void)PreTokenizer::from_json(view(config), "pre_tokenizer");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), Error::Kind::kUnsupported);
    const std::string message = e.what();
    EXPECT_TRUE(message.starts_with(
        "pre_tokenizer.pretokenizers[0].type is \"Magic\", which is not supported (supported: "))
        << message;
  }
}

TEST(PreTokenizer, MapsPrefixSpacesBackToTheText) {
  PreTokenizer p;
  p.add_digits(false);
  p.add_byte_level(true, false);
  CutScratch scratch;
  LayerStack layers;
  const MappedText text = p.cut({"ab12"}, &layers, &scratch);
  EXPECT_EQ(text.text, " ab 12");
  ASSERT_EQ(scratch.pieces.size(), 2u);
  EXPECT_EQ(text.to_original(scratch.pieces[0].begin), 0u);
  EXPECT_EQ(text.to_original(scratch.pieces[0].end), 2u);
  EXPECT_EQ(text.to_original(scratch.pieces[1].begin), 2u);
  EXPECT_EQ(text.to_original(scratch.pieces[1].end), 4u);
}

}  // namespace
}  // namespace dovetail::bpe::test
