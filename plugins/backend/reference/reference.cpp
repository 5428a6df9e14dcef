// The reference backend: float32 loops on one lane. Slow on purpose; what others are compared with.
// Weights wanted in a block format are quantised and go back to float32: the numbers that fast
// backends compute with.
#include <dovetail/host_backend.hpp>

#include <chrono>
#include <string_view>
#include <vector>

#include <kernels/argmax.hpp>
#include <kernels/convert.hpp>
#include <kernels/read_stream.hpp>
#include <kernels/weight_formats.hpp>

#include "ops.hpp"

namespace dovetail::reference {

struct BlockFormat {
  const char* name;
  kernels::QuantizeRowsFn* quantize_rows;
  kernels::UnpackRowFn* unpack_row;
};
constexpr BlockFormat kBlockFormats[kernels::kWeightFormats] = {
    {kernels::kWeightFormatNames[0], kernels::ref::quantize_rows_int8, kernels::ref::unpack_row_int8},
    {kernels::kWeightFormatNames[1], kernels::ref::quantize_rows_int4, kernels::ref::unpack_row_int4},
    {kernels::kWeightFormatNames[2], kernels::ref::quantize_rows_int4q, kernels::ref::unpack_row_int4q},
};

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

  dvt_weight_plan plan(const dvt_weight_use& use) const {
    dvt_weight_use as_stored = use;
    if (find_format(use) >= 0) as_stored.wanted = {};
    dvt_weight_plan out = HostBackend::plan(as_stored);
    if (!goes_through_blocks(use)) return out;
    out.how = DVT_PLAN_PACK;
    out.align = 64;
    out.bytes = elements_of(use) * sizeof(float);
    out.layout_hash = 0x100 + static_cast<uint64_t>(find_format(use));
    return out;
  }
  void pack(std::span<const dvt_weight_use> uses, std::span<const dvt_bytes> sources, void* dst, uint64_t bytes, Call call) const {
    const dvt_weight_use& use = uses[0];
    if (!goes_through_blocks(use)) return HostBackend::pack(uses, sources, dst, bytes, call);
    const auto format = static_cast<size_t>(find_format(use));
    const int64_t n_rows = use.shape[0], k_len = use.shape[1];
    float* const out = static_cast<float*>(dst);
    if (plain_dtype(to_view(use.stored)) == DVT_F32) std::copy_n(static_cast<const float*>(sources[0].p), elements_of(use), out);
    else HostBackend::pack(uses, sources, dst, bytes, call);
    std::vector<uint8_t> packed(static_cast<size_t>(kernels::packed_bytes(static_cast<kernels::WeightFormat>(format), n_rows, k_len)));
    kBlockFormats[format].quantize_rows(packed.data(), out, 0, n_rows, n_rows, k_len);
    for (int64_t row = 0; row < n_rows; ++row) kBlockFormats[format].unpack_row(out + row * k_len, packed.data(), row, n_rows, k_len);
  }

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

 private:
  static int find_format(const dvt_weight_use& use) {
    for (int i = 0; i < kernels::kWeightFormats; ++i)
      if (to_view(use.wanted) == kBlockFormats[i].name) return i;
    return -1;
  }
  // A matrix of whole blocks; others stay as they are stored.
  static bool goes_through_blocks(const dvt_weight_use& use) {
    return find_format(use) >= 0 && use.ndim == 2 && use.shape[1] % kernels::kQuantBlock == 0 && plain_dtype(to_view(use.stored)) != 0;
  }
};

}  // namespace dovetail::reference
DVT_EXPORT_BACKEND(dovetail::reference::Reference, "cpu")
