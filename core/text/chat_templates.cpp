#include "core/text/chat_templates.hpp"

#include <algorithm>
#include <filesystem>

#include "core/base/json.hpp"
#include "core/base/nearest.hpp"

namespace dovetail::core {
namespace {

constexpr uint64_t kMaxBytes = 16u << 20;
constexpr std::string_view kEnding = ".jinja";

}  // namespace

Result<ChatTemplates> ChatTemplates::read(const Folder* folder, const Node* tokenizer_config) {
  ChatTemplates out;
  if (folder != nullptr && folder->has("chat_template.jinja")) {
    DVT_TRY(std::string source, folder->read("chat_template.jinja", kMaxBytes));
    out.all_.push_back({"default", std::move(source)});
    std::error_code error;
    const std::filesystem::path more = folder->path() / "additional_chat_templates";
    if (!std::filesystem::is_directory(more, error)) return out;
    DVT_TRY(const Folder others, Folder::open(more));
    for (const std::string& file : others.files()) {
      if (!file.ends_with(kEnding)) continue;
      DVT_TRY(std::string other, others.read(file, kMaxBytes));
      out.all_.push_back({file.substr(0, file.size() - kEnding.size()), std::move(other)});
    }
    return out;
  }
  if (folder != nullptr && folder->has("chat_template.json")) {
    DVT_TRY(const std::string text, folder->read("chat_template.json", kMaxBytes));
    DVT_TRY(const Node document, parse_json(text, folder->name() + "/chat_template.json"));
    if (const Node* value = document.find("chat_template")) DVT_TRY(out.add(*value));
    if (!out.empty()) return out;
  }
  const Node* value = tokenizer_config ? tokenizer_config->find("chat_template") : nullptr;
  if (value != nullptr) DVT_TRY(out.add(*value));
  return out;
}

Status ChatTemplates::add(const Node& value) {
  if (value.is_null()) return Status::ok();
  if (value.is_string()) {
    all_.push_back({"default", value.as_string()});
    return Status::ok();
  }
  const auto wrong = [&](const Node& at) {
    return bad_format(at.origin().str() + ": \"chat_template\" has " + at.kind_name() +
                      ", expected a template, or a list of {\"name\": ..., \"template\": ...}");
  };
  if (!value.is_list()) return wrong(value);
  for (const Node& item : value.items()) {
    const Node *name = item.find("name"), *source = item.find("template");
    if (name == nullptr || source == nullptr || !name->is_string() || !source->is_string())
      return wrong(item);
    if (named(name->as_string()) != nullptr)
      return bad_format(item.origin().str() + ": \"chat_template\" has the name \"" +
                        name->as_string() + "\" twice");
    all_.push_back({name->as_string(), source->as_string()});
  }
  return Status::ok();
}

const ChatTemplates::Entry* ChatTemplates::named(std::string_view name) const {
  const auto at = std::find_if(all_.begin(), all_.end(),
                               [&](const Entry& entry) { return entry.name == name; });
  return at == all_.end() ? nullptr : &*at;
}

const ChatTemplates::Entry* ChatTemplates::pick(bool with_tools) const {
  const Entry* with = with_tools ? named("tool_use") : nullptr;
  if (with != nullptr) return with;
  const Entry* plain = named("default");
  return plain == nullptr && all_.size() == 1 ? &all_[0] : plain;
}

Result<const ChatTemplates::Entry*> ChatTemplates::find(std::string_view name,
                                                        bool with_tools) const {
  const Entry* entry = name.empty() ? pick(with_tools) : named(name);
  if (entry != nullptr) return entry;
  if (all_.empty()) return invalid("there is no chat template");
  std::vector<std::string> names;
  std::string text;
  for (const Entry& other : all_) {
    names.push_back(other.name);
    text += (text.empty() ? "" : ", ") + other.name;
  }
  return invalid(name.empty()
                     ? "none of the chat templates is called \"default\"; name one of " + text
                     : "no chat template is called \"" + std::string(name) + "\"" +
                           did_you_mean(name, names) + "; there are " + text);
}

}  // namespace dovetail::core
