// What every checkpoint format must do, tried on each one that the build made with its own fixtures:
//   tests/plugins/format/NAME/contract/valid/CASE/       a checkpoint that is right, and
//   tests/plugins/format/NAME/contract/valid/CASE.json   what is in it: {"file": name of a file that a
//       user may name, "tensors": {name: {"format", "shape", "bytes" in hex}}, "documents": {which: content}};
//       the bytes of a matrix in parts are what rows() makes of it in its own format
//   tests/plugins/format/NAME/contract/damaged/CASE/     a checkpoint that must be refused
#include <dovetail/abi/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <random>
#include <set>

#include "core/base/json.hpp"
#include "tests/contract/built_plugins.hpp"

namespace dovetail::core::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDocuments[] = {"config", "generation", "tokenizer", "tokenizer_config"};

std::string hex(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const char c : bytes) {
    out += kDigits[static_cast<uint8_t>(c) >> 4];
    out += kDigits[static_cast<uint8_t>(c) & 15];
  }
  return out;
}

std::vector<fs::path> folders_in(const fs::path& path) {
  std::vector<fs::path> out;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(path, error))
    if (entry.is_directory()) out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}
std::vector<fs::path> files_in(const fs::path& path) {
  std::vector<fs::path> out;
  for (const auto& entry : fs::recursive_directory_iterator(path))
    if (entry.is_regular_file()) out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}
void write(const fs::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

/// A reader over a folder, or over one file of it; where it failed, why.
class Reader {
 public:
  Reader(const LoadedPlugin& plugin, const fs::path& folder, const std::string& file = {})
      : table_(plugin.interface<dvt_format_v1>("dovetail.format/1")), plugin_(plugin.self) {
    Result<Folder> opened = Folder::open(folder);
    EXPECT_TRUE(opened) << opened.status().message();
    if (!opened) return;
    scope_ = std::make_unique<HostScope>(std::move(*opened));
    in_ = {sizeof in_, 0, scope_->dir(), 0};
    if (!file.empty()) {
      const Result<dvt_file> handle = scope_->open_file(file);
      EXPECT_TRUE(handle) << handle.status().message();
      if (handle) in_.file = *handle;
      head_ = read_text(folder / file).substr(0, 4096);
    }
  }
  ~Reader() { close(); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  uint32_t probe() {
    Frame call;
    uint32_t score = 4711;
    expect_ok(table_->probe(plugin_, call, &in_, {head_.data(), head_.size()}, &score), call,
              "probe");
    EXPECT_LE(score, 100u);
    return score;
  }
  /// Opens it and lists its tensors.
  dvt_code open(Frame& call) {
    dvt_code code = table_->open(plugin_, call, &in_, &reader_);
    if (code != DVT_OK) return code;
    uint64_t need = 0;
    code = table_->tensors(reader_, call, nullptr, 0, &need);
    if (code != DVT_OK && code != DVT_ETOOSMALL) return code;
    (void)call.reason();
    tensors_.resize(need);
    for (dvt_tensor& t : tensors_) t = {}, t.struct_size = sizeof t;
    return table_->tensors(reader_, call, tensors_.data(), tensors_.size(), &need);
  }
  void close() {
    if (reader_ != nullptr) table_->close(reader_);
    reader_ = nullptr;
  }
  const std::vector<dvt_tensor>& tensors() const { return tensors_; }
  /// The list in records that are longer or shorter, as a host of another release has them.
  std::vector<uint8_t> tensors_in(size_t record_bytes, uint8_t unknown) {
    std::vector<uint8_t> out(record_bytes * tensors_.size(), unknown);
    const auto length = static_cast<uint32_t>(record_bytes);
    std::memcpy(out.data(), &length, std::min(out.size(), sizeof length));
    uint64_t need = 0;
    Frame call;
    expect_ok(table_->tensors(reader_, call, reinterpret_cast<dvt_tensor*>(out.data()),
                              tensors_.size(), &need),
              call, "tensors");
    return out;
  }
  /// A tensor that leaves its file: the host refuses the checkpoint for it.
  bool leaves_its_file() const {
    return std::any_of(tensors_.begin(), tensors_.end(), [](const dvt_tensor& t) {
      const std::vector<dvt_tensor_part> parts = parts_of(t);
      return std::any_of(parts.begin(), parts.end(), [](const dvt_tensor_part& p) {
        const uint64_t size = HostScope::file_of(p.file)->size();
        return p.offset > size || p.bytes > size - p.offset;
      });
    });
  }
  /// Where its bytes lie: one run, or its parts.
  static std::vector<dvt_tensor_part> parts_of(const dvt_tensor& t) {
    if (t.n_parts == 0) return {{t.file, t.offset, t.bytes}};
    return {t.parts, t.parts + t.n_parts};
  }
  /// Of a tensor of tensors(); what rows() makes of it where it is in parts.
  std::string bytes_of(const dvt_tensor& t) {
    std::string out(t.bytes, '\0');
    if (t.n_parts > 0) {
      rows(t, text_of(t.format), 0, t.shape[0], out.data());
      return out;
    }
    EXPECT_TRUE(HostScope::file_of(t.file)->read_at(t.offset, out.data(), out.size()));
    return out;
  }
  void rows(const dvt_tensor& t, std::string_view format, int64_t row0, int64_t n, void* out) {
    std::vector<std::string> bytes;
    for (const dvt_tensor_part& p : parts_of(t)) {
      bytes.emplace_back(p.bytes, '\0');
      EXPECT_TRUE(HostScope::file_of(p.file)->read_at(p.offset, bytes.back().data(), p.bytes));
    }
    std::vector<dvt_bytes> parts;
    for (const std::string& b : bytes) parts.push_back({b.data(), b.size()});
    Frame call;
    expect_ok(table_->rows(reader_, call, static_cast<uint64_t>(&t - tensors_.data()), parts.data(),
                           abi_text(format), row0, n, out),
              call, "rows");
  }
  dvt_doc document(const std::string& which) {
    Frame call;
    dvt_doc out = 4711;
    expect_ok(table_->document(reader_, call, abi_text(which), &out), call, which);
    return out;
  }
  void* get() const { return reader_; }
  const dvt_format_v1& table() const { return *table_; }

 private:
  const dvt_format_v1* table_;
  void* plugin_;
  std::unique_ptr<HostScope> scope_;
  dvt_format_open in_{};
  std::string head_;
  void* reader_ = nullptr;
  std::vector<dvt_tensor> tensors_;
};

struct Case {
  fs::path folder;
  Node expected;

  const Node& at(const char* key) const { return *expected.find(key); }
};

class FormatContract : public testing::TestWithParam<BuiltPlugin> {
 protected:
  void SetUp() override {
    plugin_ = ContractHost::get().load(GetParam());
    ASSERT_NE(plugin_, nullptr);
    for (const fs::path& folder : folders_in(GetParam().fixture() / "valid")) {
      const std::string file = folder.string() + ".json";
      Result<Node> expected = parse_json(read_text(file), file);
      ASSERT_TRUE(expected) << expected.status().message();
      for (const char* key : {"file", "tensors", "documents"})
        ASSERT_NE(expected->find(key), nullptr) << file << " lacks " << key;
      cases_.push_back({folder, std::move(*expected)});
    }
    ASSERT_FALSE(cases_.empty()) << "no fixture in " << GetParam().fixture() / "valid";
    scratch_ = fs::path(testing::TempDir()) / ("dvt_format_contract_" + std::to_string(getpid()));
    fs::remove_all(scratch_);
    before_ = ContractHost::get().live_bytes();
  }
  void TearDown() override {
    fs::remove_all(scratch_);
    EXPECT_EQ(ContractHost::get().live_bytes(), before_) << "host memory is left behind";
  }
  /// A copy of a case's folder that a test may damage.
  fs::path copy(const Case& c) const {
    fs::remove_all(scratch_);
    fs::copy(c.folder, scratch_, fs::copy_options::recursive);
    return scratch_;
  }
  static bool refused_with_a_reason(dvt_code code, Frame& call, const std::string& what) {
    if (code == DVT_OK) return false;
    const std::string reason = call.reason();
    EXPECT_FALSE(reason.empty()) << what << ": refused without a reason";
    EXPECT_EQ(reason.find('\n'), std::string::npos) << what << ": " << reason;
    EXPECT_TRUE(code == DVT_EFORMAT || code == DVT_EIO || code == DVT_EINVAL ||
                code == DVT_EUNSUPPORTED)
        << what << ": " << code;
    return true;
  }

  LoadedPlugin* plugin_ = nullptr;
  std::vector<Case> cases_;
  fs::path scratch_;
  uint64_t before_ = 0;
};

TEST_P(FormatContract, KnowsItsOwn) {
  for (const Case& c : cases_) {
    SCOPED_TRACE(c.folder.string());
    EXPECT_GT(Reader(*plugin_, c.folder).probe(), 0u) << "by its folder";
    EXPECT_GT(Reader(*plugin_, c.folder, c.at("file").as_string()).probe(), 0u) << "by its file";
  }
}

TEST_P(FormatContract, KnowsNothingElse) {
  fs::create_directories(scratch_);
  EXPECT_EQ(Reader(*plugin_, scratch_).probe(), 0u) << "an empty folder";
  write(scratch_ / "notes.txt", "Dear diary, today I wrote no tensors at all.\n");
  write(scratch_ / "empty.bin", "");
  EXPECT_EQ(Reader(*plugin_, scratch_).probe(), 0u) << "a folder of notes";
  EXPECT_EQ(Reader(*plugin_, scratch_, "notes.txt").probe(), 0u) << "a text";
  EXPECT_EQ(Reader(*plugin_, scratch_, "empty.bin").probe(), 0u) << "an empty file";
}

TEST_P(FormatContract, ListsTensorsWithTheirShapesAndBytes) {
  for (const Case& c : cases_)
    for (const std::string& file : {std::string(), c.at("file").as_string()}) {
      SCOPED_TRACE(c.folder.string() + "/" + file);
      Reader reader(*plugin_, c.folder, file);
      Frame call;
      expect_ok(reader.open(call), call, "open");
      std::set<std::string> names;
      for (const dvt_tensor& t : reader.tensors()) {
        const std::string name(text_of(t.name));
        EXPECT_TRUE(names.insert(name).second) << name << " is there twice";
        const Node* expected = c.at("tensors").find(name);
        ASSERT_NE(expected, nullptr) << name;
        EXPECT_EQ(text_of(t.format), expected->find("format")->as_string()) << name;
        std::vector<int64_t> shape;
        for (const Node& d : expected->find("shape")->items()) shape.push_back(d.as_int());
        EXPECT_EQ(std::vector<int64_t>(t.shape, t.shape + t.ndim), shape) << name;
        EXPECT_EQ(hex(reader.bytes_of(t)), expected->find("bytes")->as_string()) << name;
      }
      EXPECT_EQ(names.size(), c.at("tensors").entries().size());
    }
}

// A matrix in parts: any rows of it, in its own format, in float32 and in bf16, are those of the whole.
TEST_P(FormatContract, GivesAnyRowsOfAMatrixInParts) {
  for (const Case& c : cases_) {
    Reader reader(*plugin_, c.folder);
    Frame call;
    expect_ok(reader.open(call), call, "open");
    for (const dvt_tensor& t : reader.tensors()) {
      if (t.n_parts == 0) continue;
      SCOPED_TRACE(std::string(text_of(t.name)));
      EXPECT_FALSE(text_of(t.stored).empty());
      ASSERT_GE(t.ndim, 2u);
      const int64_t n_rows = t.shape[0];
      uint64_t row_numbers = 1;
      for (uint32_t d = 1; d < t.ndim; ++d) row_numbers *= static_cast<uint64_t>(t.shape[d]);
      const uint64_t own = t.bytes / static_cast<uint64_t>(n_rows);
      for (const auto& [format, row_bytes] : {std::pair(text_of(t.format), own),
                                              {std::string_view("float32"), row_numbers * 4},
                                              {std::string_view("bf16"), row_numbers * 2}}) {
        std::string whole(row_bytes * static_cast<uint64_t>(n_rows), '\0');
        reader.rows(t, format, 0, n_rows, whole.data());
        for (int64_t row = 0; row < n_rows; ++row) {
          std::string one(row_bytes + 8, '#');
          reader.rows(t, format, row, 1, one.data());
          EXPECT_EQ(one,
                    whole.substr(static_cast<uint64_t>(row) * row_bytes, row_bytes) + "########")
              << format << " row " << row;
        }
      }
    }
  }
}

TEST_P(FormatContract, ListsTensorsInTheHostsRecords) {
  constexpr uint8_t kUnknown = 0xee;
  constexpr size_t kKnownToAll = offsetof(dvt_tensor, parts);
  for (const Case& c : cases_) {
    SCOPED_TRACE(c.folder.string());
    Reader reader(*plugin_, c.folder);
    Frame call;
    expect_ok(reader.open(call), call, "open");
    for (const size_t record_bytes : {kKnownToAll, sizeof(dvt_tensor) + 24}) {
      const std::vector<uint8_t> out = reader.tensors_in(record_bytes, kUnknown);
      for (size_t i = 0; i < reader.tensors().size(); ++i) {
        dvt_tensor got{};
        std::memcpy(&got, &out[i * record_bytes], std::min(record_bytes, sizeof got));
        const dvt_tensor& want = reader.tensors()[i];
        EXPECT_EQ(text_of(got.name), text_of(want.name));
        EXPECT_EQ(std::tie(got.ndim, got.shape[0], got.offset, got.bytes),
                  std::tie(want.ndim, want.shape[0], want.offset, want.bytes));
        for (size_t k = sizeof got; k < record_bytes; ++k)
          EXPECT_EQ(out[i * record_bytes + k], kUnknown) << k;
      }
    }
  }
}

TEST_P(FormatContract, GivesItsDocuments) {
  for (const Case& c : cases_) {
    SCOPED_TRACE(c.folder.string());
    Reader reader(*plugin_, c.folder);
    Frame call;
    expect_ok(reader.open(call), call, "open");
    for (const char* which : kDocuments) {
      const Node* expected = c.at("documents").find(which);
      const dvt_doc doc = reader.document(which);
      EXPECT_EQ(doc != 0, expected != nullptr) << which;
      if (doc == 0 || expected == nullptr) continue;
      EXPECT_EQ(to_json(*doc_node(doc)), to_json(*expected)) << which;
      EXPECT_EQ(to_json(*doc_node(reader.document(which))), to_json(*expected))
          << which << ", asked again";
      const dvt_format_v1* table = &reader.table();
      if (!DVT_HAS(table, drop_document)) continue;
      for (int turn = 0; turn < 2; ++turn) table->drop_document(reader.get(), abi_text(which));
      EXPECT_EQ(to_json(*doc_node(reader.document(which))), to_json(*expected))
          << which << ", dropped before";
    }
    dvt_doc none = 4711;
    const dvt_code code =
        reader.table().document(reader.get(), call, abi_text("no such document"), &none);
    EXPECT_TRUE(code != DVT_OK || none == 0);
  }
}

TEST_P(FormatContract, ListsByTheRuleOfCapAndNeed) {
  Reader reader(*plugin_, cases_[0].folder);
  Frame call;
  expect_ok(reader.open(call), call, "open");
  const size_t n = reader.tensors().size();
  ASSERT_GE(n, 1u);
  std::vector<dvt_tensor> room(n);
  for (dvt_tensor& t : room) t = {}, t.struct_size = sizeof t, t.offset = 4711;
  uint64_t need = 0;
  EXPECT_EQ(reader.table().tensors(reader.get(), call, room.data(), n - 1, &need), DVT_ETOOSMALL);
  EXPECT_EQ(need, n);
  EXPECT_EQ(room.back().offset, 4711u) << "wrote past cap";
}

TEST_P(FormatContract, ReadersLiveApart) {
  Reader first(*plugin_, cases_.front().folder), second(*plugin_, cases_.back().folder);
  Frame call;
  expect_ok(first.open(call), call, "open");
  const std::string name(text_of(first.tensors().front().name));
  expect_ok(second.open(call), call, "open a second");
  second.close();
  EXPECT_EQ(text_of(first.tensors().front().name), name) << "names stay valid until close";
  EXPECT_FALSE(first.bytes_of(first.tensors().front()).empty());
}

TEST_P(FormatContract, RefusesDamagedCheckpoints) {
  const std::vector<fs::path> damaged = folders_in(GetParam().fixture() / "damaged");
  EXPECT_FALSE(damaged.empty()) << "no fixture in " << GetParam().fixture() / "damaged";
  for (const fs::path& folder : damaged) {
    Reader reader(*plugin_, folder);
    Frame call;
    const dvt_code code = reader.open(call);
    EXPECT_TRUE(refused_with_a_reason(code, call, folder.string()) || reader.leaves_its_file())
        << folder << " was taken";
  }
}

// The files that hold tensors, cut short: the last byte is missing, then more and more.
TEST_P(FormatContract, NoticesFilesThatAreCutShort) {
  for (const Case& c : cases_) {
    std::set<std::string> holders;
    {
      Reader reader(*plugin_, c.folder);
      Frame call;
      expect_ok(reader.open(call), call, "open");
      for (const dvt_tensor& t : reader.tensors())
        for (const dvt_tensor_part& p : Reader::parts_of(t))
          holders.insert(fs::path(HostScope::file_of(p.file)->name()).filename());
    }
    EXPECT_FALSE(holders.empty());
    for (const std::string& name : holders) {
      const std::string whole = read_text(c.folder / name);
      const fs::path folder = copy(c);
      for (size_t n = whole.size(); n-- > 0;) {
        if (n > 64 && whole.size() - n > 64 && n % 7 != 0) continue;  // each length near the ends
        write(folder / name, std::string_view(whole).substr(0, n));
        Reader reader(*plugin_, folder);
        Frame call;
        const std::string what =
            name + " of " + std::to_string(n) + " bytes of " + std::to_string(whole.size());
        EXPECT_TRUE(refused_with_a_reason(reader.open(call), call, what) ||
                    reader.leaves_its_file())
            << what << " was taken";
      }
    }
  }
}

TEST_P(FormatContract, SurvivesAnyChangedByte) {
  std::mt19937 random(31);
  for (const Case& c : cases_)
    for (const fs::path& file : files_in(c.folder)) {
      const fs::path folder = copy(c), target = folder / fs::relative(file, c.folder);
      const std::string whole = read_text(file);
      for (int i = 0; i < 300 && !whole.empty(); ++i) {
        std::string changed = whole;
        for (int k = 0; k <= i % 3; ++k)
          changed[random() % std::min<size_t>(whole.size(), 1024)] = static_cast<char>(random());
        write(target, changed);
        Reader reader(*plugin_, folder);
        (void)reader.probe();
        Frame call;
        if (refused_with_a_reason(reader.open(call), call, target.string())) continue;
        for (const dvt_tensor& t : reader.tensors()) EXPECT_LE(t.ndim, uint32_t{DVT_MAX_DIMS});
        for (const char* which : kDocuments) {
          dvt_doc doc = 0;
          (void)refused_with_a_reason(
              reader.table().document(reader.get(), call, abi_text(which), &doc), call, which);
        }
      }
    }
}

// Tensors of plain and unknown formats, laid out in one file and in several.
TEST_P(FormatContract, ReadsWhatItLaysOut) {
  const auto* table = plugin_->interface<dvt_format_v1>("dovetail.format/1");
  if (!DVT_HAS(table, lay_out)) GTEST_SKIP() << GetParam().name << " does not write";
  struct Made {
    std::string name, format;
    std::vector<int64_t> shape;
    std::string bytes;
  };
  const std::vector<Made> made = {{"block", "no_such_format.7", {3, 64}, std::string(128, 'b')},
                                  {"odd \"name\"\n", "other.1", {1, 5, 9}, std::string(64, 'o')},
                                  {"scalar", "float32", {}, "abcd"},
                                  {"matrix", "bf16", {2, 3}, "123456789012"}};
  std::vector<dvt_tensor> tensors;
  for (const Made& m : made) {
    dvt_tensor t{};
    t.struct_size = sizeof t;
    t.ndim = static_cast<uint32_t>(m.shape.size());
    t.name = abi_text(m.name);
    t.format = abi_text(m.format);
    std::copy(m.shape.begin(), m.shape.end(), t.shape);
    t.bytes = m.bytes.size();
    tensors.push_back(t);
  }
  struct Disk {
    const std::vector<Made>* made;
    fs::path folder;
    size_t next = 0, n_files = 0;
  };
  for (const uint64_t max_bytes : {uint64_t{1} << 30, uint64_t{140}, uint64_t{1}}) {
    fs::remove_all(scratch_);
    fs::create_directories(scratch_);
    Disk disk{&made, scratch_};
    dvt_file_sink sink{sizeof sink, 0, &disk, nullptr};
    sink.file = [](void* self, dvt_call*, dvt_str name, dvt_bytes head, uint64_t first,
                   uint64_t n) noexcept -> dvt_code {
      Disk& d = *static_cast<Disk*>(self);
      EXPECT_EQ(first, d.next);
      EXPECT_TRUE(n == 0 || head.n % 64 == 0) << "where the data begins: " << head.n;
      std::string text(static_cast<const char*>(head.p), head.n);
      for (d.next = first; d.next < first + n; ++d.next) text += d.made->at(d.next).bytes;
      write(d.folder / std::string(text_of(name)), text);
      d.n_files += n > 0;
      return DVT_OK;
    };
    Frame call;
    expect_ok(table->lay_out(plugin_->self, call, tensors.data(), tensors.size(), max_bytes, &sink),
              call, "lay_out");
    EXPECT_EQ(disk.n_files, max_bytes == 1 ? 4u : max_bytes == 140 ? 2u : 1u);
    Reader reader(*plugin_, scratch_);
    EXPECT_GT(reader.probe(), 0u);
    expect_ok(reader.open(call), call, "open");
    ASSERT_EQ(reader.tensors().size(), made.size());
    for (const dvt_tensor& t : reader.tensors()) {
      const auto m = std::find_if(made.begin(), made.end(),
                                  [&](const Made& x) { return x.name == text_of(t.name); });
      ASSERT_NE(m, made.end()) << text_of(t.name);
      EXPECT_EQ(text_of(t.format), m->format);
      EXPECT_EQ(std::vector<int64_t>(t.shape, t.shape + t.ndim), m->shape) << m->name;
      EXPECT_EQ(reader.bytes_of(t), m->bytes) << m->name;
    }
  }
}

TEST_P(FormatContract, SurvivesMissingFiles) {
  for (const Case& c : cases_)
    for (const fs::path& file : files_in(c.folder)) {
      const fs::path folder = copy(c);
      fs::remove(folder / fs::relative(file, c.folder));
      Reader reader(*plugin_, folder);
      (void)reader.probe();
      Frame call;
      (void)refused_with_a_reason(reader.open(call), call, "without " + file.string());
    }
}

INSTANTIATE_TEST_SUITE_P(Built, FormatContract, testing::ValuesIn(built_plugins("format")),
                         test_name);

}  // namespace
}  // namespace dovetail::core::test
