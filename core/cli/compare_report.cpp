#include "core/cli/compare_report.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/json.hpp"
#include "core/cli/piece_json.hpp"
#include "core/cli/report_text.hpp"
#include "core/measure/tolerance.hpp"
#include "core/model/model.hpp"

namespace dovetail::core {
namespace {

std::string percent(double share) {
  return number_text(100 * share) + " %";
}

std::string of_all(size_t n, size_t all) {
  return n == all ? "all " + std::to_string(all) : std::to_string(n) + " of " + std::to_string(all);
}

// A token for people: its text in quotes, or its id.
std::string token_text(const ComparisonReport& r, TokenId id) {
  return id < r.a.pieces.size() ? to_json(Node::make_string(r.a.pieces[id]))
                                : "id " + std::to_string(id);
}

Node token_node(const ComparisonReport& r, TokenId id) {
  Node out = Node::make_map();
  out.set("id", Node::make_int(id));
  if (id < r.a.pieces.size()) set_piece(out, r.a.pieces[id]);
  return out;
}

bool is_beyond(const RowErrors& errors, const std::optional<double>& tolerance) {
  return tolerance && !(errors.worst_relative() <= *tolerance);
}

bool are_equal(const Comparison& c) {
  return c.logits.is_equal() && std::all_of(c.layers.begin(), c.layers.end(),
                                            [](const RowErrors& e) { return e.is_equal(); });
}

// The output that is furthest off, and its name.
std::pair<std::string, const RowErrors*> worst_output(const Comparison& c) {
  std::pair<std::string, const RowErrors*> out{"logits", &c.logits};
  for (size_t i = 0; i < c.layers.size(); ++i)
    if (c.layers[i].worst_relative() > out.second->worst_relative())
      out = {layer_output_name(static_cast<uint32_t>(i)), &c.layers[i]};
  return out;
}

const RowErrors& errors_of(const Comparison& c, const std::string& name) {
  for (size_t i = 0; i < c.layers.size(); ++i)
    if (layer_output_name(static_cast<uint32_t>(i)) == name) return c.layers[i];
  return c.logits;
}

// "layer_out.3" as people say it.
std::string output_text(const std::string& name) {
  constexpr std::string_view kLayer = "layer_out.";
  return name.starts_with(kLayer) ? "the output of layer " + name.substr(kLayer.size())
                                  : "the " + name;
}

std::string off_text(double relative) {
  return std::isfinite(relative) ? "off by " + percent(relative)
                                 : "off without bound (0 in A, or not a number)";
}

std::string verdict(const ComparisonReport& r) {
  const Comparison& c = r.found;
  const std::string top = c.n_same_top == c.n_tokens
                              ? "the likeliest next token is the same at all " +
                                    std::to_string(c.n_tokens) + " positions"
                              : "the likeliest next token differs at " +
                                    std::to_string(c.n_tokens - c.n_same_top) + " of " +
                                    std::to_string(c.n_tokens) + " positions";
  if (are_equal(c))
    return c.layers.empty() ? "A and B give equal logits"
                            : "A and B give equal numbers in every layer and equal logits";
  if (!r.tolerance)
    return "A and B are models of different layers, so only their logits are compared: " + top;
  const auto [worst, errors] = worst_output(c);
  const std::optional<std::string> first = r.first_beyond();
  if (!first)
    return "A and B agree: no output is off by more than " + percent(errors->worst_relative()) +
           " (" + output_text(worst) + "; the tolerance is " + percent(*r.tolerance) + "), and " +
           top;
  const RowErrors& e = errors_of(c, *first);
  return "A and B part at " + output_text(*first) + ": at position " +
         std::to_string(e.worst_row()) + " it is " + off_text(e.worst_relative()) +
         ", beyond the tolerance of " + percent(*r.tolerance) + "; " + top;
}

std::string side_text(const ComparedSide& s) {
  return s.config + " on " + s.backend + "; weights " + s.weights + "; KV cache " + s.kv_cache;
}

std::string row_text(const ComparisonReport& r, const std::string& name, const RowErrors& e,
                     size_t name_width) {
  const std::string at = std::to_string(e.worst_row());
  std::string out = "  " + padded(name, name_width, true) + padded(percent(e.mean_relative()), 10) +
                    padded(percent(e.worst_relative()), 11) + padded(at, 10) +
                    padded(number_text(e.max_abs()), 12);
  if (r.first_beyond() == name) out += "  <- the first beyond the tolerance";
  return out + "\n";
}

std::string top_text(const ComparisonReport& r, const TopTwo& top) {
  return token_text(r, top.id[0]) + " " + number_text(top.logit[0], "%.4f") + " before " +
         token_text(r, top.id[1]) + " " + number_text(top.logit[1], "%.4f") + ", " +
         number_text(top.gap(), "%.4f") + " apart";
}

std::string after(const ComparisonReport& r, size_t pos) {
  return "position " + std::to_string(pos) + ", after " + token_text(r, r.ids[pos]);
}

Node errors_node(const std::string& name, const RowErrors& e,
                 const std::optional<double>& tolerance) {
  Node out = Node::make_map();
  out.set("name", Node::make_string(name));
  out.set("relative_mean", Node::make_float(e.mean_relative()));
  out.set("relative_max", Node::make_float(e.worst_relative()));
  out.set("relative_max_pos", Node::make_int(static_cast<int64_t>(e.worst_row())));
  out.set("abs_max", Node::make_float(e.max_abs()));
  out.set("abs_max_pos", Node::make_int(static_cast<int64_t>(e.max_abs_row())));
  out.set("within", tolerance ? Node::make_bool(!is_beyond(e, tolerance)) : Node());
  return out;
}

Node side_node(const ComparedSide& s) {
  Node out = Node::make_map();
  out.set("config", Node::make_string(s.config));
  out.set("backend", Node::make_string(s.backend));
  out.set("weights", Node::make_string(s.weights));
  out.set("kv_cache", Node::make_string(s.kv_cache));
  out.set("layers", Node::make_int(s.n_layers));
  return out;
}

Node top_node(const ComparisonReport& r, const TopTwo& top) {
  Node out = Node::make_list();
  for (size_t i = 0; i < top.id.size(); ++i) {
    Node entry = token_node(r, top.id[i]);
    entry.set("logit", Node::make_float(top.logit[i]));
    out.items().push_back(std::move(entry));
  }
  return out;
}

}  // namespace

std::optional<std::string> ComparisonReport::first_beyond() const {
  for (size_t i = 0; i < found.layers.size(); ++i)
    if (is_beyond(found.layers[i], tolerance)) return layer_output_name(static_cast<uint32_t>(i));
  if (is_beyond(found.logits, tolerance)) return "logits";
  return std::nullopt;
}

std::string ComparisonReport::text() const {
  const Comparison& c = found;
  std::string out = verdict(*this) + ".\n\n";
  out += "  A       " + side_text(a) + "\n  B       " + side_text(b) + "\n";
  out += "  prompt  " + std::to_string(ids.size()) + " tokens" +
         (prompt.empty() ? "" : ": " + to_json(Node::make_string(prompt))) + "\n";
  if (b_reads_other_ids)
    out += "          B would read this prompt as other tokens; here both read A's\n";
  if (c.n_ids < static_cast<size_t>(std::max(a.vocab_size, b.vocab_size)))
    out += "          the vocabularies have room for " + std::to_string(a.vocab_size) + " and " +
           std::to_string(b.vocab_size) + " ids; the " + std::to_string(c.n_ids) +
           " that the tokenizer has are compared\n";
  const size_t width = std::max<size_t>(13, layer_output_name(a.n_layers).size() + 1);
  out += "\n  " + padded("output", width, true) + padded("mean off", 10) + padded("worst", 11) +
         padded("at pos", 10) + padded("max |B-A|", 12) + "\n";
  for (size_t i = 0; i < c.layers.size(); ++i)
    out += row_text(*this, layer_output_name(static_cast<uint32_t>(i)), c.layers[i], width);
  out += row_text(*this, "logits", c.logits, width);
  out += "\n  KL divergence   " + number_text(c.kl_mean) + " nats a token, at most " +
         number_text(c.kl_max) + " at " + after(*this, c.kl_max_pos) + "\n";
  out += "  likeliest token the same at " + of_all(c.n_same_top, c.n_tokens) + " positions\n";
  if (c.first_other_top) {
    const Comparison::Top& top = *c.first_other_top;
    out += "  first other one at " + after(*this, top.pos) + "\n    A: " + top_text(*this, top.a) +
           "\n    B: " + top_text(*this, top.b) + "\n";
  }
  if (c.nll_a.n() > 0)
    out += "  perplexity      of the prompt: A " + number_text(std::exp(c.nll_a.mean()), "%.4f") +
           ", B " + number_text(std::exp(c.nll_b.mean()), "%.4f") + "\n";
  return out;
}

Node ComparisonReport::node() const {
  const Comparison& c = found;
  const auto integer = [](size_t n) { return Node::make_int(static_cast<int64_t>(n)); };
  Node out = Node::make_map();
  out.set("verdict", Node::make_string(verdict(*this)));
  out.set("equal", Node::make_bool(are_equal(c)));
  out.set("tolerance", tolerance ? Node::make_float(*tolerance) : Node());
  const std::optional<std::string> first = first_beyond();
  out.set("within", tolerance ? Node::make_bool(!first) : Node());
  out.set("first_beyond", first ? Node::make_string(*first) : Node());
  out.set("a", side_node(a));
  out.set("b", side_node(b));
  Node read = Node::make_map(), list = Node::make_list();
  read.set("text", prompt.empty() ? Node() : Node::make_string(prompt));
  for (const TokenId id : ids) list.items().push_back(Node::make_int(id));
  read.set("ids", std::move(list));
  read.set("b_reads_other_ids", Node::make_bool(b_reads_other_ids));
  out.set("prompt", std::move(read));
  Node layers = Node::make_list();
  for (size_t i = 0; i < c.layers.size(); ++i)
    layers.items().push_back(
        errors_node(layer_output_name(static_cast<uint32_t>(i)), c.layers[i], tolerance));
  out.set("layers", std::move(layers));
  out.set("logits", errors_node("logits", c.logits, tolerance));
  Node kl = Node::make_map();
  kl.set("mean", Node::make_float(c.kl_mean));
  kl.set("max", Node::make_float(c.kl_max));
  kl.set("max_pos", integer(c.kl_max_pos));
  kl.set("max_after", token_node(*this, ids[c.kl_max_pos]));
  out.set("kl", std::move(kl));
  Node top = Node::make_map(), other;
  top.set("positions", integer(c.n_tokens));
  top.set("same", integer(c.n_same_top));
  if (c.first_other_top) {
    other = Node::make_map();
    other.set("pos", integer(c.first_other_top->pos));
    other.set("after", token_node(*this, ids[c.first_other_top->pos]));
    other.set("a", top_node(*this, c.first_other_top->a));
    other.set("b", top_node(*this, c.first_other_top->b));
  }
  top.set("first_other", std::move(other));
  out.set("top", std::move(top));
  Node nll = Node::make_map();
  nll.set("tokens", integer(c.nll_a.n()));
  nll.set("a", Node::make_float(c.nll_a.mean()));
  nll.set("b", Node::make_float(c.nll_b.mean()));
  out.set("nll", std::move(nll));
  return out;
}

double default_tolerance(const ComparedSide& a, const ComparedSide& b) {
  double bits = std::min(a.least_bits, b.least_bits);
  if (a.formats == b.formats) bits = std::max(bits, 8.0);
  bits = std::min({bits, static_cast<double>(a.kv_bits), static_cast<double>(b.kv_bits)});
  return model_tolerance(bits);
}

}  // namespace dovetail::core
