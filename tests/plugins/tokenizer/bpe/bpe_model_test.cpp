// Merging: both methods agree, work stays linear, and small models do what the reference does.
#include "plugins/tokenizer/bpe/bpe_model.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "json_support.hpp"
#include "plugins/tokenizer/bpe/error.hpp"
#include "plugins/tokenizer/bpe/utf8.hpp"

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

TEST(BpeModel, QuadraticAndLinearMergersAgreeOnRandomStrings) {
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
              merge(model, piece, Merger::kLinear, &scratch))
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
    ASSERT_EQ(merge(model, piece, Merger::kLinear, &scratch), expected) << piece;
  }
  EXPECT_EQ(scratch.work.late, 0u);  // whatever the order of merges: a token is made in one way
}

TEST(BpeModel, TokensThatAreMadeInTwoWaysMergeInTheRightOrder) {
  // "A" falls back to the token <0x41>, which its spelling becomes too, later and further to the left.
  std::vector<std::string> merges = {"<0x41> <0x41>", "<0x41> z", "z <0x41>", "< 0", "<0 x",
                                     "<0x 4",         "<0x4 1",   "<0x41 >",  "z z"};
  const std::string vocab =
      R"("<0x41>": 0, "<": 1, "0": 2, "x": 3, "4": 4, "1": 5, ">": 6, "z": 7, "<0": 8, "<0x": 9,
      "<0x4": 10, "<0x41": 11, "<0x41>z": 12, "<0x41><0x41>": 13, "z<0x41>": 14, "zz": 15)";
  const std::string parts[] = {"A", "A", "z", "<0x41>", "<0x41>", "<0x"};
  std::mt19937 random(11);
  ModelScratch scratch;
  for (int order = 0; order < 40; ++order) {
    std::string list;
    for (const std::string& m : merges) list += (list.empty() ? "\"" : ",\"") + m + "\"";
    const Node root = parse(R"({"type": "BPE", "byte_fallback": true, "vocab": {)" + vocab +
                            "}, \"merges\": [" + list + "]}");
    const BpeModel model(view(root), "model", false);
    for (int i = 0; i < 100; ++i) {
      std::string piece;
      for (size_t n = 1 + random() % 40; n > 0; --n) piece += parts[random() % std::size(parts)];
      ASSERT_EQ(merge(model, piece, Merger::kQuadratic, &scratch),
                merge(model, piece, Merger::kLinear, &scratch))
          << piece;
    }
    std::shuffle(merges.begin(), merges.end(), random);
  }
  EXPECT_GT(scratch.work.late, 1000u);
}

Work work_of(std::string_view text) {
  ModelScratch scratch;
  CutScratch cut;
  LayerStack layers;
  std::vector<Token> tokens;
  const MappedText cut_text = qwen3().pre_tokenizer().cut({text}, &layers, &cut);
  qwen3().model().encode(cut_text.text, cut.pieces, &scratch, &tokens);
  EXPECT_EQ(tokens.back().end, text.size());
  return scratch.work;
}

// One piece of text without a border, whatever the pre-tokenizer would make of it.
Work work_of_piece(std::string_view text) {
  ModelScratch scratch;
  std::vector<Token> tokens;
  qwen3_model().encode_uncached(text, 0, Merger::kAuto, &scratch, &tokens);
  EXPECT_EQ(tokens.back().end, text.size());
  return scratch.work;
}

std::string repeated(const std::string& unit, size_t n_bytes) {
  std::string text;
  while (text.size() + unit.size() <= n_bytes) text += unit;
  return text;
}

std::string random_text(const std::vector<std::string>& units, size_t n_bytes) {
  std::mt19937 random(3);
  std::string text;
  while (text.size() < n_bytes) text += units[random() % units.size()];
  return text;
}

TEST(BpeModel, WorkGrowsWithTheLengthOfHostileInput) {
  constexpr size_t kBytes = size_t{1} << 19;
  std::vector<std::string> letters, ideographs, digits;
  for (char c = 'a'; c <= 'z'; ++c) letters.emplace_back(1, c);
  for (uint32_t c = 0x4E00; c < 0x9FA6; ++c) append_utf8(c, &ideographs.emplace_back());
  for (char c = '0'; c <= '9'; ++c) digits.emplace_back(1, c);
  std::vector<std::string> texts = {random_text(letters, kBytes), random_text(ideographs, kBytes),
                                    random_text(digits, kBytes)};
  for (const std::string unit : {"a", " ", "\n", "😀", "ab", "aGVsbG8gd29ybGQ", "=", "\xCC\x81"})
    texts.push_back(repeated(unit, kBytes));
  for (const std::string& text : texts) {
    const std::string name = text.substr(0, 16);
    for (const bool is_one_piece : {false, true}) {
      const auto work = [&](size_t n) {
        size_t end = std::min(n, text.size());
        while (end < text.size() && (static_cast<uint8_t>(text[end]) & 0xC0) == 0x80) ++end;
        const std::string_view part = std::string_view(text).substr(0, end);
        return is_one_piece ? work_of_piece(part) : work_of(part);
      };
      const Work quarter = work(kBytes / 4), whole = work(kBytes);
      EXPECT_LE(whole.pair_lookups, 4 * kBytes) << name;
      EXPECT_LE(whole.steps, 40 * kBytes) << name;  // a few moves a symbol, of at most nine steps
      EXPECT_LE(whole.steps, quarter.steps * 41 / 10 + 1000) << name;  // n log n: 4.4 times
      EXPECT_EQ(whole.late, 0u) << name;
    }
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
  for (const char* id : {"99999999", "9999999", "65536", "9223372036854775807"})  // 64 KiB at most
    expect_refused(std::string(R"({"type": "BPE", "vocab": {"a": )") + id + R"(}, "merges": []})",
                   kFormat, "expected 0 to 65535 in a vocabulary of 1 tokens");
  expect_refused(R"({"type": "BPE", "vocab": {"a": "0"}, "merges": []})", kFormat,
                 "\"a\" is a string");
  expect_refused(R"({"type": "BPE", "vocab": {"a": 0}, "merges": [], "unk_token": "u"})", kFormat,
                 "model.unk_token");
  expect_refused(R"({"type": "BPE", "vocab": {"a": 0}})", kFormat, "model.merges");
}

}  // namespace
}  // namespace dovetail::bpe::test
