// Where a model's chat templates come from, and which one is taken.
#include "core/text/chat_templates.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/base/json.hpp"

namespace dovetail::core {
namespace {

namespace fs = std::filesystem;

Result<ChatTemplates> read(const std::string& config) {
  const Node node = *parse_json(config, "tokenizer_config.json");
  return ChatTemplates::read(nullptr, &node);
}

TEST(ChatTemplates, AreATextOrAListByNames) {
  EXPECT_EQ(read(R"({"chat_template": "a"})")->pick(true)->source, "a");
  EXPECT_TRUE(read(R"({"chat_template": null})")->empty());
  EXPECT_TRUE(read("{}")->empty());
  const Result<ChatTemplates> list = read(
      R"({"chat_template": [{"name": "default", "template": "d"}, {"name": "tool_use", "template": "t"},
          {"name": "rag", "template": "r"}]})");
  ASSERT_TRUE(list.is_ok());
  EXPECT_EQ(list->pick(false)->source, "d");
  EXPECT_EQ(list->pick(true)->source, "t");
  EXPECT_EQ((*list->find("rag"))->source, "r");
  EXPECT_EQ((*list->find(""))->source, "d");
  EXPECT_EQ(list->find("rags").status().message(),
            "no chat template is called \"rags\", did you mean \"rag\"?; there are default, "
            "tool_use, rag");
}

TEST(ChatTemplates, TheOnlyOneIsMeantWhateverItsName) {
  EXPECT_EQ(read(R"({"chat_template": [{"name": "x", "template": "a"}]})")->pick(false)->source,
            "a");
  const Result<ChatTemplates> two = read(
      R"({"chat_template": [{"name": "x", "template": "a"}, {"name": "y", "template": "b"}]})");
  EXPECT_EQ(two->pick(false), nullptr);
  EXPECT_EQ(two->find("").status().message(),
            "none of the chat templates is called \"default\"; name one of x, y");
}

TEST(ChatTemplates, AnythingElseIsRefusedWithItsPlace) {
  for (const char* wrong :
       {"3", R"({"a": "b"})", R"([{"name": "a"}])", R"(["a"])",
        R"([{"name": "a", "template": "b"}, {"name": "a", "template": "c"}])"}) {
    const Result<ChatTemplates> out = read("{\"chat_template\": " + std::string(wrong) + "}");
    EXPECT_EQ(out.status().code(), Code::kFormat) << wrong;
    EXPECT_TRUE(out.status().message().starts_with("tokenizer_config.json:1:"))
        << out.status().message();
  }
}

TEST(ChatTemplates, FilesOfTheFolderComeFirst) {
  const fs::path folder = fs::path(testing::TempDir()) / "chat_templates_test";
  fs::remove_all(folder);
  fs::create_directories(folder / "additional_chat_templates");
  const auto write = [&](const char* name, const char* text) {
    std::ofstream(folder / name) << text;
  };
  const Node config = *parse_json(R"({"chat_template": "config"})", "c");
  const auto now = [&] {
    const Result<Folder> opened = Folder::open(folder);
    const Result<ChatTemplates> out = ChatTemplates::read(&*opened, &config);
    EXPECT_TRUE(out.is_ok()) << out.status().message();
    std::string all;
    for (const ChatTemplates::Entry& e : out->all()) all += e.name + "=" + e.source + " ";
    return all;
  };
  EXPECT_EQ(now(), "default=config ");
  write("chat_template.json", R"({"chat_template": "json"})");
  EXPECT_EQ(now(), "default=json ");
  write("chat_template.jinja", "jinja");
  write("additional_chat_templates/tool_use.jinja", "tools");
  write("additional_chat_templates/notes.txt", "no template");
  EXPECT_EQ(now(), "default=jinja tool_use=tools ");
  fs::remove_all(folder);
}

}  // namespace
}  // namespace dovetail::core
