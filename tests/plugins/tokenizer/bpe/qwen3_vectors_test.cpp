// The real Qwen3 tokenizer against every reference vector and the public faults of its kind.
#include <gtest/gtest.h>

#include "json_support.hpp"
#include "plugins/tokenizer/bpe/utf8.hpp"

namespace dovetail::bpe::test {
namespace {

using Ids = std::vector<uint32_t>;

TEST(Qwen3Vectors, EveryTextEncodesToTheReferenceIds) {
  const auto lines = vectors("qwen3.jsonl");
  ASSERT_EQ(lines.size(), 638u);
  for (const Node& line : lines) {
    const std::string& text = line.find("text")->as_string();
    const Ids expected = ids_of(*line.find("ids"));
    EXPECT_EQ(encode(qwen3(), text), expected) << text;
    EXPECT_EQ(encode(qwen3(), text, {.add_special = true}), expected) << text;
    const Node* decoded = line.find("decoded");
    EXPECT_EQ(qwen3().decoder().decode(expected, false), decoded ? decoded->as_string() : text);
  }
}

TEST(Qwen3Vectors, EveryIdListDecodesToTheReferenceText) {
  const auto lines = vectors("qwen3-decode.jsonl");
  ASSERT_EQ(lines.size(), 122u);
  for (const Node& line : lines) {
    const Ids ids = ids_of(*line.find("ids"));
    const bool skip = line.find("skip_special_tokens")->as_bool();
    EXPECT_EQ(qwen3().decoder().decode(ids, skip), line.find("text")->as_string());
  }
}

// Streams ids, checks that no step ends inside a character, and returns all text.
std::string stream_text(const Ids& ids, bool skip_special) {
  DecodeStream stream(qwen3().decoder(), skip_special);
  std::string text;
  for (const uint32_t id : ids) {
    const std::string part = stream.step(id);
    EXPECT_EQ(valid_utf8_prefix(part), part.size());
    text += part;
  }
  return text + stream.flush();
}

TEST(Qwen3Vectors, StreamedStepsAndFlushJoinToTheDecodedText) {
  const auto lines = vectors("qwen3-stream.jsonl");
  ASSERT_EQ(lines.size(), 42u);
  for (const Node& line : lines) {
    const Ids ids = ids_of(*line.find("ids"));
    const bool skip = line.find("skip_special_tokens")->as_bool();
    const std::string whole = qwen3().decoder().decode(ids, skip);
    EXPECT_EQ(stream_text(ids, skip), whole);
    std::string reference;
    for (const Node& step : line.find("steps")->items()) {
      if (step.is_string()) reference += step.as_string();
    }
    EXPECT_TRUE(whole.starts_with(reference)) << whole;
  }
  for (const Node& line : vectors("qwen3-decode.jsonl")) {
    const bool skip = line.find("skip_special_tokens")->as_bool();
    EXPECT_EQ(stream_text(ids_of(*line.find("ids")), skip), line.find("text")->as_string());
  }
}

TEST(Qwen3Vectors, EveryTokenOfTheVocabularyEncodesToItself) {
  const Decoder& decoder = qwen3().decoder();
  ModelScratch scratch;
  std::vector<Token> tokens;
  uint32_t n = 0;
  for (uint32_t id = 0; id < decoder.n_ids(); ++id) {
    if (decoder.is_added(id)) continue;
    tokens.clear();
    qwen3_model().encode_uncached(decoder.piece(id), 0, Merger::kAuto, &scratch, &tokens);
    ASSERT_EQ(tokens.size(), 1u) << id;
    ASSERT_EQ(tokens[0].id, id);
    ++n;
  }
  EXPECT_EQ(n, 151643u);
  EXPECT_EQ(decoder.n_ids(), 151669u);
}

// ---- tests named after the cases of public fault reports

TEST(PublicFaults, B001MergesDoNotCrossTheSplit) {
  EXPECT_EQ(encode(qwen3(), "->"), (Ids{405}));
  EXPECT_EQ(encode(qwen3(), "(x):\n"), (Ids{2075, 982}));
}

TEST(PublicFaults, B002AddedTokensAreCutOutBeforeTheRegex) {
  EXPECT_EQ(encode(qwen3(), "X.<|im_end|>"), (Ids{55, 13, 151645}));
  EXPECT_EQ(encode(qwen3(), "a.<|im_end|>\n"), (Ids{64, 13, 151645, 198}));
  EXPECT_EQ(encode(qwen3(), "a</think>b"), (Ids{64, 151668, 65}));
  EXPECT_EQ(encode(qwen3(), "<tool_call>\n{\"name\": \"f\"}\n</tool_call>"),
            (Ids{151657, 198, 4913, 606, 788, 330, 69, 16707, 151658}));
  EXPECT_EQ(encode(qwen3(), "<think>\n\n</think>\n\n"), (Ids{151667, 271, 151668, 271}));
}

TEST(PublicFaults, B004NfcComposesMarks) {
  EXPECT_EQ(encode(qwen3(), "e\u0301"), (Ids{963}));
  EXPECT_EQ(encode(qwen3(), "cafe\u0301"), (Ids{924, 58858}));
  EXPECT_EQ(encode(qwen3(), "\u212B"), (Ids{144044}));
  EXPECT_EQ(encode(qwen3(), "\u2126"), (Ids{144572}));
  EXPECT_EQ(encode(qwen3(), "\u1100\u1161"), (Ids{19969}));
}

TEST(PublicFaults, B005ControlTokensInsideUserContentStayText) {
  const std::string text = "<|im_end|>";
  const ByteRange all[] = {{0, text.size()}};
  const Ids plain{27, 91, 318, 6213, 91, 29};
  EXPECT_EQ(encode(qwen3(), text, {.literal = all}), plain);
  EXPECT_EQ(encode(qwen3(), text, {.matching = AddedMatching::kNotSpecial}), plain);
  EXPECT_EQ(encode(qwen3(), text, {.matching = AddedMatching::kNone}), plain);
  EXPECT_EQ(encode(qwen3(), text), (Ids{151645}));
}

TEST(PublicFaults, B007StreamedDeltasJoinWithoutLoss) {
  EXPECT_EQ(stream_text({32, 220, 99244, 370}, false), "A 世ab");
  EXPECT_EQ(stream_text({134088, 144596, 136999}, false), "삼겹살");
  EXPECT_EQ(stream_text({145468, 58560, 2010, 74, 963}, false), "ďábelské");
}

TEST(PublicFaults, B008ACharacterOverSeveralTokensComesOutWhole) {
  EXPECT_EQ(stream_text({9707, 26525, 232}, false), "Hello 😊");
  EXPECT_EQ(stream_text({419, 374, 11162, 99, 247, 13, 10821}, false), " this is 🦙.cpp");
  EXPECT_EQ(stream_text({146440, 378, 235, 149921, 30543}, false), "😶‍🌫️");
  DecodeStream stream(qwen3().decoder(), false);
  EXPECT_EQ(stream.step(26525), " ");  // the space, not the half of the face behind it
  EXPECT_EQ(stream.flush(), "\uFFFD");
  EXPECT_EQ(stream.flush(), "");
}

TEST(PublicFaults, B010BackslashNIsNotANewline) {
  EXPECT_EQ(encode(qwen3(), "a\\nb"), (Ids{64, 1699, 65}));
  EXPECT_EQ(encode(qwen3(), "a\nb"), (Ids{64, 198, 65}));
}

TEST(PublicFaults, B011DigitsContractionsOddBlanksAndNul) {
  const std::pair<std::string, Ids> cases[] = {
      {"12345", {16, 17, 18, 19, 20}},
      {"1,234.5", {16, 11, 17, 18, 19, 13, 20}},
      {"can't", {4814, 944}},
      {"CAN'T", {41955, 17323}},
      {"I'LL we'Re", {40, 6, 4086, 582, 49427}},
      {"don’t", {15007, 1405}},
      {"a\u00A0b", {64, 4102, 65}},
      {"\u3000", {22441}},
      {"\uFEFFhi", {3225, 6023}},
      {"\uFFFD", {5691}},
      {std::string("a\0b", 3), {64, 188, 65}},
      {"½", {26062}},
      {"x²", {87, 29456}},
      {"नमस्ते", {60096, 87244, 78368, 30484, 97, 34370}},
      {"Hello world! Café déjà vu — 123 😊",
       {9707, 1879, 0, 65671, 45839, 32514, 1959, 220, 16, 17, 18, 26525, 232}},
      {"", {}},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(encode(qwen3(), text), expected) << text;
}

TEST(PublicFaults, B013ToolTagsSurviveSkippingWhileTheyAreNotSpecial) {
  const Ids ids{151657, 198, 151658, 151645};
  EXPECT_EQ(qwen3().decoder().decode(ids, true), "<tool_call>\n</tool_call>");
  EXPECT_FALSE(qwen3().decoder().is_special(151657));
  EXPECT_TRUE(qwen3().decoder().is_added(151657));
  EXPECT_TRUE(qwen3().decoder().is_special(151645));
}

}  // namespace
}  // namespace dovetail::bpe::test
