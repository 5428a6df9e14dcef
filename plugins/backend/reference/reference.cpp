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
  using HostBackend::HostBackend;

  static std::vector<dvt_device> devices(const Host&) {
    return {{sizeof(dvt_device), DVT_DEVICE_CPU, DVT_DEVF_HOST_MEMORY, 0, literal("reference (float32 loops, one thread)"), 0, 0}};
  }
  dvt_backend_info info() const {
    return {sizeof(dvt_backend_info), DVT_DEVF_HOST_MEMORY, 16, DVT_F32, literal("reference")};
  }
  dvt_verdict supports(const GraphView& g, const dvt_node& n) const { return verdict(g, n, find_op); }

  /// Matrices of bf16 and f32 are read where they lie; everything else becomes float32.
  dvt_weight_plan plan(const dvt_weight_use& use) const {
    const uint32_t dtype = plain_dtype(to_view(use.stored));
    if (use.wanted.n != 0 && to_view(use.wanted) != to_view(use.stored))
      throw Error("weights of format \"" + std::string(to_view(use.wanted)) + "\" are not for the reference backend; leave out backend.weights",
                  DVT_EUNSUPPORTED, std::string(to_view(use.name)));
    if (dtype == 0)
      throw Error("stored as \"" + std::string(to_view(use.stored)) + "\", expected f32, bf16 or f16", DVT_EUNSUPPORTED,
                  std::string(to_view(use.name)));
    if (dtype == DVT_F32 || (dtype == DVT_BF16 && use.ndim > 1))
      return {sizeof(dvt_weight_plan), DVT_PLAN_KEEP, 0, static_cast<uint32_t>(dtype_bytes(dtype)), elements_of(use) * dtype_bytes(dtype), 0};
    return {sizeof(dvt_weight_plan), DVT_PLAN_PACK, 0, 64, elements_of(use) * sizeof(float), dtype};
  }
  void pack(std::span<const dvt_weight_use> uses, std::span<const dvt_bytes> sources, void* dst, uint64_t, Call) const {
    const auto* in = static_cast<const uint16_t*>(sources[0].p);
    const auto n = static_cast<int64_t>(elements_of(uses[0]));
    if (plain_dtype(to_view(uses[0].stored)) == DVT_BF16) kernels::ref::bf16_to_f32(static_cast<float*>(dst), in, n);
    else kernels::ref::f16_to_f32(static_cast<float*>(dst), in, n);
  }
  void bind(std::span<const dvt_weight_use> uses, const dvt_weight_plan& plan, const void* p) {
    const uint32_t dtype = plan.how == DVT_PLAN_PACK ? uint32_t{DVT_F32} : plain_dtype(to_view(uses[0].stored));
    weights_[std::string(to_view(uses[0].name))] = {p, plan.bytes, dtype};
  }

  std::unique_ptr<Program> compile(const dvt_graph* graph, const dvt_compile_options& options) {
    return make_program(graph, options, find_op, /*parallel=*/false, kernels::ref::argmax);
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
