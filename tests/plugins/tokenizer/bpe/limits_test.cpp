// A tokenizer.json that asks for too much, or for what cannot be: refused when it is loaded, or at the first text that
// it would blow up, in little time and memory.
#include <gtest/gtest.h>

#include "json_support.hpp"
#include "plugins/tokenizer/bpe/error.hpp"

namespace dovetail::bpe::test {
namespace {

using Ids = std::vector<uint32_t>;

const std::string kModel =
    R"("model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]})";

std::unique_ptr<Tokenizer> open(const std::string& more, const std::string& model = kModel) {
  const Node root = parse(R"({"version": "1.0", )" + model + more + "}");
  return std::make_unique<Tokenizer>(view(root));
}

// "[step, step, ...]"
std::string list_of(const std::string& step, int n) {
  std::string out = "[" + step;
  for (int i = 1; i < n; ++i) out += "," + step;
  return out + "]";
}

template <class Fn>
void expect_refused(Fn&& fn, Error::Kind kind, const std::string& part) {
  try {
    fn();
    FAIL() << "expected: " << part;
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
    EXPECT_LT(std::string(e.what()).size(), 600u);
  }
}
void expect_file_refused(const std::string& more, Error::Kind kind, const std::string& part) {
  expect_refused([&] { (void)open(more); }, kind, part);
}

TEST(Limits, StepsThatEachDoubleATextAreStopped) {
  const std::string twice = R"({"type": "Replace", "pattern": {"String": "a"}, "content": "aa"})";
  const std::string by_regex =
      R"({"type": "Replace", "pattern": {"Regex": ""}, "content": "aaaaaaaa"})";
  const std::string front =
      R"({"type": "Prepend", "prepend": ")" + std::string(1 << 20, 'a') + "\"}";
  for (const std::string& step : {twice, by_regex, front}) {
    const auto t =
        open(R"(, "normalizer": {"type": "Sequence", "normalizers": )" + list_of(step, 60) + "}");
    expect_refused([&] { (void)encode(*t, "aaaa"); }, Error::Kind::kInvalid,
                   "makes far more of the text");
  }
  const auto bytes = open(R"(, "pre_tokenizer": {"type": "Sequence", "pretokenizers": )" +
                          list_of(R"({"type": "ByteLevel", "use_regex": false})", 60) + "}");
  expect_refused([&] { (void)encode(*bytes, "\u00FC"); }, Error::Kind::kInvalid,
                 "makes far more of the text");
  // An added token is normalized when the file is loaded.
  expect_file_refused(R"(, "added_tokens": [{"id": 3, "content": "aaaa", "normalized": true}],
      "normalizer": {"type": "Sequence", "normalizers": )" +
                          list_of(twice, 60) + "}",
                      Error::Kind::kInvalid, "makes far more of the text");
}

TEST(Limits, WhatGrowsATextForGoodReasonIsTaken) {
  const auto t = open(R"(, "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFKD"},
      {"type": "BertNormalizer"}, {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"},
      {"type": "Replace", "pattern": {"Regex": "[\u0627]"}, "content": "ab"}, {"type": "Lowercase"}]})");
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += "\uFDFA \u4E2D";  // elevenfold, and spaced out
  EXPECT_EQ(encode(*t, text).size(), 100'000u);               // one U+0627 each
}

TEST(Limits, StepsAreCounted) {
  using enum Error::Kind;
  const auto of = [](const std::string& key, const std::string& list, const std::string& step) {
    return ", \"" + key + R"(": {"type": "Sequence", ")" + list + "\": " + list_of(step, 100'000) +
           "}";
  };
  expect_file_refused(of("normalizer", "normalizers", R"({"type": "Lowercase"})"), kUnsupported,
                      "normalizer.normalizers[257] is step 258, at most 256 are supported");
  expect_file_refused(of("pre_tokenizer", "pretokenizers", R"({"type": "Whitespace"})"),
                      kUnsupported, "at most 256 are supported");
  expect_file_refused(of("decoder", "decoders", R"({"type": "Strip", "content": "a"})"),
                      kUnsupported, "at most 256 are supported");
}

TEST(Limits, ADecoderDoesNotMakeAMillionBytesOfOne) {
  const std::string wide = R"({"type": "Replace", "pattern": {"String": "a"}, "content": ")" +
                           std::string(1000, 'a') + "\"}";
  const auto of = [&](int n) {
    return R"(, "decoder": {"type": "Sequence", "decoders": )" + list_of(wide, n) + "}";
  };
  EXPECT_EQ(open(of(2))->decoder().decode(Ids{0}, false).size(), 1'000'000u);
  for (const int n : {3, 8, 200})  // beyond 64 bits too
    expect_file_refused(of(n), Error::Kind::kUnsupported, "decoder: a token may become a text of");
}

TEST(Limits, ADecoderReplacesInOnePass) {
  std::string token(1 << 20, '|');
  const auto t = open(R"(, "decoder": {"type": "CTC"})", R"("model": {"type": "BPE", "vocab": {")" +
                                                             token + R"(": 0}, "merges": []})");
  EXPECT_EQ(t->decoder().decode(Ids{0}, false), std::string(1 << 20, ' '));
}

TEST(Limits, AMapOfDamagedTextIsRefused) {
  // A trie of one key, "a", and its text.
  const auto map_of = [](const std::string& text, char begin) {
    static constexpr std::string_view kDigits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::vector<uint32_t> units(256, 0);
    units[0] = 0;
    units['a'] = 1u << 10 | 1u << 8 | 'a';
    units['a' ^ 1] = 0x80000000u | static_cast<uint8_t>(begin);
    std::string blob;
    const auto put = [&](uint32_t v) {
      for (int i = 0; i < 4; ++i) blob += static_cast<char>(v >> 8 * i);
    };
    put(256 * 4);
    for (const uint32_t u : units) put(u);
    blob += text + '\0';
    std::string out;
    uint32_t bits = 0;
    int n_bits = 0;
    for (const char c : blob) {
      bits = bits << 8 | static_cast<uint8_t>(c);
      for (n_bits += 8; n_bits >= 6; n_bits -= 6) out += kDigits[bits >> (n_bits - 6) & 63];
    }
    if (n_bits > 0) out += kDigits[bits << (6 - n_bits) & 63];
    return R"(, "normalizer": {"type": "Precompiled", "precompiled_charsmap": ")" + out + "\"}";
  };
  EXPECT_EQ(encode(*open(map_of("b", 0)), "a"), Ids{1});
  EXPECT_EQ(encode(*open(map_of("\u00FC"
                                "b",
                                2)),
                   "a"),
            Ids{1});
  expect_file_refused(
      map_of("\xF0\x9F", 0), Error::Kind::kFormat,
      "normalizer.precompiled_charsmap is damaged: its texts are not valid UTF-8 at byte 0");
  EXPECT_EQ(encode(*open(map_of("\u00FC"
                                "b",
                                1)),
                   "a"),
            Ids{0})
      << "the middle of a character is no text";
}

TEST(Limits, AddedIdsAreTheTokenizers) {
  const auto of = [](const std::string& id) {
    return R"(, "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "x", "type_id": 0}},
        {"Sequence": {"id": "A", "type_id": 0}}], "special_tokens": {"x": {"id": "x", "ids": [)" +
           id + R"(], "tokens": ["x"]}}})";
  };
  EXPECT_EQ(encode(*open(of("2")), "a", {.add_special = true}), (Ids{2, 0}));
  expect_file_refused(of("3"), Error::Kind::kFormat,
                      "post_processor: id 3 is put about a text, expected ids below 3");
  expect_file_refused(of("9999999"), Error::Kind::kFormat, "expected ids below 3");
  expect_file_refused(
      R"(, "post_processor": {"type": "BertProcessing", "cls": ["x", 1], "sep": ["y", 77]})",
      Error::Kind::kFormat, "post_processor: id 77");
}

TEST(Limits, LongNamesAreCutInMessages) {
  const std::string name(1 << 20, 'n');
  expect_refused(
      [&] {
        (void)open("",
                   R"("model": {"type": "BPE", "merges": [], "vocab": {")" + name + R"(": -1}})");
      },
      Error::Kind::kFormat, "nnn...\" has id -1");
  expect_file_refused(R"(, "decoder": {"type": ")" + name + "\"}", Error::Kind::kUnsupported,
                      "nnn...\"");
}

// A merge always leaves one symbol less, so no list of merges can run for ever.
TEST(Limits, MergesThatLeadNowhereEnd) {
  const std::string head =
      R"("model": {"type": "BPE", "vocab": {"a": 0, "##": 1, "b": 2, "": 3, "ba": 4}, )";
  const auto around = open(
      "",
      head +
          R"("continuing_subword_prefix": "##", "merges": [["a", "##"], ["##", "##"], ["b", "##"]]})");
  (void)encode(*around, "aaaabbbb");
  const auto empty = open("", head + R"("merges": [["", ""], ["", "a"], ["a", ""], ["b", "a"]]})");
  EXPECT_EQ(encode(*empty, "aba"), (Ids{0, 4}));
  const auto twice = open("", head + R"("merges": [["b", "a"], ["b", "a"], ["b", "a"]]})");
  EXPECT_EQ(encode(*twice, "baba"), (Ids{4, 4}));
}

}  // namespace
}  // namespace dovetail::bpe::test
