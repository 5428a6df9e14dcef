#include "core/hub/listing.hpp"

#include <gtest/gtest.h>

namespace dovetail::core {
namespace {

const std::string kSha(40, 'c'), kBlob(40, 'b'), kSha256(64, 'a');

Result<HubListing> parse(const std::string& siblings) {
  return parse_listing(R"({"sha": ")" + kSha + R"(", "siblings": )" + siblings + "}", "hub", "O/N");
}

TEST(HubListing, HasSizesAndChecksums) {
  const Result<HubListing> l = parse(R"([{"rfilename": "a", "size": 5, "blobId": ")" + kBlob +
                                     R"("}, {"rfilename": "b", "size": 9, "blobId": ")" + kBlob +
                                     R"(", "lfs": {"sha256": ")" + kSha256 +
                                     R"(", "size": 7, "pointerSize": 9}}, {"rfilename": "c"}])");
  ASSERT_TRUE(l) << l.status().message();
  EXPECT_EQ(l->id + l->commit, "O/N" + kSha);
  ASSERT_EQ(l->files.size(), 3u);
  EXPECT_EQ(l->files[0].size, 5u);
  EXPECT_EQ(l->files[0].checksum, (Checksum{Checksum::Kind::kGitSha1, kBlob}));
  EXPECT_EQ(l->files[1].size, 7u) << "of what the pointer stands for";
  EXPECT_EQ(l->files[1].checksum, (Checksum{Checksum::Kind::kSha256, kSha256}));
  EXPECT_EQ(l->files[2].size, std::nullopt);
  EXPECT_EQ(l->files[2].checksum, Checksum());
}

TEST(HubListing, OfALargeFileNeverHasThePointersChecksum) {
  const Result<HubListing> l =
      parse(R"([{"rfilename": "b", "blobId": ")" + kBlob + R"(", "lfs": {"size": 7}}])");
  ASSERT_TRUE(l);
  EXPECT_EQ(l->files[0].checksum, Checksum());
}

TEST(HubListing, ThatIsNoneIsRefused) {
  EXPECT_EQ(parse("{}").status().code(), Code::kFormat);
  EXPECT_EQ(parse("[5]").status().code(), Code::kFormat);
  EXPECT_EQ(parse(R"([{"rfilename": "a"}, {"rfilename": "a"}])").status().message(),
            "hub: lists \"a\" twice");
  EXPECT_EQ(parse_listing(R"({"sha": "main", "siblings": []})", "hub", "O/N").status().code(),
            Code::kFormat);
}

TEST(HubListing, IsAskedForWithAnId) {
  const HubAccess access{"https://hub"};
  for (const char* text : {"Qwen/Qwen3-0.6B", "https://hub/Qwen/Qwen3-0.6B", "Qwen/Qwen3-0.6B/"})
    EXPECT_EQ(*model_id(text, access), "Qwen/Qwen3-0.6B") << text;
  EXPECT_EQ(*model_id("gpt2", access), "gpt2");
  for (const char* text : {"", "/", "a/b/c", "../a", "a/..", "a b/c", ".a/b", "-a/b", "a/b?x",
                           "a/b#", "https://other/a/b", "a/\xc3\xa9"})
    EXPECT_EQ(model_id(text, access).status().code(), Code::kInvalid) << text;
}

TEST(HubListing, NamesBecomeUrls) {
  const HubListing listing{"O/N", kSha, {}};
  EXPECT_EQ(file_url({"https://hub"}, listing, {"a b/c#?%.txt", {}, {}}),
            "https://hub/O/N/resolve/" + kSha + "/a%20b/c%23%3F%25.txt");
  EXPECT_EQ(HttpClient::escaped("refs/pr/1", false), "refs%2Fpr%2F1");
}

}  // namespace
}  // namespace dovetail::core
