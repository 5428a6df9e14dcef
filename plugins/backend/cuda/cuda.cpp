// The CUDA backend: weights on the device as they are stored (bf16, f16, float32, packed), a paged cache there,
// one queue. Steps are queued; what they give is waited for.
#include <dovetail/backend.hpp>

#include <chrono>

#include <kernels/cuda.hpp>

#include "program.hpp"

namespace dovetail::cuda {

class Cuda {
 public:
  using Program = cuda::Program;

  explicit Cuda(const BackendOpen& in)
      : device_(in.device), planner_(in.host), states_(DeviceStateMemory(device_)) {}

  static std::vector<dvt_device> devices(const Host&) {
    static std::string why_none;
    static const std::vector<DeviceInfo> found = Device::list(why_none);
    std::vector<dvt_device> out;
    for (const DeviceInfo& d : found)
      out.push_back(
          {sizeof(dvt_device), DVT_DEVICE_GPU, 0, 0, literal(d.name), d.total_bytes, d.free_bytes});
    return out;
  }
  dvt_backend_info info() const {
    return {sizeof(dvt_backend_info), DVT_DEVF_ASYNC, 32, DVT_BF16, literal(device_.variant())};
  }
  dvt_verdict supports(const GraphView& g, const dvt_node& n) const {
    const dvt_op_ref& op = g.op(n);
    if (op.tier == DVT_TIER_PLUGIN)
      return {DVT_CANNOT, 0, literal("a plugin's op runs in host memory")};
    const bool is_known = op.rev == 1 && find_op(g.str(op.name)) != nullptr;
    const std::string_view reason = is_known ? why_not(g, n) : "this backend has no such op";
    if (reason.empty()) return {DVT_NATIVE, 0, {}};
    const bool has_definition = op.tier == DVT_TIER_COMPOSITE && !is_known;
    return {has_definition ? uint32_t{DVT_DECOMPOSE} : uint32_t{DVT_CANNOT}, 0, literal(reason)};
  }

  dvt_weight_plan plan(const dvt_weight_use& use) const { return planner_.plan(use); }
  void pack(std::span<const dvt_weight_use> uses, std::span<const dvt_bytes> sources, void* dst,
            uint64_t bytes, Call call) const {
    planner_.pack(uses, sources, dst, bytes, call);
  }
  void bind(std::span<const dvt_weight_use> uses, const dvt_weight_plan& plan, const void* p) {
    device_.use();
    DeviceBytes bytes(device_, plan.bytes);
    device_.copy_in(bytes.get(), p, plan.bytes);
    weight_bytes_ += plan.bytes;
    const uint32_t dtype = planner_.dtype_of(uses[0], plan);
    weights_.insert_or_assign(std::string(to_view(uses[0].name)), Weight{std::move(bytes), dtype});
  }

  void alloc_states(const StateAlloc& a) {
    device_.use();
    states_.alloc(a.specs, a.kv_dtype, a.page_len, a.n_pages, a.n_slots);
    device_.wait();
  }
  StateEstimate estimate(const dvt_graph* graph, const dvt_compile_options& options,
                         uint32_t kv_dtype, uint32_t page_len) const {
    StateEstimate out = DeviceStates::estimate(GraphView(graph), kv_dtype, page_len);
    out.workspace = Program::workspace(*graph, options);
    return out;
  }
  std::unique_ptr<Program> compile(const dvt_graph* graph, const dvt_compile_options& options) {
    device_.use();
    auto program = std::make_unique<Program>(device_, *graph, options, weights_, states_);
    device_.wait();
    workspace_bytes_ += program->workspace_bytes();
    return program;
  }

  std::vector<dvt_mem_row> mem() const {
    const auto row = [](uint32_t tag, uint64_t bytes) {
      return dvt_mem_row{sizeof(dvt_mem_row), tag, bytes, bytes, bytes};
    };
    return {row(DVT_MEM_WEIGHTS, weight_bytes_), row(DVT_MEM_STATE, states_.bytes()),
            row(DVT_MEM_WORKSPACE, workspace_bytes_)};
  }
  void export_state(const dvt_chunk& c) {
    device_.use();
    states_.export_chunk(c);
  }
  void import_state(const dvt_chunk& c) {
    device_.use();
    states_.import_chunk(c);
  }
  void copy_pages(uint32_t group, const uint32_t* src, const uint32_t* dst, uint64_t n) {
    device_.use();
    states_.copy_pages(group, src, dst, n);
  }
  void reset_slot(uint32_t slot) {
    device_.use();
    states_.reset(slot);
  }

  /// Of the device's memory: the bytes are sent there, and a kernel that only reads goes through them.
  double read_bandwidth(const void* p, uint64_t bytes, Call) {
    constexpr int64_t kRowLen = 4096;
    const int64_t n_rows =
        std::max<int64_t>(1, static_cast<int64_t>(bytes / sizeof(float)) / kRowLen);
    device_.use();
    DeviceBytes data(device_, static_cast<uint64_t>(n_rows * kRowLen) * sizeof(float));
    DeviceBytes ids(device_, static_cast<uint64_t>(n_rows) * sizeof(int32_t));
    device_.copy_in(data.get(), p, std::min(bytes, data.n_bytes()));
    device_.wait();
    const auto start = std::chrono::steady_clock::now();
    kernels::cuda::argmax(device_.stream(), reinterpret_cast<int32_t*>(ids.get()),
                          reinterpret_cast<const float*>(data.get()), nullptr, n_rows, kRowLen);
    device_.wait();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

 private:
  Device device_;
  WeightPlanner planner_;
  Weights weights_;
  DeviceStates states_;
  uint64_t weight_bytes_ = 0, workspace_bytes_ = 0;
};

}  // namespace dovetail::cuda
DVT_EXPORT_BACKEND(dovetail::cuda::Cuda, "cuda")
