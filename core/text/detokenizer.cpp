#include "core/text/detokenizer.hpp"

#include <utility>

#include "core/plugin/call_frame.hpp"

namespace dovetail::core {

Result<std::unique_ptr<Detokenizer>> Detokenizer::open(const dvt_tokenizer_v1* table,
                                                       void* tokenizer, uint32_t flags,
                                                       std::map<uint32_t, std::string> shown) {
  CallFrame call;
  dvt_tokenizer_info info{};
  info.struct_size = sizeof info;
  DVT_TRY(call.check(table->info(tokenizer, call, &info)));
  void* stream = nullptr;
  DVT_TRY(call.check(table->stream_open(tokenizer, call, flags, &stream)));
  auto detokenizer = std::unique_ptr<Detokenizer>(new Detokenizer(table, stream));
  detokenizer->buffer_.resize(info.max_step_bytes);
  detokenizer->shown_ = std::move(shown);
  return detokenizer;
}

Detokenizer::~Detokenizer() {
  table_->stream_close(stream_);
}

Result<std::string_view> Detokenizer::step(uint32_t id) {
  if (const auto shown = shown_.find(id); shown != shown_.end()) {
    DVT_TRY(const std::string_view before, flush());
    text_ = std::string(before) + shown->second;
    return std::string_view(text_);
  }
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
