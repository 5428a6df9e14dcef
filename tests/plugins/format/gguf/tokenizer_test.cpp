// The documents of text: tokenizer, tokenizer_config, generation.
#include "reader_rig.hpp"
#include "tests/plugins/tokenizer/bpe/json_support.hpp"

namespace dovetail::core {
namespace {

GgufFile byte_level(const std::string& pre) {
  GgufFile f;
  f.string("tokenizer.ggml.model", "gpt2").string("tokenizer.ggml.pre", pre);
  f.strings("tokenizer.ggml.tokens",
            {"a", "b", "\xC4\xA0", "ab", "<|im_end|>", "<think>", "[PAD6]", "a"});
  f.numbers<int32_t>("tokenizer.ggml.token_type", 5, {1, 1, 1, 1, 3, 4, 5, 1});
  f.strings("tokenizer.ggml.merges", {"a b"});
  return f;
}

GgufFile sentencepiece() {
  GgufFile f;
  f.string("tokenizer.ggml.model", "llama");
  f.strings("tokenizer.ggml.tokens",
            {"<unk>", "<s>", "</s>", "<0x41>", "a", "b", "\xE2\x96\x81", "ab",
             "\xE2\x96\x81"
             "ab",
             "\xE2\x96\x81"
             "a",
             "  ", "<x>", "\xC3\xA9"});
  f.numbers<float>("tokenizer.ggml.scores", 6, {0, 0, 0, 0, -9, -9, -9, -2, -3, -1, 0, 0, -9});
  f.numbers<int32_t>("tokenizer.ggml.token_type", 5, {2, 3, 3, 6, 1, 1, 1, 1, 1, 1, 4, 4, 1});
  return f.u32("tokenizer.ggml.bos_token_id", 1)
      .u32("tokenizer.ggml.eos_token_id", 2)
      .u32("tokenizer.ggml.unknown_token_id", 0);
}

TEST_F(GgufTest, ByteLevelVocabularyIsATokenizerJson) {
  EXPECT_EQ(
      json_of(byte_level("qwen2"), "tokenizer"),
      R"({"version":"1.0","truncation":null,"padding":null,"added_tokens":[)"
      R"({"id":4,"content":"<|im_end|>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true},)"
      R"({"id":5,"content":"<think>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":false}],)"
      R"("normalizer":{"type":"NFC"},"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":)"
      R"("(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},)"
      R"("behavior":"Isolated","invert":false},{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":false,"use_regex":false}]},)"
      R"("post_processor":{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":false,"use_regex":false},)"
      R"("decoder":{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":false,"use_regex":false},)"
      R"("model":{"type":"BPE","dropout":null,"unk_token":null,"continuing_subword_prefix":null,"end_of_word_suffix":null,)"
      R"("fuse_unk":false,"byte_fallback":false,"ignore_merges":false,)"
      R"("vocab":{"a":0,"b":1,")"
      "\xC4\xA0"
      R"(":2,"ab":3,"<|im_end|>":4,"<think>":5},"merges":[["a","b"]]}})");
}

// Each name cuts like the reference of its family.
TEST_F(GgufTest, NamesOfPreTokenizersCutAsTheReferencesDo) {
  const std::vector<std::pair<std::string, std::string>> families = {
      {"gpt-2", "gpt2"},      {"llama-bpe", "llama3"}, {"dbrx", "llama3"},  {"qwen2", "qwen2"},
      {"stablelm2", "qwen2"}, {"qwen35", "qwen35"},    {"gpt-4o", "o200k"}, {"tekken", "tekken"}};
  const std::vector<Node> lines = bpe::test::vectors("pretok-fuzz.jsonl");
  ASSERT_FALSE(lines.empty());
  for (const auto& [pre, family] : families) {
    ASSERT_EQ(refusal(byte_level(pre)), "");
    const Result<const Node*> doc = document("tokenizer");
    ASSERT_TRUE(doc) << doc.status().message();
    const bpe::PreTokenizer p = bpe::PreTokenizer::from_json(
        bpe::test::view(*(*doc)->find("pre_tokenizer")), "pre_tokenizer");
    bpe::CutScratch scratch;
    bpe::LayerStack layers;
    size_t n_wrong = 0;
    for (const Node& line : lines) {
      const std::string& text = line.find("text")->as_string();
      p.cut({text}, &layers, &scratch);
      std::vector<uint32_t> lens;
      for (const bpe::Piece& piece : scratch.pieces)
        lens.push_back(static_cast<uint32_t>(
            std::count_if(text.begin() + piece.begin, text.begin() + piece.end,
                          [](char c) { return (c & 0xc0) != 0x80; })));
      n_wrong += lens != bpe::test::ids_of(*line.find(family));
    }
    EXPECT_EQ(n_wrong, 0u) << pre;
  }
  for (const char* pre : {"smollm", "deepseek-v3"}) {
    ASSERT_EQ(refusal(byte_level(pre)), "");
    const Result<const Node*> doc = document("tokenizer");
    ASSERT_TRUE(doc) << doc.status().message();
    const bpe::PreTokenizer p = bpe::PreTokenizer::from_json(
        bpe::test::view(*(*doc)->find("pre_tokenizer")), "pre_tokenizer");
    bpe::CutScratch scratch;
    bpe::LayerStack layers;
    p.cut({"in 2024"}, &layers, &scratch);
    EXPECT_EQ(scratch.pieces.size(), std::string(pre) == "smollm" ? 6u : 4u) << pre;
  }
}

TEST_F(GgufTest, AnUnknownPreTokenizerIsNamed) {
  for (const std::string pre : {"no-such", "", " ", "qwen", "gpt-2 phi-2"}) {
    ASSERT_EQ(refusal(byte_level(pre)), "");
    const std::string why = json("tokenizer");
    EXPECT_TRUE(has(why, "m.gguf: key \"tokenizer.ggml.pre\" is \"" + pre +
                             "\", expected gpt-2, smollm, llama-bpe, qwen2,"))
        << why;
    EXPECT_TRUE(has(why, "give tokenizer.path a folder with the model's tokenizer.json"));
  }
  EXPECT_TRUE(has(json_of(byte_level("default"), "tokenizer"), R"("use_regex":true)"))
      << "as for gpt-2";
}

TEST_F(GgufTest, TheModelsOwnBeginningIsPutBeforeATextWhereItIsWanted) {
  GgufFile f = byte_level("llama-bpe");
  f.u32("tokenizer.ggml.bos_token_id", 4);
  const std::string with =
      R"("post_processor":{"type":"Sequence","processors":[{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":false,"use_regex":false},)"
      R"({"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<|im_end|>","type_id":0}},{"Sequence":{"id":"A","type_id":0}}],)";
  EXPECT_TRUE(has(json_of(f, "tokenizer"), with));
  EXPECT_TRUE(has(
      json("tokenizer"),
      R"("special_tokens":{"<|im_end|>":{"id":"<|im_end|>","ids":[4],"tokens":["<|im_end|>"]}}}]})"));
  EXPECT_TRUE(has(json("tokenizer"), R"("ignore_merges":true)"));
  EXPECT_FALSE(has(json_of(f.flag("tokenizer.ggml.add_bos_token", false), "tokenizer"),
                   "TemplateProcessing"));
  f = byte_level("qwen2");
  f.u32("tokenizer.ggml.bos_token_id", 4);
  EXPECT_FALSE(has(json_of(f, "tokenizer"), "TemplateProcessing"));
  EXPECT_TRUE(has(json_of(f.flag("tokenizer.ggml.add_bos_token", true), "tokenizer"),
                  "TemplateProcessing"));
}

TEST_F(GgufTest, MergesAreSplitAfterTheFirstCharacter) {
  GgufFile f;
  f.string("tokenizer.ggml.model", "gpt2")
      .string("tokenizer.ggml.pre", "gpt-2")
      .strings("tokenizer.ggml.tokens", {"a"});
  GgufFile odd = f, wrong = f;
  EXPECT_TRUE(has(json_of(odd.strings("tokenizer.ggml.merges", {"  b", "a b c"}), "tokenizer"),
                  R"("merges":[[" ","b"],["a","b c"]])"));
  EXPECT_TRUE(has(json_of(wrong.strings("tokenizer.ggml.merges", {"a b", "ab"}), "tokenizer"),
                  "tokenizer.ggml.merges[1] is \"ab\", expected two tokens with a space between"));
  EXPECT_TRUE(has(json_of(f, "tokenizer"), "has no key \"tokenizer.ggml.merges\""));
}

TEST_F(GgufTest, SentencePieceVocabularyIsATokenizerJson) {
  const std::string doc = json_of(sentencepiece(), "tokenizer");
  EXPECT_TRUE(has(
      doc,
      R"("normalizer":{"type":"Sequence","normalizers":[{"type":"Prepend","prepend":")"
      "\xE2\x96\x81"
      R"("},)"
      R"({"type":"Replace","pattern":{"String":" "},"content":")"
      "\xE2\x96\x81"
      R"("}]},"pre_tokenizer":null,)"
      R"("post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>","type_id":0}},)"));
  EXPECT_TRUE(has(
      doc,
      R"("decoder":{"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":")"
      "\xE2\x96\x81"
      R"("},"content":" "},{"type":"ByteFallback"},{"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":0}]})"));
  EXPECT_TRUE(has(
      doc,
      R"("unk_token":"<unk>","continuing_subword_prefix":null,"end_of_word_suffix":null,"fuse_unk":true,"byte_fallback":true,)"));
  // By score; of one score the longer left part first. Controls and bytes are made of nothing.
  EXPECT_TRUE(has(doc, R"("merges":[[")"
                       "\xE2\x96\x81"
                       R"(",")"
                       "\xE2\x96\x81"
                       R"("],[")"
                       "\xE2\x96\x81"
                       R"(","a"],["a","b"],[")"
                       "\xE2\x96\x81"
                       R"(a","b"],[")"
                       "\xE2\x96\x81"
                       R"(","ab"]]})"))
      << doc;
  EXPECT_TRUE(has(doc, "\"\xE2\x96\x81\xE2\x96\x81\":10,\"<x>\":11"))
      << "a run of spaces is spelled as the text will be";
  EXPECT_TRUE(has(doc, R"({"id":11,"content":"<x>",)"));
  EXPECT_FALSE(has(doc, R"({"id":10,)"));
  EXPECT_TRUE(has(
      doc,
      R"({"id":0,"content":"<unk>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true})"));

  GgufFile f = sentencepiece();
  f.flag("tokenizer.ggml.add_space_prefix", false)
      .flag("tokenizer.ggml.add_bos_token", false)
      .flag("tokenizer.ggml.add_eos_token", true);
  const std::string gemma = json_of(f, "tokenizer");
  EXPECT_FALSE(has(gemma, "Prepend"));
  EXPECT_FALSE(has(gemma, "Strip"));
  EXPECT_TRUE(has(
      gemma,
      R"("single":[{"Sequence":{"id":"A","type_id":0}},{"SpecialToken":{"id":"</s>","type_id":0}}])"));
}

TEST_F(GgufTest, VocabulariesThatDoNotFitAreRefused) {
  GgufFile f = byte_level("qwen2");
  f.numbers<int32_t>("other", 5, {1});
  GgufFile bad;
  bad.string("tokenizer.ggml.model", "bert").strings("tokenizer.ggml.tokens", {"a"});
  EXPECT_TRUE(
      has(json_of(bad, "tokenizer"),
          "key \"tokenizer.ggml.model\" is \"bert\", expected gpt2 or llama; give tokenizer.path"));
  bad = {};
  EXPECT_TRUE(has(json_of(bad.strings("tokenizer.ggml.tokens", {"a"}), "tokenizer"),
                  "has no key \"tokenizer.ggml.model\""));
  bad = {};
  bad.string("tokenizer.ggml.model", "gpt2").strings("tokenizer.ggml.tokens", {"a"});
  bad.numbers<int32_t>("tokenizer.ggml.token_type", 5, {1, 1});
  EXPECT_TRUE(has(json_of(bad, "tokenizer"),
                  "key \"tokenizer.ggml.token_type\" is an array of 2 INT32, expected an array of "
                  "1 whole numbers"));
  bad = {};
  bad.string("tokenizer.ggml.model", "llama").strings("tokenizer.ggml.tokens", {"a", "b"});
  EXPECT_TRUE(has(json_of(bad, "tokenizer"),
                  "has 0 tokenizer.ggml.scores, expected 2, one for each token"));
  bad = {};
  bad.string("tokenizer.ggml.model", "gpt2")
      .string("tokenizer.ggml.pre", "gpt-2")
      .strings("tokenizer.ggml.merges", {});
  EXPECT_TRUE(has(json_of(bad.strings("tokenizer.ggml.tokens", {"\xff"}), "tokenizer"),
                  "m.gguf (tokenizer):1:"))
      << "no UTF-8";
}

TEST_F(GgufTest, AWholeTokenizerJsonIsTakenAsItIs) {
  GgufFile f = byte_level("no-such");
  EXPECT_EQ(json_of(f.string("tokenizer.huggingface.json", R"({"version":"1.0"})"), "tokenizer"),
            R"({"version":"1.0"})");
}

TEST_F(GgufTest, TokenizerConfigHasTheTemplateAndTheTokensByName) {
  GgufFile f = byte_level("qwen2");
  f.u32("tokenizer.ggml.eos_token_id", 4)
      .u32("tokenizer.ggml.padding_token_id", 700)
      .string("tokenizer.chat_template", "{{ eos_token }}\n");
  EXPECT_EQ(
      json_of(f, "tokenizer_config"),
      R"({"eos_token":"<|im_end|>","add_bos_token":false,"add_eos_token":false,"chat_template":"{{ eos_token }}\n"})");
  EXPECT_EQ(json_of(model_of("qwen3"), "tokenizer_config"), "");
}

TEST_F(GgufTest, TemplatesByNamesAreAList) {
  GgufFile f = byte_level("qwen2");
  f.string("tokenizer.chat_template", "plain").string("tokenizer.chat_template.tool_use", "tools");
  EXPECT_TRUE(has(json_of(f, "tokenizer_config"),
                  R"("chat_template":[{"name":"default","template":"plain"},)"
                  R"({"name":"tool_use","template":"tools"}])"));
}

TEST_F(GgufTest, GenerationEndsAtEveryTokenThatEndsATurn) {
  GgufFile f = byte_level("qwen2");
  f.u32("tokenizer.ggml.eos_token_id", 3)
      .u32("tokenizer.ggml.eot_token_id", 4)
      .f32("general.sampling.temp", 0.6f);
  f.pair("general.sampling.top_k", 5, raw(int32_t{20})).f32("general.sampling.top_p", 0.95f);
  EXPECT_EQ(json_of(f, "generation"),
            R"({"temperature":0.6,"top_p":0.95,"top_k":20,"eos_token_id":[3,4]})");
  EXPECT_EQ(json_of(byte_level("qwen2"), "generation"), R"({"eos_token_id":[4]})")
      << "a control token that is known to end";
  EXPECT_EQ(json_of(model_of("qwen3"), "generation"), "");
}

}  // namespace
}  // namespace dovetail::core
