// The reference backend: float32 loops on one lane. Slow on purpose; what others are compared with.
#include <dovetail/host_backend.hpp>

#include <chrono>

#include <kernels/argmax.hpp>
#include <kernels/convert.hpp>
#include <kernels/read_stream.hpp>

#include "ops.hpp"

namespace dovetail::reference {

class Reference : public HostBackend {
 public:
  explicit Reference(const BackendOpen& in) : HostBackend(in, {kernels::ref::bf16_to_f32, kernels::ref::f16_to_f32}) {}

  static std::vector<dvt_device> devices(const Host&) {
    return {{sizeof(dvt_device), DVT_DEVICE_CPU, DVT_DEVF_HOST_MEMORY, 0, literal("reference (float32 loops, one thread)"), 0, 0}};
  }
  dvt_backend_info info() const {
    return {sizeof(dvt_backend_info), DVT_DEVF_HOST_MEMORY, 16, DVT_F32, literal("reference")};
  }
  dvt_verdict supports(const GraphView& g, const dvt_node& n) const { return verdict(g, n, find_op); }

  StateEstimate estimate(const dvt_graph* graph, const dvt_compile_options& options, uint32_t kv_dtype, uint32_t page_len) const {
    return estimate_with(find_op, /*parallel=*/false, graph, options, kv_dtype, page_len);
  }
  std::unique_ptr<Program> compile(const dvt_graph* graph, const dvt_compile_options& options) {
    return make_program(GraphCopy(*graph), options, find_op, /*parallel=*/false, /*context=*/nullptr, kernels::ref::argmax);
  }
  double read_bandwidth(const void* p, uint64_t bytes, Call) const {
    const auto start = std::chrono::steady_clock::now();
    volatile uint64_t sum = kernels::ref::read_stream(p, static_cast<int64_t>(bytes));
    (void)sum;
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
};

}  // namespace dovetail::reference
DVT_EXPORT_BACKEND(dovetail::reference::Reference, "cpu")
