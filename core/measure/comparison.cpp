#include "core/measure/comparison.hpp"

#include <algorithm>
#include <cmath>

#include "core/engine/sequence.hpp"

namespace dovetail::core {
namespace {

SequenceWants everything_of(const Model& model) {
  SequenceWants wants;
  for (uint32_t i = 0; i < model.n_layer_outputs(); ++i)
    wants.values.push_back({layer_output_name(i), static_cast<size_t>(model.d_model())});
  return wants;
}

// What a row of logits is in numbers, beside the other model's.
struct RowPair {
  double kl = 0, sum_a = 0, sum_b = 0;
  TopTwo top_a, top_b;
};

RowPair compare_rows(std::span<const float> a, std::span<const float> b) {
  RowPair out;
  out.sum_a = log_sum_exp(a);
  out.sum_b = log_sum_exp(b);
  out.kl = kl_divergence(a, out.sum_a, b, out.sum_b);
  out.top_a = top_two(a);
  out.top_b = top_two(b);
  return out;
}

void take_row(const RowPair& row, size_t pos, Comparison& out) {
  out.kl_mean += (row.kl - out.kl_mean) / static_cast<double>(pos + 1);
  // A divergence that is no number is the worst there is.
  if (row.kl > out.kl_max || (std::isnan(row.kl) && !std::isnan(out.kl_max)))
    out.kl_max = row.kl, out.kl_max_pos = pos;
  if (row.top_a.id[0] == row.top_b.id[0])
    ++out.n_same_top;
  else if (!out.first_other_top)
    out.first_other_top = Comparison::Top{pos, row.top_a, row.top_b};
}

}  // namespace

uint64_t recorded_bytes(const Model& model, size_t n_tokens) {
  const int64_t row = model.vocab_size() + model.n_layer_outputs() * model.d_model();
  return static_cast<uint64_t>(row) * n_tokens * sizeof(float);
}

Result<RecordedRun> record_run(Model& model, uint32_t max_step_len, std::vector<TokenId> ids) {
  DVT_TRY(check_ids(model, ids));
  RecordedRun out;
  out.ids = std::move(ids);
  out.vocab_size = static_cast<size_t>(model.vocab_size());
  out.d_model = static_cast<size_t>(model.d_model());
  out.layers.resize(model.n_layer_outputs());
  out.logits.reserve(out.ids.size() * out.vocab_size);
  for (std::vector<float>& layer : out.layers) layer.reserve(out.ids.size() * out.d_model);
  Sequence sequence(model, max_step_len, out.ids);
  DVT_TRY(sequence.run(everything_of(model), [&out](const SequenceStep& step) {
    out.logits.insert(out.logits.end(), step.logits.begin(), step.logits.end());
    for (size_t i = 0; i < out.layers.size(); ++i)
      out.layers[i].insert(out.layers[i].end(), step.values[i].begin(), step.values[i].end());
    return Status::ok();
  }));
  return out;
}

Result<Comparison> compare_with(const RecordedRun& a, Model& b, ThreadPool& pool,
                                uint32_t max_step_len, size_t n_ids) {
  DVT_TRY(check_ids(b, a.ids));
  const auto vocab_b = static_cast<size_t>(b.vocab_size());
  n_ids = std::min({n_ids, a.vocab_size, vocab_b});
  Comparison out;
  out.n_tokens = a.ids.size();
  out.n_ids = n_ids;
  const bool has_layers =
      a.layers.size() == b.n_layer_outputs() && a.d_model == static_cast<size_t>(b.d_model());
  if (has_layers) out.layers.resize(a.layers.size());
  const auto row_of = [n_ids](std::span<const float> logits, size_t row, size_t vocab_size) {
    return logits.subspan(row * vocab_size, n_ids);
  };
  std::vector<RowPair> rows;
  Sequence sequence(b, max_step_len, a.ids);
  DVT_TRY(
      sequence.run(has_layers ? everything_of(b) : SequenceWants{}, [&](const SequenceStep& step) {
        rows.resize(step.n_rows);
        pool.parallel_for(step.n_rows, 1, [&](uint64_t begin, uint64_t end, uint32_t) {
          for (uint64_t r = begin; r < end; ++r)
            rows[r] = compare_rows(row_of(a.logits, step.first_row + r, a.vocab_size),
                                   row_of(step.logits, r, vocab_b));
        });
        for (size_t r = 0; r < rows.size(); ++r) {
          const size_t pos = step.first_row + r;
          const std::span<const float> row_a = row_of(a.logits, pos, a.vocab_size),
                                       row_b = row_of(step.logits, r, vocab_b);
          out.logits.add(row_a, row_b, n_ids);
          take_row(rows[r], pos, out);
          if (pos + 1 < a.ids.size() && a.ids[pos + 1] < n_ids) {
            const TokenId next = a.ids[pos + 1];
            out.nll_a.add(rows[r].sum_a - static_cast<double>(row_a[next]));
            out.nll_b.add(rows[r].sum_b - static_cast<double>(row_b[next]));
          }
        }
        for (size_t i = 0; i < out.layers.size(); ++i)
          out.layers[i].add(
              std::span(a.layers[i]).subspan(step.first * a.d_model, step.values[i].size()),
              step.values[i], a.d_model);
        return Status::ok();
      }));
  return out;
}

}  // namespace dovetail::core
