// Engine: many requests, one model. step() names every stage in order; callers add requests, call
// step() until nothing is left and get text through each request's sink.
//
// One step may be in flight: on a backend that works on its own, and that samples every row of the
// step itself, the next step is launched before this one's tokens are read. Its tokens name rows of
// the step before. The text is the same; a request that ends has then run one step too many.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "core/base/status.hpp"
#include "core/engine/batch_buffers.hpp"
#include "core/model/model.hpp"
#include "core/sampling/sampler.hpp"
#include "core/scheduler/scheduler.hpp"

namespace dovetail::core {

/// What became of a request.
struct Completion {
  RequestId id = 0;
  std::vector<TokenId> tokens;  // generated, the stop id that ended it not included
  std::string text;
  FinishReason finish = FinishReason::kNone;
  Status error;
  uint64_t seed = 0;
  size_t n_prompt = 0;
  uint32_t n_preempted = 0;
  RequestTimes times;
};

class Engine {
 public:
  /// The model outlives the engine. `chain` are the sampler stages in order.
  Engine(Model& model, const SamplerChain& chain, SchedulerLimits limits);
  /// Waits for the step in flight.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Whether steps are launched ahead; by default where the backend is asynchronous.
  void set_launch_ahead(bool ahead) { ahead_ = ahead; }

  /// Takes a request, or says why it cannot run (too long, an unknown parameter).
  Result<RequestId> add(RequestParams params, RequestSink sink = {});
  /// Schedules and launches a step of the model, and retires the one launched before it (or this one,
  /// where nothing is launched ahead). False when nothing is left to do.
  Result<bool> step();
  /// Reads the step in flight, if there is one: afterwards nothing runs.
  /// errors   what step() reports of it
  Status settle();
  /// The model goes on with the backend of in.settings, and all requests with it: each from its next token, with its
  /// cache and its sampler as they are. Between two steps, after settle().
  /// errors   those of Model::move_to(): nothing has changed, and the requests go on where they were.
  Result<StateMove> move_to(const StageLoad& in);
  /// Ends a request after the current step; its text so far stays.
  void cancel(RequestId id);
  void cancel_all();
  bool idle() const { return scheduler_.idle(); }
  /// Requests that ended since the last call.
  std::vector<Completion> take_completions();

  /// Tokens in the cache of all running requests: how far a prompt has been read.
  size_t n_prefilled() const;
  const KvCache& cache() const { return cache_; }
  const Model& model() const { return model_; }

 private:
  /// A step from launch to retirement.
  struct Step {
    Step(const SchedulerLimits& limits, size_t n_groups);
    Batch batch;
    BatchBuffers buffers;
    std::vector<int32_t> ids;            // [max rows], where the backend samples
    std::vector<Result<TokenId>> drawn;  // [max rows]
    uint64_t ticket = 0;
    bool backend_samples = false;
  };
  bool launches_ahead() const { return ahead_.value_or(model_.is_async()); }
  Status launch(Step& step);
  Status retire(Step& step);
  void draw(Step& step);
  Result<TokenId> sample(const BatchEntry& entry, const Step& step) const;
  void accept(Request& request, TokenId token);
  void finish(Request& request, FinishReason reason, Status error = {});
  void collect_done();

  Model& model_;
  const SamplerChain& chain_;
  Scheduler scheduler_;
  KvCache cache_;
  std::array<Step, 2> steps_;
  Step* in_flight_ = nullptr;
  std::optional<bool> ahead_;        // as it was set
  std::vector<uint32_t> known_ids_;  // bits [V]: ids that the tokenizer has
  std::vector<float> logits_;        // [max rows, V]; at most one step in flight writes them
  std::vector<Completion> completions_;
  std::vector<RequestId> cancels_;
  std::mutex cancels_lock_;  // cancel() may come from another thread
  std::atomic<bool> cancel_all_{false};
  RequestId next_id_ = 1;
};

}  // namespace dovetail::core
