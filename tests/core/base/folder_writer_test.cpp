// Folders whole or not at all.
#include "core/base/folder_writer.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "core/base/files.hpp"

namespace dovetail::core {
namespace {

namespace fs = std::filesystem;

class FolderWriterTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::canonical(testing::TempDir()) / ("dvt_folder_" + std::to_string(getpid()));
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }
  // Writes a folder with the file "a"; commits it or not.
  Status put(const fs::path& path, const std::string& text, bool commit, bool replace = false) {
    DVT_TRY(const std::unique_ptr<FolderWriter> folder, FolderWriter::create(path));
    DVT_TRY(write_file(folder->path() / "a", text));
    return commit ? folder->commit(replace) : Status::ok();
  }
  std::string get(const fs::path& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  size_t n_entries() {
    return static_cast<size_t>(std::distance(fs::directory_iterator(root_), {}));
  }
  fs::path root_;
};

TEST_F(FolderWriterTest, AppearsWholeOrNotAtAll) {
  ASSERT_TRUE(put(root_ / "x", "no", /*commit=*/false));
  EXPECT_EQ(n_entries(), 0u);
  ASSERT_TRUE(put(root_ / "x", "yes", /*commit=*/true));
  EXPECT_EQ(get(root_ / "x" / "a"), "yes");
  ASSERT_TRUE(put(root_ / "y/", "slash", /*commit=*/true));
  EXPECT_EQ(get(root_ / "y" / "a"), "slash");
  EXPECT_EQ(n_entries(), 2u);
}

TEST_F(FolderWriterTest, TakesThePlaceOfAnEmptyFolderOnly) {
  fs::create_directories(root_ / "x");
  ASSERT_TRUE(put(root_ / "x", "first", /*commit=*/true));
  const Status again = put(root_ / "x", "second", /*commit=*/true);
  EXPECT_EQ(again.code(), Code::kIo);
  EXPECT_NE(again.message().find("x: cannot put it in place"), std::string::npos)
      << again.message();
  EXPECT_EQ(get(root_ / "x" / "a"), "first");
  EXPECT_EQ(n_entries(), 1u) << "nothing is left behind";
}

TEST_F(FolderWriterTest, ReplacesWhenAsked) {
  ASSERT_TRUE(put(root_ / "x", "first", /*commit=*/true));
  ASSERT_TRUE(put(root_ / "x", "never", /*commit=*/false, /*replace=*/true));
  EXPECT_EQ(get(root_ / "x" / "a"), "first");
  ASSERT_TRUE(put(root_ / "x", "second", /*commit=*/true, /*replace=*/true));
  EXPECT_EQ(get(root_ / "x" / "a"), "second");
  ASSERT_TRUE(put(root_ / "y", "new", /*commit=*/true, /*replace=*/true));
  EXPECT_EQ(get(root_ / "y" / "a"), "new");
  EXPECT_EQ(n_entries(), 2u);
}

TEST_F(FolderWriterTest, RemovesWhatAKilledWriterLeft) {
  fs::create_directories(root_ / ".x.part-1-0" / "deep");
  fs::create_directories(root_ / ".xy.part-1-0");  // of another folder
  const Result<std::unique_ptr<FolderWriter>> writing = FolderWriter::create(root_ / "x");
  ASSERT_TRUE(writing);
  EXPECT_FALSE(fs::exists(root_ / ".x.part-1-0"));
  EXPECT_TRUE(fs::exists(root_ / ".xy.part-1-0"));
  ASSERT_TRUE(put(root_ / "x", "meanwhile", /*commit=*/true));
  EXPECT_TRUE(fs::exists((*writing)->path())) << "somebody writes it";
}

TEST_F(FolderWriterTest, ALockThatIsHeldIsNotWaitedFor) {
  using Kind = FolderLock::Kind;
  {
    const auto mine = FolderLock::try_take(root_, Kind::kAlone);
    ASSERT_TRUE(mine) << mine.status().message();
    ASSERT_TRUE(mine->has_value());
    EXPECT_FALSE(FolderLock::try_take(root_, Kind::kShared)->has_value());
    EXPECT_FALSE(FolderLock::is_free(root_));
  }
  EXPECT_TRUE(FolderLock::is_free(root_));
  const auto shared = FolderLock::try_take(root_, Kind::kShared);
  EXPECT_TRUE(FolderLock::try_take(root_, Kind::kShared)->has_value());
  EXPECT_FALSE(FolderLock::try_take(root_, Kind::kAlone)->has_value());
  EXPECT_EQ(FolderLock::try_take(root_ / "gone", Kind::kAlone).status().code(), Code::kIo);
}

TEST_F(FolderWriterTest, NamesAParentThatIsNotThere) {
  const Status s = put(root_ / "no" / "x", "", /*commit=*/true);
  EXPECT_EQ(s.code(), Code::kIo);
  EXPECT_NE(s.message().find("no/x: cannot make the folder: no such file"), std::string::npos)
      << s.message();
}

}  // namespace
}  // namespace dovetail::core
