#include "core/engine/engine.hpp"

#include <algorithm>

namespace dovetail::core {

Engine::Engine(Model& model, const SamplerChain& chain, SchedulerLimits limits)
    : model_(model),
      chain_(chain),
      scheduler_(limits),
      cache_(model.cache_groups(), model.block_len(), model.n_blocks(), limits.max_seqs),
      buffers_(limits.max_batch_tokens, limits.max_seqs, model.cache_groups().size()),
      logits_(size_t{limits.max_seqs} * static_cast<size_t>(model.vocab_size())) {}

Result<RequestId> Engine::add(RequestParams params, RequestSink sink) {
  if (params.prompt.empty()) return invalid("the prompt has no tokens; give at least one");
  const auto limit = static_cast<uint64_t>(model_.max_seq_len());
  if (params.prompt.size() >= limit)
    return invalid("the prompt has " + std::to_string(params.prompt.size()) + " tokens, the context holds " + std::to_string(limit) +
                   " and one must be left to generate; shorten the prompt or set `context` higher");
  for (TokenId id : params.prompt)
    if (id >= static_cast<uint64_t>(model_.vocab_size()))
      return invalid("the prompt has id " + std::to_string(id) + ", the vocabulary ends at " + std::to_string(model_.vocab_size() - 1));

  auto request = std::make_unique<Request>();
  request->id = next_id_;
  request->sink = std::move(sink);
  request->tokens = params.prompt;
  request->n_prompt = params.prompt.size();
  request->times.added = Clock::now();
  DVT_TRY(request->sampler, SamplerState::begin(chain_, params.sampling, params.prompt, params.seed, params.choice));
  if (model_.tokenizer()) {
    DVT_TRY(request->detokenizer, model_.tokenizer()->stream());
    request->stop = std::make_unique<StopMatcher>(params.stop, params.include_stop);
  }
  request->params = std::move(params);
  const RequestId id = next_id_++;
  if (request->params.max_tokens == 0) request->finish = FinishReason::kLength;
  scheduler_.add(std::move(request));
  return id;
}

Result<bool> Engine::step() {
  collect_done();
  const Batch batch = scheduler_.next_batch(cache_);  // which tokens of which requests; blocks reserved
  if (batch.empty()) {
    collect_done();
    return !scheduler_.idle();
  }
  DVT_TRY(run(batch));       // architecture -> backend -> kernels
  scheduler_.commit(batch);  // the tokens are in the cache
  sample(batch);             // a token for each row of logits, its text to the caller
  collect_done();
  return !scheduler_.idle();
}

Status Engine::run(const Batch& batch) {
  const dvt_batch raw = buffers_.fill(batch, cache_);
  return model_.forward(raw, {logits_.data(), size_t{batch.n_rows} * static_cast<size_t>(model_.vocab_size())});
}

void Engine::sample(const Batch& batch) {
  const auto vocab = static_cast<size_t>(model_.vocab_size());
  for (const BatchEntry& e : batch.entries) {
    if (!e.wants_logits || e.request->is_done()) continue;
    const std::span<const float> row(logits_.data() + e.row * vocab, vocab);
    Result<TokenId> next = e.request->sampler->sample(row, e.request->tokens.size());
    if (!next) {
      finish(*e.request, FinishReason::kError, next.status());
    } else {
      accept(*e.request, *next);
    }
  }
}

void Engine::accept(Request& request, TokenId token) {
  const auto now = Clock::now();
  if (request.n_generated() == 0) request.times.first_token = now;
  request.times.last_token = now;
  const std::vector<TokenId>& ends = request.params.stop_ids;
  if (std::find(ends.begin(), ends.end(), token) != ends.end()) return finish(request, FinishReason::kStop);
  if (Status s = request.sampler->accept(token); !s.is_ok()) return finish(request, FinishReason::kError, s);
  request.tokens.push_back(token);

  RequestEvent event{request.id, token, {}, FinishReason::kNone};
  std::string piece;
  bool stopped = false;
  if (request.detokenizer) {
    Result<std::string_view> text = request.detokenizer->step(token);
    if (!text) return finish(request, FinishReason::kError, text.status());
    piece = request.stop->feed(*text);
    stopped = request.stop->stopped();
    request.text += piece;
  }
  event.text = piece;
  if (request.sink) request.sink(event);

  if (stopped) return finish(request, FinishReason::kStop);
  const bool full = request.tokens.size() >= static_cast<size_t>(model_.max_seq_len());
  if (request.n_generated() >= request.params.max_tokens || full) finish(request, FinishReason::kLength);
}

void Engine::finish(Request& request, FinishReason reason, Status error) {
  request.finish = reason;
  request.error = std::move(error);
}

size_t Engine::n_prefilled() const {
  size_t sum = 0;
  for (const auto& r : scheduler_.running()) sum += r->cache.n_cached;
  return sum;
}

void Engine::cancel(RequestId id) {
  const std::lock_guard lock(cancels_lock_);
  cancels_.push_back(id);
}

void Engine::cancel_all() { cancel_all_.store(true, std::memory_order_relaxed); }

void Engine::collect_done() {
  {
    const std::lock_guard lock(cancels_lock_);
    for (RequestId id : cancels_)
      if (Request* r = scheduler_.find(id); r && !r->is_done()) finish(*r, FinishReason::kCancelled);
    cancels_.clear();
  }
  if (cancel_all_.exchange(false, std::memory_order_relaxed)) {
    for (const auto& r : scheduler_.running())
      if (!r->is_done()) finish(*r, FinishReason::kCancelled);
    for (const auto& r : scheduler_.waiting())
      if (!r->is_done()) finish(*r, FinishReason::kCancelled);
  }
  for (std::unique_ptr<Request>& r : scheduler_.take_done(cache_)) {
    std::string rest;  // what was held back: a possible stop string, half a character
    if (r->detokenizer && !r->stop->stopped()) {
      if (Result<std::string_view> tail = r->detokenizer->flush()) rest = r->stop->feed(*tail);
      rest += r->stop->flush();
      r->text += rest;
    }
    if (r->sink) r->sink({r->id, std::nullopt, rest, r->finish});
    Completion c;
    c.id = r->id;
    c.tokens.assign(r->tokens.begin() + static_cast<std::ptrdiff_t>(r->n_prompt), r->tokens.end());
    c.text = std::move(r->text);
    c.finish = r->finish;
    c.error = std::move(r->error);
    c.seed = r->sampler ? r->sampler->seed() : 0;
    c.n_prompt = r->n_prompt;
    c.n_preempted = r->n_preempted;
    c.times = r->times;
    completions_.push_back(std::move(c));
  }
}

std::vector<Completion> Engine::take_completions() { return std::exchange(completions_, {}); }

}  // namespace dovetail::core
