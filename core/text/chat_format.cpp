#include "core/text/chat_format.hpp"

#include <utility>

#include "core/text/template/inventory.hpp"
#include "core/text/tool_arguments.hpp"

namespace dovetail::core {
namespace {

constexpr const char* kTemplateName = "chat_template";  // in messages

// Functions in the OpenAI form; an empty list is none.
Result<Node> checked_tools(Node tools) {
  if (tools.is_null()) return tools;
  if (!tools.is_list())
    return invalid(std::string("the tools are ") + tools.kind_name() +
                   ", expected a list of functions");
  for (size_t i = 0; i < tools.items().size(); ++i) {
    Node& tool = tools.items()[i];
    const Node* function = tool.find("function");
    const Node* name = (function != nullptr ? function : &tool)->find("name");
    if (name == nullptr || !name->is_string() || name->as_string().empty())
      return invalid("tools[" + std::to_string(i) +
                     "] has no name, expected {\"type\": \"function\", \"function\": {\"name\": "
                     "..., \"description\": ..., \"parameters\": {...}}}");
    if (function != nullptr) continue;
    Node wrapped = Node::make_map();
    wrapped.set("type", Node::make_string("function"));
    wrapped.set("function", std::move(tool));
    tool = std::move(wrapped);
  }
  return tools.items().empty() ? Node() : std::move(tools);
}

// The name under which a template reads a message's reasoning.
std::string reasoning_key_of(const std::string& source) {
  const Result<TemplateInventory> inventory = take_inventory(source, kTemplateName);
  if (inventory) {
    for (const char* key : {"reasoning_content", "reasoning", "thinking"}) {
      if (inventory->reads_field(key)) return key;
    }
  }
  return "reasoning_content";
}

void rename_reasoning(Node& messages, const std::string& key) {
  if (key == "reasoning_content" || !messages.is_list()) return;
  for (Node& message : messages.items()) {
    if (!message.is_map() || message.find(key) != nullptr) continue;
    for (auto& [name, value] : message.entries())
      if (name == "reasoning_content") name = key;
  }
}

}  // namespace

Result<ChatFormat> ChatFormat::open(const Tokenizer& tokenizer, const ChatTemplates& templates,
                                    const Node& tokenizer_config, const ChatFormatOptions& options,
                                    Node tools) {
  DVT_TRY(tools, checked_tools(std::move(tools)));
  DVT_TRY(const ChatTemplates::Entry* entry,
          templates.find(options.template_name, tools.is_list()));
  DVT_TRY(ChatTemplate parsed, ChatTemplate::parse(entry->source, kTemplateName));
  ChatFormat format(tokenizer, std::move(parsed));
  DVT_TRY(format.reply_, ReplyFormat::choose(options.reasoning, options.tools, entry->source));
  format.tools_ = std::move(tools);
  format.reasoning_key_ = reasoning_key_of(entry->source);
  add_special_tokens(format.special_tokens_, tokenizer_config);
  for (const std::string_view tag : format.reply_.tags()) {
    const Result<uint32_t> id = tokenizer.find(tag);
    uint32_t flags = 0;
    if (id && tokenizer.piece(*id, &flags) && (flags & DVT_PIECE_SPECIAL) != 0)
      format.tag_ids_.push_back(*id);
  }
  return format;
}

Result<Rendered> ChatFormat::render(const Node& messages, const Node& variables) const {
  Node context = Node::make_map();
  context.set("messages", messages);
  context.set("tools", tools_);
  context.set("documents", Node());
  context.set("add_generation_prompt", Node::make_bool(true));
  for (const Node* more : {&special_tokens_, &variables}) {
    if (!more->is_map()) continue;
    for (const auto& [name, value] : more->entries()) context.set(name, value);
  }
  Node& ready = *context.find("messages");
  rename_reasoning(ready, reasoning_key_);
  DVT_TRY(fit_tool_arguments(ready, template_, context));
  Result<Rendered> out = template_.render(context);
  // What the template itself raised has no place in front and stays as it is.
  if (out || !out.status().message().starts_with(kTemplateName)) return out;
  // Templates made for other engines ask only whether `tools` is defined.
  Node without = Node::make_map();
  for (const auto& [name, value] : context.entries()) {
    const bool is_absent = (name == "tools" || name == "documents") && value.is_null();
    if (!is_absent) without.set(name, value);
  }
  Result<Rendered> again = template_.render(without);
  return again ? std::move(again) : std::move(out);
}

Result<ChatPrompt> ChatFormat::prompt(const Node& messages, const Node& variables) const {
  DVT_TRY(const Rendered rendered, render(messages, variables));
  std::vector<dvt_range> literal;
  for (const TextRange& r : rendered.data_ranges) literal.push_back({r.begin, r.end});
  DVT_TRY(const std::vector<dvt_tok> tokens, tokenizer_->encode(rendered.text, literal, 0));
  ChatPrompt prompt;
  prompt.ids.reserve(tokens.size());
  for (const dvt_tok& t : tokens) prompt.ids.push_back(t.id);
  prompt.in_reasoning = reply_.begins_in_reasoning(rendered);
  return prompt;
}

ReplyParser ChatFormat::parser(const ChatPrompt& prompt, uint64_t id_key) const {
  uint64_t key = id_key;
  for (const uint32_t id : prompt.ids) key = key * 0x100000001b3 + id;
  return ReplyParser(reply_, {prompt.in_reasoning, &tools_, key});
}

Node chat_message(std::string_view role, std::string_view content) {
  Node message = Node::make_map();
  message.set("role", Node::make_string(std::string(role)));
  message.set("content", Node::make_string(std::string(content)));
  return message;
}

void add_special_tokens(Node& context, const Node& tokenizer_config) {
  for (const std::string& name : special_token_names()) {
    const Node* token = tokenizer_config.find(name);
    if (token && token->is_map()) token = token->find("content");
    if (token && token->is_string()) context.set(name, *token);
  }
}

}  // namespace dovetail::core
