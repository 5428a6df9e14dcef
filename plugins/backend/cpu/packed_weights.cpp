#include "packed_weights.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

namespace dovetail::cpu {
namespace {

using kernels::GgufPacked;
using kernels::WeightFormat;

constexpr uint32_t kPackedDtype = 0x1000, kGgufDtype = 0x1100;
constexpr uint64_t kLayoutVersion =
    1;  // of the packed bytes: raise it when they change, and kPackedFormatNames
static_assert(kernels::kPackedRows <= DVT_FILE_ROWS && DVT_FILE_ROWS % kernels::kPackedRows == 0,
              "files hold whole groups");

uint64_t bytes_of(const dvt_weight_use& use, WeightFormat format) {
  return static_cast<uint64_t>(kernels::packed_bytes(format, use.shape[0], use.shape[1]));
}

kernels::QuantizeRowsFn* quantizer(const kernels::CpuKernels& k, WeightFormat format) {
  switch (format) {
    case WeightFormat::kInt8:
      return k.quantize_rows_int8;
    case WeightFormat::kInt4:
      return k.quantize_rows_int4;
    case WeightFormat::kInt6:
      return k.quantize_rows_int6;
    case WeightFormat::kInt4q:
      break;
  }
  return k.quantize_rows_int4q;
}

kernels::PackGgufRowsFn* packer(GgufPacked format) {
  switch (format) {
    case GgufPacked::kQ4_0:
      return kernels::ref::pack_rows_q4_0;
    case GgufPacked::kQ8_0:
      return kernels::ref::pack_rows_q8_0;
    case GgufPacked::kQ4_K:
      return kernels::ref::pack_rows_q4_k;
    case GgufPacked::kQ6_K:
      break;
  }
  return kernels::ref::pack_rows_q6_k;
}

void check_size(dvt_bytes source, uint64_t need, const char* format) {
  if (source.n != need)
    throw Error("has " + std::to_string(source.n) + " bytes, its shape and format " + format +
                    " need " + std::to_string(need),
                DVT_EFORMAT);
}
// Of a use that is stored in a block format of GGUF.
void check_size(const kernels::GgufFormat& format, const dvt_weight_use& use, dvt_bytes source) {
  check_size(source,
             elements_of(use) / static_cast<uint64_t>(format.block_len) *
                 static_cast<uint64_t>(format.block_bytes),
             format.name);
}

// The format whose packed form has the name, for a matrix that can be packed in it.
std::optional<WeightFormat> find_packed_format(const dvt_weight_use& use) {
  for (int i = 0; i < kernels::kWeightFormats; ++i) {
    if (to_view(use.stored) != kernels::kPackedFormatNames[i]) continue;
    if (use.ndim != 2 || use.shape[1] % kernels::kQuantBlock != 0)
      throw Error("is stored as " + std::string(to_view(use.stored)) +
                      ", expected a matrix whose rows are whole blocks of " +
                      std::to_string(kernels::kQuantBlock),
                  DVT_EFORMAT, std::string(to_view(use.name)));
    return static_cast<WeightFormat>(i);
  }
  return std::nullopt;
}

}  // namespace

uint32_t packed_dtype(WeightFormat format) {
  return kPackedDtype + static_cast<uint32_t>(format);
}
uint32_t packed_dtype(GgufPacked format) {
  return kGgufDtype + static_cast<uint32_t>(format);
}
bool is_packed(uint32_t dtype) {
  return dtype >= kPackedDtype;
}

std::optional<WeightFormat> find_weight_format(std::string_view name) {
  for (int i = 0; i < kernels::kWeightFormats; ++i)
    if (name == kernels::kWeightFormatNames[i]) return static_cast<WeightFormat>(i);
  return std::nullopt;
}

std::optional<WeightFormat> stored_format(const dvt_weight_use& use) {
  return wants_float32(use) ? std::nullopt : find_packed_format(use);
}
std::optional<WeightFormat> format_to_unpack(const dvt_weight_use& use) {
  return wants_float32(use) ? find_packed_format(use) : std::nullopt;
}

std::optional<WeightFormat> format_of(const dvt_weight_use& use) {
  const auto stored = stored_format(use);
  return stored ? stored : format_to_pack(use);
}

std::optional<WeightFormat> format_to_pack(const dvt_weight_use& use) {
  if (use.ndim != 2 || use.shape[1] % kernels::kQuantBlock != 0 ||
      plain_dtype(to_view(use.stored)) == 0)
    return std::nullopt;
  return find_weight_format(to_view(use.wanted));
}

dvt_weight_plan plan_stored(const dvt_weight_use& use, WeightFormat format) {
  // A block takes 18, 25 or 33 times 16 bytes: no better aligned than this, wherever the matrix begins.
  const uint32_t align =
      kernels::packed_bytes(format, kernels::kPackedRows, kernels::kQuantBlock) % 32 == 0 ? 32 : 16;
  return plan_kept(bytes_of(use, format), align);
}

dvt_weight_plan plan_packed(const dvt_weight_use& use, WeightFormat format) {
  const uint64_t layout =
      kLayoutVersion << 32 | uint64_t{packed_dtype(format)} << 8 | kernels::kPackedRows;
  return dovetail::plan_packed(bytes_of(use, format), layout,
                               kernels::kPackedFormatNames[static_cast<int>(format)]);
}

std::optional<GgufPacked> gguf_format_to_pack(const dvt_weight_use& use) {
  if (use.ndim != 2 || wants_float32(use) || !expanded_format(use)) return std::nullopt;
  for (int i = 0; i < kernels::kGgufPackedFormats; ++i)
    if (to_view(use.stored) == kernels::kGgufPackedNames[i]) return static_cast<GgufPacked>(i);
  return std::nullopt;
}

dvt_weight_plan plan_gguf(const dvt_weight_use& use, GgufPacked format) {
  const uint64_t layout =
      kLayoutVersion << 32 | uint64_t{packed_dtype(format)} << 8 | kernels::kPackedRows;
  const int64_t bytes = kernels::gguf_packed_bytes(format, use.shape[0], use.shape[1]);
  return dovetail::plan_packed(static_cast<uint64_t>(bytes), layout);
}

void pack_gguf(const Host& host, GgufPacked format, const dvt_weight_use& use, dvt_bytes source,
               void* dst, Call call) {
  struct Job {
    kernels::PackGgufRowsFn* pack;
    const uint8_t* source;
    void* dst;
    int64_t n_rows, k_len, row_bytes;
  } job{packer(format), static_cast<const uint8_t*>(source.p), dst, use.shape[0], use.shape[1], 0};
  check_size(*expanded_format(use), use, source);
  if (job.n_rows == 0) return;
  job.row_bytes = static_cast<int64_t>(source.n) / job.n_rows;
  const dvt_host_v1* h = host.table();
  call.check(h->team_run(
      h->self, call.frame(),
      [](void* arg, uint32_t lane, uint32_t n) noexcept {
        const Job& j = *static_cast<Job*>(arg);
        const auto [begin, end] = Lane{lane, n}.range(j.n_rows, kernels::kPackedRows);
        if (begin < end)
          j.pack(j.dst, j.source + begin * j.row_bytes, begin, end - begin, j.n_rows, j.k_len);
      },
      &job));
}

const kernels::GgufFormat* expanded_format(const dvt_weight_use& use) {
  const kernels::GgufFormat* format = kernels::find_gguf_format(to_view(use.stored));
  if (format && (use.ndim == 0 || use.shape[use.ndim - 1] % format->block_len != 0))
    throw Error("is stored as " + std::string(format->name) +
                    ", expected rows of whole blocks of " + std::to_string(format->block_len),
                DVT_EFORMAT, std::string(to_view(use.name)));
  return format;
}

dvt_weight_plan plan_expanded(const dvt_weight_use& use) {
  constexpr uint64_t kLayout = 0x200;  // float32
  return dovetail::plan_expanded(use, kLayout);
}

void expand(const Host& host, const kernels::GgufFormat& format, const dvt_weight_use& use,
            dvt_bytes source, void* dst, Call call) {
  struct Job {
    const kernels::GgufFormat& format;
    const uint8_t* source;
    float* dst;
    int64_t n_blocks;
  } job{format, static_cast<const uint8_t*>(source.p), static_cast<float*>(dst),
        static_cast<int64_t>(elements_of(use)) / format.block_len};
  check_size(format, use, source);
  const dvt_host_v1* h = host.table();
  call.check(h->team_run(
      h->self, call.frame(),
      [](void* arg, uint32_t lane, uint32_t n) noexcept {
        const Job& j = *static_cast<Job*>(arg);
        const auto [begin, end] = Lane{lane, n}.range(j.n_blocks);
        j.format.unpack(j.dst + begin * j.format.block_len, j.source + begin * j.format.block_bytes,
                        end - begin);
      },
      &job));
}

void unpack_matrix(const Host& host, const kernels::CpuKernels& k, WeightFormat format,
                   const dvt_weight_use& use, dvt_bytes source, void* dst, Call call) {
  struct Job {
    kernels::UnpackRowFn* unpack_row;
    const void* source;
    float* dst;
    int64_t n_rows, k_len;
  } job{packed_kernels(k, packed_dtype(format)).unpack_row, source.p, static_cast<float*>(dst),
        use.shape[0], use.shape[1]};
  check_size(source, bytes_of(use, format), kernels::kPackedFormatNames[static_cast<int>(format)]);
  const dvt_host_v1* h = host.table();
  call.check(h->team_run(
      h->self, call.frame(),
      [](void* arg, uint32_t lane, uint32_t n) noexcept {
        const Job& j = *static_cast<Job*>(arg);
        const auto [begin, end] = Lane{lane, n}.range(j.n_rows, kernels::kPackedRows);
        for (int64_t row = begin; row < end; ++row)
          j.unpack_row(j.dst + row * j.k_len, j.source, row, j.n_rows, j.k_len);
      },
      &job));
}

PackedKernels packed_kernels(const kernels::CpuKernels& k, uint32_t dtype) {
  if (dtype >= kGgufDtype) switch (static_cast<GgufPacked>(dtype - kGgufDtype)) {
      case GgufPacked::kQ4_0:
        return {kernels::ref::unpack_row_q4_0, k.linear_q4_0, k.linear_add_q4_0};
      case GgufPacked::kQ8_0:
        return {kernels::ref::unpack_row_q8_0, k.linear_q8_0, k.linear_add_q8_0};
      case GgufPacked::kQ4_K:
        return {kernels::ref::unpack_row_q4_k, k.linear_q4_k, k.linear_add_q4_k};
      case GgufPacked::kQ6_K:
        return {kernels::ref::unpack_row_q6_k, k.linear_q6_k, k.linear_add_q6_k};
    }
  switch (static_cast<WeightFormat>(dtype - kPackedDtype)) {
    case WeightFormat::kInt8:
      return {k.unpack_row_int8, k.linear_int8, k.linear_add_int8};
    case WeightFormat::kInt4:
      return {k.unpack_row_int4, k.linear_int4, k.linear_add_int4};
    case WeightFormat::kInt6:
      return {k.unpack_row_int6, k.linear_int6, k.linear_add_int6};
    case WeightFormat::kInt4q:
      break;
  }
  return {k.unpack_row_int4q, k.linear_int4q, k.linear_add_int4q};
}

void pack_matrix(const Host& host, const kernels::CpuKernels& k, WeightFormat format,
                 const dvt_weight_use& use, dvt_bytes source, void* dst, Call call) {
  struct Job {
    const kernels::CpuKernels& k;
    WeightFormat format;
    uint32_t dtype;
    const uint8_t* source;
    void* dst;
    int64_t n_rows, k_len;
    uint32_t n_lanes;
    std::vector<float> rows;  // [lanes, kPackedRows, k_len], where the source is 16 bits
  } job{k,
        format,
        plain_dtype(to_view(use.stored)),
        static_cast<const uint8_t*>(source.p),
        dst,
        use.shape[0],
        use.shape[1],
        1,
        {}};
  const dvt_host_v1* h = host.table();
  job.n_lanes = h->n_lanes(h->self);
  if (job.dtype != DVT_F32)
    job.rows.resize(static_cast<size_t>(job.n_lanes * kernels::kPackedRows * job.k_len));
  call.check(h->team_run(
      h->self, call.frame(),
      [](void* arg, uint32_t lane, uint32_t n) noexcept {
        Job& j = *static_cast<Job*>(arg);
        const auto [begin, end] = Lane{lane, n}.range(j.n_rows, kernels::kPackedRows);
        const int64_t k_len = j.k_len;
        for (int64_t row = begin; row < end; row += kernels::kPackedRows) {
          const int64_t count = std::min(kernels::kPackedRows, end - row);
          const float* from = reinterpret_cast<const float*>(j.source) + row * k_len;
          if (j.dtype != DVT_F32) {
            float* rows = j.rows.data() + int64_t{lane} * kernels::kPackedRows * k_len;
            (j.dtype == DVT_BF16 ? j.k.bf16_to_f32 : j.k.f16_to_f32)(
                rows, reinterpret_cast<const uint16_t*>(j.source) + row * k_len, count * k_len);
            from = rows;
          }
          quantizer(j.k, j.format)(j.dst, from, row, count, j.n_rows, k_len);
        }
      },
      &job));
}

GraphCopy with_quantized_activations(
    const dvt_graph& graph, const std::map<std::string, HostWeight, std::less<>>& weights) {
  GraphCopy out(graph);
  std::map<uint32_t, uint32_t> quantized;  // activation to its quantised form
  for (uint64_t i = 0; i < out.view().n_nodes; ++i) {
    const dvt_graph view = out.view();
    const GraphView g(&view);
    const dvt_node node = g.node(i);
    if (g.op_name(node) != "linear") continue;
    const auto weight = weights.find(g.str(g.val(g.inputs(node)[1]).name));
    if (weight == weights.end() || !is_packed(weight->second.dtype)) continue;
    const uint32_t x = g.inputs(node)[0];
    const dvt_val& val = g.val(x);
    const int64_t k_len = g.dim(val.dim0 + val.ndim - 1).value;
    if (val.ndim != 2)
      throw Error("packed weights take activations [rows, width]", DVT_EUNSUPPORTED,
                  std::string(g.str(node.scope)));
    auto found = quantized.find(x);
    if (found == quantized.end()) {
      found = quantized
                  .emplace(x, out.insert(i, "cpu.quantize", x, kernels::quantized_row_bytes(k_len),
                                         DVT_U8))
                  .first;
      ++i;
    }
    out.set_op(i, "cpu.linear_packed");
    out.set_input(i, 0, found->second);
  }
  return out;
}

uint64_t quantized_bytes(const dvt_graph& graph, const dvt_compile_options& options) {
  const GraphView g(&graph);
  int64_t row = 0;
  for (uint64_t i = 0; i < g.n_nodes(); ++i) {
    if (g.op_name(g.node(i)) != "linear") continue;
    const dvt_val& val = g.val(g.inputs(g.node(i))[0]);
    row = std::max(row, kernels::quantized_row_bytes(g.dim(val.dim0 + val.ndim - 1).value));
  }
  return 3 * static_cast<uint64_t>(row + 64) *
         std::max(options.max_tokens, options.max_rows);  // of three ops at a time, at most
}

}  // namespace dovetail::cpu
