#include "core/scheduler/scheduler.hpp"

#include <algorithm>

namespace dovetail::core {

const char* finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
    case FinishReason::kError:
      return "error";
    case FinishReason::kNone:
      break;
  }
  return "none";
}

void Scheduler::next_batch(KvCache& cache, Batch& batch) {
  batch.clear();
  admit(cache);
  // A preemption inside these loops only removes requests that are not in the batch.
  for (size_t i = 0; i < running_.size(); ++i) {
    Request& r = *running_[i];
    if (r.is_done() || !r.is_decoding() || r.is_last_unread() ||
        batch.n_tokens >= limits_.max_batch_tokens)
      continue;
    if (reserve(cache, r, r.cache.n_cached + 1, batch)) put(batch, r, 1);
  }
  for (size_t i = 0; i < running_.size(); ++i) {
    Request& r = *running_[i];
    if (r.is_done() || r.is_decoding()) continue;
    const uint32_t room = limits_.max_batch_tokens - batch.n_tokens;
    const auto n =
        static_cast<uint32_t>(std::min<size_t>({r.n_pending(), limits_.prefill_chunk, room}));
    if (n == 0) continue;
    if (reserve(cache, r, r.cache.n_cached + n, batch)) put(batch, r, n);
  }
}

void Scheduler::put(Batch& batch, Request& request, uint32_t n_tokens) {
  BatchEntry entry;
  entry.request = &request;
  entry.first = batch.n_tokens;
  entry.n_tokens = n_tokens;
  entry.wants_logits = request.n_pending() == n_tokens;
  entry.row = batch.n_rows;
  entry.last_from = request.unread;
  batch.n_tokens += n_tokens;
  batch.n_rows += entry.wants_logits ? 1 : 0;
  batch.entries.push_back(entry);
}

void Scheduler::admit(KvCache& cache) {
  while (!waiting_.empty() && running_.size() < limits_.max_seqs) {
    Request& next = *waiting_.front();
    if (!next.is_done()) {
      const uint64_t room = cache.max_tokens();
      if (next.tokens.size() > room) {
        next.finish = FinishReason::kError;
        next.error =
            Status(Code::kNoMemory, "the request has " + std::to_string(next.tokens.size()) +
                                        " tokens, the cache holds " + std::to_string(room) +
                                        "; set kv_cache.max_tokens higher");
      } else if (!cache.open(next.cache)) {
        return;
      }
    }
    // Requests keep the order of arrival, also one that was made to wait.
    const auto at = std::find_if(running_.begin(), running_.end(),
                                 [&](const auto& r) { return r->id > next.id; });
    running_.insert(at, std::move(waiting_.front()));
    waiting_.pop_front();
  }
}

bool Scheduler::reserve(KvCache& cache, Request& request, uint32_t n_tokens, const Batch& batch) {
  while (!cache.reserve(request.cache, n_tokens)) {
    if (n_tokens > cache.max_tokens()) {
      request.finish = FinishReason::kLength;  // alone and still too long: the cache is its limit
      return false;
    }
    if (!preempt_youngest(cache, request, batch)) return false;  // the others finish first
  }
  return true;
}

bool Scheduler::preempt_youngest(KvCache& cache, const Request& but, const Batch& batch) {
  for (size_t i = running_.size(); i-- > 0;) {
    Request& r = *running_[i];
    if (r.id <= but.id) return false;  // never an older one: somebody always gets on
    const bool in_batch = std::any_of(batch.entries.begin(), batch.entries.end(),
                                      [&](const BatchEntry& e) { return e.request == &r; });
    if (in_batch || r.is_done() || r.n_in_flight > 0 || !r.cache.is_open()) continue;
    cache.close(r.cache);
    ++r.n_preempted;
    waiting_.push_front(std::move(running_[i]));
    running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
    return true;
  }
  return false;
}

void Scheduler::launched(const Batch& batch, uint64_t ticket) {
  for (const BatchEntry& e : batch.entries) {
    e.request->cache.n_cached += e.n_tokens;
    ++e.request->n_in_flight;
    e.request->unread = {};
    if (e.wants_logits && ticket != 0) e.request->unread = {ticket, e.row, 0};
  }
}

void Scheduler::landed(const Batch& batch, uint64_t ticket) {
  for (const BatchEntry& e : batch.entries) {
    --e.request->n_in_flight;
    if (e.request->unread.ticket == ticket) e.request->unread = {};
  }
}

std::vector<std::unique_ptr<Request>> Scheduler::take_done(KvCache& cache) {
  std::vector<std::unique_ptr<Request>> done;
  const auto take = [&](auto& list) {
    for (auto& r : list)
      if (r->is_done() && r->n_in_flight == 0) {
        cache.close(r->cache);
        done.push_back(std::move(r));
      }
    std::erase_if(list, [](const auto& r) { return r == nullptr; });
  };
  take(running_);
  take(waiting_);
  return done;
}

Request* Scheduler::find(RequestId id) {
  for (const auto& r : running_)
    if (r->id == id) return r.get();
  for (const auto& r : waiting_)
    if (r->id == id) return r.get();
  return nullptr;
}

}  // namespace dovetail::core
