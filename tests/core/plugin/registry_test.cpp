// Search order, shadowing, probes, sealed copies, starting and stopping; and every broken plugin ends
// in a message, never in a crash of this process.
#include "core/plugin/registry.hpp"

#include <elf.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>

#include "core/base/log.hpp"
#include "core/plugin/library.hpp"
#include "core/plugin/private_copy.hpp"
#include "core/plugin/report.hpp"
#include "tests/core/plugin/zoo/zoo.hpp"
#include "tests/core/plugin/zoo_folder.hpp"

namespace dovetail::core {
namespace {

namespace fs = std::filesystem;

class RegistryTest : public testing::Test {
 protected:
  void SetUp() override {
    set_log_level(LogLevel::kOff);
    trace_ = {this, [](void* self, dvt_str event) noexcept {
                static_cast<RegistryTest*>(self)->events_.emplace_back(event.p, event.n);
              }};
    host_.offer("zoo.trace/1", &trace_);
    options_ = folder_.options();
  }
  std::unique_ptr<PluginRegistry> make() {
    auto registry = PluginRegistry::create(options_, host_);
    EXPECT_TRUE(registry);
    return std::move(*registry);
  }
  /// The message of loading a plugin of the zoo from a folder that is not trusted.
  std::string from_elsewhere(const std::string& name) {
    ZooFolder::add(folder_.users(), name);
    return make()->load("zoo", name).status().message();
  }
  std::string cannot(const std::string& name, const std::string& why) {
    return "zoo plugin \"" + name +
           "\" cannot be used: " + (folder_.users() / "zoo" / (name + ".so")).string() + ": " + why;
  }
  size_t n_verdicts() {
    std::error_code error;
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_.cache(), error), {}));
  }

  ZooFolder folder_;
  ThreadPool pool_{1};
  HostServices host_{pool_};
  ZooTrace trace_{};
  std::vector<std::string> events_;
  SearchOptions options_;
};

TEST_F(RegistryTest, LoadsAnInstalledPluginInPlace) {
  ZooFolder::add(folder_.installed(), "good");
  const auto registry = make();
  const Result<LoadedPlugin*> plugin = registry->load("zoo", "good");
  ASSERT_TRUE(plugin) << plugin.status().message();
  EXPECT_EQ((*plugin)->manifest.id, "org.dovetail.zoo.good");
  const auto* table = (*plugin)->interface<ZooTable>("dovetail.zoo/1");
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(table->answer, 42u);
  EXPECT_EQ((*plugin)->interface<ZooTable>("dovetail.arch/1"), nullptr);
  const std::vector<dvt_param> params = (*plugin)->params();
  ASSERT_EQ(params.size(), 2u);
  EXPECT_EQ(text_of(params[0].name), "legs");
  EXPECT_EQ(text_of(params[1].name), "tame");
  EXPECT_EQ(params[0].max, 100);
  EXPECT_EQ(*registry->load("zoo", "good"), *plugin) << "loaded once";
  EXPECT_EQ(*registry->load("zoo", "org.dovetail.zoo.good"), *plugin) << "by id";
  EXPECT_EQ(*registry->find_by_key("zoo", "beast"), *plugin);
  EXPECT_EQ(registry->candidates()[0].state, Candidate::State::kLoaded);
  EXPECT_TRUE(registry->candidates()[0].is_trusted);
  EXPECT_EQ(n_verdicts(), 0u) << "no probe";
  EXPECT_EQ(events_, std::vector<std::string>{"start good"});
}

TEST_F(RegistryTest, StopsInReverseOrderAndOnce) {
  ZooFolder::add(folder_.installed(), "good");
  ZooFolder::add(folder_.installed(), "other");
  auto registry = make();
  ASSERT_TRUE(registry->load("zoo", "other"));
  ASSERT_TRUE(registry->load("zoo", "good"));
  registry.reset();
  EXPECT_EQ(events_, (std::vector<std::string>{"start other", "start good", "drain good",
                                               "stop good", "drain other", "stop other"}));
}

TEST_F(RegistryTest, APluginFromElsewhereIsProbedOnceAndRunsFromASealedCopy) {
  const fs::path file = ZooFolder::add(folder_.users(), "good");
  {
    const auto registry = make();
    ASSERT_TRUE(registry->load("zoo", "good")) << registry->candidates()[0].reason.message();
    EXPECT_FALSE(registry->candidates()[0].is_trusted);
    EXPECT_EQ(n_verdicts(), 1u);
    EXPECT_EQ(events_, std::vector<std::string>{"start good"}) << "the child's start is not ours";
    ZooFolder::put(file, "overwritten while it runs");
    EXPECT_EQ((*registry->load("zoo", "good"))->interface<ZooTable>("dovetail.zoo/1")->answer, 42u);
  }
  ZooFolder::add(folder_.users(), "good");
  const fs::path verdict = fs::directory_iterator(folder_.cache())->path();
  ZooFolder::put(verdict, "bad: bit the keeper");
  const Status status = make()->load("zoo", "good").status();
  EXPECT_NE(status.message().find("bit the keeper (found earlier; remove " + verdict.string()),
            std::string::npos)
      << status.message();
}

TEST_F(RegistryTest, AChangedFileIsProbedAgain) {
  ZooFolder::add(folder_.users(), "good");
  ASSERT_TRUE(make()->load("zoo", "good"));
  ZooFolder::put(folder_.users() / "zoo/good.so", ZooFolder::bytes_of(kZoo / "good.so") + "more");
  ASSERT_TRUE(make()->load("zoo", "good"));
  EXPECT_EQ(n_verdicts(), 2u);
}

TEST_F(RegistryTest, ACrashInTheProbeIsAMessage) {
  const std::string crash = from_elsewhere("crashes");
  EXPECT_TRUE(crash.starts_with(cannot("crashes", "crashed with SIG"))) << crash;
  EXPECT_TRUE(crash.ends_with("when it was loaded in a child process")) << crash;
  const std::string abort = from_elsewhere("terminates");
  EXPECT_TRUE(abort.starts_with(cannot("terminates", "crashed with SIGABRT"))) << abort;
  EXPECT_EQ(
      from_elsewhere("exits"),
      cannot("exits", "ended the process with exit code 3 when it was loaded in a child process"));
  const auto registry = make();
  for (const Candidate& c : registry->candidates()) (void)registry->load("zoo", c.name);
  for (const Candidate& c : registry->candidates()) EXPECT_EQ(c.step, LoadStep::kProbe) << c.name;
}

TEST_F(RegistryTest, AHangInTheProbeEnds) {
  ZooFolder::add(folder_.users(), "hangs");
  const auto registry = make();
  const Candidate& c = registry->candidates()[0];
  const Status status = probe_in_child(c.file.path, *c.file.manifest, 1000);
  EXPECT_EQ(status.code(), Code::kBusy);
  EXPECT_EQ(status.message(), "did not start and stop within 1 s in the probe");
}

// Whether the process runs still; one that waits to be reaped does not.
bool runs(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  if (!std::getline(stat, line)) return false;
  return line[line.rfind(')') + 2] != 'Z';
}

TEST_F(RegistryTest, WhatAProbeStartedEndsWithIt) {
  ZooFolder::add(folder_.users(), "spawns");
  const fs::path note = folder_.root() / "child";
  setenv("ZOO_CHILD", note.c_str(), 1);
  for (const auto& [then, expected] :
       {std::pair("", ""), std::pair("crash", "crashed with SIGABRT when it was loaded in a child"),
        std::pair("hang", "did not start and stop within 1 s in the probe"),
        std::pair("close and hang", "did not start and stop within 1 s in the probe")}) {
    setenv("ZOO_THEN", then, 1);
    fs::remove(note);
    const auto registry = make();
    const Candidate& c = registry->candidates()[0];
    const Status status = probe_in_child(c.file.path, *c.file.manifest, 1000);
    EXPECT_EQ(status.message().substr(0, std::strlen(expected)), expected) << then;
    EXPECT_EQ(status.is_ok(), *expected == '\0') << then;
    pid_t child = 0;
    ASSERT_TRUE(std::ifstream(note) >> child) << then;
    for (int i = 0; i < 500 && runs(child); ++i) usleep(10000);
    EXPECT_FALSE(runs(child)) << then;
  }
  unsetenv("ZOO_CHILD");
  unsetenv("ZOO_THEN");
}

TEST_F(RegistryTest, TheProbeAsksABackendForItsDevices) {
  EXPECT_EQ(from_elsewhere("device_refuses"),
            cannot("device_refuses", "devices: the driver is asleep"));
  EXPECT_TRUE(
      from_elsewhere("device_crashes").starts_with(cannot("device_crashes", "crashed with SIG")));
  EXPECT_EQ(from_elsewhere("device_boasts"),
            cannot("device_boasts", "says that it has 1099511627776 devices"));
}

TEST_F(RegistryTest, APromisedInterfaceMustBeThere) {
  const std::string why = "its manifest provides \"dovetail.zoo/1\", which it does not have";
  EXPECT_EQ(from_elsewhere("promises"), cannot("promises", why));
  options_.environment.home.reset();
  ZooFolder::add(folder_.installed(), "promises");
  EXPECT_TRUE(make()->load("zoo", "promises").status().message().ends_with(why)) << "in place too";
}

TEST_F(RegistryTest, ARefusalToStartIsTheReasonThatIsShown) {
  EXPECT_EQ(from_elsewhere("refuses"), cannot("refuses", "start: no cage is large enough"));
  ZooFolder::add(folder_.installed(), "refuses");
  options_.environment.home.reset();
  const auto registry = make();
  EXPECT_EQ(registry->load("zoo", "refuses").status().message(),
            "zoo plugin \"refuses\" cannot be used: " +
                (folder_.installed() / "zoo/refuses.so").string() +
                ": does not start: no cage is large enough");
  EXPECT_EQ(registry->candidates()[0].step, LoadStep::kStart);
}

TEST_F(RegistryTest, ALieInTheDescriptorIsFound) {
  EXPECT_EQ(from_elsewhere("liar"), cannot("liar",
                                           "its descriptor says id \"org.example.else\", its "
                                           "manifest \"org.dovetail.zoo.liar\"; build it again"));
  EXPECT_EQ(from_elsewhere("short"),
            cannot("short", "its descriptor is too short (64 bytes) or lacks a function"));
  EXPECT_EQ(from_elsewhere("nothing"),
            cannot("nothing", "gives no descriptor for this program's interface"));
}

TEST_F(RegistryTest, AnUndefinedFunctionIsNamed) {
  EXPECT_EQ(from_elsewhere("undefined"),
            cannot("undefined", "cannot be loaded: undefined symbol: zoo_nobody_has_this"));
}

TEST_F(RegistryTest, FilesThatFailTheChecksAreNeverLoaded) {
  EXPECT_TRUE(from_elsewhere("foreign").starts_with(
      cannot("foreign", "was built for draft \"0123456789abcdef\"")));
  EXPECT_TRUE(from_elsewhere("lonely").starts_with(
      cannot("lonely", "needs the library \"libzoo_stub.so\"")));
  EXPECT_TRUE(
      from_elsewhere("talkative").starts_with(cannot("talkative", "exports 1 symbol besides")));
  ZooFolder::put(folder_.users() / "zoo/cut.so",
                 ZooFolder::bytes_of(kZoo / "good.so").substr(0, 9000));
  EXPECT_TRUE(make()
                  ->load("zoo", "cut")
                  .status()
                  .message()
                  .starts_with(cannot("cut", "the file is cut short: it has 9000 bytes")));
  EXPECT_EQ(n_verdicts(), 0u);
}

// The files below a folder of the cache, by content.
std::vector<fs::path> files_below(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(folder, error))
    if (entry.is_regular_file()) out.push_back(entry.path());
  return out;
}

TEST_F(RegistryTest, APluginThatBringsLibrariesRunsFromAPrivateCopyWithThem) {
  const fs::path mine = folder_.root() / "mine";
  for (const char* file : {"zoo/beside.so", "versioned_2/libzoo_versioned.so"})
    ZooFolder::put(mine / file, ZooFolder::bytes_of(kZoo.parent_path() / file));
  options_.paths = {(mine / "zoo/beside.so").string()};
  const auto registry = make();
  ASSERT_TRUE(registry->load("zoo", "beside")) << registry->candidates()[0].reason.message();
  const fs::path copies = folder_.cache().parent_path() / "plugin-copies";
  const std::string maps = ZooFolder::bytes_of("/proc/self/maps");
  for (const char* file : {"zoo/beside.so", "versioned_2/libzoo_versioned.so"})
    EXPECT_EQ(maps.find((mine / file).string()), std::string::npos) << "the original is not mapped";
  const std::vector<fs::path> files = files_below(copies);
  ASSERT_EQ(files.size(), 2u);
  for (const fs::path& file : files) EXPECT_NE(maps.find(file.string()), std::string::npos) << file;
  EXPECT_FALSE(FolderLock::is_free(*fs::directory_iterator(copies))) << "as long as it is loaded";
  const auto text = plugin_explain_text(*registry, "beside");
  EXPECT_NE(text->find("as a private copy in your cache"), std::string::npos) << *text;
}

TEST_F(RegistryTest, APrivateCopyIsTakenAgainAndMendedWhenItIsDamaged) {
  const fs::path mine = folder_.root() / "mine";
  for (const char* file : {"zoo/beside.so", "versioned_2/libzoo_versioned.so"})
    ZooFolder::put(mine / file, ZooFolder::bytes_of(kZoo.parent_path() / file));
  const fs::path plugin = mine / "zoo/beside.so", cache = folder_.root() / "copies";
  LibraryFinder libraries;
  const Inspection in = inspect_plugin(plugin, libraries);
  const auto first = private_copy(plugin, *in.elf, cache);
  ASSERT_TRUE(first) << first.status().message();
  const fs::file_time_type time = fs::last_write_time(first->path);
  EXPECT_EQ(private_copy(plugin, *in.elf, cache)->path, first->path);
  EXPECT_EQ(fs::last_write_time(first->path), time) << "not written again";
  ZooFolder::put(files_below(cache)[0], "overwritten");
  EXPECT_EQ(private_copy(plugin, *in.elf, cache)->key, first->key);
  for (const fs::path& file : files_below(cache)) EXPECT_GT(fs::file_size(file), 1000u) << file;
  ZooFolder::put(mine / "versioned_2/libzoo_versioned.so", "another library");
  EXPECT_NE(private_copy(plugin, *in.elf, cache)->key, first->key) << "its libraries count";
  ZooFolder::put(folder_.root() / "file", "");
  EXPECT_EQ(private_copy(plugin, *in.elf, folder_.root() / "file").status().code(), Code::kIo);
}

// Versions of a plugin, each with another content, and copies of them.
class PrivateCopies : public testing::Test {
 protected:
  Result<PrivateCopy> copy(int version, uint64_t most_bytes) {
    const fs::path plugin = folder_.root() / std::to_string(version) / "plugin.so";
    ZooFolder::put(plugin, std::string(1000, static_cast<char>('a' + version)));
    return private_copy(plugin, ElfFile{}, cache_, most_bytes);
  }
  size_t n_copies() {
    return static_cast<size_t>(std::distance(fs::directory_iterator(cache_), {}));
  }

  ZooFolder folder_;
  const fs::path cache_ = folder_.root() / "copies";
};

TEST_F(PrivateCopies, ThoseUsedLongestAgoGoAndNoneThatIsInUse) {
  auto used = copy(0, 2000);
  ASSERT_TRUE(used) << used.status().message();
  const fs::path second = copy(1, 2000)->path;
  EXPECT_EQ(n_copies(), 2u) << "within the bound";
  const auto long_ago = fs::file_time_type::clock::now() - std::chrono::hours(1);
  fs::last_write_time(second.parent_path(), long_ago);
  fs::last_write_time(used->path.parent_path(), long_ago - std::chrono::hours(1));
  const auto third = copy(2, 2000);
  EXPECT_TRUE(fs::exists(used->path)) << "in use, though the oldest";
  EXPECT_TRUE(fs::exists(second)) << "the one in use is the one too many";
  fs::last_write_time(third->path.parent_path(), long_ago);
  EXPECT_TRUE(copy(1, 2000)) << "taken again: now it was used last";
  { const FolderLock dropped = std::move(used->in_use); }
  const fs::path fourth = copy(3, 2000)->path;
  EXPECT_TRUE(fs::exists(third->path)) << "in use";
  EXPECT_TRUE(fs::exists(fourth)) << "new";
  EXPECT_TRUE(fs::exists(second));
  EXPECT_FALSE(fs::exists(used->path));
  EXPECT_TRUE(copy(0, 2000)) << "made again when it is wanted";
}

TEST_F(PrivateCopies, WhatKilledMakersLeftIsRemoved) {
  for (const char* left : {"0123.new", "0123.4711"})
    ZooFolder::put(cache_ / left / "plugin.so", "half");
  const auto made = copy(0, kPrivateCopiesBytes);
  ASSERT_TRUE(made) << made.status().message();
  EXPECT_EQ(n_copies(), 1u);
}

TEST_F(PrivateCopies, ProcessesThatMakeUseAndRemoveThemAtOnceKeepThemWhole) {
  std::vector<pid_t> children;
  for (int child = 0; child < 4; ++child) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    for (int i = 0; child == 0 || i < 40; ++i) {  // the first one until it is killed
      const int version = (child + i) % 3;
      const std::string wanted(1000, static_cast<char>('a' + version));
      const fs::path mine = folder_.root() / ("child" + std::to_string(child)) / "plugin.so";
      ZooFolder::put(mine, wanted);
      const auto made = private_copy(mine, ElfFile{}, cache_, 1);
      if (!made || ZooFolder::bytes_of(made->path) != wanted) _exit(1);
    }
    _exit(0);
  }
  for (int child = 3; child >= 0; --child) {
    if (child == 0) kill(children[0], SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(children[child], &status, 0), children[child]);
    EXPECT_TRUE(child == 0 ? WIFSIGNALED(status) : WIFEXITED(status) && WEXITSTATUS(status) == 0)
        << child;
  }
  const auto last = copy(3, 1);
  ASSERT_TRUE(last) << last.status().message();
  EXPECT_EQ(n_copies(), 1u);
}

TEST_F(RegistryTest, AFileTooLongToSealRunsFromAPrivateCopy) {
  const fs::path file = ZooFolder::add(folder_.users(), "other");
  fs::resize_file(file, SealedCopy::kMostBytes + 1);
  ASSERT_TRUE(make()->load("zoo", "other"));
  EXPECT_EQ(files_below(folder_.cache().parent_path() / "plugin-copies").size(), 1u);
  options_.paths = {file.string()};
  options_.environment.home.reset();
  EXPECT_TRUE(make()
                  ->load("zoo", "other")
                  .status()
                  .message()
                  .ends_with("there is no folder for a private copy; set XDG_CACHE_HOME or HOME"));
}

TEST_F(RegistryTest, ALibraryThatALibraryNeedsIsNamed) {
  options_.paths = {(kZoo / "distant.so").string()};
  const auto registry = make();
  EXPECT_EQ(registry->load("zoo", "distant").status().code(), Code::kUnsupported);
  EXPECT_EQ(registry->candidates()[0].step, LoadStep::kLibraries);
  const std::string why = registry->candidates()[0].reason.message();
  EXPECT_NE(
      why.find("libzoo_middle.so, which needs the library \"libzoo_stub.so\", which is not on"),
      std::string::npos)
      << why;
}

TEST_F(RegistryTest, TheFirstInOrderWinsAndOthersAreShown) {
  const fs::path config = folder_.root() / "config", env = folder_.root() / "env";
  ZooFolder::add(config, "good");
  ZooFolder::add(env, "good");
  ZooFolder::add(env, "other");
  ZooFolder::add(folder_.users(), "other");
  ZooFolder::add(folder_.users(), "lonely");
  ZooFolder::add(folder_.installed(), "good");
  options_.paths = {config.string()};
  options_.environment.plugin_path =
      "relative:" + env.string() + "::" + (folder_.root() / "nowhere").string();
  const auto registry = make();
  std::vector<std::string> seen;
  for (const Candidate& c : registry->candidates())
    seen.push_back(c.origin + " " + c.name +
                   (c.state == Candidate::State::kShadowed ? " shadowed" : ""));
  EXPECT_EQ(seen, (std::vector<std::string>{
                      "plugins.path good", "DOVETAIL_PLUGIN_PATH good shadowed",
                      "DOVETAIL_PLUGIN_PATH other", "your plugins lonely",
                      "your plugins other shadowed", "installed plugins good shadowed"}));
  EXPECT_EQ(registry->candidates()[1].shadowed_by, (config / "zoo/good.so").string());
  EXPECT_EQ(registry->names("zoo"), (std::vector<std::string>{"good", "other"}))
      << "lonely lacks its library";
  std::vector<std::string> problems;
  for (const SearchPlace& place : registry->places()) problems.push_back(place.problem);
  EXPECT_EQ(problems, (std::vector<std::string>{"", "is not an absolute path", "", "does not exist",
                                                "", ""}));
}

TEST_F(RegistryTest, ABrokenPluginHidesNobody) {
  ZooFolder::put(folder_.users() / "zoo/good.so", "not a library");
  ZooFolder::add(folder_.users(), "crashes");
  ZooFolder::add(folder_.installed(), "good");
  const auto registry = make();
  const Result<LoadedPlugin*> plugin = registry->load("zoo", "good");
  ASSERT_TRUE(plugin) << plugin.status().message();
  EXPECT_EQ(registry->candidates().back().state, Candidate::State::kLoaded);
}

TEST_F(RegistryTest, ACandidateThatFailsLateGivesWayToTheNext) {
  // The same id and name, but the first one crashes.
  std::string crashing = ZooFolder::bytes_of(kZoo / "crashes.so");
  for (const auto& [from, to] :
       {std::pair("\"id\":\"org.dovetail.zoo.crashes\"", "\"id\":\"org.dovetail.zoo.good\""),
        std::pair("\"name\":\"crashes\"", "\"name\":\"good\"")}) {
    crashing = ZooFolder::with_manifest(crashing, from, to);
  }
  ZooFolder::put(folder_.users() / "zoo/good.so", crashing);
  ZooFolder::add(folder_.installed(), "good");
  const auto registry = make();
  EXPECT_EQ(registry->candidates()[1].state, Candidate::State::kShadowed);
  EXPECT_TRUE(registry->load("zoo", "good"));
  EXPECT_EQ(registry->candidates()[0].state, Candidate::State::kRefused);
  EXPECT_EQ(registry->candidates()[1].state, Candidate::State::kLoaded);
}

TEST_F(RegistryTest, APlaceThatTheConfigNamesMustBeThere) {
  const fs::path gone = folder_.root() / "gone";
  options_.environment.plugin_path = gone.string();
  EXPECT_TRUE(PluginRegistry::create(options_, host_)) << "a variable's is a warning";
  options_.paths = {gone.string()};
  const Status status = PluginRegistry::create(options_, host_).status();
  EXPECT_EQ(status.code(), Code::kIo);
  EXPECT_EQ(status.message(),
            "plugins.path: \"" + gone.string() +
                "\" does not exist, expected a folder of plugins or one plugin's file");
}

TEST_F(RegistryTest, TheCurrentDirectoryIsNeverSearched) {
  ZooFolder::add(folder_.root() / "here", "good");
  const fs::path before = fs::current_path();
  fs::current_path(folder_.root() / "here/zoo");
  options_.environment.plugin_path = ".:";
  const auto registry = make();
  fs::current_path(before);
  EXPECT_TRUE(registry->candidates().empty());
}

TEST_F(RegistryTest, WhatIsNotThereIsAnsweredWithTheNearestAndThePlaces) {
  ZooFolder::add(folder_.installed(), "good");
  const auto registry = make();
  const std::string places = "looked in " + folder_.users().string() + " (does not exist), " +
                             folder_.installed().string();
  EXPECT_EQ(registry->load("zoo", "goof").status().message(),
            "there is no zoo plugin \"goof\", did you mean \"good\"?; " + places);
  EXPECT_EQ(registry->find_by_key("zoo", "beest").status().message(),
            "no plugin provides zoo \"beest\", did you mean \"beast\"?; " + places);
  EXPECT_EQ(registry->find_by_key("arch", "qwen9").status().message(),
            "no plugin provides architecture \"qwen9\"; " + places);
  EXPECT_EQ(registry->load("arch", "good").status().code(), Code::kInvalid) << "of another kind";
}

TEST_F(RegistryTest, TheConfigAllowsAndDenies) {
  ZooFolder::add(folder_.installed(), "good");
  ZooFolder::add(folder_.installed(), "other");
  options_.deny = {"org.*.zoo.oth*"};
  EXPECT_TRUE(make()
                  ->load("zoo", "other")
                  .status()
                  .message()
                  .ends_with("other.so: is denied by the config's plugins.deny"));
  EXPECT_TRUE(make()->load("zoo", "good"));
  options_.deny.clear();
  options_.allow = {"org.dovetail.zoo.other"};
  EXPECT_TRUE(make()
                  ->load("zoo", "good")
                  .status()
                  .message()
                  .ends_with("good.so: is not in the config's plugins.allow"));
  EXPECT_EQ(make()->names("zoo"), std::vector<std::string>{"other"});
  options_.allow = {"zoo/*"};  // by kind and name, by name
  options_.deny = {"other"};
  EXPECT_EQ(make()->names("zoo"), std::vector<std::string>{"good"});
}

TEST_F(RegistryTest, ABuildTreeIsTrusted) {
  ZooFolder::put(folder_.root() / "prefix/CMakeCache.txt", "");
  options_.paths = {ZooFolder::add(folder_.root() / "prefix/tests/plugins", "good").string()};
  EXPECT_TRUE(make()->candidates()[0].is_trusted);
  fs::remove(folder_.root() / "prefix/CMakeCache.txt");
  EXPECT_FALSE(make()->candidates()[0].is_trusted);
}

TEST_F(RegistryTest, ListAndExplainShowCandidatesAndReasons) {
  ZooFolder::add(folder_.installed(), "good");
  ZooFolder::add(folder_.users(), "good");
  ZooFolder::add(folder_.users(), "foreign");
  ZooFolder::add(folder_.users(), "crashes");
  const auto registry = make();
  const std::string list = plugins_list_text(*registry);
  EXPECT_NE(list.find("zoo\n"), std::string::npos) << list;
  EXPECT_NE(
      list.find("  good     1.2.3  org.dovetail.zoo.good     your plugins  for beast, good\n"),
      std::string::npos)
      << list;
  EXPECT_NE(list.find("1 refused, 1 shadowed"), std::string::npos) << list;

  const auto good = plugin_explain_text(*registry, "zoo/good");
  ASSERT_TRUE(good);
  EXPECT_TRUE(good->starts_with("2 candidates for \"zoo/good\", first wins:\n  1. " +
                                (folder_.users() / "zoo/good.so").string()))
      << *good;
  EXPECT_NE(good->find("because   " + (folder_.users() / "zoo/good.so").string() +
                       " comes first; remove one of them"),
            std::string::npos)
      << *good;
  EXPECT_NE(good->find("searched, first wins:\n  your plugins       " + folder_.users().string()),
            std::string::npos)
      << *good;
  const auto foreign = plugin_explain_text(*registry, "org.dovetail.zoo.foreign");
  EXPECT_NE(
      foreign->find("verdict   refused at step \"interface\"\n     because   was built for draft"),
      std::string::npos)
      << *foreign;
  const auto crashes = plugin_explain_text(*registry, "crashes");
  EXPECT_NE(crashes->find("verdict   refused at step \"probe\"\n     because   crashed with SIG"),
            std::string::npos)
      << *crashes;
  EXPECT_TRUE(
      plugin_explain_text(*registry, "god")
          .status()
          .message()
          .starts_with(
              "no file is a candidate for plugin \"god\", did you mean \"good\"?; looked in "));

  const Node node = plugins_list_node(*registry);
  EXPECT_EQ(node.find("plugins")->items().size(), 4u);
  const auto explained = plugin_explain_node(*registry, "foreign");
  EXPECT_EQ(explained->find("candidates")->items()[0].find("step")->as_string(), "interface");
}

TEST_F(RegistryTest, ElevatedRightsLeaveNothingOfTheEnvironment) {
  const PluginEnvironment none{};  // what PluginEnvironment::read() gives then
  options_.environment = none;
  const auto registry = make();
  ASSERT_EQ(registry->places().size(), 1u);
  EXPECT_EQ(registry->places()[0].origin, "installed plugins");
}

// Damaged copies that pass the checks meet the child, not this process. The seed is fixed.
TEST_F(RegistryTest, DamagedPluginsNeverHurtThisProcess) {
  const std::string good = ZooFolder::bytes_of(kZoo / "good.so");
  std::mt19937 random(2);
  size_t n_loaded = 0, n_refused = 0;
  for (int round = 0; round < 60; ++round) {
    std::string bytes = good;
    for (int k = 0; k < 3; ++k)
      bytes[random() % std::min<size_t>(bytes.size(), 24000)] = static_cast<char>(random());
    ZooFolder::put(folder_.users() / "zoo/good.so", bytes);
    const auto registry = make();
    const Candidate& c = registry->candidates()[0];
    if (!c.file.is_good()) {
      ++n_refused;
      continue;
    }
    (probe_in_child(c.file.path, *c.file.manifest) ? n_loaded : n_refused)++;
  }
  EXPECT_GT(n_loaded, 0u);
  EXPECT_GT(n_refused, 0u);
}

}  // namespace
}  // namespace dovetail::core
