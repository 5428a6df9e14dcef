#include "core/hub/record.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

namespace dovetail::core {
namespace {

TEST(PullRecord, ReadsBackWhatItSaved) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / ("dvt_record_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  ASSERT_TRUE(PullRecord::load(folder));
  EXPECT_FALSE(PullRecord::load(folder)->has_value()) << "none yet";
  PullRecord record{"O/N", "main", std::string(40, 'c'), {}};
  record.files["a/b.json"] = {7, Checksum::parse(std::string(40, 'b')), "7 bytes at 1.2", true};
  record.files["w"] = {std::nullopt, {}, "", false};
  ASSERT_TRUE(record.save(folder));
  const auto loaded = PullRecord::load(folder);
  ASSERT_TRUE(loaded) << loaded.status().message();
  const PullRecord& again = **loaded;
  EXPECT_EQ(again.id + again.revision + again.commit, "O/Nmain" + std::string(40, 'c'));
  ASSERT_EQ(again.files.size(), 2u);
  const PullRecord::Entry& a = again.files.at("a/b.json");
  EXPECT_EQ(a.size, 7u);
  EXPECT_EQ(a.checksum, record.files["a/b.json"].checksum);
  EXPECT_EQ(a.version, "7 bytes at 1.2");
  EXPECT_TRUE(a.is_whole);
  EXPECT_EQ(again.files.at("w").size, std::nullopt);
  EXPECT_FALSE(again.files.at("w").is_whole);
  EXPECT_EQ(again.listing().files.size(), 2u);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace dovetail::core
