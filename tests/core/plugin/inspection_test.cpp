// Each broken plugin is refused before it is loaded, at the right step and with the right words; and
// no damage to a file can hurt the reader.
#include "core/plugin/inspection.hpp"

#include <dovetail/abi/plugin.h>
#include <elf.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>

#include "core/plugin/libraries.hpp"
#include "core/plugin/report.hpp"
#include "tests/core/plugin/zoo_folder.hpp"

namespace dovetail::core {
namespace {

class InspectionTest : public testing::Test {
 protected:
  /// "step: message" of the first finding, or "good".
  std::string verdict(const std::filesystem::path& path) {
    const Inspection in = inspect_plugin(path, libraries_);
    return in.is_good() ? "good"
                        : std::string(step_name(in.findings[0].step)) + ": " +
                              in.findings[0].status.message();
  }
  std::string verdict_of_bytes(const std::string& bytes) {
    const std::filesystem::path file = folder_.root() / "x.so";
    ZooFolder::put(file, bytes);
    return verdict(file);
  }
  std::string good() { return ZooFolder::bytes_of(kZoo / "good.so"); }

  LibraryFinder libraries_;
  ZooFolder folder_;
};

TEST_F(InspectionTest, AGoodPluginPassesAndSaysWhatItIs) {
  const Inspection in = inspect_plugin(kZoo / "good.so", libraries_);
  ASSERT_TRUE(in.is_good()) << in.findings[0].status.message();
  EXPECT_EQ(in.manifest->id, "org.dovetail.zoo.good");
  EXPECT_EQ(in.manifest->kind, "zoo");
  EXPECT_EQ(in.manifest->name, "good");
  EXPECT_EQ(in.manifest->version, "1.2.3");
  EXPECT_EQ(in.manifest->abi_hash, DVT_ABI_HASH);
  EXPECT_EQ(in.manifest->sanitizer, DVT_SANITIZER_NAME);
  EXPECT_EQ(in.manifest->provides, std::vector<std::string>{"dovetail.zoo/1"});
  EXPECT_EQ(in.manifest->keys, (std::vector<std::string>{"beast", "good"}));
  EXPECT_EQ(in.elf->exported, std::vector<std::string>{"dvt_plugin_query"});
  EXPECT_TRUE(in.elf->relro);
  EXPECT_TRUE(in.elf->bind_now);
  EXPECT_EQ(in.elf->n_unique_symbols, 0u);
  EXPECT_NE(std::find(in.elf->needed.begin(), in.elf->needed.end(), "libc.so.6"),
            in.elf->needed.end());
  EXPECT_TRUE(std::any_of(in.elf->needed_versions.begin(), in.elf->needed_versions.end(),
                          [](const ElfVersionNeed& v) {
                            return v.library == "libc.so.6" && v.version.starts_with("GLIBC_2");
                          }));
}

TEST_F(InspectionTest, WhatIsNoPluginIsSaidToBeNone) {
  EXPECT_EQ(verdict(folder_.root() / "none.so"), "file: cannot open: no such file or directory");
  EXPECT_EQ(verdict(folder_.root()), "file: is a folder, expected a file");
  EXPECT_EQ(verdict_of_bytes(""), "file: is not an ELF file (a Linux shared library)");
  EXPECT_EQ(verdict_of_bytes("#!/bin/sh\necho hello, I am a script\n"),
            "file: is not an ELF file (a Linux shared library)");
  EXPECT_EQ(verdict_of_bytes(good().substr(0, 40)),
            "file: the file is damaged: it ends inside its header, after 40 bytes");
  EXPECT_EQ(verdict(kZoo / "unmanifest.so"),
            "manifest: has no manifest: it is not a Dovetail plugin, or was not built with "
            "dovetail_add_plugin()");
}

TEST_F(InspectionTest, AnotherMachineOrClassIsSaid) {
  std::string bytes = good();
  const uint16_t other = own_machine() == EM_AARCH64 ? EM_X86_64 : EM_AARCH64;
  std::memcpy(bytes.data() + offsetof(Elf64_Ehdr, e_machine), &other, sizeof other);
  EXPECT_EQ(verdict_of_bytes(bytes), "file: was built for " + machine_name(other) +
                                         ", this machine is " + machine_name(own_machine()));
  bytes = good();
  bytes[EI_CLASS] = ELFCLASS32;
  EXPECT_EQ(verdict_of_bytes(bytes), "file: is not for 64-bit machines");
  bytes[EI_CLASS] = ELFCLASS64;
  bytes[EI_DATA] = ELFDATA2MSB;
  EXPECT_EQ(verdict_of_bytes(bytes), "file: is not for little-endian machines");
  bytes = good();
  const uint16_t object = ET_REL;
  std::memcpy(bytes.data() + offsetof(Elf64_Ehdr, e_type), &object, sizeof object);
  EXPECT_EQ(verdict_of_bytes(bytes), "file: is not a shared library");
}

TEST_F(InspectionTest, ATruncatedFileIsSaidToBeCutShort) {
  const std::string bytes = good();
  EXPECT_TRUE(
      verdict_of_bytes(bytes.substr(0, 8192))
          .starts_with("file: the file is cut short: it has 8192 bytes, its segments need "))
      << verdict_of_bytes(bytes.substr(0, 8192));
  for (size_t n = 0; n < 4096; n += 97)
    EXPECT_NE(verdict_of_bytes(bytes.substr(0, n)), "good") << n;
}

TEST_F(InspectionTest, AnotherInterfaceIsRefusedBeforeLoading) {
  EXPECT_EQ(verdict(kZoo / "foreign.so"),
            "interface: was built for draft \"0123456789abcdef\" of the plugin interface, this "
            "program has \"" DVT_ABI_HASH "\"; build it again with this program's SDK");
  EXPECT_EQ(verdict_of_bytes(ZooFolder::with_manifest(good(), "\"abi\":[0,", "\"abi\":[7,")),
            "interface: was built for plugin interface 7, this program has 0; get a build of the "
            "plugin for it");
}

TEST_F(InspectionTest, AnotherSanitizerIsRefused) {
  const std::string own = std::string("\"sanitizer\":\"") + DVT_SANITIZER_NAME + "\"";
  const std::string other =
      std::string_view(DVT_SANITIZER_NAME) == "address" ? "thread" : "address";
  const std::string text =
      verdict_of_bytes(ZooFolder::with_manifest(good(), own, "\"sanitizer\":\"" + other + "\""));
  EXPECT_TRUE(text.starts_with("interface: was built with the " + other +
                               " sanitizer, which would end this program"))
      << text;
  EXPECT_EQ(verdict_of_bytes(ZooFolder::with_manifest(good(), own, "\"sanitizer\":\"none\"")),
            "good");
}

TEST_F(InspectionTest, TheManifestIsReadStrictly) {
  const auto with = [&](const std::string& from, const std::string& to) {
    return verdict_of_bytes(ZooFolder::with_manifest(good(), from, to));
  };
  EXPECT_EQ(with("\"id\":", "\"ix\":"), "manifest: its manifest has no \"id\"");
  EXPECT_EQ(with("\"version\":\"1.2.3\"", "\"version\":1.2"),
            "manifest: its manifest's \"version\" has a number, expected a string");
  EXPECT_EQ(
      with("\"name\":\"good\"", "\"name\":\"../x\""),
      "manifest: its manifest's \"name\" is \"../x\", expected letters, digits, '.', '_' and '-'");
  EXPECT_EQ(with("\"keys\":[\"beast\",", "\"keys\":[7      ,"),
            "manifest: its manifest's \"keys\" has an integer, expected strings in its list");
  EXPECT_EQ(with("\"abi\":[0,", "\"abi\":[[],"),
            "manifest: its manifest's \"abi\" has a list, expected [major, minor]");
  EXPECT_TRUE(with("\"kind\":", "\"name\":").starts_with("manifest: manifest:1:"))
      << "twice the same key";
  EXPECT_TRUE(with("{\"id\"", "{{id\"").starts_with("manifest: manifest:1:"));
}

TEST_F(InspectionTest, AMissingLibraryIsNamed) {
  EXPECT_EQ(verdict(kZoo / "lonely.so"),
            "libraries: needs the library \"libzoo_stub.so\", which is not on this system; install "
            "the package that has it");
}

TEST_F(InspectionTest, AnOlderLibraryIsNamedWithTheVersionThatIsNeeded) {
  const std::string text = verdict(kZoo / "outdated.so");
  EXPECT_TRUE(text.starts_with("libraries: needs ZOO_2 of libzoo_versioned.so, but ")) << text;
  EXPECT_NE(text.find("versioned_1/libzoo_versioned.so is older"), std::string::npos) << text;
  EXPECT_EQ(verdict(kZoo / "beside.so"), "good") << "found by its runpath";
}

TEST_F(InspectionTest, MoreThanOneSymbolIsRefused) {
  EXPECT_EQ(verdict(kZoo / "talkative.so"),
            "symbols: exports 1 symbol besides dvt_plugin_query (zoo_second), which could clash "
            "with other plugins; "
            "link it with dovetail_add_plugin()");
}

TEST_F(InspectionTest, AnExecutableStackIsRefused) {
  EXPECT_EQ(verdict(kZoo / "stack.so"),
            "symbols: asks for an executable stack; link it with -z noexecstack");
}

TEST_F(InspectionTest, AProgramIsNoPlugin) {
  const Inspection in = inspect_plugin("/proc/self/exe", libraries_);
  EXPECT_FALSE(in.is_good());
}

TEST_F(InspectionTest, SystemLibrariesAreRead) {
  // Their tables are larger and odder than those of plugins.
  for (const char* name : {"libc.so.6", "libstdc++.so.6", "libm.so.6"}) {
    ElfFile user;
    user.needed = {name};
    EXPECT_TRUE(libraries_.missing(user, "/").empty()) << name;
    user.needed_versions = {{name, "NO_SUCH_VERSION", false}};
    EXPECT_EQ(libraries_.missing(user, "/").size(), 1u) << name << " could not be read";
    user.needed_versions[0].weak = true;
    EXPECT_TRUE(libraries_.missing(user, "/").empty());
  }
}

TEST_F(InspectionTest, ReportsSayItAllWithoutLoading) {
  const Inspection in = inspect_plugin(kZoo / "good.so", libraries_);
  const std::string text = inspection_text(in);
  EXPECT_NE(text.find("id         org.dovetail.zoo.good\n"), std::string::npos) << text;
  EXPECT_NE(text.find("passes every check before loading"), std::string::npos) << text;
  EXPECT_NE(text.find("libc.so.6"), std::string::npos) << text;
  const std::string bad = inspection_text(inspect_plugin(kZoo / "talkative.so", libraries_));
  EXPECT_NE(bad.find("is refused\n  symbols  exports 1 symbol"), std::string::npos) << bad;
  const Node node = inspection_node(in);
  EXPECT_EQ(node.find("manifest")->find("name")->as_string(), "good");
  EXPECT_TRUE(node.find("findings")->items().empty());
  EXPECT_EQ(inspect_plugin_file("no/such.so").status().message(),
            "no/such.so: cannot open: no such file or directory");
}

TEST(LibraryCache, OtherTextGivesNothing) {
  EXPECT_TRUE(read_library_cache("").empty());
  EXPECT_TRUE(read_library_cache("ld.so-1.7.0").empty());
  std::string many = "glibc-ld.so.cache1.1";
  many.append(4, '\xff');  // four thousand million entries
  many.append(24, '\0');
  EXPECT_TRUE(read_library_cache(many).empty());
}

TEST(RunpathFolders, PutsInTheOriginAndLeavesRelativeOnesOut) {
  const auto folders = runpath_folders("$ORIGIN/../lib:relative:/opt/x:${ORIGIN}", "/a$ORIGIN/b");
  ASSERT_EQ(folders.size(), 3u);
  EXPECT_EQ(folders[0], "/a$ORIGIN/b/../lib");
  EXPECT_EQ(folders[1], "/opt/x");
  EXPECT_EQ(folders[2], "/a$ORIGIN/b");
}

// ---------------------------------------------------------------- damage

// The seed is fixed: a failure is found again.
TEST(DamagedFiles, NeverHurtTheReader) {
  const std::string good = ZooFolder::bytes_of(kZoo / "good.so");
  ASSERT_FALSE(good.empty());
  std::mt19937 random(20261130);
  const auto below = [&](size_t n) {
    return std::uniform_int_distribution<size_t>(0, n - 1)(random);
  };
  const auto interesting = [&]() -> uint64_t {
    switch (below(6)) {
      case 0:
        return 0;
      case 1:
        return UINT64_MAX;
      case 2:
        return uint64_t{1} << below(64);
      case 3:
        return below(good.size());
      case 4:
        return good.size();
      default:
        return random();
    }
  };
  const size_t dynamic = [&] {  // where the dynamic section is, for denser damage
    Elf64_Ehdr header;
    std::memcpy(&header, good.data(), sizeof header);
    for (int i = 0; i < header.e_phnum; ++i) {
      Elf64_Phdr p;
      std::memcpy(&p, good.data() + header.e_phoff + i * sizeof p, sizeof p);
      if (p.p_type == PT_DYNAMIC) return static_cast<size_t>(p.p_offset);
    }
    return size_t{0};
  }();
  ASSERT_NE(dynamic, 0u);
  LibraryFinder libraries;
  size_t n_refused = 0;
  constexpr size_t kRounds = 6000;
  for (size_t round = 0; round < kRounds; ++round) {
    std::string bytes = good;
    const size_t n_changes = 1 + below(4);
    for (size_t k = 0; k < n_changes; ++k) {
      const size_t kind = below(5);
      const size_t at = kind == 0   ? below(1024)
                        : kind == 1 ? dynamic + below(512)
                        : kind == 2 ? below(8192)
                                    : below(bytes.size());
      if (kind == 4 && round % 4 == 0) {
        bytes.resize(below(bytes.size()) + 1);
      } else if (at + 8 <= bytes.size() && below(2) == 0) {
        const uint64_t value = interesting();
        std::memcpy(bytes.data() + at / 8 * 8, &value,
                    std::min<size_t>(8, bytes.size() - at / 8 * 8));
      } else if (at < bytes.size()) {
        bytes[at] = static_cast<char>(random());
      }
    }
    const Result<ElfFile> elf = read_elf(std::as_bytes(std::span(bytes.data(), bytes.size())));
    if (!elf) {
      ++n_refused;
      EXPECT_FALSE(elf.status().message().empty());
      continue;
    }
    (void)read_manifest(*elf);
    (void)libraries.missing(*elf, "/nowhere");
  }
  EXPECT_GT(n_refused, kRounds / 10) << "the damage does not reach what is checked";
}

}  // namespace
}  // namespace dovetail::core
