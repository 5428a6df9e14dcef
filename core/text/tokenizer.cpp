#include "core/text/tokenizer.hpp"

#include "core/plugin/host.hpp"

namespace dovetail::core {
namespace {

// Calls fn(buffer, capacity, &need) and once more with room when it was too small.
template <class T, class Fn>
Result<std::vector<T>> collect(size_t guess, Fn&& fn) {
  std::vector<T> out(guess);
  for (int tries = 0;; ++tries) {
    CallFrame call;
    uint64_t need = 0;
    const dvt_code code = fn(call.get(), out.data(), out.size(), &need);
    if (code == DVT_ETOOSMALL && tries == 0) {
      out.resize(need);
      continue;
    }
    DVT_TRY(call.check(code));
    out.resize(need);
    return out;
  }
}

}  // namespace

Tokenizer::Tokenizer(const dvt_tokenizer_v1* table, void* object, Node options)
    : table_(table), object_(object), options_(std::move(options)) {}

Result<std::unique_ptr<Tokenizer>> Tokenizer::open(const dvt_tokenizer_v1* table, void* plugin,
                                                   const Node& definition, dvt_dir dir,
                                                   Node options) {
  auto tokenizer = std::unique_ptr<Tokenizer>(new Tokenizer(table, nullptr, std::move(options)));
  dvt_tokenizer_open in{};
  in.struct_size = sizeof in;
  in.definition = doc_handle(definition);
  in.dir = dir;
  in.options = doc_handle(tokenizer->options_);
  CallFrame call;
  DVT_TRY(call.check(table->open(plugin, call, &in, &tokenizer->object_)));
  tokenizer->info_.struct_size = sizeof(dvt_tokenizer_info);
  DVT_TRY(call.check(table->info(tokenizer->object_, call, &tokenizer->info_)));
  return tokenizer;
}

Tokenizer::~Tokenizer() {
  if (object_) table_->close(object_);
}

Result<std::vector<dvt_tok>> Tokenizer::encode(std::string_view text,
                                               std::span<const dvt_range> literal,
                                               uint32_t flags) const {
  return collect<dvt_tok>(text.size() / 2 + 16,
                          [&](dvt_call* call, dvt_tok* out, uint64_t cap, uint64_t* need) {
                            return table_->encode(object_, call, abi_text(text), literal.data(),
                                                  literal.size(), flags, out, cap, need);
                          });
}

Result<std::string> Tokenizer::decode(std::span<const uint32_t> ids, uint32_t flags) const {
  DVT_TRY(const std::vector<char> text,
          collect<char>(
              ids.size() * 8 + 16, [&](dvt_call* call, char* out, uint64_t cap, uint64_t* need) {
                return table_->decode(object_, call, ids.data(), ids.size(), flags, out, cap, need);
              }));
  return std::string(text.begin(), text.end());
}

Result<std::string> Tokenizer::piece(uint32_t id, uint32_t* flags) const {
  uint32_t ignored = 0;
  DVT_TRY(const std::vector<char> text,
          collect<char>(64, [&](dvt_call* call, char* out, uint64_t cap, uint64_t* need) {
            return table_->piece(object_, call, id, flags ? flags : &ignored, out, cap, need);
          }));
  return std::string(text.begin(), text.end());
}

Result<uint32_t> Tokenizer::find(std::string_view content) const {
  CallFrame call;
  uint32_t id = 0;
  DVT_TRY(call.check(table_->find(object_, call, abi_text(content), &id)));
  return id;
}

Result<std::unique_ptr<Detokenizer>> Tokenizer::stream(uint32_t flags,
                                                       std::span<const uint32_t> shown) const {
  std::map<uint32_t, std::string> texts;
  for (const uint32_t id : shown) {
    DVT_TRY(texts[id], piece(id));
  }
  return Detokenizer::open(table_, object_, flags, std::move(texts));
}

}  // namespace dovetail::core
