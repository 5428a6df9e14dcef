#include "core/model/state_rows.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/base/assert.hpp"

namespace dovetail::core {
namespace {

constexpr uint64_t kScaleBytes = sizeof(float);
// Int8 numbers of a run, up to its scale.
constexpr uint64_t level_bytes(uint64_t n) {
  return (n + 3) / 4 * 4;
}

uint64_t number_bytes(uint32_t dtype) {
  switch (dtype) {
    case DVT_F32:
    case DVT_I32:
    case DVT_U32:
      return 4;
    case DVT_BF16:
    case DVT_F16:
    case DVT_I16:
      return 2;
    case DVT_I8:
    case DVT_U8:
    case DVT_BOOL:
    case DVT_I8_SCALED:
      return 1;
    case DVT_F64:
    case DVT_I64:
    case DVT_U64:
      return 8;
    default:
      return 0;
  }
}

bool is_float_form(uint32_t dtype) {
  return dtype == DVT_F32 || dtype == DVT_BF16 || dtype == DVT_F16 || dtype == DVT_I8_SCALED;
}

template <class T>
T load(const std::byte* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}
template <class T>
void store(std::byte* p, T value) {
  std::memcpy(p, &value, sizeof value);
}

uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>((bits | 0x00400000u) >> 16);
  return static_cast<uint16_t>((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}

float from_f16(uint16_t half) {
  const uint32_t exponent = half >> 10 & 0x1Fu, fraction = half & 0x3FFu;
  float magnitude = std::ldexp(static_cast<float>(fraction + (exponent > 0 ? 0x400u : 0u)),
                               static_cast<int>(exponent > 0 ? exponent : 1) - 25);
  if (exponent == 0x1F)
    magnitude = fraction == 0 ? INFINITY : std::bit_cast<float>(0x7FC00000u | fraction << 13);
  return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | (half & 0x8000u) << 16);
}

uint16_t to_f16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000u);
  const float magnitude = std::fabs(value);
  if (std::isnan(value)) return static_cast<uint16_t>(sign | 0x7E00u | (bits >> 13 & 0x1FFu));
  if (magnitude >= 65520.0F)
    return static_cast<uint16_t>(sign | 0x7C00u);  // half past the greatest
  // The numbers of one exponent are whole multiples of a step, 2^-24 for the least ones.
  const int exponent = magnitude < 0x1p-14F ? -14 : std::ilogb(magnitude);
  const float steps = std::nearbyint(std::ldexp(magnitude, 10 - exponent));  // up to 2048: carries
  return static_cast<uint16_t>(sign + ((exponent + 14) << 10) + static_cast<int>(steps));
}

void widen(float* out, const std::byte* x, const RowForm& form) {
  const uint64_t n = form.run_len;
  switch (form.dtype) {
    case DVT_BF16:
      for (uint64_t i = 0; i < n; ++i)
        out[i] = std::bit_cast<float>(static_cast<uint32_t>(load<uint16_t>(x + 2 * i)) << 16);
      break;
    case DVT_F16:
      for (uint64_t i = 0; i < n; ++i) out[i] = from_f16(load<uint16_t>(x + 2 * i));
      break;
    case DVT_I8_SCALED: {
      const auto scale = load<float>(x + level_bytes(n));
      for (uint64_t i = 0; i < n; ++i)
        out[i] = static_cast<float>(static_cast<int8_t>(x[i])) * scale;
      break;
    }
    default:
      std::memcpy(out, x, n * sizeof(float));
  }
}

// The arithmetic of kernels/int8_levels.hpp, which core does not see; a test holds the two together.
void store_levels(std::byte* out, const float* x, uint64_t n) {
  constexpr float kLeastGreatest = 0x1p-100F;  // below, 127 / greatest could overflow
  std::memset(out, 0, level_bytes(n));
  uint32_t bits = 0;  // of max |x|; so compared, an infinity or a NaN wins over every number
  for (uint64_t i = 0; i < n; ++i) bits = std::max(bits, std::bit_cast<uint32_t>(std::fabs(x[i])));
  const auto greatest = std::bit_cast<float>(bits);
  if (greatest < kLeastGreatest) return store(out + level_bytes(n), 0.0F);
  if (std::isfinite(greatest)) {
    const float inverse = 127.0F / greatest;
    for (uint64_t i = 0; i < n; ++i)
      out[i] = static_cast<std::byte>(static_cast<int8_t>(std::nearbyint(x[i] * inverse)));
  }
  store(out + level_bytes(n), greatest / 127.0F);
}

void narrow(std::byte* out, const float* x, const RowForm& form) {
  const uint64_t n = form.run_len;
  switch (form.dtype) {
    case DVT_BF16:
      for (uint64_t i = 0; i < n; ++i) store(out + 2 * i, to_bf16(x[i]));
      break;
    case DVT_F16:
      for (uint64_t i = 0; i < n; ++i) store(out + 2 * i, to_f16(x[i]));
      break;
    case DVT_I8_SCALED:
      store_levels(out, x, n);
      break;
    default:
      std::memcpy(out, x, n * sizeof(float));
  }
}

}  // namespace

uint64_t RowForm::run_bytes() const {
  return dtype == DVT_I8_SCALED ? level_bytes(run_len) + kScaleBytes
                                : run_len * number_bytes(dtype);
}

Result<RowForm> row_form(const dvt_state_spec& spec, uint32_t kv_dtype) {
  const std::string name(spec.name.p, spec.name.n);
  const bool has_rows = spec.kind == DVT_STATE_PAGED || spec.kind == DVT_STATE_INDEX;
  if (!has_rows && spec.kind != DVT_STATE_FIXED)
    return unsupported("state \"" + name + "\" is of kind " + std::to_string(spec.kind) +
                       "; rows of tokens and fixed blocks can move, this cannot");
  RowForm form;
  form.dtype = spec.dtype;
  if (spec.dtype == DVT_ACTIVATION)
    form.dtype =
        kv_dtype == DVT_I8_SCALED && spec.kind == DVT_STATE_FIXED ? uint32_t{DVT_F32} : kv_dtype;
  if (number_bytes(form.dtype) == 0)
    return unsupported("state \"" + name + "\" is of dtype " + std::to_string(form.dtype) +
                       ", which has no fixed size");
  const uint32_t first = has_rows && spec.ndim >= 2 ? 1 : 0;
  if (first == 1) form.n_runs = static_cast<uint64_t>(spec.dim[0]);
  for (uint32_t i = first; i < spec.ndim; ++i) form.run_len *= static_cast<uint64_t>(spec.dim[i]);
  return form;
}

Status convert_rows(const RowForm& to, std::byte* out, const RowForm& from, const std::byte* x,
                    uint64_t n_rows) {
  DVT_ASSERT(to.n_runs == from.n_runs && to.run_len == from.run_len);
  if (to.dtype == from.dtype) {
    std::memcpy(out, x, n_rows * from.bytes());
    return Status::ok();
  }
  if (!is_float_form(to.dtype) || !is_float_form(from.dtype))
    return unsupported("a state of dtype " + std::to_string(from.dtype) + " cannot become dtype " +
                       std::to_string(to.dtype));
  std::vector<float> run(from.run_len);
  const uint64_t from_bytes = from.run_bytes(), to_bytes = to.run_bytes();
  for (uint64_t i = 0; i < n_rows * from.n_runs; ++i) {
    widen(run.data(), x + i * from_bytes, from);
    narrow(out + i * to_bytes, run.data(), to);
  }
  return Status::ok();
}

}  // namespace dovetail::core
