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

DemoDecoder::DemoDecoder(Model& model, const Settings& settings)
    : model_(model),
      max_tokens_(static_cast<uint32_t>(settings.scheduler.max_batch_tokens)),
      logits_(static_cast<size_t>(model.vocab_size())) {}

Status DemoDecoder::feed(Sequence& s, size_t n_tokens) {
  SequenceWants wants;
  wants.first_row = n_tokens - 1;
  return s.run(wants, [this](const SequenceStep& step) -> Status {
    if (step.n_rows > 0) logits_.assign(step.logits.begin(), step.logits.end());
    return interrupted() ? Status(Code::kCancelled, "interrupted") : Status::ok();
  });
}

Result<std::vector<float>> DemoDecoder::logits_after(const std::vector<TokenId>& prompt) {
  Sequence s(model_, max_tokens_, prompt);
  DVT_TRY(feed(s, prompt.size()));
  return logits_;
}

Result<Decoded> DemoDecoder::with_cache(const std::vector<TokenId>& prompt, uint32_t n) {
  Sequence s(model_, max_tokens_, prompt);
  Decoded out;
  const Clock::time_point start = Clock::now();
  for (uint32_t i = 0; i < n; ++i) {
    DVT_TRY(feed(s, prompt.size() + i));
    out.ids.push_back(
        static_cast<TokenId>(std::max_element(logits_.begin(), logits_.end()) - logits_.begin()));
    s.append(out.ids.back());
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
    DVT_TRY(feed(s, text.size()));
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
  while (s.n_pending() > max_tokens_) {
    if (interrupted()) return {Code::kCancelled, "interrupted"};
    DVT_TRY(model_.forward(s.fill(max_tokens_, 0), {}));
    s.advance(max_tokens_);
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
    const auto count = static_cast<uint32_t>(s.n_pending());
    dvt_batch batch = s.fill(count, 1);
    from[i % 2] = {ticket, 0, 0};
    if (i > 0) batch.token_from = &from[i % 2];
    before = ticket;
    DVT_TRY(ticket, model_.submit_argmax(batch, std::span<int32_t>(ids).subspan(i, 1), allowed));
    s.advance(count);
    s.append(0);  // the backend knows it
  }
  DVT_TRY(model_.wait(ticket));
  Decoded out;
  out.ids.assign(ids.begin(), ids.end());
  out.seconds.assign(n, since(start));
  return out;
}

}  // namespace dovetail::core
