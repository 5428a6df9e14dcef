#include "core/engine/engine.hpp"

#include <algorithm>
#include <utility>

#include "core/base/assert.hpp"

namespace dovetail::core {
namespace {

// What was held back of a text that ends: a possible stop string, half a character.
std::string rest_of_text(Request& r) {
  if (!r.detokenizer || r.stop->stopped()) return {};
  std::string rest;
  if (Result<std::string_view> tail = r.detokenizer->flush()) rest = r.stop->feed(*tail);
  rest += r.stop->flush();
  r.text += rest;
  return rest;
}

Completion completion_of(Request& r) {
  Completion c;
  c.id = r.id;
  c.tokens.assign(r.tokens.begin() + static_cast<std::ptrdiff_t>(r.n_prompt), r.tokens.end());
  c.text = std::move(r.text);
  c.finish = r.finish;
  c.error = std::move(r.error);
  c.seed = r.sampler ? r.sampler->seed() : 0;
  c.n_prompt = r.n_prompt;
  c.n_preempted = r.n_preempted;
  c.times = r.times;
  return c;
}

}  // namespace

Engine::Step::Step(const SchedulerLimits& limits, size_t n_groups)
    : buffers(limits.max_batch_tokens, limits.max_seqs, n_groups),
      ids(limits.max_seqs),
      drawn(limits.max_seqs, TokenId{0}) {
  batch.entries.reserve(limits.max_seqs);
}

Engine::Engine(Model& model, const SamplerChain& chain, SchedulerLimits limits)
    : model_(model),
      chain_(chain),
      scheduler_(limits),
      cache_(model.cache_groups(), model.block_len(), model.n_blocks(), limits.max_seqs),
      steps_{Step(limits, model.cache_groups().size()), Step(limits, model.cache_groups().size())},
      known_ids_(first_ids_mask(chain.n_ids(), static_cast<size_t>(model.vocab_size()))),
      logits_(size_t{limits.max_seqs} * static_cast<size_t>(model.vocab_size())) {}

Engine::~Engine() {
  if (in_flight_) (void)model_.wait(in_flight_->ticket);
}

Result<RequestId> Engine::add(RequestParams params, RequestSink sink) {
  if (params.prompt.empty()) return invalid("the prompt has no tokens; give at least one");
  const auto limit = static_cast<uint64_t>(model_.max_seq_len());
  if (params.prompt.size() >= limit)
    return invalid("the prompt has " + std::to_string(params.prompt.size()) +
                   " tokens, the context holds " + std::to_string(limit) +
                   " and one must be left to generate; shorten the prompt or set `context` higher");
  for (TokenId id : params.prompt)
    if (id >= static_cast<uint64_t>(model_.vocab_size()))
      return invalid("the prompt has id " + std::to_string(id) + ", the vocabulary ends at " +
                     std::to_string(model_.vocab_size() - 1));

  auto request = std::make_unique<Request>();
  request->id = next_id_;
  request->sink = std::move(sink);
  request->tokens = params.prompt;
  request->n_prompt = params.prompt.size();
  request->times.added = Clock::now();
  DVT_TRY(request->sampler,
          SamplerState::begin(chain_, params.sampling, params.prompt, params.seed, params.choice));
  if (model_.tokenizer()) {
    DVT_TRY(request->detokenizer,
            model_.tokenizer()->stream(DVT_DEC_SKIP_SPECIAL, params.shown_special));
    request->stop = std::make_unique<StopMatcher>(params.stop, params.include_stop);
  }
  request->params = std::move(params);
  request->params.max_tokens = static_cast<uint32_t>(
      std::min<uint64_t>(request->params.max_tokens, limit - request->n_prompt));
  const RequestId id = next_id_++;
  if (request->params.max_tokens == 0) request->finish = FinishReason::kLength;
  scheduler_.add(std::move(request));
  return id;
}

Result<bool> Engine::step() {
  collect_done();
  Step* const before = std::exchange(in_flight_, nullptr);  // launched, its tokens not read yet
  Step& step = before == &steps_[0] ? steps_[1] : steps_[0];
  scheduler_.next_batch(cache_, step.batch);  // which tokens of which requests; blocks reserved
  // Architecture -> backend -> kernels.
  const Status launched = step.batch.empty() ? Status::ok() : launch(step);
  if (before) DVT_TRY(retire(*before));  // a token for each row, its text to the caller
  DVT_TRY(launched);
  if (in_flight_ && !(launches_ahead() && (step.backend_samples || step.batch.n_rows == 0)))
    DVT_TRY(retire(*std::exchange(in_flight_, nullptr)));
  collect_done();
  return !scheduler_.idle();
}

Status Engine::settle() {
  return in_flight_ ? retire(*std::exchange(in_flight_, nullptr)) : Status::ok();
}

// Requests that wait have no cache: they begin on the other backend.
Result<StateMove> Engine::move_to(const StageLoad& in) {
  DVT_ASSERT(in_flight_ == nullptr);
  std::vector<const SequenceCache*> sequences;
  for (const auto& r : scheduler_.running())
    if (r->cache.is_open() && !r->is_done()) sequences.push_back(&r->cache);
  return model_.move_to(in, sequences);
}

Status Engine::launch(Step& step) {
  const Batch& batch = step.batch;
  step.backend_samples = launches_ahead() && batch.n_rows > 0;
  for (const BatchEntry& e : batch.entries)
    if (e.wants_logits) step.backend_samples &= e.request->sampler->is_argmax();
  const dvt_batch raw = step.buffers.fill(batch, cache_);
  if (step.backend_samples) {
    DVT_TRY(step.ticket, model_.submit_argmax(raw, {step.ids.data(), batch.n_rows}, known_ids_));
  } else {
    const dvt_output logits{
        abi_text("logits"), logits_.data(),
        size_t{batch.n_rows} * static_cast<size_t>(model_.vocab_size()) * sizeof(float)};
    DVT_TRY(step.ticket, model_.submit(raw, {&logits, 1}, nullptr));
  }
  in_flight_ = &step;
  scheduler_.launched(batch, step.backend_samples ? step.ticket : 0);
  return Status::ok();
}

Status Engine::retire(Step& step) {
  DVT_TRY(model_.wait(step.ticket));
  scheduler_.landed(step.batch, step.ticket);
  draw(step);
  for (const BatchEntry& e : step.batch.entries) {
    if (!e.wants_logits || e.request->is_done()) continue;
    const Result<TokenId>& next = step.drawn[e.row];
    if (next)
      accept(*e.request, *next);
    else
      finish(*e.request, FinishReason::kError, next.status());
  }
  return Status::ok();
}

// Requests know nothing of one another: their rows are shared by the lanes of the pool.
void Engine::draw(Step& step) {
  const std::vector<BatchEntry>& entries = step.batch.entries;
  const auto draw_rows = [&](uint64_t begin, uint64_t end, uint32_t) {
    for (uint64_t i = begin; i < end; ++i)
      if (entries[i].wants_logits && !entries[i].request->is_done())
        step.drawn[entries[i].row] = sample(entries[i], step);
  };
  if (chain_.pool() && !step.backend_samples)
    chain_.pool()->parallel_for(entries.size(), 1, draw_rows);
  else
    draw_rows(0, entries.size(), 0);
}

Result<TokenId> Engine::sample(const BatchEntry& entry, const Step& step) const {
  const uint64_t position = entry.request->tokens.size();
  if (!step.backend_samples) {
    const auto vocab = static_cast<size_t>(model_.vocab_size());
    return entry.request->sampler->sample({logits_.data() + entry.row * vocab, vocab}, position);
  }
  if (step.ids[entry.row] < 0) return nothing_to_draw(position);
  return static_cast<TokenId>(step.ids[entry.row]);
}

void Engine::accept(Request& request, TokenId token) {
  const auto now = Clock::now();
  if (request.n_generated() == 0) request.times.first_token = now;
  request.times.last_token = now;
  const std::vector<TokenId>& ends = request.params.stop_ids;
  if (std::find(ends.begin(), ends.end(), token) != ends.end())
    return finish(request, FinishReason::kStop);
  if (Status s = request.sampler->accept(token); !s.is_ok())
    return finish(request, FinishReason::kError, s);
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
  if (request.n_generated() >= request.params.max_tokens) finish(request, FinishReason::kLength);
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

void Engine::cancel_all() {
  cancel_all_.store(true, std::memory_order_relaxed);
}

void Engine::collect_done() {
  {
    const std::lock_guard lock(cancels_lock_);
    for (RequestId id : cancels_)
      if (Request* r = scheduler_.find(id); r && !r->is_done())
        finish(*r, FinishReason::kCancelled);
    cancels_.clear();
  }
  if (cancel_all_.exchange(false, std::memory_order_relaxed)) {
    for (const auto& r : scheduler_.running())
      if (!r->is_done()) finish(*r, FinishReason::kCancelled);
    for (const auto& r : scheduler_.waiting())
      if (!r->is_done()) finish(*r, FinishReason::kCancelled);
  }
  for (std::unique_ptr<Request>& r : scheduler_.take_done(cache_)) {
    const std::string rest = rest_of_text(*r);
    if (r->sink) r->sink({r->id, std::nullopt, rest, r->finish});
    completions_.push_back(completion_of(*r));
  }
}

std::vector<Completion> Engine::take_completions() {
  return std::exchange(completions_, {});
}

}  // namespace dovetail::core
