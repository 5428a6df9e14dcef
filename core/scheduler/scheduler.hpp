// Scheduler: which tokens of which requests run in the next step.
//
// Requests that are generating come first, one token each, oldest first; what is left of the step's
// budget goes to prompts, in chunks, oldest first. A request that finds no free blocks makes the
// youngest running one wait: its blocks are taken and it starts again from its tokens, which gives
// the same text. Nothing here changes what a request's tokens are, only when they come.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "core/scheduler/batch.hpp"
#include "core/scheduler/request.hpp"

namespace dovetail::core {

struct SchedulerLimits {
  uint32_t max_batch_tokens = 512;  // tokens in a step
  uint32_t max_seqs = 16;           // requests running at once
  uint32_t prefill_chunk = 256;     // tokens of one prompt in a step
};

class Scheduler {
 public:
  explicit Scheduler(SchedulerLimits limits) : limits_(limits) {}
  const SchedulerLimits& limits() const { return limits_; }

  void add(std::unique_ptr<Request> request) { waiting_.push_back(std::move(request)); }
  /// The next step, with cache blocks reserved. Empty when nothing can be done, or not before a step
  /// in flight is read. A request that can never fit is finished with an error.
  void next_batch(KvCache& cache, Batch& batch);
  /// The step was launched: its tokens count as in the cache. Where the backend samples (ticket not
  /// 0), the next token of each row is there to be named.
  void launched(const Batch& batch, uint64_t ticket);
  /// The step was waited for.
  void landed(const Batch& batch, uint64_t ticket);
  /// Takes finished requests out that no step in flight has, and gives their cache back.
  std::vector<std::unique_ptr<Request>> take_done(KvCache& cache);

  const std::vector<std::unique_ptr<Request>>& running() const { return running_; }
  const std::deque<std::unique_ptr<Request>>& waiting() const { return waiting_; }
  bool idle() const { return running_.empty() && waiting_.empty(); }
  Request* find(RequestId id);

 private:
  bool reserve(KvCache& cache, Request& request, uint32_t n_tokens, const Batch& batch);
  bool preempt_youngest(KvCache& cache, const Request& but, const Batch& batch);
  void admit(KvCache& cache);
  void put(Batch& batch, Request& request, uint32_t n_tokens);

  SchedulerLimits limits_;
  std::vector<std::unique_ptr<Request>> running_;  // in order of arrival
  std::deque<std::unique_ptr<Request>> waiting_;
};

}  // namespace dovetail::core
