#include "core/hub/checksum.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <dovetail/sha256.hpp>
#include <filesystem>
#include <fstream>

namespace dovetail::core {
namespace {

std::string hex_of(Checksum::Kind kind, std::string_view text) {
  Result<Hasher> hasher = Hasher::begin(kind, text.size());
  EXPECT_TRUE(hasher) << hasher.status().message();
  for (size_t at = 0; at < text.size(); at += 7) hasher->add(text.substr(at, 7));
  return hasher->finish().hex;
}

TEST(Checksum, IsThatOfTheStandards) {
  // FIPS 180-4's example; what `git hash-object` says of these bytes.
  EXPECT_EQ(hex_of(Checksum::Kind::kSha256, "abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex_of(Checksum::Kind::kGitSha1, ""), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
  EXPECT_EQ(hex_of(Checksum::Kind::kGitSha1, "hello world\n"),
            "3b18e512dba79e4c8300dd08aeb37f8e728b8dad");
}

TEST(Checksum, IsThatOfTheSdk) {
  const std::string text(100'003, 'x');
  EXPECT_EQ(hex_of(Checksum::Kind::kSha256, text),
            dovetail::sha256_hex(std::as_bytes(std::span(text))));
}

TEST(Checksum, IsToldByItsDigits) {
  const std::string sha256(64, 'a'), sha1(40, '1');
  EXPECT_EQ(Checksum::parse(sha256), (Checksum{Checksum::Kind::kSha256, sha256}));
  EXPECT_EQ(Checksum::parse("\"" + std::string(40, 'F') + "\""),
            (Checksum{Checksum::Kind::kGitSha1, std::string(40, 'f')}));
  for (const std::string& other :
       {std::string(), std::string("\""), std::string("W/\"" + sha1 + "\""), std::string(40, 'g'),
        std::string(32, 'a'), sha1 + "-2"})
    EXPECT_EQ(Checksum::parse(other), Checksum()) << other;
}

TEST(Checksum, OfAFileIsThatOfItsFirstBytes) {
  const std::filesystem::path path =
      std::filesystem::path(testing::TempDir()) / ("dvt_hash_" + std::to_string(getpid()));
  std::ofstream(path) << "abc and more";
  Result<Hasher> hasher = Hasher::begin(Checksum::Kind::kSha256, 3);
  ASSERT_TRUE(hash_file(path, 3, *hasher, [](uint64_t) { return true; }));
  EXPECT_EQ(hasher->finish().hex, hex_of(Checksum::Kind::kSha256, "abc"));
  hasher = Hasher::begin(Checksum::Kind::kSha256, 100);
  EXPECT_EQ(hash_file(path, 100, *hasher, [](uint64_t) { return true; }).code(), Code::kFormat);
  EXPECT_EQ(hash_file(path, 3, *hasher, [](uint64_t) { return false; }).code(), Code::kCancelled);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace dovetail::core
