#include "core/doctor/reduction.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "core/model/checkpoint.hpp"

namespace dovetail::core {
namespace {

constexpr int64_t kRows = 16;          // of a matrix: what packed layouts keep together
constexpr int64_t kLeastColumns = 64;  // whole blocks of every format

struct TokenChoice {
  std::vector<size_t> tokens;      // of the case, in order
  size_t n_in_last_step = 0;       // 0: all in one step
  bool is_from_the_start = false;  // positions count from 0: what caches need
};

struct CaseToken {
  std::optional<int32_t> id;
  int32_t position;
  bool has_row;
};
std::vector<CaseToken> tokens_of(const OpCase& c) {
  std::vector<CaseToken> out;
  for (const OpCase::Step& s : c.steps)
    for (size_t i = 0; i < s.positions.size(); ++i)
      out.push_back({i < s.tokens.size() ? std::optional(s.tokens[i]) : std::nullopt,
                     s.positions[i], std::find(s.rows.begin(), s.rows.end(), i) != s.rows.end()});
  return out;
}

OpCase with_tokens(const OpCase& c, const TokenChoice& choice) {
  const std::vector<CaseToken> all = tokens_of(c);
  OpCase out = c;
  const size_t n = choice.tokens.size(), n_first = n - choice.n_in_last_step;
  out.steps.assign(choice.n_in_last_step > 0 && n_first > 0 ? 2 : 1, {});
  for (size_t i = 0; i < n; ++i) {
    OpCase::Step& step = i < n_first ? out.steps.front() : out.steps.back();
    const CaseToken& token = all[choice.tokens[i]];
    if (token.has_row) step.rows.push_back(static_cast<uint32_t>(step.positions.size()));
    if (token.id) step.tokens.push_back(*token.id);
    step.positions.push_back(choice.is_from_the_start ? static_cast<int32_t>(i) : token.position);
  }
  for (OpCase::Fed& fed : out.fed) {
    const size_t width = fed.numbers.size() / std::max<size_t>(1, all.size());
    std::vector<float> kept;
    for (const size_t t : choice.tokens)
      kept.insert(kept.end(), fed.numbers.begin() + static_cast<std::ptrdiff_t>(t * width),
                  fed.numbers.begin() + static_cast<std::ptrdiff_t>((t + 1) * width));
    fed.numbers = std::move(kept);
  }
  return out;
}

std::vector<size_t> range(size_t begin, size_t end) {
  std::vector<size_t> out(end - begin);
  std::iota(out.begin(), out.end(), begin);
  return out;
}

// What to try in turn; the first that is still wrong is taken.
std::vector<TokenChoice> choices(const OpCase& c, size_t worst) {
  std::vector<TokenChoice> out;
  const size_t n = c.n_tokens();
  if (c.states.empty()) {
    for (size_t m = 1; m < n; m *= 2) {
      const size_t begin = std::min(worst - std::min(worst, m / 2), n - m);
      out.push_back({range(begin, begin + m)});
    }
    return out;
  }
  const bool is_alone_in_last = c.steps.size() == 2 && worst + 1 == n;
  for (size_t m = 1; m <= worst + 1; m = m == worst + 1 ? m + 1 : std::min(2 * m, worst + 1))
    if (m < n) out.push_back({range(worst + 1 - m, worst + 1), is_alone_in_last ? 1u : 0u, true});
  return out;
}

OpCase::Weight* weight_of(OpCase& c, uint32_t val) {
  for (OpCase::Weight& w : c.weights)
    if (w.val == val) return &w;
  return nullptr;
}

void set_bytes(OpCase::Weight& w, std::vector<std::byte> bytes) {
  auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  w.bytes = *owner;
  w.owner = std::move(owner);
}

// Keeps kRows rows around `row`; gives the first that is kept, or nothing if rows cannot be told apart.
std::optional<int64_t> keep_rows(OpCase::Weight& w, int64_t row) {
  if (w.shape.empty() || w.shape[0] <= kRows) return {};
  const auto n_bytes = static_cast<int64_t>(w.bytes.size());
  const bool is_plain = plain_bytes(w.stored, {1}).has_value();
  if (n_bytes % w.shape[0] != 0 || (!is_plain && w.shape[0] % kRows != 0)) return {};
  const int64_t row_bytes = n_bytes / w.shape[0], first = row / kRows * kRows;
  const int64_t n = std::min(kRows, w.shape[0] - first);
  const auto begin = w.bytes.begin() + static_cast<std::ptrdiff_t>(first * row_bytes);
  set_bytes(w, {begin, begin + static_cast<std::ptrdiff_t>(n * row_bytes)});
  w.shape[0] = n;
  return first;
}

// Columns [first, first + n) of a plain matrix, and of what is multiplied by it.
void keep_columns(OpCase::Weight& w, OpCase::Fed& x, int64_t first, int64_t n) {
  const int64_t before = w.shape[1];
  const auto element =
      static_cast<int64_t>(w.bytes.size()) / std::max<int64_t>(1, w.shape[0] * before);
  std::vector<std::byte> bytes;
  for (int64_t r = 0; r < w.shape[0]; ++r) {
    const auto begin =
        w.bytes.begin() + static_cast<std::ptrdiff_t>((r * before + first) * element);
    bytes.insert(bytes.end(), begin, begin + static_cast<std::ptrdiff_t>(n * element));
  }
  set_bytes(w, std::move(bytes));
  w.shape[1] = n;
  std::vector<float> numbers;
  for (size_t at = 0; at < x.numbers.size(); at += static_cast<size_t>(before)) {
    const auto begin = x.numbers.begin() + static_cast<std::ptrdiff_t>(at) + first;
    numbers.insert(numbers.end(), begin, begin + n);
  }
  x.numbers = std::move(numbers);
  x.tail = {n};
}

class Reducer {
 public:
  Reducer(WrongCase from, const Judge& judge) : now_(std::move(from)), judge_(judge) {}

  Result<WrongCase> run() {
    DVT_TRY(fewer_tokens());
    if (now_.op_case.nodes.size() == 1) {
      const std::string op = now_.op_case.nodes[0].op;
      if (op == "linear") {
        DVT_TRY(fewer_outputs());
        DVT_TRY(fewer_columns());
      }
      if (op == "embed") DVT_TRY(fewer_embeddings());
    }
    return std::move(now_);
  }

 private:
  /// Whether the case is still wrong; then it is the one from now on.
  Result<bool> takes(OpCase c) {
    Result<std::optional<Wrong>> wrong = judge_(c);
    if (!wrong && wrong.status().code() == Code::kCancelled) return wrong.status();
    if (!wrong || !*wrong) return false;
    now_ = {std::move(c), std::move(**wrong)};
    return true;
  }

  Status fewer_tokens() {
    for (const TokenChoice& choice : choices(now_.op_case, now_.wrong.error.element_row)) {
      DVT_TRY(const bool taken, takes(with_tokens(now_.op_case, choice)));
      if (taken) break;
    }
    return Status::ok();
  }

  Status fewer_outputs() {
    OpCase c = now_.op_case;
    const OpCase::Node& node = c.nodes[0];
    const auto row = static_cast<int64_t>(now_.wrong.error.element);
    OpCase::Weight* const w = weight_of(c, node.in[1]);
    if (!w || !keep_rows(*w, row)) return Status::ok();
    if (node.in.size() > 2 && node.in[2] != kNoValue) {
      OpCase::Weight* const bias = weight_of(c, node.in[2]);
      if (!bias || !keep_rows(*bias, row)) return Status::ok();
    }
    DVT_TRY([[maybe_unused]] const bool taken, takes(std::move(c)));
    return Status::ok();
  }

  Status fewer_columns() {
    for (bool again = true; again;) {
      again = false;
      for (const bool second : {false, true}) {
        OpCase c = now_.op_case;
        OpCase::Weight* const w = weight_of(c, c.nodes[0].in[1]);
        const auto x = std::find_if(c.fed.begin(), c.fed.end(), [&c](const OpCase::Fed& fed) {
          return fed.val == c.nodes[0].in[0] && fed.tail.size() == 1;
        });
        if (!w || x == c.fed.end() || !plain_bytes(w->stored, {1})) return Status::ok();
        const int64_t half = w->shape[1] / 2;
        if (half < kLeastColumns || half % kLeastColumns != 0) return Status::ok();
        keep_columns(*w, *x, second ? half : 0, half);
        DVT_TRY(again, takes(std::move(c)));
        if (again) break;
      }
    }
    return Status::ok();
  }

  Status fewer_embeddings() {
    OpCase c = now_.op_case;
    OpCase::Weight* const table = weight_of(c, c.nodes[0].in[1]);
    if (!table || c.n_tokens() != 1 || c.steps[0].tokens.empty()) return Status::ok();
    const std::optional<int64_t> first = keep_rows(*table, c.steps[0].tokens[0]);
    if (!first) return Status::ok();
    c.steps[0].tokens[0] -= static_cast<int32_t>(*first);
    DVT_TRY([[maybe_unused]] const bool taken, takes(std::move(c)));
    return Status::ok();
  }

  WrongCase now_;
  const Judge& judge_;
};

}  // namespace

Wrong worst_of(const OpCase& c, CaseOutputs expected, const CaseOutputs& got) {
  Wrong out;
  std::vector<size_t> all(c.n_tokens());
  std::iota(all.begin(), all.end(), size_t{0});
  const std::vector<size_t> some = c.row_tokens();
  for (size_t i = 0; i < expected.values.size(); ++i) {
    const CaseGraph::Output& v = expected.values[i];
    const OpError error =
        error_of(expected.numbers[i], got.numbers[i], v.width, v.is_of_rows ? some : all);
    if (i == 0 || error.measure() > out.error.measure()) out.value = i, out.error = error;
  }
  out.expected = std::move(expected);
  return out;
}

Result<WrongCase> reduced(WrongCase from, const Judge& judge) {
  return Reducer(std::move(from), judge).run();
}

}  // namespace dovetail::core
