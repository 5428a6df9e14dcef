// What every plugin must do, of whatever kind: its file, its descriptor, its declared parameters.
#include <elf.h>

#include <cmath>
#include <cstring>
#include <set>

#include "tests/contract/built_plugins.hpp"

namespace dovetail::core::test {
namespace {

class PluginContract : public testing::TestWithParam<BuiltPlugin> {};

TEST_P(PluginContract, DescribesItself) {
  const LoadedPlugin* plugin = ContractHost::get().load(GetParam());
  ASSERT_NE(plugin, nullptr);
  const dvt_plugin_v1* d = plugin->table;
  EXPECT_EQ(text_of(d->kind), GetParam().kind);
  EXPECT_EQ(text_of(d->name), GetParam().name);
  EXPECT_EQ(text_of(d->abi_hash), DVT_ABI_HASH);
  EXPECT_GE(d->struct_size, sizeof(dvt_plugin_v1));
  EXPECT_TRUE(d->start && d->drain && d->stop && d->get_interface);
  EXPECT_EQ(d->get_interface(plugin->self, abi_text("dovetail.nothing/1")), nullptr);
  EXPECT_EQ(d->get_interface(plugin->self, {nullptr, 0}), nullptr);
  EXPECT_NE(d->get_interface(plugin->self, abi_text("dovetail." + GetParam().kind + "/1")), nullptr)
      << "a plugin of this kind offers its kind's interface";
  for (const std::string& provided : plugin->manifest.provides)
    EXPECT_NE(d->get_interface(plugin->self, abi_text(provided)), nullptr) << provided;
}

TEST_P(PluginContract, DeclaresItsParameters) {
  const LoadedPlugin* plugin = ContractHost::get().load(GetParam());
  ASSERT_NE(plugin, nullptr);
  std::set<std::string_view> names;
  for (const dvt_param& p : plugin->params()) {
    const std::string name(text_of(p.name));
    EXPECT_FALSE(name.empty());
    EXPECT_TRUE(names.insert(text_of(p.name)).second) << name << " is declared twice";
    EXPECT_GE(p.type, uint32_t{DVT_PARAM_BOOL});
    EXPECT_LE(p.type, uint32_t{DVT_PARAM_FLOAT_LIST});
    EXPECT_FALSE(text_of(p.help).empty()) << name;
    EXPECT_EQ(text_of(p.help).find('\n'), std::string_view::npos) << name;
    EXPECT_LE(p.min, p.max) << name;
    EXPECT_FALSE((p.flags & DVT_PARAM_REQUIRED) && p.default_text.n > 0)
        << name << " needs no default";
    if ((p.type == DVT_PARAM_INT || p.type == DVT_PARAM_FLOAT) && p.default_text.n > 0) {
      const double value = std::stod(std::string(text_of(p.default_text)));
      EXPECT_GE(value, p.min) << name;
      EXPECT_LE(value, p.max) << name;
    }
  }
}

// Another start of the loaded code: state belongs to the object that start makes, not to the library.
TEST_P(PluginContract, StartsAgainBesideItself) {
  ContractHost& host = ContractHost::get();
  const LoadedPlugin* plugin = host.load(GetParam());
  ASSERT_NE(plugin, nullptr);
  const uint64_t before = host.live_bytes();
  Frame call;
  void* second = nullptr;
  expect_ok(plugin->table->start(call, host.services().table_for("second"), &second), call,
            "start");
  EXPECT_NE(second, plugin->self);
  expect_ok(plugin->table->drain(call, second), call, "drain");
  plugin->table->stop(second);
  EXPECT_EQ(host.live_bytes(), before);
}

// Its code comes in as one symbol; the rest stays inside.
TEST_P(PluginContract, ExportsOneSymbol) {
  const std::string bytes = read_text(GetParam().file);
  Elf64_Ehdr header;
  ASSERT_GE(bytes.size(), sizeof header);
  std::memcpy(&header, bytes.data(), sizeof header);
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  ASSERT_LE(header.e_shoff + sections.size() * sizeof(Elf64_Shdr), bytes.size());
  std::memcpy(sections.data(), bytes.data() + header.e_shoff, sections.size() * sizeof(Elf64_Shdr));
  std::set<std::string> defined;
  for (const Elf64_Shdr& s : sections) {
    if (s.sh_type != SHT_DYNSYM) continue;
    const char* names = bytes.data() + sections[s.sh_link].sh_offset;
    for (uint64_t at = s.sh_offset; at < s.sh_offset + s.sh_size; at += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol;
      std::memcpy(&symbol, bytes.data() + at, sizeof symbol);
      if (symbol.st_shndx != SHN_UNDEF && ELF64_ST_BIND(symbol.st_info) != STB_LOCAL)
        defined.insert(names + symbol.st_name);
    }
  }
  EXPECT_EQ(defined, std::set<std::string>{"dvt_plugin_query"});
}

INSTANTIATE_TEST_SUITE_P(Built, PluginContract, testing::ValuesIn(built_plugins()), test_name);

TEST(PluginContractSuite, HasPluginsOfEveryKind) {
  for (const char* kind : {"arch", "backend", "format", "sampler", "tokenizer"})
    EXPECT_FALSE(built_plugins(kind).empty()) << kind;
}

}  // namespace
}  // namespace dovetail::core::test
