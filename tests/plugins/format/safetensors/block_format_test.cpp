// Block formats in a file: bytes, with their format and shape in the metadata.
#include "reader_rig.hpp"

namespace dovetail::core {
namespace {

// A header with one tensor "w" of 48 bytes, which the metadata says is `text`.
std::string header(const std::string& text,
                   const std::string& tensor = R"("dtype":"U8","shape":[48])") {
  return R"({"__metadata__":{"dovetail.format.w":")" + text + R"("},"w":{)" + tensor +
         R"(,"data_offsets":[0,48]}})";
}

TEST_F(ReaderTest, GivesABlockFormatItsNameAndShape) {
  EXPECT_EQ(refusal(header("int4.1 [2, 32]"), 48), "");
  EXPECT_EQ(tensors_["w"].format, "int4.1");
  EXPECT_EQ(tensors_["w"].shape, (std::vector<int64_t>{2, 32}));
  EXPECT_EQ(tensors_["w"].bytes, 48u);
  EXPECT_EQ(refusal(header("x [1, 2, 3, 4, 5, 6]"), 48), "");
  EXPECT_EQ(tensors_["w"].shape.size(), 6u);
}

TEST_F(ReaderTest, RefusesAFormatThatIsNotSpelledSo) {
  for (const char* text :
       {"", " ", "int4.1", "int4.1 ", " [2, 32]", "int4.1 []", "int4.1 [2,32]", "int4.1 [2, ]",
        "int4.1 [2, 32] ", "int4.1 [-2, 32]", "int4.1 [2, 32", "int4.1 2, 32", "int4.1 [2, x]",
        "int4.1 [2. 32]", "int4.1 [99999999999999999999]", "int4.1 [1, 2, 3, 4, 5, 6, 7]"})
    EXPECT_TRUE(
        has(refusal(header(text), 48),
            "tensor \"w\" has format \"" + std::string(text) +
                "\" in __metadata__, expected a name and a shape, as \"int4.1 [512, 128]\""))
        << text;
}

TEST_F(ReaderTest, RefusesAFormatOfWhatIsNoBytes) {
  for (const char* tensor : {R"("dtype":"F32","shape":[12])", R"("dtype":"U8","shape":[6,8])",
                             R"("dtype":"I8","shape":[48])"})
    EXPECT_TRUE(
        has(refusal(header("int4.1 [2, 32]", tensor), 48),
            "tensor \"w\" has format \"int4.1 [2, 32]\" in __metadata__, so it must be bytes"))
        << tensor;
  EXPECT_TRUE(has(
      refusal(
          R"({"__metadata__":{"dovetail.format.v":"int4.1 [2, 32]"},"w":{"dtype":"U8","shape":[48],"data_offsets":[0,48]}})",
          48),
      "has __metadata__ with the format of tensor \"v\", but no such tensor"));
}

}  // namespace
}  // namespace dovetail::core
