#include "matrix.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace dovetail::safetensors {
namespace {

float half_to_float(uint16_t bits) {
  const uint32_t exponent = bits >> 10 & 31U, mantissa = bits & 0x3ffU;
  const float sign = (bits & 0x8000U) != 0 ? -1.0F : 1.0F;
  if (exponent == 31)
    return mantissa == 0 ? sign * INFINITY : std::numeric_limits<float>::quiet_NaN();
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -24);
  return sign * std::ldexp(static_cast<float>(mantissa + 1024U), static_cast<int>(exponent) - 25);
}

// To the nearest, ties to even; NaN stays one.
uint16_t float_to_bf16(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  if (std::isnan(x)) return static_cast<uint16_t>(bits >> 16 | 0x40U);
  return static_cast<uint16_t>((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16);
}

}  // namespace

float Numbers::operator[](int64_t i) const {
  if (kind_ == 4) {
    float x = 0;
    std::memcpy(&x, p_ + i * 4, sizeof x);
    return x;
  }
  uint16_t bits = 0;
  std::memcpy(&bits, p_ + i * 2, sizeof bits);
  return kind_ == 1 ? std::bit_cast<float>(uint32_t{bits} << 16) : half_to_float(bits);
}

int64_t Matrix::row_bytes(std::string_view form) const {
  if (form == "float32") return k_len * 4;
  if (form == "bf16") return k_len * 2;
  if (form == "q4_0") return k_len / 32 * 18;
  return k_len / 32 * 34;  // q8_0
}

void Matrix::piece(const dvt_bytes* bytes, std::string_view form, int64_t row0, int64_t n,
                   Scratch& scratch, uint8_t* out) const {
  if (form == "float32") return unpack(bytes, row0, n, scratch, reinterpret_cast<float*>(out));
  if (form != "bf16") return pack(bytes, row0, n, scratch, out);
  unpack(bytes, row0, n, scratch, scratch.rows.data());
  for (int64_t i = 0; i < n * k_len; ++i) {
    const uint16_t narrow = float_to_bf16(scratch.rows[static_cast<size_t>(i)]);
    std::memcpy(out + i * 2, &narrow, sizeof narrow);
  }
}

void Matrix::rows(const Host& host, const dvt_bytes* bytes, std::string_view form, int64_t row0,
                  int64_t n, void* out, Call call) const {
  if (form != format && form != "float32" && form != "bf16")
    throw Error("cannot be made " + std::string(form) + ", but " + format + ", float32 or bf16",
                DVT_EUNSUPPORTED, name);
  struct Job {
    const Matrix& matrix;
    const dvt_bytes* bytes;
    std::string_view form;
    int64_t row0;
    uint8_t* out;
    std::vector<Scratch> scratch;  // by lane
  } job{*this, bytes, form, row0, static_cast<uint8_t*>(out), {}};
  const dvt_host_v1* h = host.table();
  job.scratch.resize(h->n_lanes(h->self));
  for (Scratch& s : job.scratch) {
    s.rows.resize(static_cast<size_t>(kPiece * k_len));
    s.levels.resize(static_cast<size_t>(kPiece * k_len));
    s.scales.resize(static_cast<size_t>(n_groups));
    s.zeros.resize(static_cast<size_t>(n_groups));
  }
  call.check(h->parallel_for(
      h->self, call.frame(), static_cast<uint64_t>(n), kPiece,
      [](void* arg, uint64_t begin, uint64_t end, uint32_t lane) noexcept {
        Job& j = *static_cast<Job*>(arg);
        const auto first = static_cast<int64_t>(begin);
        j.matrix.piece(j.bytes, j.form, j.row0 + first, static_cast<int64_t>(end) - first,
                       j.scratch[lane], j.out + first * j.matrix.row_bytes(j.form));
      },
      &job));
}

}  // namespace dovetail::safetensors
