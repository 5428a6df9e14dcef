// Damaged files of every kind: refused or read, never a crash and never a span outside the file.
#include <random>

#include "reader_rig.hpp"

namespace dovetail::core {
namespace {

TEST_F(GgufTest, SurvivesFiveThousandMutations) {
  GgufFile f = model_of("llama");
  f.string("tokenizer.ggml.model", "llama")
      .strings("tokenizer.ggml.tokens", {"<unk>", "<s>", "a", "b", "ab"});
  f.numbers<float>("tokenizer.ggml.scores", 6, {0, 0, -1, -2, -3})
      .numbers<int32_t>("tokenizer.ggml.token_type", 5, {2, 3, 1, 1, 1});
  f.u32("tokenizer.ggml.bos_token_id", 1)
      .u32("tokenizer.ggml.eos_token_id", 1)
      .string("tokenizer.chat_template", "{{ bos_token }}");
  f.tensor("token_embd.weight", {32, 5}, 8, std::string(170, 'e'))
      .tensor("blk.0.attn_q.weight", {1, 8}, 0, std::string(32, 'q'));
  f.tensor("output_norm.weight", {4}, 0, std::string(16, 'n')).info("empty", {0}, 0, 0);
  const std::string good = f.bytes();
  ASSERT_EQ(refusal_of_bytes(good), "");
  for (const char* which : {"config", "tokenizer", "tokenizer_config", "generation"}) {
    const Result<const Node*> doc = document(which);
    ASSERT_TRUE(doc) << doc.status().message();
    ASSERT_NE(*doc, nullptr) << which;
  }
  std::mt19937 random(7);
  const std::string numbers("\0\1\2\x7f\x80\xff\x20\x21", 8);
  size_t n_refused = 0;
  for (int i = 0; i < 5000; ++i) {
    write("m.gguf", mutated(good, random, numbers));
    const Status s = open();  // checks every span against the file
    n_refused += s.is_ok() ? 0 : 1;
    if (!s.is_ok()) {
      EXPECT_FALSE(s.message().empty());
      EXPECT_EQ(s.message().find('\n'), std::string::npos) << s.message();
      continue;
    }
    for (const char* which : {"config", "tokenizer", "tokenizer_config", "generation"})
      (void)document(which);
  }
  EXPECT_GT(n_refused, 2500u);
}

}  // namespace
}  // namespace dovetail::core
