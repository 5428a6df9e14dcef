// The models beside byte-level BPE: what they refuse, what literal text may not become, and that
// cutting at space marks changes nothing. The vectors of components.jsonl cover the rest.
#include <gtest/gtest.h>

#include <random>

#include "json_support.hpp"
#include "plugins/tokenizer/bpe/error.hpp"
#include "plugins/tokenizer/bpe/unigram_model.hpp"
#include "plugins/tokenizer/bpe/utf8.hpp"

namespace dovetail::bpe::test {
namespace {

using Ids = std::vector<uint32_t>;

std::unique_ptr<Tokenizer> open(const std::string& model, const std::string& more = "") {
  const Node root = parse(R"({"version": "1.0", "model": )" + model + more + "}");
  return std::make_unique<Tokenizer>(view(root));
}

void expect_refused(const std::string& model, const char* part) {
  try {
    (void)open(model);
    FAIL() << model;
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), Error::Kind::kFormat);
    EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
  }
}

TEST(Models, AreToldByTheirShapeInOldFiles) {
  EXPECT_EQ(encode(*open(R"({"vocab": [["<unk>", 0], ["ab", -1.5]], "unk_id": 0})"), "abc"),
            (Ids{1, 0}));
  EXPECT_EQ(
      encode(
          *open(R"({"vocab": {"[UNK]": 0, "ab": 1, "##c": 2}, "continuing_subword_prefix": "##"})"),
          "abc"),
      (Ids{1, 2}));
  EXPECT_EQ(encode(*open(R"({"vocab": {"abc": 4, "<unk>": 1}, "unk_token": "<unk>"})"), "abc"),
            Ids{4});
}

TEST(Models, RefuseDamagedSectionsByPath) {
  expect_refused(R"({"type": "Unigram", "vocab": []})", "model.vocab is empty");
  expect_refused(R"({"type": "Unigram", "vocab": [["a"]]})", "model.vocab[0]");
  expect_refused(R"({"type": "Unigram", "vocab": [["a", "b"]]})", "model.vocab[0][1]");
  expect_refused(R"({"type": "Unigram", "unk_id": 1, "vocab": [["a", -1]]})", "model.unk_id is 1");
  expect_refused(R"({"type": "WordPiece", "vocab": []})", "model.vocab is a list");
  expect_refused(R"({"type": "WordLevel", "vocab": {"a": 0, "b": 0}})", "id 0 belongs to");
}

TEST(Models, RefuseTextThatNeedsAMissingUnknownToken) {
  for (const char* model : {R"({"type": "Unigram", "vocab": [["a", -1]]})",
                            R"({"type": "WordPiece", "vocab": {"a": 0}, "unk_token": "[UNK]"})",
                            R"({"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "[UNK]"})"}) {
    const auto t = open(model);
    EXPECT_EQ(encode(*t, "a"), Ids{0});
    EXPECT_THROW((void)encode(*t, "b"), Error) << model;
  }
}

TEST(Models, LiteralTextNeverBecomesASpecialToken) {
  const std::string added = R"(, "added_tokens": [
    {"id": 1, "content": "<s>", "special": true, "normalized": false},
    {"id": 2, "content": "<t>", "special": false, "normalized": false}])";
  for (
      const char* model :
      {R"({"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0], ["<s>", 0], ["<t>", 0], ["s", -1]]})",
       R"({"type": "WordLevel", "unk_token": "<unk>", "vocab": {"<unk>": 0, "<s>": 1, "<t>": 2}})",
       R"({"type": "WordPiece", "unk_token": "<unk>", "vocab": {"<unk>": 0, "<s>": 1, "<t>": 2}})",
       R"({"type": "BPE", "ignore_merges": true, "unk_token": "<unk>", "merges": [],
            "vocab": {"<unk>": 0, "<s>": 1, "<t>": 2}})"}) {
    const auto t = open(model, added);
    EXPECT_EQ(encode(*t, "<s>"), Ids{1}) << model;
    EXPECT_EQ(encode(*t, "<t>"), Ids{2}) << model;
    for (const char* text : {"<s>", "<t>"}) {
      for (const uint32_t id : encode(*t, text, {.matching = AddedMatching::kNone})) {
        EXPECT_TRUE(id == 0 || id == 3) << model << text;
      }
    }
  }
}

// The best sum of scores by trying every way to cut, first by where the last token starts.
double best_score(const std::vector<std::pair<std::string, double>>& vocab,
                  const std::string& text) {
  std::vector<double> best(text.size() + 1, -1e300);
  best[0] = 0;
  for (size_t end = 1; end <= text.size(); ++end) {
    for (const auto& [token, score] : vocab) {
      if (token.size() > end || text.compare(end - token.size(), token.size(), token) != 0)
        continue;
      best[end] = std::max(best[end], best[end - token.size()] + score);
    }
  }
  return best[text.size()];
}

TEST(Unigram, FindsTheBestSumOnRandomVocabularies) {
  std::mt19937 random(3);
  for (int round = 0; round < 30; ++round) {
    std::vector<std::pair<std::string, double>> vocab{{"a", -9}, {"b", -9.5}, {"c", -10}};
    for (int i = 0; i < 30; ++i) {
      std::string token;
      for (size_t n = 2 + random() % 4; n > 0; --n) token += static_cast<char>('a' + random() % 3);
      const auto same = [&](auto& v) { return v.first == token; };
      if (std::none_of(vocab.begin(), vocab.end(), same)) {
        vocab.emplace_back(token, -0.25 * static_cast<double>(random() % 100));
      }
    }
    std::string json = R"({"type": "Unigram", "vocab": [)";
    for (const auto& [token, score] : vocab) {
      json += (json.back() == '[' ? "[\"" : ",[\"") + token + "\"," + std::to_string(score) + "]";
    }
    const auto t = open(json + "]}");
    for (int i = 0; i < 100; ++i) {
      std::string text;
      for (size_t n = 1 + random() % 40; n > 0; --n) text += static_cast<char>('a' + random() % 3);
      double sum = 0;
      std::string joined;
      for (const uint32_t id : encode(*t, text)) {
        sum += vocab[id].second;
        joined += vocab[id].first;
      }
      ASSERT_EQ(joined, text);
      ASSERT_NEAR(sum, best_score(vocab, text), 1e-9) << text;
    }
  }
}

TEST(SpaceMarks, CuttingBeforeThemChangesNoId) {
  // Tokens reach over a mark after another mark and after "x"; text is cut everywhere else.
  const std::string model =
      R"({"type": "BPE", "unk_token": "<unk>", "byte_fallback": true, "vocab": {"<unk>": 0, "▁": 1, "a": 2,
      "b": 3, "x": 4, "▁a": 5, "▁▁": 6, "x▁": 7, "ab": 8, "▁▁▁▁": 9, "x▁a": 10, "▁ab": 11},
      "merges": [["▁", "▁"], ["x", "▁"], ["a", "b"], ["▁", "a"], ["▁▁", "▁▁"], ["x▁", "a"], ["▁", "ab"]]})";
  const Node root = parse(model);
  const BpeModel bpe(view(root), "model", false);
  std::mt19937 random(4);
  const std::string parts[] = {"▁", "▁", "a", "b", "x", "ü", "z"};
  size_t n_pieces = 0;
  for (int i = 0; i < 4000; ++i) {
    std::string text;
    for (size_t n = 1 + random() % 30; n > 0; --n) text += parts[random() % std::size(parts)];
    ModelScratch scratch;
    std::vector<Token> cut, whole;
    const Piece all[] = {{0, static_cast<uint32_t>(text.size())}};
    bpe.encode(text, all, &scratch, &cut);
    n_pieces += scratch.work.pieces;
    bpe.encode_uncached(text, 0, Merger::kLinear, &scratch, &whole);
    ASSERT_EQ(cut.size(), whole.size()) << text;
    for (size_t k = 0; k < cut.size(); ++k) {
      ASSERT_EQ(cut[k].id, whole[k].id) << text;
      ASSERT_EQ(cut[k].begin, whole[k].begin) << text;
      ASSERT_EQ(cut[k].end, whole[k].end) << text;
    }
  }
  EXPECT_GT(n_pieces, 8000u);  // it did cut
}

TEST(Decoders, ALongRunOfByteTokensIsHeldBackOnlyUpToALimit) {
  std::string vocab = R"({"type": "BPE", "merges": [], "vocab": {"a": 0)";
  static constexpr char kHex[] = "0123456789ABCDEF";
  for (int b = 0; b < 256; ++b) {
    vocab += std::string(", \"<0x") + kHex[b >> 4] + kHex[b & 15] + ">\": " + std::to_string(b + 1);
  }
  const auto t = open(vocab + "}}", R"(, "decoder": {"type": "ByteFallback"})");
  std::string expected;
  Ids ids;
  for (int i = 0; i < 3001; ++i) {  // U+4F60 is E4 BD A0: the limit falls inside of one
    for (const uint32_t byte : {0xE4, 0xBD, 0xA0}) ids.push_back(byte + 1);
    expected += "\u4F60";
  }
  EXPECT_EQ(t->decoder().decode(ids, false), expected);
  DecodeStream stream(t->decoder(), false);
  std::string streamed;
  size_t largest = 0;
  for (const uint32_t id : ids) {
    const std::string step = stream.step(id);
    largest = std::max(largest, step.size());
    streamed += step;
  }
  const std::string rest = stream.flush();
  EXPECT_EQ(streamed + rest, expected);
  EXPECT_GT(streamed.size(), 0u);
  EXPECT_LE(std::max(largest, rest.size()), t->decoder().max_step_bytes());
}

TEST(Decoders, AnOrderThatWouldHoldBackTheWholeTextIsRefused) {
  try {
    (void)open(
        R"({"type": "BPE", "merges": [], "vocab": {"a": 0}})",
        R"(, "decoder": {"type": "Sequence", "decoders": [{"type": "Fuse"}, {"type": "WordPiece"}]})");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), Error::Kind::kUnsupported);
    EXPECT_TRUE(std::string(e.what()).starts_with("decoder.decoders[1]: WordPiece after Fuse"))
        << e.what();
  }
}

}  // namespace
}  // namespace dovetail::bpe::test
