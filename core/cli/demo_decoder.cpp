#include "core/cli/demo_decoder.hpp"

#include <algorithm>
#include <array>
#include <chrono>

#include "core/cli/command.hpp"

namespace dovetail::core {
namespace {

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

// A sequence alone in the cache.
struct DemoDecoder::Sequence {
  Sequence(const Model& model, uint32_t max_tokens, const std::vector<TokenId>& tokens)
      : cache(model.cache_groups(), model.block_len(), model.n_blocks(), 1),
        buffers{BatchBuffers(max_tokens, 1, model.cache_groups().size()),
                BatchBuffers(max_tokens, 1, model.cache_groups().size())} {
    request.tokens = tokens;
    request.n_prompt = tokens.size();
    cache.open(request.cache);
  }
  Status reserve(size_t n) {
    if (cache.reserve(request.cache, static_cast<uint32_t>(n))) return Status::ok();
    return {Code::kNoMemory, "the KV cache is too small for " + std::to_string(n) +
                                 " tokens; set kv_cache.max_tokens higher"};
  }
  /// Valid until the call after the next: one batch may run while another is filled.
  dvt_batch fill(uint32_t count, bool wants_logits) {
    Batch batch;
    batch.entries.push_back({&request, 0, count, wants_logits, 0});
    batch.n_tokens = count;
    batch.n_rows = wants_logits ? 1 : 0;
    return buffers[n_fills++ % buffers.size()].fill(batch, cache);
  }
  KvCache cache;
  std::array<BatchBuffers, 2> buffers;
  size_t n_fills = 0;
  Request request;
};

DemoDecoder::DemoDecoder(Model& model, const Settings& settings)
    : model_(model),
      max_tokens_(static_cast<uint32_t>(settings.scheduler.max_batch_tokens)),
      logits_(static_cast<size_t>(model.vocab_size())) {}

Status DemoDecoder::feed(Sequence& s) {
  DVT_TRY(s.reserve(s.request.tokens.size()));
  while (s.request.n_pending() > 0) {
    if (interrupted()) return {Code::kCancelled, "interrupted"};
    const uint32_t count = std::min(max_tokens_, static_cast<uint32_t>(s.request.n_pending()));
    const bool last = count == s.request.n_pending();
    const dvt_batch batch = s.fill(count, last);
    DVT_TRY(model_.forward(batch, last ? std::span<float>(logits_) : std::span<float>()));
    s.request.cache.n_cached += count;
  }
  return Status::ok();
}

Result<std::vector<float>> DemoDecoder::logits_after(const std::vector<TokenId>& prompt) {
  Sequence s(model_, max_tokens_, prompt);
  DVT_TRY(feed(s));
  return logits_;
}

Result<Decoded> DemoDecoder::with_cache(const std::vector<TokenId>& prompt, uint32_t n) {
  Sequence s(model_, max_tokens_, prompt);
  Decoded out;
  const Clock::time_point start = Clock::now();
  for (uint32_t i = 0; i < n; ++i) {
    DVT_TRY(feed(s));
    out.ids.push_back(
        static_cast<TokenId>(std::max_element(logits_.begin(), logits_.end()) - logits_.begin()));
    s.request.tokens.push_back(out.ids.back());
    out.seconds.push_back(since(start));
  }
  return out;
}

Result<Decoded> DemoDecoder::without_cache(const std::vector<TokenId>& prompt, uint32_t n) {
  Decoded out;
  std::vector<TokenId> text = prompt;
  const Clock::time_point start = Clock::now();
  for (uint32_t i = 0; i < n; ++i) {
    Sequence s(model_, max_tokens_, text);
    DVT_TRY(feed(s));
    out.ids.push_back(
        static_cast<TokenId>(std::max_element(logits_.begin(), logits_.end()) - logits_.begin()));
    text.push_back(out.ids.back());
    out.seconds.push_back(since(start));
  }
  return out;
}

Result<Decoded> DemoDecoder::on_device(const std::vector<TokenId>& prompt, uint32_t n) {
  Sequence s(model_, max_tokens_, prompt);
  const Clock::time_point start = Clock::now();
  DVT_TRY(s.reserve(prompt.size() + n));
  while (s.request.n_pending() > max_tokens_) {
    if (interrupted()) return {Code::kCancelled, "interrupted"};
    DVT_TRY(model_.forward(s.fill(max_tokens_, false), {}));
    s.request.cache.n_cached += max_tokens_;
  }
  const std::vector<uint32_t> allowed = first_ids_mask(model_.tokenizer()->n_ids(), logits_.size());
  std::vector<int32_t> ids(n);
  std::array<dvt_token_from, 2> from{};
  uint64_t ticket = 0, before = 0;
  for (uint32_t i = 0; i < n; ++i) {
    if (before != 0) DVT_TRY(model_.wait(before));  // its arrays are filled anew
    if (interrupted()) {
      if (ticket != 0) DVT_TRY(model_.wait(ticket));
      return {Code::kCancelled, "interrupted"};
    }
    const auto count = static_cast<uint32_t>(s.request.n_pending());
    dvt_batch batch = s.fill(count, true);
    from[i % 2] = {ticket, 0, 0};
    if (i > 0) batch.token_from = &from[i % 2];
    before = ticket;
    DVT_TRY(ticket, model_.submit_argmax(batch, std::span<int32_t>(ids).subspan(i, 1), allowed));
    s.request.cache.n_cached += count;
    s.request.tokens.push_back(0);  // the backend knows it
  }
  DVT_TRY(model_.wait(ticket));
  Decoded out;
  out.ids.assign(ids.begin(), ids.end());
  out.seconds.assign(n, since(start));
  return out;
}

}  // namespace dovetail::core
