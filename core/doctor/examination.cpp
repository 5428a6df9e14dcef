#include "core/doctor/examination.hpp"

#include <algorithm>
#include <set>

#include "core/doctor/reduction.hpp"
#include "core/measure/tolerance.hpp"
#include "core/model/checkpoint.hpp"
#include "core/plugin/host.hpp"

namespace dovetail::core {
namespace {

// "layers.3" of "layers.3.attn": up to the first number; else all of it.
std::string_view layer_of(std::string_view scope) {
  for (size_t begin = 0; begin < scope.size();) {
    const size_t end = std::min(scope.find('.', begin), scope.size());
    const std::string_view part = scope.substr(begin, end - begin);
    if (!part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos)
      return scope.substr(0, end);
    begin = end + 1;
  }
  return scope;
}

size_t product(const std::vector<int64_t>& dims) {
  size_t n = 1;
  for (const int64_t d : dims) n *= static_cast<size_t>(d);
  return n;
}

// Which nodes give, read and share what.
class GraphLinks {
 public:
  explicit GraphLinks(const Graph& graph) : graph_(graph), producer_(graph.view().n_vals, kNone) {
    for (size_t i = 0; i < graph.n_nodes(); ++i)
      for (const uint32_t v : outputs(i)) producer_[v] = i;
    for (size_t i = 0; i < graph.n_nodes(); ++i) {
      const std::vector<uint32_t> in = inputs(i);
      const bool is_fed =
          std::any_of(in.begin(), in.end(), [this](uint32_t v) { return is_computed(v); });
      mixes_tokens_ |=
          is_fed && std::any_of(in.begin(), in.end(), [this](uint32_t v) { return is_tokens(v); });
    }
    find_last_uses();
  }

  static constexpr size_t kNone = SIZE_MAX;
  const Graph& graph() const { return graph_; }
  std::vector<uint32_t> inputs(size_t node) const {
    std::vector<uint32_t> out;
    const dvt_node& n = graph_.node(node);
    for (uint32_t i = 0; i < n.n_in; ++i)
      if (graph_.input(n, i) != kNoValue) out.push_back(graph_.input(n, i));
    return out;
  }
  std::vector<uint32_t> outputs(size_t node) const {
    std::vector<uint32_t> out;
    const dvt_node& n = graph_.node(node);
    for (uint32_t i = 0; i < n.n_out; ++i) out.push_back(graph_.output(n, i));
    return out;
  }
  bool is_computed(uint32_t v) const { return graph_.val(v).role == DVT_VAL_COMPUTED; }
  bool is_state(uint32_t v) const { return graph_.val(v).role == DVT_VAL_STATE; }
  bool is_tokens(uint32_t v) const {
    return graph_.val(v).role == DVT_VAL_INPUT && graph_.str(graph_.val(v).name) == "tokens";
  }
  /// The last node whose case may be fed this value.
  size_t last_use(uint32_t v) const { return last_use_[v]; }

  /// The nodes [begin, end) with those that a case of them cannot do without: what fills the states that they read
  /// or makes values that cannot be fed; all before them where one reads token ids beside values.
  std::set<size_t> closure(size_t begin, size_t end) const {
    std::set<size_t> nodes;
    std::vector<size_t> open;
    const auto add = [&](size_t node) {
      if (nodes.insert(node).second) open.push_back(node);
    };
    for (size_t i = begin; i < end; ++i) add(i);
    while (!open.empty()) {
      const size_t node = open.back();
      open.pop_back();
      for (const uint32_t v : inputs(node)) {
        if (is_computed(v) && (mixes_tokens_ || !has_rows(graph_, v))) add(producer_[v]);
        if (is_state(v))
          for (size_t earlier = 0; earlier < node; ++earlier)
            if (touches(earlier, v)) add(earlier);
      }
    }
    return nodes;
  }

 private:
  bool touches(size_t node, uint32_t state) const {
    const std::vector<uint32_t> in = inputs(node);
    return std::find(in.begin(), in.end(), state) != in.end();
  }
  void find_last_uses() {
    last_use_.assign(producer_.size(), 0);
    for (size_t i = graph_.n_nodes(); i-- > 0;) {
      size_t until = i;
      for (const uint32_t v : outputs(i))
        if (!has_rows(graph_, v)) until = std::max(until, last_use_[v]);
      for (const uint32_t v : inputs(i))
        if (is_state(v)) until = std::max(until, last_use_[v]);
      for (const uint32_t v : inputs(i)) last_use_[v] = std::max(last_use_[v], until);
    }
  }

  const Graph& graph_;
  std::vector<size_t> producer_, last_use_;  // by value
  bool mixes_tokens_ = false;
};

class Examination {
 public:
  explicit Examination(const ExaminationInput& in)
      : in_(in), links_(in.model.graph()), values_(links_.graph().view().n_vals) {
    const size_t n = in.tokens.size(), n_first = n > 1 ? n - 1 : n;
    add_step(0, n_first);
    if (n > n_first) add_step(n_first, n);
  }

  Result<ExaminationReport> run() {
    DVT_TRY(check_feeding(in_.trusted));
    DVT_TRY(check_feeding(in_.checked));
    const size_t n = links_.graph().n_nodes();
    report_.n_ops = n;
    for (size_t begin = 0, end = 0; begin < n && !report_.finding; begin = end) {
      while (end < n && layer(end) == layer(begin)) ++end;
      for (size_t i = begin; i < end && !report_.finding; ++i) {
        if (in_.progress) in_.progress(i, n, place(i));
        DVT_TRY(examine_alone(i).in(place(i)));
      }
      if (!report_.finding && end - begin > 1)
        DVT_TRY(examine_joined(begin, end).in(std::string(layer(begin))));
      for (uint32_t v = 0; v < values_.size(); ++v)
        if (links_.last_use(v) < end) values_[v] = {};
    }
    return std::move(report_);
  }

 private:
  std::string_view layer(size_t node) const {
    return layer_of(links_.graph().str(links_.graph().node(node).scope));
  }
  std::string place(size_t node) const {
    const dvt_node& n = links_.graph().node(node);
    const std::string scope(links_.graph().str(n.scope)), op(links_.graph().op_name(n));
    return scope.empty() ? op : scope + ": " + op;
  }

  // All tokens but the first of a step are rows, so that taking rows is more than a copy.
  void add_step(size_t begin, size_t end) {
    OpCase::Step step;
    for (size_t t = begin; t < end; ++t) {
      step.tokens.push_back(in_.tokens[t]);
      step.positions.push_back(static_cast<int32_t>(t));
      if (t > begin || end - begin == 1) step.rows.push_back(static_cast<uint32_t>(t - begin));
    }
    steps_.push_back(std::move(step));
  }

  // All that follows rests on tables of float32 that come back as they are.
  Status check_feeding(const CaseBackend& backend) const {
    constexpr size_t kWidth = 40;
    OpCase c;
    c.steps = steps_;
    c.fed.push_back({0, false, {kWidth}, {}});
    for (size_t i = 0; i < c.n_tokens() * kWidth; ++i)
      c.fed[0].numbers.push_back(static_cast<float>(i) / 7.0F);
    c.wanted = {0};
    DVT_TRY(const CaseOutputs got, run_case(c, backend, in_.ops, in_.cancel));
    if (got.numbers[0] == c.fed[0].numbers) return Status::ok();
    return internal_error("backend " + backend.name +
                          ": embed changes the numbers of a float32 table, and ops are fed by it; "
                          "nothing can be examined before it is right");
  }

  Result<OpCase::Weight> weight(uint32_t val) const {
    const size_t i = links_.graph().val(val).bind;
    const Weights::Planned planned = in_.model.weights().planned(i);
    OpCase::Weight out{val,
                       std::string(text_of(planned.use.name)),
                       std::string(text_of(planned.use.stored)),
                       std::string(text_of(planned.use.wanted)),
                       {planned.use.shape, planned.use.shape + planned.use.ndim},
                       {},
                       nullptr};
    auto copy = std::make_shared<std::vector<std::byte>>();
    DVT_TRY(out.bytes, in_.model.weights().stored_bytes(i, *copy, in_.cancel));
    if (!copy->empty()) out.owner = std::move(copy);
    return out;
  }

  Status add_source(uint32_t v, OpCase& c) const {
    const Graph& g = links_.graph();
    const dvt_val& val = g.val(v);
    if (val.role == DVT_VAL_INPUT) {
      c.inputs.push_back({v, std::string(g.str(val.name))});
    } else if (val.role == DVT_VAL_WEIGHT) {
      DVT_TRY(OpCase::Weight w, weight(v));
      c.weights.push_back(std::move(w));
    } else if (val.role == DVT_VAL_STATE) {
      c.states.push_back({v, std::string(g.str(val.name)), g.states()[val.bind]});
    } else {
      const std::vector<dvt_dim> dims = g.type_of(v).dims;
      OpCase::Fed fed{v, g.str(dims[0].sym) == "R", {}, values_[v]};
      for (size_t i = 1; i < dims.size(); ++i) fed.tail.push_back(dims[i].value);
      if (fed.numbers.size() != in_.tokens.size() * product(fed.tail))
        return internal_error("the numbers of an input are gone");
      c.fed.push_back(std::move(fed));
    }
    return Status::ok();
  }

  // Values of [begin, end) that have rows: those that later nodes read and outputs of the graph; of one node all.
  std::vector<uint32_t> wanted(size_t begin, size_t end) const {
    std::vector<uint32_t> out;
    for (size_t i = begin; i < end; ++i)
      for (const uint32_t v : links_.outputs(i)) {
        const bool is_read_later = end - begin == 1 || i + 1 == end || links_.last_use(v) >= end ||
                                   (links_.graph().val(v).flags & DVT_VALF_OUTPUT) != 0;
        if (has_rows(links_.graph(), v) && is_read_later) out.push_back(v);
      }
    return out;
  }

  Result<OpCase> make_case(size_t begin, size_t end) const {
    const Graph& g = links_.graph();
    OpCase c;
    c.steps = steps_;
    c.wanted = wanted(begin, end);
    std::set<uint32_t> known;
    for (const size_t i : links_.closure(begin, end)) {
      const dvt_node& n = g.node(i);
      OpCase::Node node{std::string(g.op_name(n)),   g.view().ops[n.op].rev,
                        std::string(g.str(n.scope)), {},
                        links_.outputs(i),           g.attrs_of(n)};
      for (uint32_t k = 0; k < n.n_in; ++k) {
        const uint32_t v = g.input(n, k);
        node.in.push_back(v);
        if (v != kNoValue && known.insert(v).second) DVT_TRY(add_source(v, c));
      }
      known.insert(node.out.begin(), node.out.end());
      c.nodes.push_back(std::move(node));
    }
    if (!c.fed.empty())
      for (OpCase::Step& step : c.steps) step.tokens.clear();
    return c;
  }

  // The fewest bits that a node of the range may round to what it multiplies.
  double bits(size_t begin, size_t end) const {
    double least = 32;
    for (const size_t i : links_.closure(begin, end))
      for (const uint32_t v : links_.inputs(i)) {
        const dvt_val& val = links_.graph().val(v);
        if (val.role == DVT_VAL_WEIGHT && val.ndim >= 2 &&
            links_.graph().op_name(links_.graph().node(i)) != "embed") {
          const std::string_view format = in_.model.weights().format_in_use(val.bind);
          const std::optional<uint64_t> bytes = plain_bytes(format, {1});
          least = std::min(least, bytes ? 8.0 * static_cast<double>(*bytes) : 8.0);
        }
        if (links_.is_state(v) && val.dtype == DVT_ACTIVATION)
          least = std::min(least, static_cast<double>(kv_dtype_bits(in_.model.kv_dtype())));
      }
    return least;
  }
  double tolerance(size_t begin, size_t end) const {
    if (in_.tolerance) return *in_.tolerance;
    return end - begin == 1 ? op_tolerance(bits(begin, end)) : model_tolerance(bits(begin, end));
  }

  static void note(OpSummary& summary, const OpError& error, double tolerance,
                   std::string_view scope) {
    if (summary.n++ == 0 || error.measure() / tolerance > summary.worst / summary.tolerance) {
      summary.worst = error.measure();
      summary.tolerance = tolerance;
      summary.scope = scope;
    }
  }

  Status examine_alone(size_t i) {
    if (wanted(i, i + 1).empty()) return Status::ok();  // with what reads it
    DVT_TRY(OpCase c, make_case(i, i + 1));
    DVT_TRY(CaseOutputs expected, run_case(c, in_.trusted, in_.ops, in_.cancel));
    DVT_TRY(const CaseOutputs got, run_case(c, in_.checked, in_.ops, in_.cancel));
    for (size_t k = 0; k < c.wanted.size(); ++k) values_[c.wanted[k]] = expected.numbers[k];
    Wrong wrong = worst_of(c, std::move(expected), got);
    const double allowed = tolerance(i, i + 1);
    ++report_.n_alone;
    const dvt_node& node = links_.graph().node(i);
    note(report_.by_op[std::string(links_.graph().op_name(node))], wrong.error, allowed,
         links_.graph().str(node.scope));
    if (wrong.error.is_beyond(allowed)) return find(i, i + 1, {std::move(c), std::move(wrong)});
    return Status::ok();
  }

  Result<WrongCase> run_joined(size_t begin, size_t end) {
    DVT_TRY(OpCase c, make_case(begin, end));
    DVT_TRY(const CaseOutputs got, run_case(c, in_.checked, in_.ops, in_.cancel));
    CaseOutputs expected{got.values, {}, {}};
    for (const uint32_t v : c.wanted) expected.numbers.push_back(values_[v]);
    Wrong wrong = worst_of(c, std::move(expected), got);
    return WrongCase{std::move(c), std::move(wrong)};
  }

  Status examine_joined(size_t begin, size_t end) {
    DVT_TRY(WrongCase wrong, run_joined(begin, end));
    ++report_.n_joined;
    note(report_.joined, wrong.wrong.error, tolerance(begin, end), layer(begin));
    if (!wrong.wrong.error.is_beyond(tolerance(begin, end))) return Status::ok();
    // Fewer ops, from either end, as long as they are wrong.
    const auto narrow = [&](size_t first, size_t last) -> Result<bool> {
      if (last - first < 2 || wanted(first, last).empty()) return false;
      DVT_TRY(WrongCase fewer, run_joined(first, last));
      if (!fewer.wrong.error.is_beyond(tolerance(first, last))) return false;
      wrong = std::move(fewer);
      begin = first;
      end = last;
      return true;
    };
    for (bool again = true; again;) {
      DVT_TRY(again, narrow(begin, end - 1));
    }
    for (bool again = true; again;) {
      DVT_TRY(again, narrow(begin + 1, end));
    }
    return find(begin, end, std::move(wrong));
  }

  std::string value_text(uint32_t v) const {
    const Graph& g = links_.graph();
    const std::string shape = g.shape_text(g.type_of(v).dims);
    if (g.val(v).role != DVT_VAL_WEIGHT)
      return (g.val(v).role == DVT_VAL_COMPUTED ? std::string()
                                                : std::string(g.str(g.val(v).name)) + " ") +
             shape +
             (g.val(v).dtype == DVT_I32        ? " int32"
              : g.val(v).role == DVT_VAL_STATE ? " " + kv_dtype_name(in_.model.kv_dtype())
                                               : " float32");
    return std::string(g.str(g.val(v).name)) + " " + shape + " " +
           std::string(in_.model.weights().format_in_use(g.val(v).bind));
  }

  Status find(size_t begin, size_t end, WrongCase whole) {
    OpFinding out;
    out.first_node = begin;
    out.n_nodes = end - begin;
    out.is_joined = end - begin > 1;
    const dvt_node& last = links_.graph().node(end - 1);
    out.scope = links_.graph().str(last.scope);
    out.op = links_.graph().op_name(last);
    for (const uint32_t v : links_.inputs(end - 1)) out.inputs.push_back(value_text(v));
    out.output = value_text(whole.op_case.wanted[whole.wrong.value]);
    out.tolerance = tolerance(begin, end);
    out.error = whole.wrong.error;
    out.tail = whole.wrong.expected.values[whole.wrong.value].tail;
    const Judge judge = [&](const OpCase& c) -> Result<std::optional<Wrong>> {
      if (in_.progress) in_.progress(end, links_.graph().n_nodes(), "making the case smaller");
      DVT_TRY(CaseOutputs expected, run_case(c, in_.trusted, in_.ops, in_.cancel));
      DVT_TRY(const CaseOutputs got, run_case(c, in_.checked, in_.ops, in_.cancel));
      Wrong wrong = worst_of(c, std::move(expected), got);
      if (!wrong.error.is_beyond(out.tolerance)) return std::optional<Wrong>();
      return std::optional<Wrong>(std::move(wrong));
    };
    DVT_TRY(WrongCase small, reduced(std::move(whole), judge));
    out.op_case = std::move(small.op_case);
    out.expected = std::move(small.wrong.expected.numbers);
    out.outputs = std::move(small.wrong.expected.values);
    report_.finding = std::move(out);
    return Status::ok();
  }

  const ExaminationInput& in_;
  GraphLinks links_;
  std::vector<OpCase::Step> steps_;
  std::vector<std::vector<float>>
      values_;  // by value: what the trusted backend gave, while it is needed
  ExaminationReport report_;
};

}  // namespace

Result<ExaminationReport> examine(const ExaminationInput& in) {
  return Examination(in).run();
}

}  // namespace dovetail::core
