// The cache of packed weights: found again by what they were made of, whole or not there, bounded.
#include "core/model/repack_cache.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <thread>

#include "core/base/log.hpp"

namespace dovetail::core {
namespace {

namespace fs = std::filesystem;

class RepackCacheTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::canonical(testing::TempDir()) / ("dvt_cache_" + std::to_string(getpid()));
    fs::create_directories(root_);
    std::ofstream(root_ / "weights") << std::string(4000, 'w');
    std::ofstream(root_ / "backend.so") << "backend";
    file_ = *File::open(root_ / "weights");
    const auto bytes = *file_->map();
    tensor_.name = "a";
    tensor_.format = "float32";
    tensor_.bytes = bytes;
    tensor_.source = file_.get();
    set_log_level(LogLevel::kError);
  }
  void TearDown() override {
    set_log_level(LogLevel::kWarn);
    fs::remove_all(root_);
  }

  // Two items, the first of them large enough that the cache is used.
  std::vector<RepackCache::Item> items(uint64_t layout = 7) const {
    return {{"a", {&tensor_}, layout, RepackCache::kLeast + 100}, {"b", {&tensor_}, layout, 50}};
  }
  RepackCache cache(uint64_t max_bytes = uint64_t{1} << 30) const {
    return {root_ / "cache", max_bytes};
  }
  // Opens; stores if it is not there. Whether it was.
  bool use(const std::vector<RepackCache::Item>& list, uint64_t max_bytes = uint64_t{1} << 30) {
    RepackCache c = cache(max_bytes);
    c.open(list, root_ / "backend.so");
    const bool was_there = c.is_open();
    std::vector<std::string> packed;
    std::vector<std::span<const std::byte>> spans;
    for (const auto& item : list) {
      std::string text(item.bytes, ' ');
      for (size_t i = 0; i < text.size(); ++i)
        text[i] = static_cast<char>(i * 7 + item.layout_hash + item.name[0]);
      packed.push_back(std::move(text));
    }
    for (const std::string& p : packed) spans.push_back(std::as_bytes(std::span(p)));
    if (was_there)
      for (size_t i = 0; i < list.size(); ++i) {
        EXPECT_EQ(c.find(i).size(), spans[i].size());
        EXPECT_EQ(std::memcmp(c.find(i).data(), spans[i].data(), spans[i].size()), 0) << i;
        EXPECT_EQ(reinterpret_cast<uintptr_t>(c.find(i).data()) % 64, 0u);
      }
    const Status s = c.store(spans, "the model", nullptr, {});
    EXPECT_TRUE(s.is_ok()) << s.message();
    return was_there;
  }
  std::vector<RepackCache::Entry> list() const { return RepackCache::list(root_ / "cache"); }

  fs::path root_;
  std::shared_ptr<File> file_;
  TensorInfo tensor_;
};

TEST_F(RepackCacheTest, FindsWhatWasStored) {
  EXPECT_FALSE(use(items()));
  EXPECT_TRUE(use(items()));
  ASSERT_EQ(list().size(), 1u);
  EXPECT_EQ(list()[0].model, "the model");
  EXPECT_EQ(list()[0].backend, "backend");
  const uint64_t bytes = list()[0].bytes;
  EXPECT_EQ(*RepackCache::clear(root_ / "cache"), bytes);
  EXPECT_TRUE(list().empty());
}

TEST_F(RepackCacheTest, AnythingElseIsAnotherFile) {
  EXPECT_FALSE(use(items()));
  EXPECT_FALSE(use(items(8))) << "another layout";
  std::vector<RepackCache::Item> renamed = items();
  renamed[1].name = "c";
  EXPECT_FALSE(use(renamed));
  fs::rename(root_ / "backend.so", root_ / "elsewhere.so");
  std::ofstream(root_ / "backend.so") << "backend";
  EXPECT_TRUE(use(items())) << "the same backend in another file";
  std::ofstream(root_ / "backend.so") << "backend, built again";
  EXPECT_FALSE(use(items())) << "another backend";
  EXPECT_TRUE(use(items()));
  std::ofstream(root_ / "weights") << std::string(4000, 'v');
  file_ = *File::open(root_ / "weights");
  tensor_.bytes = *file_->map();
  tensor_.source = file_.get();
  EXPECT_FALSE(use(items())) << "other weights";
  EXPECT_EQ(list().size(), 5u);
}

TEST_F(RepackCacheTest, ADamagedFileIsMadeAnew) {
  EXPECT_FALSE(use(items()));
  const fs::path file = list()[0].path;
  fs::resize_file(file, fs::file_size(file) - 1);
  EXPECT_FALSE(use(items())) << "cut short";
  EXPECT_TRUE(use(items()));
  std::fstream(file, std::ios::in | std::ios::out | std::ios::binary)
      .write("XXXXXXXXXXXXXXXXXXXX", 20);
  EXPECT_FALSE(use(items())) << "no header";
  EXPECT_TRUE(use(items()));
}

TEST_F(RepackCacheTest, IsBoundedAndKeepsWhatWasUsedLast) {
  const uint64_t room = 2 * RepackCache::kLeast + (uint64_t{1} << 20);  // for two
  EXPECT_FALSE(use(items(1), room));
  EXPECT_FALSE(use(items(2), room));
  for (const auto& e : list())
    fs::last_write_time(e.path, fs::file_time_type::clock::now() - std::chrono::hours(2));
  EXPECT_TRUE(use(items(1), room)) << "now used last";
  EXPECT_FALSE(use(items(3), room));
  EXPECT_EQ(list().size(), 2u);
  EXPECT_TRUE(use(items(1), room));
  EXPECT_TRUE(use(items(3), room));
  EXPECT_FALSE(use(items(2), room)) << "it went";
  EXPECT_FALSE(use(items(4), RepackCache::kLeast / 2)) << "larger than the whole bound: not kept";
  EXPECT_FALSE(use(items(4), RepackCache::kLeast / 2));
  EXPECT_FALSE(use(items(5), 0));
  EXPECT_FALSE(use(items(5), 0));
}

TEST_F(RepackCacheTest, WhatAKilledWriterLeftIsListedAndGoes) {
  EXPECT_FALSE(use(items(1)));
  const fs::path left = root_ / "cache" / (".x.dvtpack.part-1-0");
  std::ofstream(left) << "half";
  EXPECT_EQ(list().size(), 2u);
  EXPECT_FALSE(use(items(2)));
  EXPECT_TRUE(fs::exists(left)) << "somebody may be at it";
  fs::last_write_time(left, fs::file_time_type::clock::now() - std::chrono::hours(30));
  EXPECT_FALSE(use(items(3)));
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(RepackCache::clear(root_ / "cache").is_ok());
  EXPECT_TRUE(list().empty());
}

TEST_F(RepackCacheTest, WritersAtTheSameTimeLeaveOneWholeFile) {
  std::vector<std::thread> writers;
  for (int i = 0; i < 4; ++i) writers.emplace_back([this] { use(items()); });
  for (std::thread& w : writers) w.join();
  EXPECT_EQ(list().size(), 1u);
  EXPECT_TRUE(use(items()));
}

TEST_F(RepackCacheTest, LittleIsNotKept) {
  const std::vector<RepackCache::Item> little = {{"a", {&tensor_}, 1, 1000}};
  EXPECT_FALSE(use(little));
  EXPECT_FALSE(use(little));
}

TEST_F(RepackCacheTest, AFolderThatCannotBeMadeIsAnError) {
  RepackCache c(root_ / "weights" / "cache", uint64_t{1} << 30);  // below a file
  c.open(items(), root_ / "backend.so");
  const std::string a(items()[0].bytes, 'a'), b(50, 'b');
  EXPECT_EQ(
      c.store({std::as_bytes(std::span(a)), std::as_bytes(std::span(b))}, "m", nullptr, {}).code(),
      Code::kIo);
}

}  // namespace
}  // namespace dovetail::core
