#include "core/measure/perplexity.hpp"

#include <algorithm>
#include <cmath>

#include "core/engine/sequence.hpp"

namespace dovetail::core {

std::vector<TextWindow> windows_of(size_t n_tokens, const WindowRule& rule) {
  const size_t first = std::max<size_t>(rule.n_prefix, 1);  // the first token has nothing before it
  const size_t step = rule.stride.value_or(rule.context);
  std::vector<TextWindow> out;
  size_t counted_to = 0;
  for (size_t begin = 0; begin < n_tokens && counted_to < n_tokens; begin += step) {
    if (!rule.stride && begin + rule.context > n_tokens) break;
    if (rule.most > 0 && out.size() == rule.most) break;
    TextWindow w;
    w.begin = begin;
    w.end = std::min(begin + rule.context, n_tokens);
    w.counted = rule.stride ? std::max(counted_to, begin + first)
                            : begin + std::max(rule.context / 2 + 1, first);
    counted_to = w.end;
    if (w.counted < w.end) out.push_back(w);
  }
  return out;
}

Result<RunningMean> measure_nll(Model& model, ThreadPool& pool, uint32_t max_step_len,
                                std::span<const TokenId> text, const WindowRule& rule,
                                std::span<const TextWindow> windows,
                                const WindowProgress& progress) {
  const auto vocab_size = static_cast<size_t>(model.vocab_size());
  RunningMean out;
  std::vector<double> nll;
  for (size_t i = 0; i < windows.size(); ++i) {
    const TextWindow& w = windows[i];
    DVT_TRY(progress(i, windows.size()));
    // The last token is predicted, not read.
    std::vector<TokenId> ids(text.begin() + static_cast<std::ptrdiff_t>(w.begin),
                             text.begin() + static_cast<std::ptrdiff_t>(w.end - 1));
    std::copy_n(text.begin(), std::min(rule.n_prefix, ids.size()), ids.begin());
    SequenceWants wants;
    wants.first_row = w.counted - 1 - w.begin;
    Sequence sequence(model, max_step_len, std::move(ids));
    DVT_TRY(sequence.run(wants, [&](const SequenceStep& step) -> Status {
      nll.resize(step.n_rows);
      pool.parallel_for(step.n_rows, 1, [&](uint64_t begin, uint64_t end, uint32_t) {
        for (uint64_t r = begin; r < end; ++r) {
          const std::span<const float> row = step.logits.subspan(r * vocab_size, vocab_size);
          nll[r] =
              log_sum_exp(row) - static_cast<double>(row[text[w.begin + step.first_row + r + 1]]);
        }
      });
      for (size_t r = 0; r < nll.size(); ++r) {
        if (!std::isfinite(nll[r]))
          return internal_error(
              "token " + std::to_string(w.begin + step.first_row + r + 1) +
              " of the text has no probability: the model's logits for it are not finite");
        out.add(nll[r]);
      }
      return Status::ok();
    }));
  }
  DVT_TRY(progress(windows.size(), windows.size()));
  return out;
}

}  // namespace dovetail::core
