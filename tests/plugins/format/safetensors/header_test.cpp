// One file: what is read and what is refused, each fault with the tensor and the numbers.
#include <cctype>

#include "reader_rig.hpp"

namespace dovetail::core {
namespace {

constexpr std::string_view kOneTensor =
    R"({"w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}})";

TEST_F(ReaderTest, ListsTensorsWithTheirPlaceInTheFile) {
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"BF16","shape":[4],"data_offsets":[24,32]},)"
      R"("a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}}   )";
  EXPECT_EQ(refusal(header, 32), "");
  ASSERT_EQ(tensors_.size(), 2u);
  EXPECT_EQ(tensors_["a"].format, "float32");
  EXPECT_EQ(tensors_["a"].shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(tensors_["a"].offset, 8 + header.size());
  EXPECT_EQ(tensors_["a"].bytes, 24u);
  EXPECT_EQ(tensors_["b"].format, "bf16");
  EXPECT_EQ(tensors_["b"].offset, 8 + header.size() + 24);
  EXPECT_EQ(tensors_["b"].bytes, 8u);
}

TEST_F(ReaderTest, KnowsEveryDtype) {
  const std::vector<std::pair<std::string, int>> dtypes = {
      {"F64", 8}, {"F32", 4}, {"F16", 2},  {"BF16", 2},    {"I64", 8},
      {"I32", 4}, {"I16", 2}, {"I8", 1},   {"U64", 8},     {"U32", 4},
      {"U16", 2}, {"U8", 1},  {"BOOL", 1}, {"F8_E4M3", 1}, {"F8_E5M2", 1}};
  for (const auto& [dtype, bytes] : dtypes) {
    const std::string span = std::to_string(3 * bytes);
    EXPECT_EQ(
        refusal(R"({"w":{"dtype":")" + dtype + R"(","shape":[3],"data_offsets":[0,)" + span + "]}}",
                static_cast<size_t>(3 * bytes)),
        "");
    std::string format = dtype;
    for (char& c : format) c = static_cast<char>(std::tolower(c));
    if (dtype == "F64" || dtype == "F32") format.replace(0, 1, "float");
    EXPECT_EQ(tensors_["w"].format, format);
  }
  EXPECT_TRUE(has(refusal(R"({"w":{"dtype":"F4","shape":[2],"data_offsets":[0,1]}})", 1),
                  "tensor \"w\" has dtype \"F4\", expected one of F64, F32"));
  EXPECT_TRUE(has(refusal(R"({"w":{"dtype":5,"shape":[2],"data_offsets":[0,1]}})", 1),
                  "has dtype 5, expected one of"));
}

// B025
TEST_F(ReaderTest, RefusesASpanThatIsNotShapeTimesDtype) {
  EXPECT_TRUE(
      has(refusal(R"({"w":{"dtype":"F32","shape":[32,8],"data_offsets":[0,65536]}})", 65536),
          "tensor \"w\" spans bytes 0 to 65536, but its shape and dtype need 1024 bytes"));
  EXPECT_TRUE(has(refusal(R"({"w":{"dtype":"F32","shape":[1000,1000],"data_offsets":[0,4]}})", 4),
                  "spans bytes 0 to 4, but its shape and dtype need 4000000 bytes"));
  EXPECT_TRUE(has(refusal(R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[8,4]}})", 8),
                  "spans bytes 8 to 4"));
}

// B026
TEST_F(ReaderTest, RefusesShapesThatOverflowOrAreNoWholeNumbers) {
  const auto of = [&](const std::string& shape) {
    return refusal(R"({"w":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":[0,0]}})");
  };
  EXPECT_TRUE(
      has(of("[4294967296,4294967296]"), "tensor \"w\" has a shape whose size overflows 64 bits"));
  EXPECT_TRUE(has(of("[9223372036854775807,2]"), "overflows"));
  EXPECT_TRUE(has(of("[-1,4]"), "has -1 as dimension 0, expected a whole number from 0 on"));
  EXPECT_TRUE(has(of("[2.5]"), "has 2.5 as dimension 0"));
  EXPECT_TRUE(has(of("[\"4\"]"), "has \"4\" as dimension 0"));
  EXPECT_TRUE(has(of("[18446744073709551616]"), "as dimension 0, expected a whole number"));
  EXPECT_TRUE(has(of("[0,4611686018427387904,4]"), "overflows")) << "a zero hides nothing";
  EXPECT_TRUE(has(of("[4611686018427387904,4,0]"), "overflows"));
  EXPECT_TRUE(has(of("4"), "has shape 4, expected a list"));
  EXPECT_TRUE(has(of("[1,1,1,1,1,1,1]"), "has 7 dimensions, expected at most 6"));
}

TEST_F(ReaderTest, TakesEmptyTensorsAndScalars) {
  EXPECT_EQ(refusal(R"({"w":{"dtype":"F32","shape":[0,4],"data_offsets":[0,0]}})"), "");
  EXPECT_EQ(tensors_["w"].bytes, 0u);
  EXPECT_EQ(refusal(R"({"s":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})", 4), "");
  EXPECT_EQ(tensors_["s"].shape.size(), 0u);
  EXPECT_EQ(
      refusal(
          R"({"e":{"dtype":"F32","shape":[0],"data_offsets":[4,4]},"s":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})",
          4),
      "");
}

// B028
TEST_F(ReaderTest, NamesADuplicateTensor) {
  const std::string t = R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  EXPECT_TRUE(has(refusal("{\"a\":" + t + ",\"b\":" + t + ",\"a\":" + t + "}", 4),
                  "has duplicate tensor `a`, expected"));
  EXPECT_TRUE(
      has(refusal(R"({"a":{"dtype":"F32","dtype":"F16","shape":[1],"data_offsets":[0,4]}})", 4),
          "key \"dtype\" appears twice"));
}

// B029
TEST_F(ReaderTest, TakesAndRefusesMetadataAsTheFormatSays) {
  EXPECT_EQ(refusal(R"({"__metadata__":{}})"), "");
  EXPECT_EQ(refusal(R"({"__metadata__":null})"), "");
  EXPECT_TRUE(
      has(refusal(R"({"__metadata__":{"a":1}})"), "has __metadata__ \"a\" = 1, expected a string"));
  EXPECT_TRUE(
      has(refusal(R"({"__metadata__":[]})"), "has __metadata__ a list of 0, expected a map"));
  EXPECT_EQ(refusal("{}"), "");
  EXPECT_EQ(tensors_.size(), 0u);
  EXPECT_EQ(refusal("{}      "), "");
  EXPECT_TRUE(has(refusal(std::string_view("{}\0\0\0", 5)),
                  "has a NUL at byte 10, in its header; expected spaces"));
}

// B031
TEST_F(ReaderTest, CountsTheMissingBytesOfATruncatedFile) {
  const std::string whole = file_of(
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[4],"data_offsets":[8,24]}})",
      24);
  EXPECT_EQ(refusal_of_bytes(whole), "");
  EXPECT_TRUE(has(refusal_of_bytes(std::string_view(whole).substr(0, whole.size() - 1)),
                  "tensor \"b\" ends at byte 24 of the data, but the file has 23: 1 bytes are "
                  "missing in all; download incomplete?"));
  EXPECT_TRUE(has(
      refusal_of_bytes(std::string_view(whole).substr(0, whole.size() - 20)),
      "tensor \"a\" ends at byte 8 of the data, but the file has 4: 20 bytes are missing in all"));
  EXPECT_TRUE(has(refusal_of_bytes(std::string_view(whole).substr(0, whole.size() / 2)),
                  "ends inside its header: " +
                      std::to_string(whole.size() - 24 - whole.size() / 2) + " of its"));
  for (size_t n = 0; n < whole.size(); ++n)
    EXPECT_TRUE(has(refusal_of_bytes(std::string_view(whole).substr(0, n)), "download incomplete?"))
        << n;
}

TEST_F(ReaderTest, RefusesHolesOverlapsAndTrailingBytes) {
  const auto two = [&](const std::string& second, size_t n_data) {
    return refusal(
        R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":)" +
            second + "}}",
        n_data);
  };
  EXPECT_EQ(two("[4,8]", 8), "");
  EXPECT_TRUE(
      has(two("[6,10]", 10), "tensor \"b\" begins at byte 6 of the data, expected 4: a hole"));
  EXPECT_TRUE(has(two("[2,6]", 6),
                  "tensor \"b\" begins at byte 2 of the data, inside the tensor before it"));
  EXPECT_TRUE(has(two("[0,4]", 4), "inside the tensor before it"));
  EXPECT_TRUE(has(two("[4,8]", 11), "has 3 bytes after its last tensor, expected none"));
  EXPECT_TRUE(has(two("[4]", 8), "has data_offsets a list of 1, expected [begin, end]"));
  EXPECT_TRUE(has(two("[-4,0]", 8), "has -4 in data_offsets"));
  EXPECT_TRUE(has(two("[4,8.0]", 8), "has 8 in data_offsets"));
}

TEST_F(ReaderTest, RefusesHeaderLengthsWithoutAllocatingThem) {
  std::string bytes = file_of(kOneTensor, 24);
  const auto with_length = [&](uint64_t n) {
    for (int i = 0; i < 8; ++i)
      bytes[static_cast<size_t>(i)] = static_cast<char>(n >> 8 * i & 0xff);
    return refusal_of_bytes(bytes);
  };
  EXPECT_TRUE(
      has(with_length(UINT64_MAX),
          "says that its header has 18446744073709551615 bytes, expected at most 100000000"));
  EXPECT_TRUE(has(with_length(100'000'001), "expected at most 100000000"));
  EXPECT_TRUE(has(with_length(99'000'000), "ends inside its header"));
  EXPECT_TRUE(has(with_length(0), "has a header that does not begin with {"));
  EXPECT_TRUE(has(with_length(1), "model.safetensors (header)"));
  EXPECT_TRUE(has(refusal_of_bytes("abc"), "has 3 bytes, expected at least 8"));
}

TEST_F(ReaderTest, RefusesWhatIsNoHeader) {
  EXPECT_TRUE(has(refusal("[]"), "does not begin with {"));
  EXPECT_TRUE(has(refusal("  {}"), "does not begin with {"));
  EXPECT_TRUE(
      has(refusal(R"({"w":[]})"), "tensor \"w\" is a list of 0, expected a map with dtype, shape"));
  EXPECT_TRUE(has(refusal(R"({"w":{"dtype":"F32","shape":[1]}})"),
                  "has data_offsets nothing, expected [begin, end]"));
  EXPECT_TRUE(has(refusal("{\"w\":"), "(header):1:"));
}

TEST_F(ReaderTest, WritesControlsInNamesOut) {
  const std::string long_name(1000, 'n');
  const auto of = [&](const std::string& name) {
    return refusal("{\"" + name + R"(":{"dtype":"F33","shape":[1],"data_offsets":[0,4]}})", 4);
  };
  EXPECT_TRUE(has(of("a\\n\\u001b[2Jb"), "tensor \"a\\n\\x1b[2Jb\" has dtype"));
  EXPECT_TRUE(has(of(long_name), "nnn...\" has dtype"));
  EXPECT_LT(of(long_name).size(), 500u);
}

TEST_F(ReaderTest, ProbesByNameAndByTheFirstBytes) {
  const auto score = [&](const std::string& file, std::string_view head) {
    Result<Folder> folder = Folder::open(dir_);
    scope_ = std::make_unique<HostScope>(std::move(*folder));
    dvt_format_open in{sizeof in, 0, scope_->dir(), 0};
    if (!file.empty()) in.file = *scope_->open_file(file);
    uint32_t out = 0;
    EXPECT_EQ(table_->probe(plugin_, call_, &in, {head.data(), head.size()}, &out), DVT_OK);
    return out;
  };
  EXPECT_EQ(score("", ""), 0u);
  const std::string bytes = file_of(kOneTensor, 24);
  write("weights.bin", bytes);
  write("layers-22.safetensors", bytes);
  write("text.bin", "GGUF and more text");
  EXPECT_EQ(score("weights.bin", bytes), 60u);
  EXPECT_EQ(score("layers-22.safetensors", bytes), 100u);
  EXPECT_EQ(score("text.bin", "GGUF and more text"), 0u);
  EXPECT_EQ(score("text.bin", ""), 0u);
  EXPECT_EQ(score("", ""), 0u);
  write("model.safetensors", bytes);
  EXPECT_EQ(score("", ""), 100u);
  EXPECT_TRUE(open("layers-22.safetensors"));
  EXPECT_EQ(tensors_["w"].file, "layers-22.safetensors");
}

TEST_F(ReaderTest, GivesTheDocumentsBesideTheTensors) {
  write("model.safetensors", file_of("{}", 0));
  write("config.json", R"({"model_type": "qwen3"})");
  write("tokenizer_config.json", "{");
  ASSERT_TRUE(open());
  CallFrame call;
  dvt_doc doc = 0;
  ASSERT_TRUE(call.check(table_->document(reader_, call, abi_text("config"), &doc)));
  ASSERT_NE(doc, 0u);
  EXPECT_EQ(doc_node(doc)->find("model_type")->as_string(), "qwen3");
  const dvt_doc first = doc;
  ASSERT_TRUE(call.check(table_->document(reader_, call, abi_text("config"), &doc)));
  EXPECT_EQ(doc, first) << "parsed once";
  ASSERT_TRUE(call.check(table_->document(reader_, call, abi_text("generation"), &doc)));
  EXPECT_EQ(doc, 0u);
  ASSERT_TRUE(call.check(table_->document(reader_, call, abi_text("what"), &doc)));
  EXPECT_EQ(doc, 0u);
  const Status broken =
      call.check(table_->document(reader_, call, abi_text("tokenizer_config"), &doc));
  EXPECT_TRUE(has(broken.message(), "tokenizer_config.json:1:")) << broken.message();
}

}  // namespace
}  // namespace dovetail::core
