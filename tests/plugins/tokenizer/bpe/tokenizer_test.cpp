// The whole pipeline: literal ranges, spans, refusals, identity, threads.
#include "plugins/tokenizer/bpe/tokenizer.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <thread>

#include "json_support.hpp"
#include "plugins/tokenizer/bpe/error.hpp"
#include "plugins/tokenizer/bpe/unicode.hpp"
#include "plugins/tokenizer/bpe/unicode_forms.hpp"
#include "plugins/tokenizer/bpe/utf8.hpp"

namespace dovetail::bpe::test {
namespace {

using Ids = std::vector<uint32_t>;

// ---- literal ranges

TEST(LiteralRanges, HoldNoAddedTokensWhileTheSplitSeesAcross) {
  const std::string before = "<|im_start|>user\n", data = "say <|im_end|> and <think>",
                    after = "<|im_end|>\n";
  const std::string text = before + data + after;
  const ByteRange literal[] = {{before.size(), before.size() + data.size()}};
  const Ids ids = encode(qwen3(), text, {.literal = literal});
  EXPECT_EQ(ids.front(), 151644u);
  EXPECT_EQ(std::count_if(ids.begin(), ids.end(), [](uint32_t id) { return id >= 151643; }), 2);
  EXPECT_EQ(ids[ids.size() - 2], 151645u);
  EXPECT_EQ(qwen3().decoder().decode(ids, false), text);
  // Where data holds no token, a range changes nothing: words join across its border.
  const ByteRange half[] = {{2, 7}};
  EXPECT_EQ(encode(qwen3(), "hello world", {.literal = half}), encode(qwen3(), "hello world"));
  const ByteRange mark[] = {{1, 3}};
  EXPECT_EQ(encode(qwen3(), "e\u0301", {.literal = mark}), Ids{963});
}

TEST(LiteralRanges, ATokenThatStraddlesABorderIsText) {
  const std::string text = "<|im_end|>";
  for (uint64_t border = 1; border < text.size(); ++border) {
    const ByteRange tail[] = {{border, text.size()}};
    EXPECT_EQ(encode(qwen3(), text, {.literal = tail}), (Ids{27, 91, 318, 6213, 91, 29}));
    const ByteRange head[] = {{0, border}};
    EXPECT_EQ(encode(qwen3(), text, {.literal = head}), (Ids{27, 91, 318, 6213, 91, 29}));
  }
  const ByteRange beside[] = {{0, 1}, {11, 12}};
  EXPECT_EQ(encode(qwen3(), "a<|im_end|>b", {.literal = beside}), (Ids{64, 151645, 65}));
  const ByteRange empty[] = {{5, 5}};
  EXPECT_EQ(encode(qwen3(), "a<|im_end|>b", {.literal = empty}), (Ids{64, 151645, 65}));
}

TEST(LiteralRanges, CountBytesOfTheTextAsItWasGiven) {
  const std::string text = "\xFF\xFF<|im_end|>\xFF<|im_end|>";  // broken bytes grow when repaired
  const ByteRange first[] = {{2, 12}};
  const Ids ids = encode(qwen3(), text, {.literal = first});
  EXPECT_EQ(std::count(ids.begin(), ids.end(), 151645u), 1);
  EXPECT_EQ(ids.back(), 151645u);
}

TEST(LiteralRanges, MayLeaveOnlySpecialTokensLiteral) {
  EXPECT_EQ(encode(qwen3(), "<think><|im_end|>", {.matching = AddedMatching::kNotSpecial}),
            (Ids{151667, 27, 91, 318, 6213, 91, 29}));
  EXPECT_EQ(encode(qwen3(), "<think>", {.matching = AddedMatching::kNone}),
            encode(qwen3(), "<think>", {.literal = std::vector<ByteRange>{{0, 7}}}));
}

TEST(LiteralRanges, OutOfOrderOrBeyondTheTextAreRefused) {
  const ByteRange bad[][2] = {{{0, 4}, {3, 5}}, {{2, 1}, {3, 4}}, {{0, 1}, {2, 99}}};
  for (const auto& ranges : bad)
    EXPECT_THROW((void)encode(qwen3(), "some text", {.literal = ranges}), Error);
}

// ---- spans

TEST(Spans, TileTheTextAndNameTheBytesOfEachToken) {
  std::vector<Token> tokens;
  const std::string text = "Hello world<|im_end|> 😊 x";
  qwen3().encode(text, {}, &tokens);
  uint64_t end = 0;
  for (const Token& t : tokens) {
    EXPECT_EQ(t.begin, end);
    end = t.end;
    EXPECT_EQ(text.substr(t.begin, t.end - t.begin), qwen3().decoder().piece(t.id));
    EXPECT_EQ(t.flags, t.id == 151645 ? kTokenAdded | kTokenSpecial : 0);
  }
  EXPECT_EQ(end, text.size());
}

TEST(Spans, ComeBackThroughNormalizationAndRepair) {
  std::vector<Token> tokens;
  const std::string text = "\xFF cafe\u0301 e\u0301<|im_end|>ok";
  qwen3().encode(text, {}, &tokens);
  uint64_t end = 0;
  for (const Token& t : tokens) {
    EXPECT_EQ(t.begin, end);
    end = t.end;
  }
  EXPECT_EQ(end, text.size());
  ASSERT_GE(tokens.size(), 3u);
  EXPECT_EQ(text.substr(tokens[tokens.size() - 2].begin), "<|im_end|>ok");
  EXPECT_EQ(text.substr(tokens[tokens.size() - 3].begin, 4), " e\u0301");
}

TEST(Spans, TileRandomTextOfAnyKind) {
  std::mt19937 random(1);
  const std::string parts[] = {"a",    " ",        "é",  "e\u0301",    "\u0323",
                               "\xFF", "\xE4\xBD", "中", "<|im_end|>", "<think>",
                               "\n",   "12",       "😊",  "'s"};
  for (int i = 0; i < 3000; ++i) {
    std::string text;
    for (int k = 0; k < 12; ++k) text += parts[random() % std::size(parts)];
    std::vector<Token> tokens;
    qwen3().encode(text, {}, &tokens);
    uint64_t end = 0;
    for (const Token& t : tokens) {
      ASSERT_EQ(t.begin, end) << text;
      ASSERT_LE(t.begin, t.end);
      end = t.end;
    }
    ASSERT_EQ(end, text.size());
  }
}

// ---- broken UTF-8

TEST(BrokenUtf8, IsReplacedOrRefused) {
  const std::pair<std::string, std::string> cases[] = {
      {"a\xF0\x9F", "a\uFFFD"},
      {"\xE4\xBD\x62", "\uFFFDb"},
      {"\xC0\x80", "\uFFFD\uFFFD"},
      {"\xED\xA0\x80", "\uFFFD\uFFFD\uFFFD"},
      {"\xF4\x90\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD"},
      {"\x80\x80\x80", "\uFFFD\uFFFD\uFFFD"},
  };
  for (const auto& [broken, repaired] : cases) {
    EXPECT_EQ(encode(qwen3(), broken), encode(qwen3(), repaired));
    EXPECT_THROW((void)encode(qwen3(), broken, {.strict_utf8 = true}), Error);
  }
  EXPECT_EQ(encode(qwen3(), "fine", {.strict_utf8 = true}), encode(qwen3(), "fine"));
}

TEST(RoundTrip, DecodingGivesTheNormalizedTextForAnyUnicode) {
  std::mt19937 random(3);
  for (int i = 0; i < 2000; ++i) {
    std::string text;
    for (int k = 0; k < 24; ++k) {
      const uint32_t c = random() % (k % 3 ? 0x3000 : kCodePointEnd);
      if (c < 0xD800 || c >= 0xE000) append_utf8(c, &text);
    }
    Layer layer;
    const std::string& normalized = nfc(text, &layer) ? layer.text : text;
    ASSERT_EQ(qwen3().decoder().decode(encode(qwen3(), text), false), normalized);
  }
}

// ---- loading, identity, threads

void expect_refused(const std::string& json, Error::Kind kind, const char* part) {
  const Node root = parse(json);
  try {
    const Tokenizer t(view(root));
    FAIL() << json;
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
  }
}

const std::string kModel =
    R"("model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]})";

TEST(Loading, RefusesUnknownTypesAndVersionsByPath) {
  using enum Error::Kind;
  expect_refused("[]", kFormat, "expected a map");
  expect_refused("{" + kModel + "}", kFormat, "version is null or absent");
  expect_refused(R"({"version": "2.0", )" + kModel + "}", kFormat,
                 "version is \"2.0\", expected \"1.0\"");
  const std::string head = R"({"version": "1.0", )" + kModel + ", ";
  expect_refused(
      head +
          R"("normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Magic"}]}})",
      kUnsupported, "normalizer.normalizers[1].type is \"Magic\"");
  expect_refused(head + R"("decoder": {"type": "Magic"}})", kUnsupported,
                 "decoder.type is \"Magic\"");
  expect_refused(head + R"("post_processor": {"type": "Magic"}})", kUnsupported,
                 "post_processor.type is \"Magic\"");
  expect_refused(head + R"("pre_tokenizer": {"type": "Magic"}})", kUnsupported,
                 "pre_tokenizer.type is \"Magic\"");
  expect_refused(head + R"("added_tokens": [{"id": 3}]})", kFormat,
                 "added_tokens[0].content is null or absent");
  expect_refused(R"({"version": "1.0"})", kFormat, "model is null or absent");
}

TEST(Loading, WarnsWhereAnAddedIdIsNotTheReferences) {
  const Node root =
      parse(R"({"version": "1.0", )" + kModel +
            R"(, "added_tokens": [{"id": 9, "content": "ab"}, {"id": 7, "content": "<x>"}]})");
  const Tokenizer t(view(root));
  ASSERT_EQ(t.added_tokens().warnings().size(), 2u);
  EXPECT_EQ(encode(t, "ab<x>"), (Ids{2, 3}));
}

TEST(Loading, FindsTokensByTheirText) {
  EXPECT_EQ(qwen3().find("<|im_end|>"), 151645u);
  EXPECT_EQ(qwen3().find(" world"), 1879u);
  EXPECT_EQ(qwen3().find("\n"), 198u);
  EXPECT_EQ(qwen3().find("no such token"), kNoId);
}

TEST(Identity, FollowsMeaningAndNotSpelling) {
  const auto identity = [](const std::string& json) {
    const Node root = parse(json);
    return Tokenizer(view(root)).identity();
  };
  const std::string tail = R"(, "merges": ["a b"]}})";
  const auto base = identity(
      R"({"version": "1.0", "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2})" + tail);
  EXPECT_EQ(
      base,
      identity(
          R"({"model": {"vocab": {"ab": 2, "b": 1, "a": 0}, "merges": [["a", "b"]], "type": "BPE"}, "normalizer": null, "decoder": {"type": "ByteLevel"}, "version": "1.0"})"));
  EXPECT_NE(
      base,
      identity(R"({"version": "1.0", "model": {"type": "BPE", "vocab": {"a": 1, "b": 0, "ab": 2})" +
               tail));
  EXPECT_NE(
      base,
      identity(
          R"({"version": "1.0", "normalizer": {"type": "NFC"}, "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2})" +
          tail));
  EXPECT_NE(
      base,
      identity(
          R"({"version": "1.0", "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": []}})"));
}

TEST(Threads, ManyEncodeAtOnce) {
  const auto lines = vectors("qwen3.jsonl");
  std::vector<int> n_wrong(6, 0);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < n_wrong.size(); ++i) {
    threads.emplace_back([&, i] {
      for (const Node& line : lines)
        n_wrong[i] += encode(qwen3(), line.find("text")->as_string()) != ids_of(*line.find("ids"));
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(n_wrong, std::vector<int>(6, 0));
}

}  // namespace
}  // namespace dovetail::bpe::test
