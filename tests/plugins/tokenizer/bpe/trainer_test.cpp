// The trainer against the reference's vocabularies and merges, and its file against our own loader.
#include "plugins/tokenizer/bpe/trainer.hpp"

#include <gtest/gtest.h>

#include "json_support.hpp"
#include "plugins/tokenizer/bpe/error.hpp"
#include "plugins/tokenizer/bpe/unicode_forms.hpp"

namespace dovetail::bpe::test {
namespace {

TrainOptions options_of(const Node& c) {
  TrainOptions options;
  const Node& trainer = *c.find("trainer");
  options.vocab_size = static_cast<uint32_t>(trainer.find("vocab_size")->as_int());
  options.min_frequency = static_cast<uint64_t>(trainer.find("min_frequency")->as_int());
  for (const Node& t : trainer.find("special_tokens")->items())
    options.special_tokens.push_back(t.as_string());
  options.all_bytes = trainer.find("initial_alphabet")->is_string();
  if (const Node* n = trainer.find("limit_alphabet"); n->is_int()) {
    options.limit_alphabet = static_cast<uint32_t>(n->as_int());
  }
  if (const Node* n = trainer.find("max_token_length"); n->is_int()) {
    options.max_token_len = static_cast<uint32_t>(n->as_int());
  }
  options.pattern =
      c.find("pre_tokenizer")->find("type")->as_string() == "ByteLevel" ? "gpt2" : "qwen2";
  options.nfc = false;
  return options;
}

TrainedBpe train(const TrainOptions& options, std::string_view text, bool by_lines) {
  Trainer trainer(options);
  by_lines ? trainer.feed_lines(text) : trainer.feed(text);
  return trainer.train(nullptr).value();
}

TEST(Trainer, LearnsTheReferenceVocabularyAndMerges) {
  const auto cases = vectors("bpe-train/cases.jsonl");
  ASSERT_EQ(cases.size(), 8u);
  for (const Node& c : cases) {
    SCOPED_TRACE(c.find("name")->as_string());
    const std::string text =
        read_file("tests/data/tokenizer/bpe-train/" + c.find("corpus")->as_string());
    const bool by_lines = c.find("sequences")->as_string().starts_with("lines");
    const TrainedBpe trained = train(options_of(c), text, by_lines);
    std::vector<std::string> vocab;
    for (const Node& token : c.find("vocab_by_id")->items()) vocab.push_back(token.as_string());
    EXPECT_EQ(trained.vocab, vocab);
    const auto& merges = c.find("merges")->items();
    ASSERT_EQ(trained.merges.size(), merges.size());
    for (size_t i = 0; i < merges.size(); ++i) {
      const auto [left, right] = trained.merges[i];
      ASSERT_EQ(trained.vocab[left], merges[i].items()[0].as_string()) << i;
      ASSERT_EQ(trained.vocab[right], merges[i].items()[1].as_string()) << i;
    }
  }
}

TEST(Trainer, WritesAFileThatLoadsAndRoundTrips) {
  TrainOptions options;
  options.vocab_size = 700;
  options.min_frequency = 2;
  options.special_tokens = {"<|endoftext|>", "<|im_start|>", "quote \" and \\ and \n"};
  const std::string text = read_file("tests/data/tokenizer/bpe-train/corpus-mixed.txt");
  Layer layer;
  ASSERT_TRUE(nfc(text, &layer));
  const std::string& normalized = layer.text;
  for (const char* pattern : {"qwen2", "gpt2", R"(\s+|\S+)"}) {
    options.pattern = pattern;
    options.nfc = !options.nfc;
    const std::string json = to_tokenizer_json(train(options, text, true), options);
    EXPECT_EQ(json, to_tokenizer_json(train(options, text, true), options));
    const Node root = parse(json);
    const Tokenizer t(view(root));
    EXPECT_EQ(t.decoder().n_ids(), 700u);
    EXPECT_EQ(encode(t, "<|im_start|>"), std::vector<uint32_t>{1});
    EXPECT_EQ(encode(t, options.special_tokens[2]), std::vector<uint32_t>{2});
    EXPECT_EQ(t.decoder().decode(encode(t, text), false), options.nfc ? normalized : text);
    EXPECT_LT(encode(t, text).size(), text.size() / 2);
  }
}

TEST(Trainer, LearnsTheDemoTokenizerThatTheReferenceTrained) {
  // configs/demo/tokenizer.json comes from Hugging Face's own trainer: tools/demo/make_tokenizer.py.
  const Node reference = parse(read_file("configs/demo/tokenizer.json"));
  TrainOptions options;
  options.vocab_size = 4096;
  options.min_frequency = 2;
  options.special_tokens = {"<|endoftext|>"};
  const TrainedBpe trained =
      train(options, read_file("tests/data/demo/austen-pride_and_prejudice.txt"), true);
  const Node ours = parse(to_tokenizer_json(trained, options));
  EXPECT_EQ(core::to_json(*ours.find("model")->find("vocab")),
            core::to_json(*reference.find("model")->find("vocab")));
  EXPECT_EQ(core::to_json(*ours.find("model")->find("merges")),
            core::to_json(*reference.find("model")->find("merges")));
  EXPECT_EQ(Tokenizer(view(ours)).added_tokens().all().size(), 1u);
}

TEST(Trainer, NeverMergesAcrossTheEndOfALine) {
  TrainOptions options;
  options.vocab_size = 300;
  const auto by_lines = train(options, "\n\n\n\n\n\n\n\n", true);
  EXPECT_TRUE(by_lines.merges.empty());
  const auto whole = train(options, "\n\n\n\n\n\n\n\n", false);
  EXPECT_EQ(whole.merges.size(), 3u);
}

TEST(Trainer, StopsWhenProgressSaysSo) {
  Trainer trainer({});
  trainer.feed_lines(read_file("tests/data/tokenizer/bpe-train/corpus-apache2.txt"));
  uint64_t calls = 0;
  EXPECT_FALSE(trainer.train([&](uint64_t, uint64_t) { return ++calls < 3; }).has_value());
  EXPECT_EQ(calls, 3u);
}

TEST(Trainer, RefusesSpecialTokensThatCannotBe) {
  TrainOptions options;
  options.special_tokens = {"a", "a"};
  EXPECT_THROW(Trainer{options}, Error);
  options.special_tokens = {""};
  EXPECT_THROW(Trainer{options}, Error);
  options.special_tokens = {};
  options.pattern = "(a";
  EXPECT_THROW(Trainer{options}, Error);
}

}  // namespace
}  // namespace dovetail::bpe::test
