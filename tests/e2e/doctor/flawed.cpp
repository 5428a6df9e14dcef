// A backend that is wrong on purpose, for the tests of `doctor`: the reference's ops, and an rms_norm of its own.
//   fault: epsilon   the rms_norm in `scope` takes another epsilon than its attribute says
//          joined    the same, but only where the norm reads a sum of the same graph: what a bad fusion would do
//          row       the linear in `scope` leaves out its third output
//          decode    the attend in `scope` is wrong for a token alone in its step whose sequence has others
//          none      nothing
#include <dovetail/host_backend.hpp>

#include <cmath>

#include <kernels/argmax.hpp>
#include <kernels/convert.hpp>

#include "plugins/backend/reference/ops.hpp"

namespace dovetail::flawed {

constexpr double kWrongEps = 0.01;

/// What runs see of the backend.
struct Flaw {
  std::string fault, scope;
};

struct Place {
  std::string scope;
  float eps = 0, weight_offset = 0;
  bool reads_a_sum = false;
};

bool reads_a_sum(const GraphView& g, const dvt_node& n) {
  for (uint64_t i = 0; i < g.n_nodes(); ++i)
    if (g.op_name(g.node(i)) == "add" && g.outputs(g.node(i))[0] == g.inputs(n)[0]) return true;
  return false;
}

std::any prepare_place(const GraphView& g, const dvt_node& n, Preparation&) {
  return Place{std::string(g.str(n.scope))};
}
std::any prepare_norm(const GraphView& g, const dvt_node& n, Preparation&) {
  return Place{std::string(g.str(n.scope)), static_cast<float>(g.f64(n, "eps")),
               g.i64(n, "unit_offset") != 0 ? 1.0F : 0.0F, reads_a_sum(g, n)};
}

void run_rms_norm(const NodeRun& n, Lane, uint32_t) {
  const Place& place = *std::any_cast<Place>(n.prepared);
  const Flaw& flaw = *static_cast<const Flaw*>(n.step->context);
  const bool is_wrong = place.scope == flaw.scope &&
                        (flaw.fault == "epsilon" || (flaw.fault == "joined" && place.reads_a_sum));
  const double eps = is_wrong ? kWrongEps : static_cast<double>(place.eps);
  const Array& x = n.in[0];
  for (int64_t r = 0; r < x.rows(); ++r) {
    const float* row = x.f32() + r * x.last();
    double squares = 0;
    for (int64_t i = 0; i < x.last(); ++i)
      squares += static_cast<double>(row[i]) * static_cast<double>(row[i]);
    const double scale = 1 / std::sqrt(squares / static_cast<double>(x.last()) + eps);
    for (int64_t i = 0; i < x.last(); ++i)
      n.out[0].f32()[r * x.last() + i] = static_cast<float>(static_cast<double>(row[i]) * scale) *
                                         (n.in[1].f32()[i] + place.weight_offset);
  }
}

void run_linear(const NodeRun& n, Lane lane, uint32_t phase) {
  reference::find_op("linear")->run(n, lane, phase);
  const Place& place = *std::any_cast<Place>(n.prepared);
  const Flaw& flaw = *static_cast<const Flaw*>(n.step->context);
  if (flaw.fault != "row" || place.scope != flaw.scope) return;
  const Array& y = n.out[0];
  for (int64_t r = 0; r < y.rows(); ++r) y.f32()[r * y.last() + 2] = 0;
}

/// What the reference prepared of a node, and where it is.
struct PlacedOp {
  std::any prepared;
  Place place;
};
std::any prepare_attend(const GraphView& g, const dvt_node& n, Preparation& p) {
  return PlacedOp{reference::find_op("attend")->prepare(g, n, p),
                  Place{std::string(g.str(n.scope))}};
}
void run_attend(const NodeRun& n, Lane lane, uint32_t phase) {
  const PlacedOp& op = *std::any_cast<PlacedOp>(n.prepared);
  NodeRun inner = n;
  inner.prepared = &op.prepared;
  reference::find_op("attend")->run(inner, lane, phase);
  const Flaw& flaw = *static_cast<const Flaw*>(n.step->context);
  const bool is_decode = n.step->batch->n_tokens == 1 && n.step->batch->positions[0] > 0;
  if (flaw.fault != "decode" || op.place.scope != flaw.scope || !is_decode) return;
  for (int64_t i = 0; i < n.out[0].size(); ++i) n.out[0].f32()[i] *= 1.01F;
}

constexpr HostOp kOps[] = {{"rms_norm", run_rms_norm, 1, prepare_norm},
                           {"linear", run_linear, 1, prepare_place},
                           {"attend", run_attend, 1, prepare_attend}};

const HostOp* find_op(std::string_view name) {
  for (const HostOp& op : kOps)
    if (op.name == name) return &op;
  return reference::find_op(name);
}

class Flawed : public HostBackend {
 public:
  static constexpr std::array params = {
      string_param("fault", "epsilon", "what is wrong", "none|epsilon|joined|row|decode"),
      string_param("scope", "layers.1.ffn", "where", "")};

  explicit Flawed(const BackendOpen& in)
      : HostBackend(in, {kernels::ref::bf16_to_f32, kernels::ref::f16_to_f32}),
        flaw_{std::string(in.options["fault"].as_string()),
              std::string(in.options["scope"].as_string())} {}

  static std::vector<dvt_device> devices(const Host&) {
    return {{sizeof(dvt_device), DVT_DEVICE_CPU, DVT_DEVF_HOST_MEMORY, 0, literal("flawed"), 0, 0}};
  }
  dvt_backend_info info() const {
    return {sizeof(dvt_backend_info), DVT_DEVF_HOST_MEMORY, 16, DVT_F32, literal("flawed")};
  }
  dvt_verdict supports(const GraphView& g, const dvt_node& n) const {
    return verdict(g, n, find_op);
  }
  StateEstimate estimate(const dvt_graph* graph, const dvt_compile_options& options,
                         uint32_t kv_dtype, uint32_t page_len) const {
    return estimate_with(find_op, /*parallel=*/false, graph, options, kv_dtype, page_len);
  }
  std::unique_ptr<Program> compile(const dvt_graph* graph, const dvt_compile_options& options) {
    return make_program(GraphCopy(*graph), options, find_op, /*parallel=*/false, &flaw_,
                        kernels::ref::argmax);
  }
  double read_bandwidth(const void*, uint64_t, Call) const { return 1; }

 private:
  Flaw flaw_;
};

}  // namespace dovetail::flawed
DVT_EXPORT_BACKEND(dovetail::flawed::Flawed, "cpu")
