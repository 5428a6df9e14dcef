// Perplexity: exp of the mean negative log probability that a model gives a text's tokens, each read in a window
// of the text before it.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/base/status.hpp"
#include "core/base/thread_pool.hpp"
#include "core/measure/distribution.hpp"
#include "core/model/model.hpp"
#include "core/scheduler/request.hpp"

namespace dovetail::core {

/// A part of a text that is read from an empty cache. Tokens [counted, end) are predicted and counted, each from
/// all of the window before it.
struct TextWindow {
  size_t begin = 0, counted = 0, end = 0;
};

struct WindowRule {
  size_t context = 0;  // tokens of a window
  /// A window begins this many tokens after the one before, and counts what that did not; the last one ends with the
  /// text and may be shorter. Without a stride windows lie side by side, each counts its second half (tokens from
  /// context / 2 + 1 on), and what is left of the text after the last whole window is not read.
  std::optional<size_t> stride;
  size_t n_prefix = 0;  // tokens that every window begins with, which are never counted
  size_t most = 0;      // windows at most; 0: all
};

/// The windows of a text of n_tokens, the prefix of the first one among them. Windows that count nothing are left out.
/// 1 <= stride <= context.
std::vector<TextWindow> windows_of(size_t n_tokens, const WindowRule& rule);

/// `done` windows of `total`; an error ends the measurement.
using WindowProgress = std::function<Status(size_t done, size_t total)>;

/// Negative log probabilities, in nats, of the counted tokens of all windows. `text` begins with the prefix, which
/// takes the place of each later window's first tokens too.
///
/// errors  kInternal: a row of logits has no distribution (NaN); the message names the token.
/// threads one at a time; rows are spread over the pool. The same numbers whatever its size.
Result<RunningMean> measure_nll(Model& model, ThreadPool& pool, uint32_t max_step_len,
                                std::span<const TokenId> text, const WindowRule& rule,
                                std::span<const TextWindow> windows,
                                const WindowProgress& progress);

}  // namespace dovetail::core
