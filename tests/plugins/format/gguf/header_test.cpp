// One file: what is read and what is refused, each fault with the key or tensor and the numbers.
#include "reader_rig.hpp"

namespace dovetail::core {
namespace {

TEST_F(GgufTest, ListsTensorsRowMajorUnderTheirOwnNames) {
  GgufFile f = model_of("qwen3");
  f.tensor("token_embd.weight", {32, 3}, 8, std::string(3 * 34, 'e'));
  f.tensor("blk.1.attn_q.weight", {4, 2}, 0, std::string(32, 'q'));
  f.tensor("output_norm.weight", {5}, 30, std::string(10, 'n'));
  f.tensor("some.other.weight", {2}, 24, "xy");
  EXPECT_EQ(refusal(f), "");
  ASSERT_EQ(tensors_.size(), 4u);
  EXPECT_EQ(tensors_["model.embed_tokens.weight"].format, "q8_0");
  EXPECT_EQ(tensors_["model.embed_tokens.weight"].shape, (std::vector<int64_t>{3, 32}));
  EXPECT_EQ(tensors_["model.embed_tokens.weight"].bytes, 102u);
  const ReadTensor& q = tensors_["model.layers.1.self_attn.q_proj.weight"];
  EXPECT_EQ(q.format, "float32");
  EXPECT_EQ(q.shape, (std::vector<int64_t>{2, 4}));
  EXPECT_EQ(f.bytes().substr(q.offset, q.bytes), std::string(32, 'q'));
  EXPECT_EQ(q.paired_rows, 0);
  EXPECT_EQ(tensors_["model.norm.weight"].format, "bf16");
  EXPECT_EQ(tensors_["some.other.weight"].format, "i8");
}

TEST_F(GgufTest, KnowsEveryType) {
  const std::vector<std::tuple<uint32_t, uint64_t, size_t, std::string>> types = {
      {0, 1, 4, "float32"},   {1, 1, 2, "f16"},         {2, 32, 18, "q4_0"},
      {3, 32, 20, "q4_1"},    {6, 32, 22, "q5_0"},      {7, 32, 24, "q5_1"},
      {8, 32, 34, "q8_0"},    {10, 256, 84, "q2_k"},    {11, 256, 110, "q3_k"},
      {12, 256, 144, "q4_k"}, {13, 256, 176, "q5_k"},   {14, 256, 210, "q6_k"},
      {20, 32, 18, "iq4_nl"}, {23, 256, 136, "iq4_xs"}, {30, 1, 2, "bf16"},
      {39, 32, 17, "mxfp4"}};
  for (const auto& [number, block_len, block_bytes, format] : types) {
    GgufFile f;
    f.tensor("w", {2 * block_len, 3}, number, std::string(6 * block_bytes, 'w'));
    EXPECT_EQ(refusal(f), "");
    EXPECT_EQ(tensors_["w"].format, format);
    EXPECT_EQ(tensors_["w"].bytes, 6 * block_bytes);
  }
  GgufFile other;
  other.tensor("w", {256}, 16, std::string(66, 'w'));
  EXPECT_TRUE(
      has(refusal(other),
          "tensor \"w\" has type IQ2_XXS, which is not supported; take a file of one of F32,"));
  other = {};
  other.tensor("w", {256}, 4, std::string(66, 'w'));
  EXPECT_TRUE(has(refusal(other), "tensor \"w\" has type number 4, which is none"));
}

TEST_F(GgufTest, ReadsVersionsTwoAndThree) {
  GgufFile f = model_of("qwen3");
  f.version = 2;
  f.tensor("w", {2}, 0, "12345678");
  EXPECT_EQ(refusal(f), "");
  EXPECT_EQ(tensors_.size(), 1u);
}

// B032
TEST_F(GgufTest, RefusesOtherVersionsAndFilesOfSomethingElse) {
  GgufFile f;
  f.magic = "FUGG";
  EXPECT_TRUE(has(refusal(f), "begins with \"FUGG\", expected \"GGUF\""));
  f.magic = "GGUF";
  for (const uint32_t version : {0u, 4u, 1u << 31}) {
    f.version = version;
    EXPECT_TRUE(
        has(refusal(f), "has GGUF version " + std::to_string(version) + ", expected 2 or 3"));
  }
  f.version = 1;
  EXPECT_TRUE(has(refusal(f), "version 1, which is not supported; convert"));
  f.version = 3u << 24;
  EXPECT_TRUE(has(refusal(f), "is big-endian, which is not supported"));
  EXPECT_TRUE(has(refusal_of_bytes(""), "begins with \"\""));
  EXPECT_TRUE(has(refusal_of_bytes("GGUF"), "ends inside the version"));
}

// B032
TEST_F(GgufTest, AnEmptyFileIsValid) {
  EXPECT_EQ(refusal(GgufFile()), "");
  EXPECT_TRUE(tensors_.empty());
  EXPECT_TRUE(has(json("config"), "has no key \"general.architecture\""));
  EXPECT_EQ(json("tokenizer"), "");
}

// B032
TEST_F(GgufTest, RefusesCountsAndLengthsThatTheFileHasNoBytesFor) {
  GgufFile f;
  f.n_tensors = UINT64_MAX;
  EXPECT_TRUE(
      has(refusal(f), "says that it has 18446744073709551615 tensors, more than it has bytes for"));
  f = {};
  f.n_pairs = UINT64_MAX;
  EXPECT_TRUE(has(refusal(f), "says that it has 18446744073709551615 keys, more"));
  f = {};
  f.pairs = raw(UINT64_MAX) + std::string(100, 'k');
  f.n_pairs = 1;
  EXPECT_TRUE(has(refusal(f), "key 0 of 1 has 18446744073709551615 bytes, expected 1 to 65535"));
  f = {};
  f.u32("", 1);
  EXPECT_TRUE(has(refusal(f), "key 0 of 1 has 0 bytes, expected 1"));
  f = {};
  f.pair("a", 8, raw(UINT64_MAX));
  EXPECT_TRUE(has(refusal(f), "ends inside key \"a\" at byte"));
  for (const uint32_t element : {0u, 4u, 8u, 12u}) {
    f = {};
    f.pair("a", 9, raw(element) + raw(UINT64_MAX));
    EXPECT_TRUE(
        has(refusal(f),
            "key \"a\" has 18446744073709551615 elements, more than the file has bytes for"));
  }
  f = {};
  f.pair("a", 9, raw(uint32_t{8}) + raw(uint64_t{2}) + text("x") + raw(uint64_t{1} << 60));
  EXPECT_TRUE(has(refusal(f), "ends inside key \"a\""));
}

// B032
TEST_F(GgufTest, RefusesTypesThatAreNone) {
  GgufFile f;
  f.pair("a", 999, "xxxx");
  EXPECT_TRUE(has(refusal(f), "key \"a\" has type 999, expected 0 to 12"));
  f = {};
  f.pair("a", 9, raw(uint32_t{999}) + raw(uint64_t{0}));
  EXPECT_TRUE(has(refusal(f), "an element of key \"a\" has type 999"));
  f = {};
  f.pair("a", 9, raw(uint32_t{9}) + raw(uint64_t{0}));
  EXPECT_TRUE(has(refusal(f), "key \"a\" is an array of arrays, which is not supported"));
  f = {};
  f.pair("a", 7, raw(uint8_t{2}));
  EXPECT_TRUE(has(refusal(f), "has a BOOL of 2, expected 0 or 1"));
}

// B032, B028
TEST_F(GgufTest, RefusesNamesThatComeTwice) {
  GgufFile f;
  f.u32("general.alignment", 32).u32("general.alignment", 32);
  EXPECT_TRUE(has(refusal(f), "has key \"general.alignment\" twice"));
  f = {};
  f.tensor("w", {1}, 0, "1234").tensor("w", {1}, 0, "1234");
  EXPECT_TRUE(has(refusal(f), "has tensor \"w\" twice"));
  f = model_of("qwen3");
  f.tensor("output_norm.weight", {1}, 0, "1234").tensor("model.norm.weight", {1}, 0, "1234");
  EXPECT_TRUE(has(refusal(f),
                  "tensor \"model.norm.weight\" is \"model.norm.weight\" of the model, which "
                  "another tensor is too"));
}

// B032
TEST_F(GgufTest, AlignmentIsAPowerOfTwo) {
  for (const uint32_t wrong : {0u, 13u, 24u}) {
    GgufFile f;
    f.u32("general.alignment", wrong);
    EXPECT_TRUE(has(refusal(f), "key \"general.alignment\" is " + std::to_string(wrong) +
                                    ", expected a power of two"));
  }
  GgufFile typed;
  typed.pair("general.alignment", 5, raw(int32_t{32}));
  EXPECT_TRUE(has(refusal(typed), "expected a power of two of type UINT32"));
  GgufFile f;
  f.alignment = 8;
  f.u32("general.alignment", 8).tensor("a", {3}, 0, "aaaabbbbcccc").tensor("b", {1}, 0, "dddd");
  EXPECT_EQ(refusal(f), "");
  EXPECT_EQ(f.bytes().substr(tensors_["b"].offset, 4), "dddd");
  GgufFile crooked;
  crooked.info("a", {1}, 0, 4).data = std::string(64, 'x');
  EXPECT_TRUE(
      has(refusal(crooked),
          "tensor \"a\" begins at byte 4 of the data, expected a multiple of the alignment 32"));
}

// B034
TEST_F(GgufTest, AZeroDimensionIsAnEmptyTensor) {
  for (const std::vector<uint64_t>& ne : {std::vector<uint64_t>{0}, {32, 0}, {0, 5}, {4, 0, 3}}) {
    GgufFile f;
    f.info("w", ne, ne[0] == 32 ? 8 : 0, 0);
    EXPECT_EQ(refusal(f), "");
    EXPECT_EQ(tensors_["w"].bytes, 0u);
  }
}

// B035
TEST_F(GgufTest, RefusesShapesWhoseSizeOverflows) {
  const auto of = [&](const std::vector<uint64_t>& ne, uint32_t type) {
    GgufFile f;
    f.info("w", ne, type, 0).data = std::string(64, 'x');
    return refusal(f);
  };
  EXPECT_TRUE(has(of({INT64_MAX, 2, 1, 1}, 24), "has a shape whose size overflows"));
  EXPECT_TRUE(
      has(of({1u << 22, (uint64_t{1} << 42) + 1, 1, 1}, 24), "has a shape whose size overflows"));
  EXPECT_TRUE(has(of({UINT64_MAX, 2, 1, 1}, 24),
                  "has 18446744073709551615 as dimension 0, expected less than 2^63"));
  EXPECT_TRUE(has(of({uint64_t{1} << 61, 2}, 0), "has a shape whose bytes overflow"));
  EXPECT_TRUE(
      has(of({uint64_t{1} << 32, uint64_t{1} << 32, 0}, 0), "has a shape whose size overflows"));
  EXPECT_TRUE(has(of({uint64_t{1} << 40}, 0),
                  "ends at byte 4398046511104 of the data, the file has 64; download incomplete?"));
  EXPECT_TRUE(has(of({1, 1, 1, 1, 1}, 0), "has 5 dimensions, expected at most 4"));
  EXPECT_TRUE(has(of({33}, 8), "has rows of 33, expected whole blocks of Q8_0, a multiple of 32"));
}

TEST_F(GgufTest, RefusesTensorsThatLeaveTheFileOrOverlap) {
  GgufFile f;
  f.info("a", {16}, 0, 0).info("b", {8}, 0, 32).data = std::string(96, 'x');
  EXPECT_TRUE(
      has(refusal(f),
          "tensor \"b\" begins at byte 32 of the data, inside tensor \"a\", which ends at 64"));
  f = {};
  f.info("a", {16}, 0, uint64_t{1} << 63).data = std::string(96, 'x');
  EXPECT_TRUE(has(refusal(f),
                  "tensor \"a\" ends at byte 9223372036854775872 of the data, the file has 96"));
  f = {};
  f.info("a", {16}, 0, UINT64_MAX - 31).data = std::string(96, 'x');
  EXPECT_TRUE(has(refusal(f), "ends at byte beyond 2^64"));
}

// B031
TEST_F(GgufTest, RefusesAFileThatIsCutShortAnywhere) {
  GgufFile f = model_of("qwen3");
  f.strings("tokenizer.ggml.tokens", {"a", "b"})
      .tensor("a", {3}, 0, "aaaabbbbcccc")
      .tensor("b", {1}, 0, "dddd");
  const std::string whole = f.bytes();
  ASSERT_EQ(refusal_of_bytes(whole), "");
  for (size_t n = 0; n < whole.size(); ++n)
    EXPECT_NE(refusal_of_bytes(std::string_view(whole).substr(0, n)), "")
        << n << " of " << whole.size();
}

TEST_F(GgufTest, IsKnownByItsMagicAndByItsName) {
  write("a.bin", "GGUF");
  write("b.gguf", "what");
  write("c.bin", "what");
  EXPECT_EQ(probe("a.bin", "GGUF\3\0\0\0"), 100u);
  EXPECT_EQ(probe("b.gguf", "what"), 90u);
  EXPECT_EQ(probe("c.bin", "what"), 0u);
  EXPECT_GT(probe("", ""), 0u);
  std::filesystem::remove(dir_ / "b.gguf");
  EXPECT_EQ(probe("", ""), 0u);
}

}  // namespace
}  // namespace dovetail::core
