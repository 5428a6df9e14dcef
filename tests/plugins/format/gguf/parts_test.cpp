// Models in several files, and folders of several models.
#include "reader_rig.hpp"

namespace dovetail::core {
namespace {

class GgufParts : public GgufTest {
 protected:
  static GgufFile part(uint16_t number, uint16_t count, int32_t n_tensors) {
    GgufFile f = number == 0 ? model_of("qwen3") : GgufFile();
    return f.pair("split.no", 2, raw(number))
        .pair("split.count", 2, raw(count))
        .pair("split.tensors.count", 5, raw(n_tensors));
  }
  void write_parts() {
    GgufFile first = part(0, 3, 3), second = part(1, 3, 3), third = part(2, 3, 3);
    write("m-00001-of-00003.gguf", first.tensor("token_embd.weight", {1}, 0, "aaaa").bytes());
    write("m-00002-of-00003.gguf", second.tensor("output_norm.weight", {1}, 0, "bbbb").bytes());
    write("m-00003-of-00003.gguf", third.tensor("blk.0.attn_norm.weight", {1}, 0, "cccc").bytes());
  }
  std::string why(const std::string& file = {}) {
    const Status s = open(file);
    EXPECT_EQ(s.message().find('\n'), std::string::npos) << s.message();
    return s.message();
  }
};

TEST_F(GgufParts, AreReadTogetherByWhicheverIsNamed) {
  write_parts();
  for (const char* named : {"", "m-00001-of-00003.gguf", "m-00003-of-00003.gguf"}) {
    EXPECT_EQ(why(named), "") << named;
    ASSERT_EQ(tensors_.size(), 3u);
    EXPECT_EQ(tensors_["model.norm.weight"].file, "m-00002-of-00003.gguf");
    EXPECT_TRUE(has(json("config"), "\"model_type\":\"qwen3\""));
  }
}

// B037
TEST_F(GgufParts, NamesThoseThatAreNotThere) {
  write_parts();
  std::filesystem::remove(dir_ / "m-00001-of-00003.gguf");
  std::filesystem::remove(dir_ / "m-00002-of-00003.gguf");
  EXPECT_TRUE(has(why(),
                  "is one of 3 parts, not there: m-00001-of-00003.gguf, m-00002-of-00003.gguf; "
                  "download incomplete?"));
  EXPECT_EQ(open().code(), Code::kIo);
}

// B038
TEST_F(GgufParts, ThatDoNotBelongTogetherAreRefused) {
  write_parts();
  GgufFile wrong = part(0, 3, 3);
  write("m-00002-of-00003.gguf", wrong.tensor("output_norm.weight", {1}, 0, "bbbb").bytes());
  EXPECT_TRUE(has(why(),
                  "m-00002-of-00003.gguf: says that it is part 1 of 3 (split.no, split.count), "
                  "expected part 2 of 3"));
  write_parts();
  write("m-00002-of-00003.gguf", GgufFile().tensor("output_norm.weight", {1}, 0, "bbbb").bytes());
  EXPECT_TRUE(has(why("m-00001-of-00003.gguf"), "says that it is part ? of ?"));
  write_parts();
  GgufFile again = part(1, 3, 3);
  write("m-00002-of-00003.gguf", again.tensor("token_embd.weight", {1}, 0, "bbbb").bytes());
  EXPECT_TRUE(has(
      why(),
      "m-00002-of-00003.gguf: has tensor \"token_embd.weight\", which a part before it has too"));
  write_parts();
  write("m-00002-of-00003.gguf", part(1, 3, 3).bytes());
  EXPECT_TRUE(has(why(), "says that all parts have 3 tensors (split.tensors.count), they have 2"));
}

TEST_F(GgufParts, AreFoundByTheirNames) {
  write("m.gguf", part(1, 3, 3).bytes());
  EXPECT_TRUE(has(
      why(), "is one of 3 parts (split.count), but its name does not end in -NNNNN-of-00003.gguf"));
}

TEST_F(GgufParts, OneFileThatSaysItIsAllOfThemIsWhole) {
  write("m.gguf", part(0, 1, 0).bytes());
  EXPECT_EQ(why(), "");
}

TEST_F(GgufParts, AFolderHasOneModel) {
  write_parts();
  write("mmproj-m.gguf", "GGUF of a projector");
  EXPECT_EQ(why(), "") << "a projector is no model";
  write("other.gguf", model_of("qwen3").bytes());
  EXPECT_TRUE(has(why(),
                  "the folder has 2 GGUF models, such as m-00001-of-00003.gguf and other.gguf; "
                  "name one of the files"));
  EXPECT_EQ(why("other.gguf"), "");
}

}  // namespace
}  // namespace dovetail::core
