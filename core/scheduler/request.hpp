// Request: one text being continued, from its prompt to its last token.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/node.hpp"
#include "core/base/status.hpp"
#include "core/kv_cache/kv_cache.hpp"
#include "core/sampling/sampler.hpp"
#include "core/text/detokenizer.hpp"
#include "core/text/stop.hpp"

namespace dovetail::core {

using TokenId = uint32_t;
using RequestId = uint64_t;
using Clock = std::chrono::steady_clock;

/// What a caller asks for.
struct RequestParams {
  std::vector<TokenId> prompt;  // at least one token
  uint32_t max_tokens = 0;      // generated tokens at most
  std::vector<std::string> stop;
  std::vector<TokenId> stop_ids;       // end the text; not part of it
  bool include_stop = false;           // the stop string stays in the text
  std::vector<TokenId> shown_special;  // special tokens whose text is part of the answer's: tags
  std::optional<uint64_t> seed;        // absent: one is drawn and reported
  uint32_t choice = 0;                 // which of several answers to one prompt
  Node sampling;                       // a map of sampler parameters, or null
};

enum class FinishReason : uint8_t { kNone, kStop, kLength, kCancelled, kError };
const char* finish_reason_name(FinishReason reason);  // "stop", "length", "cancelled", "error"

struct RequestTimes {
  Clock::time_point added{}, first_token{}, last_token{};
};

/// What the caller sees of a step: the new token and the text it completed, or the end.
struct RequestEvent {
  RequestId id = 0;
  std::optional<TokenId> token;  // generated in this step
  std::string_view text;         // may be empty: half a character, or a possible stop string
  FinishReason finish = FinishReason::kNone;
};
using RequestSink = std::function<void(const RequestEvent&)>;

struct Request {
  RequestId id = 0;
  RequestParams params;
  RequestSink sink;
  std::vector<TokenId> tokens;  // prompt, then generated
  size_t n_prompt = 0;
  SequenceCache cache;
  std::unique_ptr<SamplerState> sampler;
  std::unique_ptr<Detokenizer> detokenizer;
  std::unique_ptr<StopMatcher> stop;
  std::string text;  // all text given to the sink
  FinishReason finish = FinishReason::kNone;
  Status error;
  dvt_token_from unread{};   // its next token, when the step that samples it is still running
  uint32_t n_in_flight = 0;  // steps that are running and have tokens of it
  RequestTimes times;
  uint32_t n_preempted = 0;

  size_t n_generated() const { return tokens.size() - n_prompt; }
  bool has_unread() const { return unread.ticket != 0; }
  /// Tokens whose rows are not in the cache yet: the prompt's rest, or the token just drawn.
  size_t n_pending() const { return tokens.size() + has_unread() - cache.n_cached; }
  bool is_decoding() const {
    return cache.is_open() && n_pending() == 1 && n_generated() + has_unread() > 0;
  }
  /// Nothing is left to compute once the token that is not read yet is known.
  bool is_last_unread() const { return has_unread() && n_generated() + 1 >= params.max_tokens; }
  bool is_done() const { return finish != FinishReason::kNone; }
};

}  // namespace dovetail::core
