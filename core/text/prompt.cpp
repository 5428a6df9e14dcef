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

}  // namespace dovetail::core
