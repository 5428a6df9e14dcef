#include "core/cli/doctor_report.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/files.hpp"
#include "core/base/json.hpp"
#include "core/cli/command.hpp"
#include "core/cli/report_text.hpp"

namespace dovetail::core {
namespace {

std::string percent(double share) {
  return std::isfinite(share) ? number_text(100 * share) + " %" : "without bound";
}

std::string placed(const std::string& scope, const std::string& op) {
  return scope.empty() ? op : scope + ": " + op;
}

// Of an element within a value: [token, ...].
std::vector<int64_t> index_of(size_t token, size_t element, const std::vector<int64_t>& tail) {
  std::vector<int64_t> out(tail.size() + 1, 0);
  auto rest = static_cast<int64_t>(element);
  for (size_t i = tail.size(); i-- > 0;) {
    const int64_t n = std::max<int64_t>(1, tail[i]);
    out[i + 1] = rest % n;
    rest /= n;
  }
  out[0] = static_cast<int64_t>(token);
  return out;
}

std::string list_text(const std::vector<int64_t>& values) {
  std::string out = "[";
  for (const int64_t v : values) out += (out.size() > 1 ? ", " : "") + std::to_string(v);
  return out + "]";
}
Node list_node(const std::vector<int64_t>& values) {
  Node out = Node::make_list();
  for (const int64_t v : values) out.items().push_back(Node::make_int(v));
  return out;
}
Node integer(size_t n) {
  return Node::make_int(static_cast<int64_t>(n));
}

std::string attr_text(const Attr& a) {
  constexpr size_t kShown = 4;
  std::string out = a.key + " ";
  if (a.type == DVT_ATTR_STR) return out + to_json(Node::make_string(a.str));
  std::vector<std::string> values;
  for (const int64_t v : a.i64) values.push_back(std::to_string(v));
  for (const double v : a.f64) values.push_back(number_text(v, "%.9g"));
  for (size_t i = 0; i < std::min(values.size(), kShown); ++i) out += (i ? "," : "") + values[i];
  return out + (values.size() > kShown ? ",... (" + std::to_string(values.size()) + ")" : "");
}

Node attrs_node(const OpCase::Node& op) {
  Node out = Node::make_map();
  for (const Attr& a : op.attrs) {
    Node values = Node::make_list();
    for (const int64_t v : a.i64) values.items().push_back(Node::make_int(v));
    for (const double v : a.f64) values.items().push_back(Node::make_float(v));
    if (a.type == DVT_ATTR_STR)
      out.set(a.key, Node::make_string(a.str));
    else
      out.set(a.key, values.items().size() == 1 ? values.items()[0] : values);
  }
  return out;
}

std::string ops_text(const OpCase& c) {
  std::string out;
  for (const OpCase::Node& n : c.nodes) out += (out.empty() ? "" : ", ") + n.op;
  return out;
}

// What is off, in two lines; in one where nothing is.
std::string error_lines(const OpError& e, double tolerance, const std::vector<int64_t>& tail) {
  const std::string allowed = "the tolerance is " + percent(tolerance) + ", for one element " +
                              percent(kElementFactor * tolerance) + " of its row's rms\n";
  if (e.measure() == 0) return "  error       none: equal numbers; " + allowed;
  return "  error       the row of token " + std::to_string(e.row) + " is off by " +
         percent(e.relative) + ", one element by " + percent(e.element_share) + "; " + allowed +
         "  worst       " + list_text(index_of(e.element_row, e.element, tail)) + ": got " +
         number_text(static_cast<double>(e.got), "%.9g") + ", expected " +
         number_text(static_cast<double>(e.expected), "%.9g") + "\n";
}

Node error_node(const OpError& e, const std::vector<int64_t>& tail) {
  Node out = Node::make_map(), worst = Node::make_map();
  out.set("relative", Node::make_float(e.relative));
  out.set("token", integer(e.row));
  worst.set("index", list_node(index_of(e.element_row, e.element, tail)));
  worst.set("got", Node::make_float(static_cast<double>(e.got)));
  worst.set("expected", Node::make_float(static_cast<double>(e.expected)));
  worst.set("share_of_rms", Node::make_float(e.element_share));
  out.set("worst_element", std::move(worst));
  return out;
}

std::string verdict(const DoctorReport& r) {
  const ExaminationReport& f = r.found;
  if (!f.finding)
    return "No op of " + r.backend + " is beyond its tolerance: " + std::to_string(f.n_alone) +
           " ops alone and " + std::to_string(f.n_joined) + " groups of them together give what " +
           r.trusted + " gives";
  const std::string at = placed(f.finding->scope, f.finding->op);
  if (!f.finding->is_joined)
    return at + " is the first op of " + r.backend + " beyond its tolerance";
  return "Every op of " + r.backend + " is right alone, but " + std::to_string(f.finding->n_nodes) +
         " of them together are not, up to " + at;
}

std::string finding_text(const DoctorReport& r, const OpFinding& f) {
  std::string inputs;
  for (const std::string& in : f.inputs) inputs += (inputs.empty() ? "" : ", ") + in;
  const OpCase::Node& op = f.op_case.nodes.back();
  std::string attrs;
  for (const Attr& a : op.attrs) attrs += (attrs.empty() ? "" : "; ") + attr_text(a);
  std::string out = "  op          " + placed(f.scope, f.op) + ", node " +
                    std::to_string(f.first_node + f.n_nodes - 1) + " of " +
                    std::to_string(r.found.n_ops) + "\n";
  if (f.op_case.nodes.size() > 1) out += "  runs with   " + ops_text(f.op_case) + "\n";
  out += "  inputs      " + inputs + "\n";
  if (!attrs.empty()) out += "  attributes  " + attrs + "\n";
  out += "  output      " + f.output + "\n" + error_lines(f.error, f.tolerance, f.tail);
  const size_t n = f.op_case.n_tokens();
  return out + "  case        " + r.case_path + ": " + bytes_text(r.case_bytes) + ", " +
         std::to_string(n) + (n == 1 ? " token" : " tokens") + "; run it again with\n" +
         "              dovetail doctor --replay " + shell_word(r.case_path) + "\n";
}

std::string summary_row(const std::string& name, const OpSummary& s, size_t width) {
  return "  " + padded(name, width, true) + padded(std::to_string(s.n), 7) +
         padded(percent(s.worst), 13) + padded(percent(s.tolerance), 12) + "   " + s.scope + "\n";
}

Node summary_node(const std::string& name, const OpSummary& s) {
  Node out = Node::make_map();
  out.set("op", Node::make_string(name));
  out.set("count", integer(s.n));
  out.set("worst", Node::make_float(s.worst));
  out.set("tolerance", Node::make_float(s.tolerance));
  out.set("scope", Node::make_string(s.scope));
  return out;
}

Node finding_node(const DoctorReport& r, const OpFinding& f) {
  Node out = Node::make_map(), inputs = Node::make_list(), ops = Node::make_list();
  out.set("scope", Node::make_string(f.scope));
  out.set("op", Node::make_string(f.op));
  out.set("node", integer(f.first_node + f.n_nodes - 1));
  out.set("together", Node::make_bool(f.is_joined));
  for (const OpCase::Node& n : f.op_case.nodes) ops.items().push_back(Node::make_string(n.op));
  out.set("ops", std::move(ops));
  for (const std::string& in : f.inputs) inputs.items().push_back(Node::make_string(in));
  out.set("inputs", std::move(inputs));
  out.set("attributes", attrs_node(f.op_case.nodes.back()));
  out.set("output", Node::make_string(f.output));
  out.set("tolerance", Node::make_float(f.tolerance));
  out.set("error", error_node(f.error, f.tail));
  Node file = Node::make_map();
  file.set("file", Node::make_string(r.case_path));
  file.set("bytes", integer(r.case_bytes));
  file.set("tokens", integer(f.op_case.n_tokens()));
  out.set("case", std::move(file));
  return out;
}

constexpr const char* kTogether = "(a layer together)";

}  // namespace

std::string DoctorReport::text() const {
  std::string out = verdict(*this) + ".\n\n";
  out +=
      "  backend     " + backend + " (" + variant + "), against " + trusted + "; " + config + "\n";
  out += "  prompt      " + std::to_string(ids.size()) + " tokens" +
         (prompt.empty() ? "" : ": " + to_json(Node::make_string(prompt))) + "\n";
  if (found.finding) out += finding_text(*this, *found.finding);
  size_t width = std::string_view(kTogether).size();
  for (const auto& [op, s] : found.by_op) width = std::max(width, op.size());
  out += "\n  " + padded("op", width, true) + padded("n", 7) + padded("worst", 13) +
         padded("tolerance", 12) + "   where\n";
  for (const auto& [op, s] : found.by_op) out += summary_row(op, s, width);
  if (found.joined.n > 0) out += summary_row(kTogether, found.joined, width);
  return out;
}

Node DoctorReport::node() const {
  Node out = Node::make_map(), read = Node::make_map(), list = Node::make_list();
  out.set("verdict", Node::make_string(verdict(*this)));
  out.set("within", Node::make_bool(!found.finding));
  out.set("config", Node::make_string(config));
  out.set("backend", Node::make_string(backend));
  out.set("variant", Node::make_string(variant));
  out.set("against", Node::make_string(trusted));
  read.set("text", prompt.empty() ? Node() : Node::make_string(prompt));
  for (const int32_t id : ids) list.items().push_back(Node::make_int(id));
  read.set("ids", std::move(list));
  out.set("prompt", std::move(read));
  out.set("ops", integer(found.n_ops));
  out.set("examined", integer(found.n_alone));
  out.set("groups", integer(found.n_joined));
  Node by_op = Node::make_list();
  for (const auto& [op, s] : found.by_op) by_op.items().push_back(summary_node(op, s));
  out.set("by_op", std::move(by_op));
  out.set("together", found.joined.n > 0 ? summary_node("", found.joined) : Node());
  out.set("finding", found.finding ? finding_node(*this, *found.finding) : Node());
  return out;
}

std::string ReplayReport::text() const {
  const bool is_beyond = error.is_beyond(file.tolerance);
  std::string out = placed(file.scope, file.op) + " on " + backend +
                    (is_beyond ? " is beyond its tolerance" : " is within its tolerance") + ".\n\n";
  out += "  case        " + path + ", found on " + file.backend + " against " + file.trusted + "\n";
  if (file.op_case.nodes.size() > 1) out += "  runs with   " + ops_text(file.op_case) + "\n";
  if (!is_native) out += "  runs        by its definition in core ops: " + backend + " lacks it\n";
  return out + error_lines(error, file.tolerance, tail);
}

Node ReplayReport::node() const {
  Node out = Node::make_map();
  out.set("file", Node::make_string(path));
  out.set("backend", Node::make_string(backend));
  out.set("found_on", Node::make_string(file.backend));
  out.set("scope", Node::make_string(file.scope));
  out.set("op", Node::make_string(file.op));
  out.set("natively", Node::make_bool(is_native));
  out.set("within", Node::make_bool(!error.is_beyond(file.tolerance)));
  out.set("tolerance", Node::make_float(file.tolerance));
  out.set("error", error_node(error, tail));
  return out;
}

}  // namespace dovetail::core
