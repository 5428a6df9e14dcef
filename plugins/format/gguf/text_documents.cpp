#include "text_documents.hpp"

#include <algorithm>

#include "json_text.hpp"
#include "tokenizer_document.hpp"

namespace dovetail::gguf {
namespace {

// Tokens that end a turn where they are control tokens, whatever the metadata calls eos.
// Source: ggml-org/llama.cpp at 00ad355e, src/llama-vocab.cpp.
constexpr std::string_view kEndTokens[] = {
    "<|eot_id|>", "<|eom_id|>",    "<|im_end|>",      "<|end|>",       "<end_of_turn>",
    "<|return|>", "<|endoftext|>", "<|end_of_text|>", "<|endofturn|>", "<｜end▁of▁sentence｜>",
};

std::vector<int64_t> end_ids(const Metadata& metadata) {
  std::vector<int64_t> ids;
  const auto add = [&ids](int64_t id) {
    if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
  };
  for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                          "tokenizer.ggml.eom_token_id"})
    if (const auto id = metadata.integer(key)) add(*id);
  const Vocabulary v = read_vocabulary(metadata);
  for (size_t id = 0; id < v.tokens.size(); ++id)
    if (v.types[id] == TokenType::kControl &&
        std::find(std::begin(kEndTokens), std::end(kEndTokens), v.tokens[id]) !=
            std::end(kEndTokens))
      add(static_cast<int64_t>(id));
  return ids;
}

// Templates by names, which a file has in keys of their own: ("tool_use", ...).
std::vector<std::pair<std::string_view, std::string_view>> named_templates(
    const Metadata& metadata) {
  constexpr std::string_view kPrefix = "tokenizer.chat_template.";
  std::vector<std::pair<std::string_view, std::string_view>> named;
  for (const auto& [key, value] : metadata.values())
    if (key.starts_with(kPrefix))
      named.emplace_back(key.substr(kPrefix.size()), metadata.string(key).value());
  return named;
}

// One template is a text, several are a list, as in a tokenizer_config.json.
void write_templates(JsonText& out, const Metadata& metadata) {
  const auto plain = metadata.string("tokenizer.chat_template");
  const auto named = named_templates(metadata);
  if (named.empty()) {
    if (plain) out.key("chat_template").string(*plain);
    return;
  }
  out.key("chat_template").begin_list();
  const auto add = [&out](std::string_view name, std::string_view source) {
    out.begin_map().key("name").string(name).key("template").string(source).end_map();
  };
  if (plain) add("default", *plain);
  for (const auto& [name, source] : named) add(name, source);
  out.end_list();
}

}  // namespace

std::string tokenizer_config_json(const Metadata& metadata) {
  const Vocabulary v = read_vocabulary(metadata);
  if (v.tokens.empty() && !metadata.has("tokenizer.chat_template")) return {};
  JsonText out;
  out.begin_map();
  for (const auto& [key, name] : {std::pair("tokenizer.ggml.bos_token_id", "bos_token"),
                                  std::pair("tokenizer.ggml.eos_token_id", "eos_token"),
                                  std::pair("tokenizer.ggml.unknown_token_id", "unk_token"),
                                  std::pair("tokenizer.ggml.padding_token_id", "pad_token")})
    if (const std::string_view token = v.token(metadata.integer(key)); !token.empty())
      out.key(name).string(token);
  out.key("add_bos_token").flag(adds_bos(metadata)).key("add_eos_token").flag(adds_eos(metadata));
  write_templates(out, metadata);
  return out.end_map().text();
}

std::string generation_json(const Metadata& metadata) {
  JsonText out;
  out.begin_map();
  bool is_empty = true;
  for (const auto& [key, name] :
       {std::pair("general.sampling.temp", "temperature"),
        std::pair("general.sampling.top_p", "top_p"), std::pair("general.sampling.min_p", "min_p"),
        std::pair("general.sampling.penalty_repeat", "repetition_penalty")})
    if (const auto v = metadata.number(key)) is_empty = false, out.key(name).number(*v);
  if (const auto v = metadata.integer("general.sampling.top_k"))
    is_empty = false, out.key("top_k").integer(*v);
  if (const std::vector<int64_t> ids = end_ids(metadata); !ids.empty()) {
    is_empty = false;
    out.key("eos_token_id").begin_list();
    for (const int64_t id : ids) out.integer(id);
    out.end_list();
  }
  return is_empty ? std::string() : out.end_map().text();
}

}  // namespace dovetail::gguf
