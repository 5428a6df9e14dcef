#include "core/hub/selection.hpp"

#include <gtest/gtest.h>

namespace dovetail::core {
namespace {

using Names = std::vector<std::string>;

const char* const kIndexText =
    R"({"weight_map": {"a": "s1.safetensors", "b": "sub/s2.safetensors"}})";

Result<Selection> select(const Names& names, const Wanted& wanted = {},
                         const std::string& index = kIndexText) {
  HubListing listing{"O/N", "c", {}};
  for (const std::string& name : names) listing.files.push_back({name, 1, {}});
  return select_files(listing, wanted, [&](const HubFile&) { return Result<std::string>(index); });
}

Names names_of(const Result<Selection>& s) {
  EXPECT_TRUE(s) << s.status().message();
  Names out;
  if (s)
    for (const HubFile& file : s->files) out.push_back(file.name);
  return out;
}

TEST(SelectFiles, TakesWhatAFolderIsReadFrom) {
  EXPECT_EQ(names_of(select({"model.safetensors", "README.md", "config.json", "s1.safetensors",
                             "sub/config.json", "model.safetensors.index.json", "x.gguf"})),
            (Names{"config.json", "model.safetensors"}))
      << "the single file, as the reader of safetensors takes it";
  EXPECT_EQ(names_of(select({"s1.safetensors", "s3.safetensors", "sub/s2.safetensors", "x.gguf",
                             "tokenizer.json", "model.safetensors.index.json"})),
            (Names{"tokenizer.json", "model.safetensors.index.json", "s1.safetensors",
                   "sub/s2.safetensors"}));
  EXPECT_EQ(names_of(select({"x.gguf", "config.json"})), (Names{"config.json", "x.gguf"}));
}

TEST(SelectFiles, RefusesAnIndexThatIsWrong) {
  const Names names = {"model.safetensors.index.json", "s1.safetensors", "a.bin"};
  for (const char* index : {"{}", "x", R"({"weight_map": {"a": "gone.safetensors"}})",
                            R"({"weight_map": {"a": 5}})", R"({"weight_map": {"a": "a.bin"}})"})
    EXPECT_EQ(select(names, {}, index).status().code(), Code::kFormat) << index;
}

TEST(SelectFiles, TakesASplitModelAsOne) {
  const Names parts = {"q/x-00001-of-00002.gguf", "q/x-00002-of-00002.gguf"};
  Names all = {"q/x-00001-of-00003.gguf", "q/x-0001-of-0002.gguf", "x-00001-of-00002.gguf"};
  EXPECT_EQ(names_of(select(parts)), parts);
  all.insert(all.end(), parts.begin(), parts.end());
  EXPECT_EQ(names_of(select(all, {{parts[1]}, {}, {}})), parts) << "of the same folder and count";
  EXPECT_EQ(select(all).status().code(), Code::kInvalid);
}

TEST(SelectFiles, ThatWereNamedOrMatch) {
  const Names names = {"a.json", "b/c.json", "d.pt", ".hidden", "b/.x", "README.md"};
  EXPECT_EQ(names_of(select(names, {{"README.md"}, {"*.json"}, {"b/*"}})),
            (Names{"a.json", "README.md"}));
  const Result<Selection> all = select(names, {{}, {"*"}, {}});
  EXPECT_EQ(names_of(all), (Names{"a.json", "b/c.json", "README.md"}));
  EXPECT_EQ(all->refused, (Names{"d.pt"}));
  EXPECT_EQ(select(names, {{"d.pt"}, {}, {}}).status().code(), Code::kInvalid);
  EXPECT_EQ(select(names, {{"x"}, {}, {}}).status().code(), Code::kInvalid);
  EXPECT_EQ(select(names).status().code(), Code::kUnsupported);
}

TEST(SelectFiles, NeverLeadOut) {
  for (const char* name : {"../x", "/x", "a/../x", "a\\x", "./x", "a//x", "x/", ".x", "a/.x"})
    EXPECT_EQ(select({name}, {{name}, {}, {}}).status().code(), Code::kFormat) << name;
}

}  // namespace
}  // namespace dovetail::core
