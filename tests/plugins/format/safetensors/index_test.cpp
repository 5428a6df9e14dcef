// Sharded checkpoints: the index decides, and says what does not fit.
#include <algorithm>
#include <fstream>

#include "reader_rig.hpp"

namespace dovetail::core {
namespace {

class IndexTest : public ReaderTest {
 protected:
  // A shard with these tensors, one byte each.
  void write_shard(const std::string& name, const std::vector<std::string>& tensors) {
    std::string header;
    for (size_t i = 0; i < tensors.size(); ++i)
      header += (i == 0 ? "{\"" : ",\"") + tensors[i] +
                R"(":{"dtype":"U8","shape":[1],"data_offsets":[)" + std::to_string(i) + "," +
                std::to_string(i + 1) + "]}";
    write(name, file_of(header + "}", tensors.size()));
  }
  void write_index(const std::string& weight_map) {
    write("model.safetensors.index.json",
          "{\"metadata\": {\"total_size\": 2},\n \"weight_map\": " + weight_map + "}");
  }
  std::string refusal_of_index(const std::string& weight_map, Code code) {
    write_index(weight_map);
    const Status s = open();
    EXPECT_EQ(s.code(), code) << s.message();
    EXPECT_EQ(s.message().find('\n'), std::string::npos) << s.message();
    EXPECT_TRUE(has(s.message(), "model.safetensors.index.json")) << s.message();
    return s.message();
  }
};

// B040, the names that are right
TEST_F(IndexTest, FollowsTheMapWhateverTheShardsAreCalled) {
  write_shard("model.safetensors-00001-of-00002.safetensors", {"a", "b"});
  write_shard("layers-22.safetensors", {"c"});
  write_shard("more/x.safetensors", {"d"});
  write_index(R"({"a": "model.safetensors-00001-of-00002.safetensors", "c": "layers-22.safetensors",
                  "b": "model.safetensors-00001-of-00002.safetensors", "d": "more/x.safetensors"})");
  const Status s = open();
  ASSERT_TRUE(s) << s.message();
  ASSERT_EQ(tensors_.size(), 4u);
  EXPECT_EQ(tensors_["a"].file, "model.safetensors-00001-of-00002.safetensors");
  EXPECT_EQ(tensors_["c"].file, "layers-22.safetensors");
  EXPECT_EQ(tensors_["d"].file, "x.safetensors");
  EXPECT_TRUE(open("model.safetensors.index.json")) << "the index itself may be named";
  EXPECT_EQ(tensors_.size(), 4u);
}

TEST_F(IndexTest, TakesTheSingleFileWhereThereIsOne) {
  write_shard("model.safetensors", {"w"});
  write_index(R"({"w": "absent.safetensors"})");
  EXPECT_TRUE(open());
  EXPECT_EQ(tensors_.size(), 1u);
}

// B037
TEST_F(IndexTest, NamesEveryShardThatIsNotThere) {
  write_shard("1.safetensors", {"a"});
  EXPECT_TRUE(
      has(refusal_of_index(R"({"a": "1.safetensors", "b": "2.safetensors", "c": "3.safetensors"})",
                           Code::kIo),
          "lists 3 shards, not there: 2.safetensors, 3.safetensors; download incomplete?"));
  std::string many = "{\"a\": \"1.safetensors\"";
  for (int i = 10; i < 20; ++i)
    many += ", \"t" + std::to_string(i) + "\": \"" + std::to_string(i) + ".safetensors\"";
  EXPECT_TRUE(has(refusal_of_index(many + "}", Code::kIo),
                  "14.safetensors and 5 more; download incomplete?"));
  std::filesystem::create_symlink("gone.safetensors", dir_ / "2.safetensors");
  EXPECT_TRUE(has(refusal_of_index(R"({"a": "1.safetensors", "b": "2.safetensors"})", Code::kIo),
                  "not there: 2.safetensors"));
}

// B038
TEST_F(IndexTest, TellsTheWaysApartInWhichIndexAndShardsDisagree) {
  write_shard("1.safetensors", {"a", "w"});
  write_shard("2.safetensors", {"b"});
  EXPECT_TRUE(
      has(refusal_of_index(R"({"a": "1.safetensors", "b": "2.safetensors", "v": "2.safetensors"})",
                           Code::kFormat),
          "says that tensor \"v\" is in \"2.safetensors\", but no shard has it; \"2.safetensors\" "
          "is stale "
          "or damaged"));
  EXPECT_TRUE(
      has(refusal_of_index(R"({"a": "1.safetensors", "b": "2.safetensors", "w": "2.safetensors"})",
                           Code::kFormat),
          "says that tensor \"w\" is in \"2.safetensors\", but it is in \"1.safetensors\"; the "
          "mapping is "
          "wrong"));
}

TEST_F(IndexTest, WarnsOnceOfTensorsThatItOmits) {
  write_shard("1.safetensors", {"a", "extra", "extra2"});
  write_index(R"({"a": "1.safetensors"})");
  testing::internal::CaptureStderr();
  const Status s = open();
  const std::string log = testing::internal::GetCapturedStderr();
  ASSERT_TRUE(s) << s.message();
  EXPECT_EQ(tensors_.size(), 1u);
  EXPECT_TRUE(has(log, "2 tensors are in the shards but not in")) << log;
  EXPECT_TRUE(has(log, "\"extra\"")) << log;
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1);
}

TEST_F(IndexTest, DecidesBetweenTwoShardsThatHoldTheSameTensor) {
  write_shard("1.safetensors", {"a", "w"});
  write_shard("2.safetensors", {"b", "w"});
  write_index(R"({"a": "1.safetensors", "b": "2.safetensors", "w": "2.safetensors"})");
  ASSERT_TRUE(open());
  EXPECT_EQ(tensors_["w"].file, "2.safetensors");
  EXPECT_EQ(tensors_.size(), 3u);
}

// B040, the names that are not
TEST_F(IndexTest, RefusesNamesThatLeaveTheFolderOrAreNone) {
  write_shard("1.safetensors", {"a"});
  const auto of = [&](const std::string& shard) {
    return refusal_of_index(R"({"a": "1.safetensors", "w": )" + shard + "}", Code::kFormat);
  };
  for (const char* shard : {"\"../../x.safetensors\"", "\"/etc/passwd\"", "\"a\\\\..\\\\x\"",
                            "\"x\\u0000.safetensors\"", "\"\""})
    EXPECT_TRUE(has(of(shard), "shard of tensor \"w\": ")) << shard;
  EXPECT_TRUE(has(of("\"../../x.safetensors\""), "leads outside"));
  EXPECT_TRUE(has(of("\"\""), "is empty"));
  EXPECT_TRUE(has(of("7"), "tensor \"w\" is in 7, expected a file name"));
  EXPECT_TRUE(has(of("null"), "expected a file name"));

  const std::filesystem::path outside = dir_.string() + "_outside.safetensors";
  std::ofstream(outside) << file_of("{}", 0);
  std::filesystem::create_symlink(outside, dir_ / "link.safetensors");
  EXPECT_TRUE(has(of("\"link.safetensors\""), "outside the folder"));
  std::filesystem::remove(outside);
}

TEST_F(IndexTest, RefusesAnIndexWithoutAMap) {
  EXPECT_TRUE(
      has(refusal_of_index("[]", Code::kFormat), "has weight_map a list of 0, expected a map"));
  EXPECT_TRUE(has(refusal_of_index("null", Code::kFormat), "has weight_map nothing"));
  EXPECT_TRUE(
      has(refusal_of_index(R"({"a": "1", "a": "2"})", Code::kFormat), "key \"a\" appears twice"));
  write("model.safetensors.index.json", "[]");
  EXPECT_FALSE(open());
}

TEST_F(IndexTest, RefusesATruncatedShard) {
  write_shard("1.safetensors", {"a"});
  write_shard("2.safetensors", {"b", "c"});
  std::filesystem::resize_file(dir_ / "2.safetensors",
                               std::filesystem::file_size(dir_ / "2.safetensors") - 1);
  write_index(R"({"a": "1.safetensors", "b": "2.safetensors", "c": "2.safetensors"})");
  const Status s = open();
  EXPECT_TRUE(has(s.message(), "2.safetensors: tensor \"c\" ends at byte 2")) << s.message();
  EXPECT_TRUE(has(s.message(), "1 bytes are missing")) << s.message();
}

}  // namespace
}  // namespace dovetail::core
