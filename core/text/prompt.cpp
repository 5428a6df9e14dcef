#include "core/text/prompt.hpp"

#include <algorithm>

namespace dovetail::core {
namespace {

std::vector<uint32_t> ids_of(const std::vector<dvt_tok>& tokens) {
  std::vector<uint32_t> ids;
  ids.reserve(tokens.size());
  for (const dvt_tok& t : tokens) ids.push_back(t.id);
  return ids;
}

}  // namespace

Result<std::vector<uint32_t>> encode_text(const Tokenizer& tokenizer, std::string_view text) {
  DVT_TRY(const std::vector<dvt_tok> tokens, tokenizer.encode(text, {}, DVT_ENC_ADD_SPECIAL));
  return ids_of(tokens);
}

Result<BareText> encode_bare(const Tokenizer& tokenizer, std::string_view text) {
  BareText out;
  // A short text with and without what is put around it shows the prefix.
  DVT_TRY(const std::vector<dvt_tok> bare, tokenizer.encode("a", {}, 0));
  DVT_TRY(const std::vector<uint32_t> dressed, encode_text(tokenizer, "a"));
  const std::vector<uint32_t> inner = ids_of(bare);
  const auto begin = std::search(dressed.begin(), dressed.end(), inner.begin(), inner.end());
  if (!inner.empty() && begin != dressed.end()) out.prefix.assign(dressed.begin(), begin);
  DVT_TRY(out.tokens, tokenizer.encode(text, {}, DVT_ENC_SPECIAL_LITERAL));
  return out;
}

Result<std::vector<uint32_t>> encode_chat(const Tokenizer& tokenizer,
                                          const ChatTemplate& chat_template, Node context) {
  if (!context.find("add_generation_prompt"))
    context.set("add_generation_prompt", Node::make_bool(true));
  DVT_TRY(const Rendered rendered, chat_template.render(context));
  std::vector<dvt_range> literal;
  for (const TextRange& r : rendered.data_ranges) literal.push_back({r.begin, r.end});
  DVT_TRY(const std::vector<dvt_tok> tokens, tokenizer.encode(rendered.text, literal, 0));
  return ids_of(tokens);
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
