// The reference backend: float32 loops on one lane. Slow on purpose; what others are compared with.
// Weights wanted in a block format are quantised and go back to float32, and so do those that are
// stored in one, GGUF's among them: the numbers that fast backends compute with.
#include <dovetail/host_backend.hpp>

#include <chrono>
#include <string_view>
#include <vector>

#include <kernels/argmax.hpp>
#include <kernels/convert.hpp>
#include <kernels/gguf_blocks.hpp>
#include <kernels/read_stream.hpp>
#include <kernels/weight_formats.hpp>

#include "ops.hpp"

namespace dovetail::reference {

struct BlockFormat {
  const char *name, *stored;  // in configs, in files
  kernels::QuantizeRowsFn* quantize_rows;
  kernels::UnpackRowFn* unpack_row;
};
constexpr BlockFormat kBlockFormats[kernels::kWeightFormats] = {
    {kernels::kWeightFormatNames[0], kernels::kPackedFormatNames[0],
     kernels::ref::quantize_rows_int8, kernels::ref::unpack_row_int8},
    {kernels::kWeightFormatNames[1], kernels::kPackedFormatNames[1],
     kernels::ref::quantize_rows_int4, kernels::ref::unpack_row_int4},
    {kernels::kWeightFormatNames[2], kernels::kPackedFormatNames[2],
     kernels::ref::quantize_rows_int4q, kernels::ref::unpack_row_int4q},
    {kernels::kWeightFormatNames[3], kernels::kPackedFormatNames[3],
     kernels::ref::quantize_rows_int6, kernels::ref::unpack_row_int6},
};

class Reference : public HostBackend {
 public:
  explicit Reference(const BackendOpen& in)
      : HostBackend(in, {kernels::ref::bf16_to_f32, kernels::ref::f16_to_f32}) {}

  static std::vector<dvt_device> devices(const Host&) {
    return {{sizeof(dvt_device), DVT_DEVICE_CPU, DVT_DEVF_HOST_MEMORY, 0,
             literal("reference (float32 loops, one thread)"), 0, 0}};
  }
  dvt_backend_info info() const {
    return {sizeof(dvt_backend_info), DVT_DEVF_HOST_MEMORY, 16, DVT_F32, literal("reference")};
  }
  dvt_verdict supports(const GraphView& g, const dvt_node& n) const {
    return verdict(g, n, find_op);
  }

  dvt_weight_plan plan(const dvt_weight_use& use) const {
    if (gguf_format(use)) return plan_expanded(use, kGgufLayout);
    if (const BlockFormat* stored = stored_format(use))
      return plan_expanded(use, layout_of(*stored));
    dvt_weight_use as_stored = use;
    const BlockFormat* wanted = wanted_format(use);
    if (wanted) as_stored.wanted = {};
    dvt_weight_plan out = HostBackend::plan(as_stored);
    if (!wanted || !is_whole_blocks(use)) return out;
    out = plan_expanded(use, layout_of(*wanted));
    out.numbers_format = to_abi(wanted->stored);
    out.numbers_bytes = packed_size(*wanted, use);
    return out;
  }
  void pack(std::span<const dvt_weight_use> uses, std::span<const dvt_bytes> sources, void* dst,
            uint64_t bytes, Call call) const {
    const dvt_weight_use& use = uses[0];
    float* const out = static_cast<float*>(dst);
    if (const kernels::GgufFormat* stored = gguf_format(use)) {
      const uint64_t n = elements_of(use) / static_cast<uint64_t>(stored->block_len);
      check_size(sources[0], n * static_cast<uint64_t>(stored->block_bytes), stored->name);
      return stored->unpack(out, sources[0].p, static_cast<int64_t>(n));
    }
    if (const BlockFormat* stored = stored_format(use)) {
      check_size(sources[0], packed_size(*stored, use), stored->stored);
      return unpack(*stored, use, sources[0].p, out);
    }
    const BlockFormat* wanted = wanted_format(use);
    if (!wanted || !is_whole_blocks(use)) return HostBackend::pack(uses, sources, dst, bytes, call);
    if (plain_dtype(to_view(use.stored)) == DVT_F32)
      std::copy_n(static_cast<const float*>(sources[0].p), elements_of(use), out);
    else
      HostBackend::pack(uses, sources, dst, bytes, call);
    std::vector<uint8_t> packed(packed_size(*wanted, use));
    wanted->quantize_rows(packed.data(), out, 0, use.shape[0], use.shape[0], use.shape[1]);
    unpack(*wanted, use, packed.data(), out);
  }

  StateEstimate estimate(const dvt_graph* graph, const dvt_compile_options& options,
                         uint32_t kv_dtype, uint32_t page_len) const {
    return estimate_with(find_op, /*parallel=*/false, graph, options, kv_dtype, page_len);
  }
  std::unique_ptr<Program> compile(const dvt_graph* graph, const dvt_compile_options& options) {
    return make_program(GraphCopy(*graph), options, find_op, /*parallel=*/false,
                        /*context=*/nullptr, kernels::ref::argmax);
  }
  double read_bandwidth(const void* p, uint64_t bytes, Call) const {
    const auto start = std::chrono::steady_clock::now();
    volatile uint64_t sum = kernels::ref::read_stream(p, static_cast<int64_t>(bytes));
    (void)sum;
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

 private:
  static constexpr uint64_t kGgufLayout = 0x200;  // float32 of them

  static const kernels::GgufFormat* gguf_format(const dvt_weight_use& use) {
    const kernels::GgufFormat* format = kernels::find_gguf_format(to_view(use.stored));
    if (format && (use.ndim == 0 || use.shape[use.ndim - 1] % format->block_len != 0))
      throw Error("is stored as " + std::string(format->name) +
                      ", expected rows of whole blocks of " + std::to_string(format->block_len),
                  DVT_EFORMAT, std::string(to_view(use.name)));
    return format;
  }
  static void check_size(dvt_bytes source, uint64_t need, const char* format) {
    if (source.n != need)
      throw Error("has " + std::to_string(source.n) + " bytes, its shape and format " + format +
                      " need " + std::to_string(need),
                  DVT_EFORMAT);
  }
  static const BlockFormat* wanted_format(const dvt_weight_use& use) {
    for (const BlockFormat& f : kBlockFormats)
      if (to_view(use.wanted) == f.name) return &f;
    return nullptr;
  }
  static const BlockFormat* stored_format(const dvt_weight_use& use) {
    for (const BlockFormat& f : kBlockFormats) {
      if (to_view(use.stored) != f.stored) continue;
      if (!is_whole_blocks(use))
        throw Error("is stored as " + std::string(f.stored) +
                        ", expected a matrix whose rows are whole blocks of " +
                        std::to_string(kernels::kQuantBlock),
                    DVT_EFORMAT, std::string(to_view(use.name)));
      return &f;
    }
    return nullptr;
  }
  static bool is_whole_blocks(const dvt_weight_use& use) {
    return use.ndim == 2 && use.shape[1] % kernels::kQuantBlock == 0;
  }
  static uint64_t layout_of(const BlockFormat& f) {
    return 0x100 + static_cast<uint64_t>(&f - kBlockFormats);
  }
  static size_t packed_size(const BlockFormat& f, const dvt_weight_use& use) {
    return static_cast<size_t>(kernels::packed_bytes(
        static_cast<kernels::WeightFormat>(&f - kBlockFormats), use.shape[0], use.shape[1]));
  }
  static void unpack(const BlockFormat& f, const dvt_weight_use& use, const void* packed,
                     float* out) {
    for (int64_t row = 0; row < use.shape[0]; ++row)
      f.unpack_row(out + row * use.shape[1], packed, row, use.shape[0], use.shape[1]);
  }
};

}  // namespace dovetail::reference
DVT_EXPORT_BACKEND(dovetail::reference::Reference, "cpu")
