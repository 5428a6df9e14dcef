// Weights in plain formats (float32, bf16, f16), as any backend may plan and pack them.
#pragma once

#include <dovetail/backend.hpp>
#include <dovetail/host_states.hpp>

#include <span>
#include <string>
#include <string_view>

namespace dovetail {

/// The dtype of a plain weight format, 0 for any other.
inline uint32_t plain_dtype(std::string_view format) {
  if (format == "float32") return DVT_F32;
  if (format == "bf16") return DVT_BF16;
  if (format == "f16") return DVT_F16;
  return 0;
}
inline uint64_t elements_of(const dvt_weight_use& use) {
  uint64_t n = 1;
  for (uint32_t i = 0; i < use.ndim; ++i) n *= static_cast<uint64_t>(use.shape[i]);
  return n;
}

/// The plan of a weight that is packed to `bytes`, which a file may hold under the name `file_format`, if any: static.
inline dvt_weight_plan plan_packed(uint64_t bytes, uint64_t layout_hash,
                                   std::string_view file_format = {}) {
  dvt_weight_plan plan{};
  plan.struct_size = sizeof plan;
  plan.how = DVT_PLAN_PACK;
  plan.align = 64;
  plan.bytes = bytes;
  plan.layout_hash = layout_hash;
  plan.file_format = to_abi(file_format);
  return plan;
}
/// Whether a weight is to be float32, whatever it is stored as.
inline bool wants_float32(const dvt_weight_use& use) {
  return to_view(use.wanted) == "float32";
}
/// The plan of a weight that is packed to float32, all its numbers as they are.
inline dvt_weight_plan plan_expanded(const dvt_weight_use& use, uint64_t layout_hash) {
  return plan_packed(elements_of(use) * sizeof(float), layout_hash,
                     wants_float32(use) ? "float32" : "");
}
/// The plan of a weight that is read where it lies.
inline dvt_weight_plan plan_kept(uint64_t bytes, uint32_t align) {
  dvt_weight_plan plan{};
  plan.struct_size = sizeof plan;
  plan.how = DVT_PLAN_KEEP;
  plan.align = align;
  plan.bytes = bytes;
  return plan;
}

/// Plain weights: matrices stay as they are stored; vectors become float32.
class PlainWeights {
 public:
  /// How this backend widens 16-bit floats.
  struct Widen {
    void (*bf16)(float* out, const uint16_t* x, int64_t n);
    void (*f16)(float* out, const uint16_t* x, int64_t n);
  };

  explicit PlainWeights(Widen widen) : widen_(widen) {}

  dvt_weight_plan plan(const dvt_weight_use& use) const {
    const std::string_view stored = to_view(use.stored), wanted = to_view(use.wanted);
    const uint32_t dtype = plain_dtype(stored);
    if (dtype == 0 || (!wanted.empty() && wanted != stored))
      throw Error("weight is stored as \"" + std::string(stored) + "\"" +
                      (wanted.empty() ? "" : ", wanted as \"" + std::string(wanted) + "\"") +
                      "; this backend computes with float32, bf16 and f16 as they are stored, or "
                      "with int8, int6, int4 and int4q",
                  DVT_EUNSUPPORTED, std::string(to_view(use.name)));
    if (dtype == DVT_F32 || use.ndim > 1)
      return plan_kept(elements_of(use) * dtype_bytes(dtype),
                       static_cast<uint32_t>(dtype_bytes(dtype)));
    return plan_expanded(use, dtype);
  }
  void pack(std::span<const dvt_weight_use> uses, std::span<const dvt_bytes> sources, void* dst,
            uint64_t, Call) const {
    const auto* in = static_cast<const uint16_t*>(sources[0].p);
    const bool is_bf16 = plain_dtype(to_view(uses[0].stored)) == DVT_BF16;
    (is_bf16 ? widen_.bf16 : widen_.f16)(static_cast<float*>(dst), in,
                                         static_cast<int64_t>(elements_of(uses[0])));
  }

 protected:
  Widen widen_;
};

}  // namespace dovetail
