// Files whole or not at all, and names that never leave their folder.
#include "core/base/files.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "core/base/folder.hpp"
#include "core/base/log.hpp"
#include "core/base/pages.hpp"

namespace dovetail::core {
namespace {

namespace fs = std::filesystem;

class FilesTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::canonical(testing::TempDir()) / ("dvt_files_" + std::to_string(getpid()));
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }
  void put(const fs::path& file, const std::string& text) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  std::string get(const fs::path& file) {
    std::ifstream in(root_ / file);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  size_t n_entries() {
    return static_cast<size_t>(std::distance(fs::directory_iterator(root_), {}));
  }
  fs::path root_;
};

TEST_F(FilesTest, ReadsAndMapsTheSameBytes) {
  put("a", "hello, world");
  const auto file = File::open(root_ / "a", "a");
  ASSERT_TRUE(file) << file.status().message();
  EXPECT_EQ((*file)->size(), 12u);
  EXPECT_EQ(*(*file)->read_all(), "hello, world");
  const auto bytes = (*file)->map();
  ASSERT_TRUE(bytes);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size()),
            "hello, world");
  EXPECT_EQ((*file)->map()->data(), bytes->data()) << "mapped once";
  EXPECT_EQ((*file)->read_all(11).status().message(), "a: has 12 bytes, expected at most 11 bytes");
}

// Kilobytes of the mapping at p whose pages are private to this process, not the file's.
long anonymous_kib(const void* p) {
  std::ifstream in("/proc/self/smaps");
  const auto at = reinterpret_cast<uintptr_t>(p);
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    unsigned long begin = 0, end = 0;
    long kib = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) inside = begin <= at && at < end;
    if (inside && std::sscanf(line.c_str(), "Anonymous: %ld kB", &kib) == 1) return kib;
  }
  return -1;
}

TEST_F(FilesTest, MovesToPagesOfItsOwnUnderItsReaders) {
  std::string text(5 * kHugePage + 12345, ' ');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 2654435761u >> 24);
  put("weights", text);
  const auto file = File::open(root_ / "weights", "weights");
  ASSERT_TRUE(file);
  EXPECT_EQ((*file)->move_to_huge_pages(0, 1).code(), Code::kInvalid) << "not mapped yet";
  const std::span<const std::byte> bytes = *(*file)->map();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(bytes.data()) % kHugePage, 0u);
  ASSERT_EQ(anonymous_kib(bytes.data()), 0);

  std::atomic<bool> stop{false};
  std::atomic<int> n_wrong{0}, n_reads{0};
  std::thread reader([&] {
    while (!stop) {
      n_wrong += std::memcmp(bytes.data(), text.data(), text.size()) != 0;
      ++n_reads;
    }
  });
  const uint64_t middle = 2 * kHugePage + 100;
  EXPECT_TRUE((*file)->move_to_huge_pages(middle, 10).is_ok());
  EXPECT_EQ(anonymous_kib(bytes.data()), 0) << "the first pages were not asked for";
  EXPECT_EQ(anonymous_kib(bytes.data() + middle), 2048);
  (*file)->let_go(0, text.size());  // the reader sees to it that what has moved stays
  EXPECT_TRUE((*file)->move_to_huge_pages(0, text.size()).is_ok()) << "again, and to the end";
  while (n_reads < 3) std::this_thread::yield();
  stop = true;
  reader.join();
  EXPECT_EQ(n_wrong, 0);
  EXPECT_GE(anonymous_kib(bytes.data()), 2048);
  EXPECT_EQ((*file)->move_to_huge_pages(text.size(), 1).code(), Code::kInvalid);

  put("weights", "cut short, which no longer reaches the copy");
  (*file)->let_go(0, text.size());
  EXPECT_EQ(std::memcmp(bytes.data(), text.data(), text.size()), 0);
}

TEST_F(FilesTest, AFileCutShortIsNotMoved) {
  put("weights", std::string(3 * kHugePage, 'x'));
  const auto file = File::open(root_ / "weights", "weights");
  const std::span<const std::byte> bytes = *(*file)->map();
  fs::resize_file(root_ / "weights", kHugePage);
  const Status s = (*file)->move_to_huge_pages(0, bytes.size());
  EXPECT_EQ(s.code(), Code::kFormat) << s.message();
  EXPECT_EQ(anonymous_kib(bytes.data()), 0) << "still the file's";
  EXPECT_EQ(bytes[kHugePage - 1], std::byte{'x'});
}

TEST_F(FilesTest, AnEmptyFileIsAFile) {
  put("empty", "");
  const auto file = File::open(root_ / "empty");
  ASSERT_TRUE(file);
  EXPECT_TRUE((*file)->map()->empty());
  EXPECT_EQ(*(*file)->read_all(), "");
  EXPECT_EQ((*file)->read_at(0, nullptr, 0).code(), Code::kOk);
}

TEST_F(FilesTest, OnlyRegularFilesAreOpened) {
  EXPECT_EQ(File::open(root_ / "none", "x/none").status().message(),
            "x/none: cannot open: no such file or directory");
  EXPECT_EQ(File::open(root_, "root").status().message(), "root: is a folder, expected a file");
  ASSERT_EQ(mkfifo((root_ / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(File::open(root_ / "pipe", "pipe").status().message(),
            "pipe: is a pipe, expected a file");
  EXPECT_EQ(File::open("/dev/zero").status().message(), "/dev/zero: is a device, expected a file");
}

TEST_F(FilesTest, WritingReplacesAFileAndKeepsItsMode) {
  ASSERT_TRUE(write_file(root_ / "out", "one"));
  fs::permissions(root_ / "out", fs::perms(0640));
  ASSERT_TRUE(write_file(root_ / "out", "two"));
  EXPECT_EQ(get("out"), "two");
  EXPECT_EQ(fs::status(root_ / "out").permissions(), fs::perms(0640));
  fs::create_symlink("out", root_ / "link");
  ASSERT_TRUE(write_file(root_ / "link", "three"));
  EXPECT_TRUE(fs::is_symlink(root_ / "link"));
  EXPECT_EQ(get("out"), "three");
  EXPECT_EQ(n_entries(), 2u);
}

TEST_F(FilesTest, WithoutCommitNothingChanges) {
  put("out", "old");
  {
    auto writer = FileWriter::create(root_ / "out");
    ASSERT_TRUE(writer);
    ASSERT_TRUE((*writer)->write(std::string_view("new")));
    EXPECT_EQ(n_entries(), 2u);
  }
  EXPECT_EQ(get("out"), "old");
  EXPECT_EQ(n_entries(), 1u);
}

TEST_F(FilesTest, SaysWhyItCannotWrite) {
  EXPECT_EQ(write_file(root_ / "no" / "such", "x").message(),
            (root_ / "no" / "such").string() + ": cannot write there: no such file or directory");
  EXPECT_EQ(write_file(root_, "x").message(),
            root_.string() + ": is a folder, expected a file to write");
}

TEST_F(FilesTest, AFullDiskIsOneClearLine) {
  const Status status = write_file("/dev/full", "x");
  EXPECT_EQ(status.code(), Code::kIo);
  EXPECT_EQ(status.message(),
            "/dev/full: the disk is full after 0 bytes; free some space or write somewhere else");
}

TEST_F(FilesTest, AFailedWriteLeavesNothingBehind) {
  put("out", "old");
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{4096, before.rlim_max};
  signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  const Status status = write_file(root_ / "out", std::string(10000, 'x'));
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, SIG_DFL);
  EXPECT_EQ(status.message(), (root_ / "out").string() + ": cannot write: file too large");
  EXPECT_EQ(get("out"), "old");
  EXPECT_EQ(n_entries(), 1u);
}

TEST_F(FilesTest, WritesToPipesDirectly) {
  ASSERT_EQ(mkfifo((root_ / "pipe").c_str(), 0600), 0);
  const int reader = ::open((root_ / "pipe").c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_TRUE(write_file(root_ / "pipe", "through"));
  char text[16] = {};
  EXPECT_EQ(::read(reader, text, sizeof text), 7);
  EXPECT_STREQ(text, "through");
  ::close(reader);
  EXPECT_TRUE(fs::is_fifo(root_ / "pipe"));
}

TEST_F(FilesTest, FolderOpensWhatIsInsideIt) {
  put("model/model.safetensors-00001-of-00002.safetensors", "1");
  put("model/layers-22.safetensors", "2");
  put("model/sub/x", "3");
  const auto folder = Folder::open(root_ / "model");
  ASSERT_TRUE(folder);
  EXPECT_EQ(*folder->read("model.safetensors-00001-of-00002.safetensors"), "1");
  EXPECT_EQ(*folder->read("layers-22.safetensors"), "2");
  EXPECT_EQ(*folder->read("./sub//x"), "3");
  EXPECT_TRUE(folder->has("sub/x"));
  EXPECT_FALSE(folder->has("sub"));
  EXPECT_FALSE(folder->has("y"));
  EXPECT_EQ((*folder->open_file("sub/x"))->name(), (root_ / "model" / "sub/x").string());
  EXPECT_EQ(Folder::open(root_ / "nowhere").status().code(), Code::kIo);
  EXPECT_EQ(Folder::open(root_ / "model/sub/x").status().code(), Code::kIo);
}

TEST_F(FilesTest, FolderRefusesNamesThatLeaveIt) {
  put("x.safetensors", "outside");
  put("model/a", "inside");
  put("model-2/a", "a neighbour whose name begins the same");
  const auto folder = Folder::open(root_ / "model");
  ASSERT_TRUE(folder);
  const auto why = [&](std::string_view name) { return folder->open_file(name).status(); };
  for (const std::string_view name :
       {"../x.safetensors", "..", "a/../../x.safetensors", "sub/../a"}) {
    EXPECT_EQ(why(name).code(), Code::kInvalid) << name;
    EXPECT_NE(why(name).message().find("leads outside"), std::string::npos) << why(name).message();
  }
  EXPECT_NE(why("").message().find("is empty"), std::string::npos);
  EXPECT_NE(why("/etc/passwd").message().find("is an absolute path"), std::string::npos);
  EXPECT_NE(why("a\\..\\x").message().find("has a backslash"), std::string::npos);
  EXPECT_NE(why(std::string_view("a\0b", 3)).message().find("\"a\\x00b\" is not a file name"),
            std::string::npos);
  EXPECT_EQ(why("missing").code(), Code::kIo);

  fs::create_symlink("a", root_ / "model" / "near");
  fs::create_symlink("../x.safetensors", root_ / "model" / "far");
  fs::create_symlink("../model-2", root_ / "model" / "side");
  fs::create_symlink("loop", root_ / "model" / "loop");
  EXPECT_EQ(*folder->read("near"), "inside");
  EXPECT_EQ(why("far").code(), Code::kInvalid);
  EXPECT_NE(why("far").message().find("is a link to " + (root_ / "x.safetensors").string()),
            std::string::npos);
  EXPECT_EQ(why("side/a").code(), Code::kInvalid);
  EXPECT_FALSE(folder->has("far"));
  EXPECT_EQ(why("loop").code(), Code::kIo);
}

TEST_F(FilesTest, LinksOfAHuggingFaceCacheAreFollowed) {
  put("hub/models--Qwen--Qwen3/blobs/abc", "weights");
  put("hub/models--Other/blobs/def", "of another model");
  const fs::path snapshot = root_ / "hub/models--Qwen--Qwen3/snapshots/c1899de";
  fs::create_directories(snapshot);
  fs::create_symlink("../../blobs/abc", snapshot / "model.safetensors");
  fs::create_symlink("../../../models--Other/blobs/def", snapshot / "stolen.safetensors");
  fs::create_symlink(snapshot, root_ / "short");
  for (const fs::path& path : {snapshot, root_ / "short"}) {
    const auto folder = Folder::open(path);
    ASSERT_TRUE(folder);
    EXPECT_EQ(*folder->read("model.safetensors"), "weights");
    EXPECT_EQ(folder->open_file("stolen.safetensors").status().code(), Code::kInvalid);
    EXPECT_EQ(folder->open_file("../../blobs/abc").status().code(), Code::kInvalid)
        << "a name, not a link";
  }
}

TEST(BytesText, IsShort) {
  EXPECT_EQ(bytes_text(0), "0 bytes");
  EXPECT_EQ(bytes_text(1023), "1023 bytes");
  EXPECT_EQ(bytes_text(1536), "1.5 KiB");
  EXPECT_EQ(bytes_text((uint64_t{1} << 30) - 1), "1.0 GiB");
  EXPECT_EQ(bytes_text(UINT64_MAX), "16.0 EiB");
}

TEST(Printable, EscapesWhatWouldDriveATerminal) {
  EXPECT_EQ(printable("a\x1b[2J\n\tb\x7f"), "a\\x1b[2J\\n\\tb\\x7f");
  EXPECT_EQ(printable("a\nb", true), "a\nb");
  EXPECT_EQ(printable("größer"), "größer");
}

TEST_F(FilesTest, AResumableWriterGoesOnWhereTheLastOneStopped) {
  const fs::path path = root_ / "big";
  {
    const auto writer = FileWriter::resume(path, "v1");
    ASSERT_TRUE(writer) << writer.status().message();
    ASSERT_TRUE((*writer)->write("hello"));
  }
  EXPECT_FALSE(fs::exists(path));
  EXPECT_EQ(get(FileWriter::resumable("big", "v1")), "hello");
  EXPECT_EQ((*FileWriter::resume(path, "v2"))->n_written(), 0u) << "of another version";
  {
    const auto writer = FileWriter::resume(path, "v1");
    EXPECT_EQ((*writer)->n_written(), 5u);
    ASSERT_TRUE((*writer)->restart());
    EXPECT_EQ((*writer)->n_written(), 0u);
    ASSERT_TRUE((*writer)->write("good"));
  }
  const auto writer = FileWriter::resume(path, "v1");
  ASSERT_TRUE((*writer)->write(" bye"));
  ASSERT_TRUE((*writer)->commit());
  EXPECT_EQ(get("big"), "good bye");
  EXPECT_FALSE(fs::exists(FileWriter::resumable(path, "v1")));
}

TEST_F(FilesTest, AResumableWriterFollowsNoLink) {
  put("elsewhere", "precious");
  fs::create_symlink(root_ / "elsewhere", FileWriter::resumable(root_ / "big", "v1"));
  EXPECT_EQ(FileWriter::resume(root_ / "big", "v1").status().code(), Code::kIo);
  EXPECT_EQ(get("elsewhere"), "precious");
  fs::create_directories(root_ / "folder");
  EXPECT_EQ(FileWriter::resume(root_ / "folder", "v1").status().code(), Code::kInvalid);
}

TEST_F(FilesTest, FreeSpaceIsThatOfTheNearestFolder) {
  const std::optional<uint64_t> n = free_disk_bytes(root_ / "not" / "there");
  ASSERT_TRUE(n);
  EXPECT_GT(*n, 0u);
}

}  // namespace
}  // namespace dovetail::core
