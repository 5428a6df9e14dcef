// A folder of files and a format plugin's reader over it, through the C tables and the core's own host services. The
// plugin is compiled into the test, and DVT_PLUGIN_NAME is its name.
#pragma once

#include <dovetail/abi/format.h>
#include <dovetail/abi/plugin.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "core/plugin/call_frame.hpp"
#include "core/plugin/host.hpp"

extern "C" const dvt_plugin_v1* dvt_plugin_query(uint32_t host_major, uint32_t host_minor);

namespace dovetail::core {

struct ReadTensor {
  std::string format;
  std::vector<int64_t> shape;
  std::string file;
  uint64_t offset = 0, bytes = 0;
  int64_t paired_rows = 0;
};

class FormatReaderTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string test = testing::UnitTest::GetInstance()->current_test_info()->name();
    dir_ = std::filesystem::path(testing::TempDir()) /
           ("dvt_" DVT_PLUGIN_NAME "_" + test + "_" + std::to_string(getpid()));
    std::filesystem::remove_all(dir_);
    std::filesystem::create_directories(dir_);
    descriptor_ = dvt_plugin_query(DVT_ABI_MAJOR, DVT_ABI_MINOR);
    ASSERT_EQ(descriptor_->start(call_, services_.table_for(DVT_PLUGIN_NAME), &plugin_), DVT_OK);
    table_ = static_cast<const dvt_format_v1*>(
        descriptor_->get_interface(plugin_, abi_text("dovetail.format/1")));
    ASSERT_NE(table_, nullptr);
  }
  void TearDown() override {
    close();
    descriptor_->stop(plugin_);
    std::filesystem::remove_all(dir_);
  }

  void write(const std::string& name, std::string_view bytes) {
    std::filesystem::create_directories((dir_ / name).parent_path());
    std::ofstream(dir_ / name, std::ios::binary) << bytes;
  }
  /// Opens the folder, or a file of it, and lists its tensors.
  Status open(const std::string& file = {}) {
    close();
    Result<Folder> folder = Folder::open(dir_);
    if (!folder) return folder.status();
    scope_ = std::make_unique<HostScope>(std::move(*folder));
    dvt_format_open in{sizeof in, 0, scope_->dir(), 0};
    if (!file.empty()) {
      DVT_TRY(in.file, scope_->open_file(file));
    }
    CallFrame call;
    DVT_TRY(call.check(table_->open(plugin_, call, &in, &reader_)));
    uint64_t need = 0;
    if (const dvt_code code = table_->tensors(reader_, call, nullptr, 0, &need); need > 0) {
      EXPECT_EQ(code, DVT_ETOOSMALL);
    }
    std::vector<dvt_tensor> raw(need);
    DVT_TRY(call.check(table_->tensors(reader_, call, raw.data(), raw.size(), &need)));
    for (const dvt_tensor& t : raw) {
      if (t.n_parts > 0) {
        tensors_[std::string(text_of(t.name))] = {
            std::string(text_of(t.format)), {t.shape, t.shape + t.ndim}, {}, 0, t.bytes};
        in_parts_[std::string(text_of(t.name))] = {static_cast<uint64_t>(&t - raw.data()), t};
        continue;
      }
      const File* at = HostScope::file_of(t.file);
      tensors_[std::string(text_of(t.name))] = {std::string(text_of(t.format)),
                                                {t.shape, t.shape + t.ndim},
                                                std::filesystem::path(at->name()).filename(),
                                                t.offset,
                                                t.bytes,
                                                t.paired_rows};
      EXPECT_LE(t.offset + t.bytes, at->size());
    }
    return Status::ok();
  }
  void close() {
    if (reader_ != nullptr) table_->close(reader_);
    reader_ = nullptr;
    tensors_.clear();
    in_parts_.clear();
  }
  /// Rows of a tensor in parts, as the host asks for them.
  Status read_rows(const std::string& name, std::string_view format, int64_t row0, int64_t n,
                   void* out) {
    const auto& [i, t] = in_parts_.at(name);
    std::vector<dvt_bytes> parts;
    for (uint64_t p = 0; p < t.n_parts; ++p) {
      DVT_TRY(const std::span<const std::byte> file, HostScope::file_of(t.parts[p].file)->map());
      parts.push_back({file.data() + t.parts[p].offset, t.parts[p].bytes});
    }
    CallFrame call;
    return call.check(table_->rows(reader_, call, i, parts.data(), abi_text(format), row0, n, out));
  }

  std::filesystem::path dir_;
  ThreadPool pool_{1};
  HostServices services_{pool_};
  CallFrame call_;
  const dvt_plugin_v1* descriptor_ = nullptr;
  void* plugin_ = nullptr;
  const dvt_format_v1* table_ = nullptr;
  std::unique_ptr<HostScope> scope_;
  void* reader_ = nullptr;
  std::map<std::string, ReadTensor> tensors_;
  std::map<std::string, std::pair<uint64_t, dvt_tensor>> in_parts_;  // with their place in the list
};

/// Bytes with up to three of them changed, taken out or put in, as a rule out of `alphabet`.
inline std::string mutated(std::string bytes, std::mt19937& random, const std::string& alphabet) {
  for (uint32_t n = 1 + random() % 3; n > 0; --n) {
    const size_t at = random() % bytes.size();
    switch (random() % 4) {
      case 0:
        bytes[at] = static_cast<char>(random());
        break;
      case 1:
        bytes[at] = alphabet[random() % alphabet.size()];
        break;
      case 2:
        bytes.erase(at, 1 + random() % 8);
        break;
      default:
        bytes.insert(at, 1 + random() % 3, alphabet[random() % alphabet.size()]);
    }
    if (bytes.empty()) bytes = "x";
  }
  return bytes;
}

inline bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace dovetail::core
