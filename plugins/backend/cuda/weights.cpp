#include "weights.hpp"

#include <string>
#include <string_view>
#include <vector>

#include <kernels/cpu.hpp>
#include <kernels/gguf_blocks.hpp>

namespace dovetail::cuda {
namespace {

using kernels::WeightFormat;

constexpr uint32_t kPackedDtype = 0x300;
constexpr uint64_t kExpandedLayout = 0x200, kPackedLayout = 0x300;

std::optional<WeightFormat> find_format(std::string_view name, const char* const* names) {
  for (int i = 0; i < kernels::kWeightFormats; ++i)
    if (name == names[i]) return static_cast<WeightFormat>(i);
  return {};
}
bool is_whole_blocks(const dvt_weight_use& use) {
  return use.ndim == 2 && use.shape[1] % kernels::kQuantBlock == 0;
}
uint64_t packed_size(WeightFormat format, const dvt_weight_use& use) {
  return static_cast<uint64_t>(kernels::packed_bytes(format, use.shape[0], use.shape[1]));
}

/// The format that a use is stored in, packed as the kernels read it.
std::optional<WeightFormat> packed_format_of(const dvt_weight_use& use) {
  const auto format = find_format(to_view(use.stored), kernels::kPackedFormatNames);
  if (format && !is_whole_blocks(use))
    throw Error("is stored as " + std::string(to_view(use.stored)) +
                    ", expected a matrix whose rows are whole blocks of " +
                    std::to_string(kernels::kQuantBlock),
                DVT_EFORMAT, std::string(to_view(use.name)));
  return format;
}
/// The same, where it is to stay so.
std::optional<WeightFormat> stored_format(const dvt_weight_use& use) {
  return wants_float32(use) ? std::nullopt : packed_format_of(use);
}
/// The format that plain numbers are to be packed in; nothing for a matrix that cannot be.
std::optional<WeightFormat> format_to_pack(const dvt_weight_use& use) {
  if (plain_dtype(to_view(use.stored)) == 0 || !is_whole_blocks(use)) return {};
  return find_format(to_view(use.wanted), kernels::kWeightFormatNames);
}
const kernels::GgufFormat* gguf_format(const dvt_weight_use& use) {
  const kernels::GgufFormat* format = kernels::find_gguf_format(to_view(use.stored));
  if (format && (use.ndim == 0 || use.shape[use.ndim - 1] % format->block_len != 0))
    throw Error("is stored as " + std::string(format->name) +
                    ", expected rows of whole blocks of " + std::to_string(format->block_len),
                DVT_EFORMAT, std::string(to_view(use.name)));
  return format;
}

kernels::QuantizeRowsFn* quantizer(const kernels::CpuKernels& k, WeightFormat format) {
  switch (format) {
    case WeightFormat::kInt8:
      return k.quantize_rows_int8;
    case WeightFormat::kInt4:
      return k.quantize_rows_int4;
    case WeightFormat::kInt4q:
      return k.quantize_rows_int4q;
    default:
      return k.quantize_rows_int6;
  }
}

kernels::UnpackRowFn* unpacker(const kernels::CpuKernels& k, WeightFormat format) {
  switch (format) {
    case WeightFormat::kInt8:
      return k.unpack_row_int8;
    case WeightFormat::kInt4:
      return k.unpack_row_int4;
    case WeightFormat::kInt4q:
      return k.unpack_row_int4q;
    default:
      return k.unpack_row_int6;
  }
}

/// Calls fn(lane, begin, end) on all lanes of the host, with parts of [0, n) at multiples of grain. fn must
/// not throw.
template <class Fn>
void on_all_lanes(const Host& host, Call call, int64_t n, int64_t grain, const Fn& fn) {
  struct Job {
    int64_t n, grain;
    const Fn& fn;
  } job{n, grain, fn};
  const dvt_host_v1* h = host.table();
  call.check(h->team_run(
      h->self, call.frame(),
      [](void* arg, uint32_t lane, uint32_t n_lanes) noexcept {
        const Job& j = *static_cast<Job*>(arg);
        const int64_t n_units = (j.n + j.grain - 1) / j.grain;
        const int64_t begin = n_units * lane / n_lanes * j.grain;
        const int64_t end = std::min(j.n, n_units * (lane + 1) / n_lanes * j.grain);
        if (begin < end) j.fn(lane, begin, end);
      },
      &job));
}

const kernels::CpuKernels& host_kernels() {
  static const kernels::CpuKernels& row = kernels::cpu_kernels(kernels::detect_isa());
  return row;
}

}  // namespace

uint32_t packed_dtype(WeightFormat format) {
  return kPackedDtype + static_cast<uint32_t>(format);
}
std::optional<WeightFormat> packed_format(uint32_t dtype) {
  if (dtype < kPackedDtype) return {};
  return static_cast<WeightFormat>(dtype - kPackedDtype);
}

WeightPlanner::WeightPlanner(const Host& host)
    : PlainWeights({host_kernels().bf16_to_f32, host_kernels().f16_to_f32}), host_(host) {}

dvt_weight_plan WeightPlanner::plan(const dvt_weight_use& use) const {
  if (const auto format = stored_format(use)) return plan_kept(packed_size(*format, use), 4);
  if (gguf_format(use) || packed_format_of(use)) return plan_expanded(use, kExpandedLayout);
  if (const auto format = format_to_pack(use))
    return plan_packed(packed_size(*format, use), kPackedLayout + static_cast<uint64_t>(*format),
                       kernels::kPackedFormatNames[static_cast<int>(*format)]);
  dvt_weight_use as_stored = use;  // a vector, or rows that are no whole blocks
  if (find_format(to_view(use.wanted), kernels::kWeightFormatNames)) as_stored.wanted = {};
  return PlainWeights::plan(as_stored);
}

void WeightPlanner::pack(std::span<const dvt_weight_use> uses, std::span<const dvt_bytes> sources,
                         void* dst, uint64_t bytes, Call call) const {
  const dvt_weight_use& use = uses[0];
  const auto* source = static_cast<const uint8_t*>(sources[0].p);
  if (const kernels::GgufFormat* stored = gguf_format(use)) {
    const auto n = static_cast<int64_t>(elements_of(use)) / stored->block_len;
    if (sources[0].n != static_cast<uint64_t>(n * stored->block_bytes))
      throw Error("has " + std::to_string(sources[0].n) + " bytes, its shape and format " +
                      stored->name + " need " + std::to_string(n * stored->block_bytes),
                  DVT_EFORMAT);
    return on_all_lanes(host_, call, n, 1, [&](uint32_t, int64_t begin, int64_t end) {
      stored->unpack(static_cast<float*>(dst) + begin * stored->block_len,
                     source + begin * stored->block_bytes, end - begin);
    });
  }
  if (const auto stored = packed_format_of(use)) {
    if (sources[0].n != packed_size(*stored, use))
      throw Error("has " + std::to_string(sources[0].n) + " bytes, its shape and format need " +
                      std::to_string(packed_size(*stored, use)),
                  DVT_EFORMAT);
    return on_all_lanes(
        host_, call, use.shape[0], kernels::kPackedRows, [&](uint32_t, int64_t begin, int64_t end) {
          for (int64_t row = begin; row < end; ++row)
            unpacker(host_kernels(), *stored)(static_cast<float*>(dst) + row * use.shape[1], source,
                                              row, use.shape[0], use.shape[1]);
        });
  }
  const auto format = format_to_pack(use);
  if (!format) return PlainWeights::pack(uses, sources, dst, bytes, call);
  const uint32_t dtype = plain_dtype(to_view(use.stored));
  const int64_t n_rows = use.shape[0], k_len = use.shape[1];
  const int64_t lane_len = dtype == DVT_F32 ? 0 : kernels::kPackedRows * k_len;
  const dvt_host_v1* h = host_.table();
  std::vector<float> widened(static_cast<size_t>(h->n_lanes(h->self) * lane_len));
  on_all_lanes(host_, call, n_rows, kernels::kPackedRows,
               [&](uint32_t lane, int64_t begin, int64_t end) {
                 float* const rows = widened.data() + lane * lane_len;
                 for (int64_t row = begin; row < end; row += kernels::kPackedRows) {
                   const int64_t n = std::min(kernels::kPackedRows, end - row);
                   const float* from = reinterpret_cast<const float*>(source) + row * k_len;
                   if (dtype != DVT_F32) {
                     (dtype == DVT_BF16 ? widen_.bf16 : widen_.f16)(
                         rows, reinterpret_cast<const uint16_t*>(source) + row * k_len, n * k_len);
                     from = rows;
                   }
                   quantizer(host_kernels(), *format)(dst, from, row, n, n_rows, k_len);
                 }
               });
}

uint32_t WeightPlanner::dtype_of(const dvt_weight_use& use, const dvt_weight_plan& plan) const {
  if (const auto format = stored_format(use)) return packed_dtype(*format);
  if (plan.how == DVT_PLAN_KEEP) return plain_dtype(to_view(use.stored));
  if (const auto format = gguf_format(use) ? std::nullopt : format_to_pack(use))
    return packed_dtype(*format);
  return DVT_F32;
}

}  // namespace dovetail::cuda
