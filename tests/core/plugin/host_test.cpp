// The host table as a plugin sees it, through the C functions and through the SDK's classes.
#include "core/plugin/host.hpp"

#include <gtest/gtest.h>
#include <unistd.h>
#include <dovetail/plugin.hpp>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/base/json.hpp"

namespace dovetail::core {
namespace {

dvt_str str(std::string_view s) {
  return {s.data(), s.size()};
}

class HostTest : public testing::Test {
 protected:
  void SetUp() override {
    dir_ = std::filesystem::path(testing::TempDir()) / ("dvt_host_" + std::to_string(getpid()));
    std::filesystem::create_directories(dir_);
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  std::filesystem::path dir_;
  ThreadPool pool_{2};
  HostServices services_{pool_};
  const dvt_host_v1* host_ = services_.table_for("arch/test");
};

TEST_F(HostTest, FillsEverySlot) {
  EXPECT_EQ(host_->struct_size, sizeof(dvt_host_v1));
  const auto* words = reinterpret_cast<void* const*>(&host_->self);
  const size_t n_slots = (sizeof(dvt_host_v1) - offsetof(dvt_host_v1, self)) / sizeof(void*);
  for (size_t i = 0; i < n_slots; ++i) EXPECT_NE(words[i], nullptr) << "slot " << i;
}

TEST_F(HostTest, WalksDocumentsByHandle) {
  HostScope scope;
  Result<Node> parsed =
      parse_json("{\"n\": 3, \"x\": 0.5, \"s\": \"a\\u0000b\", \"t\": true,\n \"l\": [1, null]}",
                 "config.json");
  ASSERT_TRUE(parsed) << parsed.status().message();
  const Doc doc(host_, scope.keep(std::move(*parsed)));
  EXPECT_EQ(doc.kind(), uint32_t{DVT_DOC_MAP});
  EXPECT_EQ(doc.size(), 5u);
  EXPECT_EQ(doc["n"].as_int(), 3);
  EXPECT_EQ(doc["n"].as_float(), 3.0);
  EXPECT_EQ(doc["x"].as_float(), 0.5);
  EXPECT_EQ(doc["s"].as_string(), std::string_view("a\0b", 3));
  EXPECT_TRUE(doc["t"].as_bool());
  EXPECT_EQ(doc["l"].at(0).as_int(), 1);
  EXPECT_TRUE(doc["l"].at(1).is_null());
  EXPECT_TRUE(doc["l"].at(2).is_null()) << "past the end";
  EXPECT_EQ(doc.entry(4).first, "l");
  EXPECT_TRUE(doc["absent"].is_null());
  EXPECT_EQ(doc["absent"].handle(), 0u);
  EXPECT_TRUE(Doc(host_, 0)["n"].is_null());
  EXPECT_EQ(doc["l"].where(), "config.json:2:7");
  try {
    doc["x"].as_int();
    FAIL() << "a float is no integer";
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "got a number, expected an integer");
    EXPECT_EQ(e.where(), "config.json:1:15");
  }
}

TEST_F(HostTest, WhereFollowsTheCapNeedRule) {
  HostScope scope;
  const dvt_doc doc = scope.keep(std::move(*parse_json("[1]", "a.json")));
  char text[4] = {'x', 'x', 'x', 'x'};
  uint64_t need = 0;
  EXPECT_EQ(host_->doc_where(host_->self, doc, text, 4, &need), DVT_ETOOSMALL);
  EXPECT_EQ(need, std::strlen("a.json:1:1"));
  EXPECT_EQ(text[0], 'x');
  EXPECT_EQ(host_->doc_where(host_->self, 0, text, 0, &need), DVT_OK);
  EXPECT_EQ(need, 0u);
}

TEST_F(HostTest, ParsesJsonForPluginsUntilTheyReleaseIt) {
  CallFrame call;
  dvt_doc doc = 0;
  const std::string_view good = "{\"a\": [7]}";
  ASSERT_TRUE(call.check(
      host_->parse_json(host_->self, call, {good.data(), good.size()}, str("meta"), &doc)));
  EXPECT_EQ(Doc(host_, doc)["a"].at(0).as_int(), 7);
  host_->doc_release(host_->self, doc);
  host_->doc_release(host_->self, doc);  // not ours any more: ignored

  const std::string_view bad = "{\"a\": 1, \"a\": 2}";
  const Status status =
      call.check(host_->parse_json(host_->self, call, {bad.data(), bad.size()}, str("meta"), &doc));
  EXPECT_EQ(status.code(), Code::kFormat);
  EXPECT_EQ(status.message().rfind("meta:1:", 0), 0u) << status.message();
  EXPECT_EQ(doc, 0u);
}

TEST_F(HostTest, ListsFilesOfTheFolderInOrder) {
  std::ofstream(dir_ / "b.bin") << "b";
  std::ofstream(dir_ / "a.bin") << "a";
  std::filesystem::create_directory(dir_ / "folder");
  std::filesystem::create_symlink("/etc/passwd", dir_ / "outside");
  std::filesystem::create_symlink("a.bin", dir_ / "c.bin");
  Result<Folder> folder = Folder::open(dir_);
  ASSERT_TRUE(folder);
  HostScope scope(std::move(*folder));
  std::string names;
  dvt_str name{};
  for (uint64_t i = 0; host_->dir_file(host_->self, scope.dir(), i, &name) == DVT_OK; ++i)
    names += std::string(text_of(name)) + " ";
  EXPECT_EQ(names, "a.bin b.bin c.bin ");
  EXPECT_EQ(host_->dir_file(host_->self, 0, 0, &name), DVT_EINVAL);
}

TEST_F(HostTest, OpensFilesOfTheFolderAndNoOthers) {
  std::ofstream(dir_ / "a.bin") << "0123456789";
  Result<Folder> folder = Folder::open(dir_);
  ASSERT_TRUE(folder);
  HostScope scope(std::move(*folder));
  CallFrame call;
  dvt_file file = 0, again = 0;
  ASSERT_TRUE(call.check(host_->dir_open(host_->self, call, scope.dir(), str("a.bin"), &file)));
  ASSERT_TRUE(call.check(host_->dir_open(host_->self, call, scope.dir(), str("a.bin"), &again)));
  EXPECT_EQ(file, again);
  uint64_t size = 0;
  EXPECT_EQ(host_->file_size(host_->self, file, &size), DVT_OK);
  EXPECT_EQ(size, 10u);
  char part[4] = {};
  EXPECT_EQ(host_->file_read(host_->self, call, file, 6, part, 4), DVT_OK);
  EXPECT_EQ(std::string_view(part, 4), "6789");
  dvt_bytes all{};
  EXPECT_EQ(host_->file_map(host_->self, call, file, &all), DVT_OK);
  EXPECT_EQ(std::string_view(static_cast<const char*>(all.p), all.n), "0123456789");

  Status status = call.check(host_->file_read(host_->self, call, file, 8, part, 3));
  EXPECT_EQ(status.code(), Code::kFormat);
  EXPECT_NE(status.message().find("3 bytes at byte 8 are wanted, but the file has 10"),
            std::string::npos)
      << status.message();
  status = call.check(host_->file_read(host_->self, call, file, UINT64_MAX, part, 2));
  EXPECT_EQ(status.code(), Code::kFormat);
  status = call.check(host_->dir_open(host_->self, call, scope.dir(), str("../a.bin"), &file));
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_EQ(file, 0u);
  status = call.check(host_->dir_open(host_->self, call, scope.dir(), str("b.bin"), &file));
  EXPECT_EQ(status.code(), Code::kIo);
  status = call.check(host_->dir_open(host_->self, call, 0, str("b.bin"), &file));
  EXPECT_EQ(status.code(), Code::kInvalid);
  uint32_t yes = 7;
  EXPECT_EQ(host_->dir_has(host_->self, scope.dir(), str("a.bin"), &yes), DVT_OK);
  EXPECT_EQ(yes, 1u);
  EXPECT_EQ(host_->dir_has(host_->self, scope.dir(), str("../a.bin"), &yes), DVT_OK);
  EXPECT_EQ(yes, 0u);
}

TEST_F(HostTest, AccountsMemoryByPluginAndTag) {
  void* a = host_->alloc(host_->self, 1000, 64, str("weights"));
  void* b = host_->alloc(host_->self, 24, 4096, str("weights"));
  ASSERT_NE(a, nullptr);
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a) % 64, 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(b) % 4096, 0u);
  std::memset(a, 1, 1000);
  host_->release(host_->self, a);
  host_->release(host_->self, nullptr);
  ASSERT_EQ(services_.memory().size(), 1u);
  const HostMemoryRow row = services_.memory()[0];
  EXPECT_EQ(row.plugin, "arch/test");
  EXPECT_EQ(row.tag, "weights");
  EXPECT_EQ(row.live_bytes, 24u);
  EXPECT_EQ(row.peak_bytes, 1024u);
  EXPECT_EQ(host_->alloc(host_->self, 8, 3, str("x")), nullptr) << "3 is no power of two";
  EXPECT_EQ(host_->alloc(host_->self, UINT64_MAX - 10, 64, str("x")), nullptr);
  host_->release(host_->self, b);
  host_->release(host_->self, b);  // twice: logged, not fatal
  EXPECT_EQ(services_.memory()[0].live_bytes, 0u);
}

TEST_F(HostTest, ParallelForStopsWhenTheCallIsCancelled) {
  uint32_t cancel = 0;
  CallFrame call(&cancel);
  struct Work {
    std::atomic<uint64_t> n_done{0};
    uint32_t* cancel;
  } work{{}, &cancel};
  const auto fn = [](void* arg, uint64_t begin, uint64_t end, uint32_t) noexcept {
    auto& w = *static_cast<Work*>(arg);
    if ((w.n_done += end - begin) >= 100) __atomic_store_n(w.cancel, 1u, __ATOMIC_RELAXED);
  };
  const Status status = call.check(host_->parallel_for(host_->self, call, 100000, 1, fn, &work));
  EXPECT_EQ(status.code(), Code::kCancelled);
  EXPECT_LT(work.n_done, 100000u);
  cancel = 0;
  work.n_done = 0;
  work.cancel = new uint32_t(0);
  EXPECT_TRUE(call.check(host_->parallel_for(host_->self, call, 1000, 7, fn, &work)));
  EXPECT_EQ(work.n_done, 1000u);
  delete work.cancel;
}

TEST_F(HostTest, TeamsMeetAtTheBarrier) {
  struct Team {
    const dvt_host_v1* host;
    std::atomic<uint32_t> before{0}, wrong{0};
  } team{host_};
  CallFrame call;
  EXPECT_TRUE(call.check(host_->team_run(
      host_->self, call,
      [](void* arg, uint32_t, uint32_t n) noexcept {
        auto& t = *static_cast<Team*>(arg);
        ++t.before;
        t.host->team_barrier(t.host->self);
        if (t.before != n) ++t.wrong;
      },
      &team)));
  EXPECT_EQ(team.before, host_->n_lanes(host_->self));
  EXPECT_EQ(team.wrong, 0u);
}

TEST_F(HostTest, FindsPluginOpsByNameAndRevision) {
  static const std::string name = "x.hash/mix";
  dvt_op_v1 op{
      sizeof(dvt_op_v1), 2, str(name),
      [](dvt_call*, const dvt_val*, const dvt_dim* const*, uint64_t, const dvt_attr_in*, uint64_t,
         dvt_val*, dvt_dim(*)[DVT_MAX_DIMS], uint64_t) noexcept -> dvt_code { return DVT_OK; },
      [](dvt_call*, const dvt_op_args*) noexcept -> dvt_code { return DVT_OK; }};
  dvt_op_v1 other = op;
  EXPECT_TRUE(services_.ops().add(&op));
  EXPECT_TRUE(services_.ops().add(&op));
  EXPECT_EQ(services_.ops().add(&other).message(),
            "op \"x.hash/mix\" revision 2 is there from another plugin");
  const auto* ops = Host(host_).get<dvt_ops_v1>("dovetail.ops/1");
  ASSERT_NE(ops, nullptr);
  EXPECT_EQ(ops->find(ops->self, str("x.hash/mix"), 2), &op);
  EXPECT_EQ(ops->find(ops->self, str("x.hash/mix"), 1), nullptr);
  EXPECT_EQ(Host(host_).get<dvt_ops_v1>("dovetail.nothing/1"), nullptr);
  other.name = str("mix");
  EXPECT_EQ(services_.ops().add(&other).message(), "op \"mix\" is not named OWNER/OP");
  other.run = nullptr;
  EXPECT_EQ(services_.ops().add(&other).code(), Code::kInvalid);
}

TEST(CallFrame, GivesTheReasonThatThePluginRecorded) {
  CallFrame call;
  const auto fail = [&](dvt_code code, std::string_view msg, std::string_view where) {
    call.get()->fail(call, code, str(msg), str(where));
    return code;
  };
  Status status = call.check(fail(DVT_EFORMAT, "got 3, expected 4", "a.json:1:2"));
  EXPECT_EQ(status.code(), Code::kFormat);
  EXPECT_EQ(status.message(), "a.json:1:2: got 3, expected 4");
  fail(DVT_EIO, "optional file is not there", "");
  EXPECT_TRUE(call.check(DVT_OK)) << "the plugin went another way";
  EXPECT_EQ(call.check(DVT_EINVAL).message(), "wrong input") << "the old reason is gone";
  fail(DVT_EIO, "first", "");
  EXPECT_EQ(call.check(fail(DVT_EINVAL, "second", "")).message(), "second");
  EXPECT_EQ(call.check(fail(DVT_EINVAL, "\x1b[31mred\nnext", "")).message(), "\\x1b[31mred\nnext");
  EXPECT_EQ(call.check(-7).code(), Code::kInternal);
  EXPECT_EQ(call.check(-7).message(), "failed with code -7 and gave no reason");
  EXPECT_EQ(call.check(1234).code(), Code::kInternal);
}

TEST(CallFrame, TurnsExceptionsAtTheSdkEdgeIntoStatuses) {
  CallFrame call;
  Status status =
      call.check(guard(call, [] { throw Error("bad width", DVT_EUNSUPPORTED, "layers.3"); }));
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_EQ(status.message(), "layers.3: bad width");
  status = call.check(guard(call, [] { throw std::bad_alloc(); }));
  EXPECT_EQ(status.code(), Code::kNoMemory);
  status = call.check(guard(call, [] { throw 3; }));
  EXPECT_EQ(status.code(), Code::kInternal);
}

TEST(CallFrame, ScratchIsAlignedAndDistinctUntilTheCallEnds) {
  CallFrame call;
  for (int round = 0; round < 3; ++round) {
    std::vector<std::pair<char*, size_t>> taken;
    for (const size_t n :
         {size_t{1}, size_t{100}, size_t{70000}, size_t{0}, size_t{200000}, size_t{33}}) {
      for (const size_t align : {1, 16, 64, 4096}) {
        auto* p = static_cast<char*>(call.get()->scratch(call, n, align));
        ASSERT_NE(p, nullptr);
        EXPECT_EQ(reinterpret_cast<uintptr_t>(p) % align, 0u);
        std::memset(p, static_cast<int>(taken.size()), n);
        taken.emplace_back(p, n);
      }
    }
    for (size_t i = 0; i < taken.size(); ++i) {
      for (size_t k = 0; k < taken[i].second; ++k)
        ASSERT_EQ(taken[i].first[k], static_cast<char>(i));
    }
    EXPECT_TRUE(call.check(DVT_OK));
  }
  EXPECT_EQ(call.get()->scratch(call, UINT64_MAX, 16), nullptr);
  EXPECT_EQ(call.get()->scratch(call, 16, 3), nullptr);
}

TEST(CallFrame, ReportsProgressOnlyWhenAsked) {
  CallFrame silent;
  EXPECT_FALSE(DVT_HAS(silent.get(), progress));
  std::string seen;
  CallFrame call(nullptr, [&](uint64_t done, uint64_t total, std::string_view what) {
    seen += std::to_string(done) + "/" + std::to_string(total) + " " + std::string(what);
  });
  Call(call).progress(3, 7, "tensors");
  EXPECT_EQ(seen, "3/7 tensors");
}

}  // namespace
}  // namespace dovetail::core
