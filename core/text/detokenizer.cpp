#include "core/text/detokenizer.hpp"

#include "core/plugin/call_frame.hpp"

namespace dovetail::core {

Result<std::unique_ptr<Detokenizer>> Detokenizer::open(const dvt_tokenizer_v1* table,
                                                       void* tokenizer, uint32_t flags) {
  CallFrame call;
  dvt_tokenizer_info info{};
  info.struct_size = sizeof info;
  DVT_TRY(call.check(table->info(tokenizer, call, &info)));
  void* stream = nullptr;
  DVT_TRY(call.check(table->stream_open(tokenizer, call, flags, &stream)));
  auto detokenizer = std::unique_ptr<Detokenizer>(new Detokenizer(table, stream));
  detokenizer->buffer_.resize(info.max_step_bytes);
  return detokenizer;
}

Detokenizer::~Detokenizer() {
  table_->stream_close(stream_);
}

Result<std::string_view> Detokenizer::step(uint32_t id) {
  CallFrame call;
  uint64_t n = 0;
  DVT_TRY(call.check(table_->stream_step(stream_, call, id, buffer_.data(), buffer_.size(), &n)));
  return std::string_view(buffer_.data(), n);
}

Result<std::string_view> Detokenizer::flush() {
  CallFrame call;
  uint64_t n = 0;
  DVT_TRY(call.check(table_->stream_flush(stream_, call, buffer_.data(), buffer_.size(), &n)));
  return std::string_view(buffer_.data(), n);
}

}  // namespace dovetail::core
