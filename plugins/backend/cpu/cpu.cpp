// The CPU backend: weights where they lie in the mapped file (bf16, float32, packed), the best kernels that
// this machine can run, all lanes of the host's pool.
#include <dovetail/host_backend.hpp>

#include <chrono>

#include <kernels/cpu.hpp>

#include "attention.hpp"
#include "ops.hpp"
#include "packed_weights.hpp"
#include "products.hpp"

namespace dovetail::cpu {

const kernels::CpuKernels& choose_kernels(std::string_view isa) {
  if (isa == "auto") return kernels::cpu_kernels(kernels::detect_isa());
  const std::optional<kernels::Isa> found = kernels::find_isa(isa);
  if (!found || !kernels::can_run(*found))
    throw Error("this machine cannot run isa \"" + std::string(isa) + "\"; use auto",
                DVT_EUNSUPPORTED);
  return kernels::cpu_kernels(*found);
}

class Cpu : public HostBackend {
 public:
  static constexpr std::array params = {string_param(
      "isa", "auto", "instruction set of the kernels; auto takes the best this machine can run",
      "auto|portable|avx2|avx512|neon")};

  explicit Cpu(const BackendOpen& in) : Cpu(in, choose_kernels(in.options["isa"].as_string())) {}

  static std::vector<dvt_device> devices(const Host&) {
    const char* name = kernels::cpu_kernels(kernels::detect_isa()).name;
    return {{sizeof(dvt_device), DVT_DEVICE_CPU, DVT_DEVF_HOST_MEMORY, 0, literal(name), 0, 0}};
  }
  dvt_backend_info info() const {
    return {sizeof(dvt_backend_info), DVT_DEVF_HOST_MEMORY, 32, DVT_BF16, literal(kernels_.name)};
  }
  dvt_verdict supports(const GraphView& g, const dvt_node& n) const {
    return verdict(g, n, find_op);
  }

  dvt_weight_plan plan(const dvt_weight_use& use) const {
    if (const auto format = stored_format(use)) return plan_stored(use, *format);
    if (const auto format = gguf_format_to_pack(use)) return plan_gguf(use, *format);
    if (expanded_format(use) || format_to_unpack(use)) return plan_expanded(use);
    if (const auto format = format_to_pack(use)) return plan_packed(use, *format);
    dvt_weight_use as_stored = use;  // a vector, or rows that are no whole blocks
    if (find_weight_format(to_view(use.wanted))) as_stored.wanted = {};
    return HostBackend::plan(as_stored);
  }
  void pack(std::span<const dvt_weight_use> uses, std::span<const dvt_bytes> sources, void* dst,
            uint64_t bytes, Call call) const {
    if (const auto packed = gguf_format_to_pack(uses[0]))
      pack_gguf(host_, *packed, uses[0], sources[0], dst, call);
    else if (const kernels::GgufFormat* stored = expanded_format(uses[0]))
      expand(host_, *stored, uses[0], sources[0], dst, call);
    else if (const auto format = format_to_unpack(uses[0]))
      unpack_matrix(host_, kernels_, *format, uses[0], sources[0], dst, call);
    else if (const auto format = format_to_pack(uses[0]))
      pack_matrix(host_, kernels_, *format, uses[0], sources[0], dst, call);
    else
      HostBackend::pack(uses, sources, dst, bytes, call);
  }
  void bind(std::span<const dvt_weight_use> uses, const dvt_weight_plan& plan, const void* p) {
    HostBackend::bind(uses, plan, p);
    HostWeight& weight = weights_[std::string(to_view(uses[0].name))];
    if (const auto gguf = gguf_format_to_pack(uses[0]))
      weight.dtype = packed_dtype(*gguf);
    else if (const auto format = format_of(uses[0]))
      weight.dtype = packed_dtype(*format);
  }

  StateEstimate estimate(const dvt_graph* graph, const dvt_compile_options& options,
                         uint32_t kv_dtype, uint32_t page_len) const {
    const GraphCopy ordered = with_products_first(GraphCopy(*graph));
    const dvt_graph view = ordered.view();
    StateEstimate out =
        estimate_with(find_op, /*parallel=*/true, &view, options, kv_dtype, page_len);
    out.workspace += quantized_bytes(*graph, options) + attention_bytes(*graph, n_lanes());
    return out;
  }
  std::unique_ptr<Program> compile(const dvt_graph* graph, const dvt_compile_options& options) {
    workspace_ += attention_bytes(*graph, n_lanes());
    GraphCopy prepared =
        with_products_first(with_residuals(with_quantized_activations(*graph, weights_), options));
    return make_program(std::move(prepared), options, find_op, /*parallel=*/true, &kernels_,
                        kernels_.argmax);
  }

  double read_bandwidth(const void* p, uint64_t bytes, Call call) const {
    struct Job {
      const kernels::CpuKernels& k;
      const uint8_t* p;
      uint64_t bytes;
    } job{kernels_, static_cast<const uint8_t*>(p), bytes};
    const auto start = std::chrono::steady_clock::now();
    const dvt_host_v1* h = host_.table();
    call.check(h->team_run(
        h->self, call.frame(),
        [](void* arg, uint32_t lane, uint32_t n) noexcept {
          const Job& j = *static_cast<Job*>(arg);
          const auto [begin, end] = Lane{lane, n}.range(static_cast<int64_t>(j.bytes), 4096);
          volatile uint64_t sum = j.k.read_stream(j.p + begin, end - begin);
          (void)sum;
        },
        &job));
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

 private:
  Cpu(const BackendOpen& in, const kernels::CpuKernels& row)
      : HostBackend(in, {row.bf16_to_f32, row.f16_to_f32}), kernels_(row) {}

  uint32_t n_lanes() const { return host_.table()->n_lanes(host_.table()->self); }

  const kernels::CpuKernels& kernels_;
};

}  // namespace dovetail::cpu
DVT_EXPORT_BACKEND(dovetail::cpu::Cpu, "cpu")
