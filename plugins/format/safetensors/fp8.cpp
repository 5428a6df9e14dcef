#include "fp8.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace dovetail::safetensors {
namespace {

constexpr float e4m3_value(uint32_t bits) {
  const uint32_t exponent = bits >> 3 & 15U, mantissa = bits & 7U;
  if (exponent == 15 && mantissa == 7) return std::numeric_limits<float>::quiet_NaN();
  float value = static_cast<float>(exponent == 0 ? mantissa : mantissa + 8) / 512.0F;  // 2^-9
  for (uint32_t e = 1; e < exponent; ++e) value *= 2.0F;
  return (bits & 0x80U) != 0 ? -value : value;
}

constexpr std::array<float, 256> kE4m3 = [] {
  std::array<float, 256> out{};
  for (uint32_t i = 0; i < 256; ++i) out[i] = e4m3_value(i);
  return out;
}();

class Fp8 : public Matrix {
 public:
  int64_t block_rows = 0, block_len = 0;
  std::string scale_format;

 protected:
  void unpack(const dvt_bytes* bytes, int64_t row0, int64_t n, Scratch&,
              float* out) const override {
    const uint8_t* in = static_cast<const uint8_t*>(bytes[0].p) + row0 * k_len;
    const Numbers scales(scale_format, bytes[1].p);
    for (int64_t row = row0; row < row0 + n; ++row, in += k_len, out += k_len)
      for (int64_t g = 0; g < n_groups; ++g) {
        const float scale = scales[row / block_rows * n_groups + g];
        const int64_t end = std::min(k_len, (g + 1) * block_len);
        for (int64_t k = g * block_len; k < end; ++k) out[k] = kE4m3[in[k]] * scale;
      }
  }
};

int64_t ceil_div(int64_t a, int64_t b) {
  return a / b + (a % b != 0);
}

}  // namespace

std::unique_ptr<Matrix> fp8_matrix(const Quantization& q, const Stored& weight,
                                   const Stored& scale) {
  auto out = std::make_unique<Fp8>();
  out->name = weight.entry.name;
  out->n_rows = weight.entry.shape[0];
  out->k_len = weight.entry.shape[1];
  out->parts = {&weight, &scale};
  out->scale_format = scale.entry.format;
  const std::vector<int64_t>& shape = scale.entry.shape;
  if (!Numbers::can_read(scale.entry.format))
    refuse(scale.file, scale.entry.name,
           "is " + scale.entry.format + ", expected scales of float32, bf16 or f16");
  if (out->n_rows == 0 || out->k_len == 0)
    refuse(weight.file, weight.entry.name,
           "is " + shape_text(weight.entry.shape) + ", expected a matrix that is not empty");
  int64_t n_scales = 1;  // the header's check has found that this does not overflow
  for (const int64_t d : shape) n_scales *= d;
  std::string expected;
  if (q.block_rows > 0) {
    out->block_rows = q.block_rows;
    out->block_len = q.block_len;
    const std::vector<int64_t> blocks = {ceil_div(out->n_rows, q.block_rows),
                                         ceil_div(out->k_len, q.block_len)};
    if (shape != blocks)
      expected = shape_text(blocks) + ", one for each block of " + std::to_string(q.block_rows) +
                 " x " + std::to_string(q.block_len);
    out->stored =
        "f8_e4m3, blocks of " + std::to_string(q.block_rows) + " x " + std::to_string(q.block_len);
  } else if (n_scales == 1) {
    out->block_rows = out->n_rows;
    out->block_len = out->k_len;
    out->stored = "f8_e4m3, one scale";
  } else {
    out->block_rows = 1;
    out->block_len = out->k_len;
    if (shape != std::vector<int64_t>{out->n_rows} && shape != std::vector<int64_t>{out->n_rows, 1})
      expected = "one, or " + shape_text({out->n_rows}) +
                 " (config.json has no \"quantization_config.weight_block_size\")";
    out->stored = "f8_e4m3, a scale a row";
  }
  if (!expected.empty())
    refuse(scale.file, scale.entry.name,
           "is " + shape_text(shape) + ", for a weight of " + shape_text(weight.entry.shape) +
               " expected " + expected);
  out->n_groups = ceil_div(out->k_len, out->block_len);
  return out;
}

}  // namespace dovetail::safetensors
