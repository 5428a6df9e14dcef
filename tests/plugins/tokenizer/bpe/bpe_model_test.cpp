// Merging: both methods agree, work stays linear, and small models do what the reference does.
#include "plugins/tokenizer/bpe/bpe_model.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "json_support.hpp"
#include "plugins/tokenizer/bpe/error.hpp"

namespace dovetail::bpe::test {
namespace {

using Ids = std::vector<uint32_t>;

Ids merge(const BpeModel& model, std::string_view piece, Merger merger, ModelScratch* scratch) {
  std::vector<Token> tokens;
  model.encode_uncached(piece, 0, merger, scratch, &tokens);
  Ids ids;
  uint64_t end = 0;
  for (const Token& t : tokens) {
    EXPECT_EQ(t.begin, end);
    end = t.end;
    ids.push_back(t.id);
  }
  EXPECT_EQ(end, piece.size());
  return ids;
}

TEST(BpeModel, QuadraticAndHeapMergersAgreeOnRandomStrings) {
  const BpeModel& model = qwen3_model();
  const Decoder& decoder = qwen3().decoder();
  ModelScratch scratch;
  std::mt19937 random(20261130);
  const char* alphabets[] = {"a",     "ab", "ab ",   "aeilnrst ",
                             " \n\t", "01", "=-_*#", "\xE4\xB8\xAD\xE5\x9B\xBD"};
  for (int i = 0; i < 4000; ++i) {
    std::string piece;
    if (i % 2 == 0) {
      const std::string alphabet = alphabets[random() % std::size(alphabets)];
      const size_t len = 2 + random() % 120;
      while (piece.size() < len) piece += alphabet[random() % alphabet.size()];
    } else {
      for (int k = 0; k < 8; ++k) piece += decoder.piece(static_cast<uint32_t>(random() % 151643));
    }
    ASSERT_EQ(merge(model, piece, Merger::kQuadratic, &scratch),
              merge(model, piece, Merger::kHeap, &scratch))
        << piece;
  }
}

// The plain rule, spelt out: lowest rank, leftmost, until none is left.
Ids merge_by_the_rule(const std::vector<std::array<uint32_t, 3>>& merges, Ids ids) {
  for (;;) {
    size_t best = merges.size(), at = 0;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      for (size_t rank = 0; rank < best; ++rank) {
        if (merges[rank][0] == ids[i] && merges[rank][1] == ids[i + 1]) best = rank, at = i;
      }
    }
    if (best == merges.size()) return ids;
    ids[at] = merges[best][2];
    ids.erase(ids.begin() + static_cast<ptrdiff_t>(at) + 1);
  }
}

TEST(BpeModel, BothMergersFollowThePlainRuleOnARandomModel) {
  // Merges over a, b, c in random order, so that ranks do not grow with ids and ways overlap.
  std::mt19937 random(7);
  std::vector<std::string> vocab{"a", "b", "c"};
  std::vector<std::array<uint32_t, 3>> merges;
  while (merges.size() < 40) {
    const auto left = static_cast<uint32_t>(random() % vocab.size());
    const auto right = static_cast<uint32_t>(random() % vocab.size());
    const std::string joined = vocab[left] + vocab[right];
    if (joined.size() > 6) continue;
    bool taken = false;
    for (const auto& m : merges) taken |= m[0] == left && m[1] == right;
    if (taken) continue;
    auto it = std::find(vocab.begin(), vocab.end(), joined);
    if (it == vocab.end()) it = vocab.insert(vocab.end(), joined);
    merges.push_back({left, right, static_cast<uint32_t>(it - vocab.begin())});
  }
  std::shuffle(merges.begin(), merges.end(), random);
  std::string json = R"({"type": "BPE", "vocab": {)";
  for (size_t i = 0; i < vocab.size(); ++i)
    json += (i ? ",\"" : "\"") + vocab[i] + "\":" + std::to_string(i);
  json += "}, \"merges\": [";
  for (size_t i = 0; i < merges.size(); ++i) {
    json += (i ? ",\"" : "\"") + vocab[merges[i][0]] + " " + vocab[merges[i][1]] + "\"";
  }
  const Node root = parse(json + "]}");
  const BpeModel model(view(root), "model", false);
  ModelScratch scratch;
  for (int i = 0; i < 3000; ++i) {
    std::string piece;
    Ids symbols;
    for (size_t n = 1 + random() % 60; n > 0; --n) {
      symbols.push_back(static_cast<uint32_t>(random() % 3));
      piece += static_cast<char>('a' + symbols.back());
    }
    const Ids expected = merge_by_the_rule(merges, symbols);
    ASSERT_EQ(merge(model, piece, Merger::kQuadratic, &scratch), expected) << piece;
    ASSERT_EQ(merge(model, piece, Merger::kHeap, &scratch), expected) << piece;
  }
}

Work work_of(const std::string& unit, size_t n_bytes) {
  std::string text;
  while (text.size() < n_bytes) text += unit;
  ModelScratch scratch;
  CutScratch cut;
  LayerStack layers;
  std::vector<Token> tokens;
  const MappedText cut_text = qwen3().pre_tokenizer().cut({text}, &layers, &cut);
  qwen3().model().encode(cut_text.text, cut.pieces, &scratch, &tokens);
  EXPECT_EQ(tokens.back().end, text.size());
  return scratch.work;
}

TEST(BpeModel, WorkStaysNearLinearOnHostileInput) {
  constexpr size_t kBytes = size_t{1} << 19;
  for (const std::string unit : {"a", " ", "\n", "😀", "ab", "aGVsbG8gd29ybGQ", "=", "\xCC\x81"}) {
    const Work half = work_of(unit, kBytes / 2), whole = work_of(unit, kBytes);
    EXPECT_LE(whole.pair_lookups, 4 * kBytes) << unit;
    EXPECT_LE(whole.steps, 60 * kBytes) << unit;          // three heap entries a symbol, 20 levels
    EXPECT_LE(whole.steps, half.steps * 12 / 5) << unit;  // n log n: 2.1 times; quadratic: 4
  }
}

TEST(BpeModel, RepeatedWordsComeFromTheCache) {
  ModelScratch scratch;
  std::vector<Token> tokens;
  const std::string text = " international";
  const Piece whole[] = {{0, static_cast<uint32_t>(text.size())}};
  for (int i = 0; i < 10; ++i) qwen3().model().encode(text, whole, &scratch, &tokens);
  EXPECT_EQ(scratch.work.pieces, 10u);
  EXPECT_EQ(scratch.work.cache_hits, 9u);
}

void expect_refused(const std::string& model_json, Error::Kind kind, const char* part) {
  const Node root = parse(model_json);
  try {
    (void)Model::from_json(view(root), "model", false);
    FAIL() << model_json;
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
  }
}

TEST(BpeModel, RefusesDamagedAndUnsupportedModelsByPath) {
  using enum Error::Kind;
  expect_refused(R"({"type": "Magic", "vocab": []})", kUnsupported, "model.type is \"Magic\"");
  expect_refused(R"({"type": "BPE", "dropout": 0.1, "vocab": {}, "merges": []})", kUnsupported,
                 "model.dropout");
  expect_refused(R"({"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]})", kFormat,
                 "model.merges[0]: token \"b\"");
  expect_refused(R"({"type": "BPE", "vocab": {"a": 0}, "merges": ["a a"]})", kFormat,
                 "token \"aa\"");
  expect_refused(R"({"type": "BPE", "vocab": {"a": 0}, "merges": ["a a a"]})", kFormat,
                 "two tokens");
  expect_refused(R"({"type": "BPE", "vocab": {"a": 0}, "merges": [["a"]]})", kFormat,
                 "model.merges[0]");
  expect_refused(R"({"type": "BPE", "vocab": {"a": 0, "b": 0}, "merges": []})", kFormat,
                 "id 0 belongs to");
  expect_refused(R"({"type": "BPE", "vocab": {"a": -1}, "merges": []})", kFormat, "has id -1");
  expect_refused(R"({"type": "BPE", "vocab": {"a": 99999999}, "merges": []})", kFormat,
                 "has id 99999999");
  expect_refused(R"({"type": "BPE", "vocab": {"a": "0"}, "merges": []})", kFormat,
                 "\"a\" is a string");
  expect_refused(R"({"type": "BPE", "vocab": {"a": 0}, "merges": [], "unk_token": "u"})", kFormat,
                 "model.unk_token");
  expect_refused(R"({"type": "BPE", "vocab": {"a": 0}})", kFormat, "model.merges");
}

}  // namespace
}  // namespace dovetail::bpe::test
