// A tokenizer.json, and after a NUL byte a text to encode: loaded, then texts to tokens and back.
#include "core/text/tokenizer.hpp"

#include "core/base/json.hpp"
#include "tests/fuzz/rig.hpp"

namespace dovetail::core::fuzz {
namespace {

void round_trip(const Tokenizer& tokenizer, std::string_view text, uint32_t flags) {
  const dvt_range literal{0, text.size() / 2};
  const Result<std::vector<dvt_tok>> tokens = tokenizer.encode(text, {&literal, 1}, flags);
  if (!tokens) return must_explain(tokens.status());
  std::vector<uint32_t> ids;
  for (const dvt_tok& t : *tokens) {
    must(t.begin <= t.end && t.end <= text.size(), "a token's span lies outside the text");
    must(t.id < tokenizer.n_ids(),
         "id " + std::to_string(t.id) + " of n_ids " + std::to_string(tokenizer.n_ids()));
    ids.push_back(t.id);
  }
  const Result<std::string> all = tokenizer.decode(ids, 0);
  if (!all) return must_explain(all.status());
  const Result<std::unique_ptr<Detokenizer>> stream = tokenizer.stream(0);
  if (!stream) return must_explain(stream.status());
  std::string streamed;
  for (const uint32_t id : ids) {
    const Result<std::string_view> part = (*stream)->step(id);
    must(part.is_ok(), "a step of the stream fails: " + part.status().message());
    streamed += *part;
  }
  const Result<std::string_view> rest = (*stream)->flush();
  must(rest.is_ok(), "the stream's end fails: " + rest.status().message());
}

void try_tokenizer(std::string_view json, std::string_view text) {
  const Result<Node> definition = parse_json(json, "tokenizer.json");
  if (!definition) return must_explain(definition.status());
  const LoadedPlugin& bpe = plugin("tokenizer", "bpe");
  const Result<std::unique_ptr<Tokenizer>> opened =
      Tokenizer::open(bpe.interface<dvt_tokenizer_v1>("dovetail.tokenizer/1"), bpe.self,
                      *definition, 0, Node::make_map());
  if (!opened) return must_explain(opened.status());
  const Tokenizer& tokenizer = **opened;
  round_trip(tokenizer, "The  quick br\xC3\xB8wn fox 12345's \xF0\x9F\xA6\x8A\n\n\xFF end<|x|> ",
             0);
  round_trip(tokenizer, text, 0);
  round_trip(tokenizer, text, DVT_ENC_SPECIAL_LITERAL);
  const uint32_t n = std::min<uint32_t>(tokenizer.n_ids(), 300);
  for (uint32_t id = 0; id <= n; ++id) {
    const Result<std::string> piece = tokenizer.piece(id);
    if (piece) (void)tokenizer.find(*piece);
  }
}

}  // namespace
}  // namespace dovetail::core::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t end = std::min(input.find('\0'), size);
  dovetail::core::fuzz::try_tokenizer(input.substr(0, end),
                                      end < size ? input.substr(end + 1) : std::string_view());
  return 0;
}
