#include <cuda_emulation/instructions.hpp>

#include <bit>
#include <cstring>

namespace cuda_emulation {
namespace {

void check_aligned(const void* p, const char* what, const Where& where) {
  if (reinterpret_cast<uintptr_t>(p) % 16 != 0)
    fault(std::string(what) + " at an address that is no multiple of 16", where);
}

float bf16_at(const uint32_t* pairs, int i) {
  return std::bit_cast<float>((pairs[i / 2] >> (i % 2 * 16)) << 16);
}

struct MatrixLoad {
  const unsigned char* row;
  uint32_t* out;
};
void apply_load(void* const data[32], uint32_t) {
  for (int lane = 0; lane < 32; ++lane) {
    const auto& mine = *static_cast<MatrixLoad*>(data[lane]);
    for (int m = 0; m < 4; ++m) {
      const auto& from = *static_cast<MatrixLoad*>(data[m * 8 + lane / 4]);
      std::memcpy(&mine.out[m], from.row + lane % 4 * 4, 4);
    }
  }
}

struct Product {
  float* sum;
  const uint32_t *a, *b;
};
// Element i of a lane's fragment stands in row, column:
//   a  lane / 4 + 8 * (i / 2 % 2), lane % 4 * 2 + i % 2 + 8 * (i / 4)
//   b  lane % 4 * 2 + i % 2 + 8 * (i / 2), lane / 4
//   sum  lane / 4 + 8 * (i / 2), lane % 4 * 2 + i % 2
void apply_product(void* const data[32], uint32_t) {
  double a[16][16], b[16][8];
  for (int lane = 0; lane < 32; ++lane) {
    const auto& p = *static_cast<Product*>(data[lane]);
    for (int i = 0; i < 8; ++i)
      a[lane / 4 + 8 * (i / 2 % 2)][lane % 4 * 2 + i % 2 + 8 * (i / 4)] =
          static_cast<double>(bf16_at(p.a, i));
    for (int i = 0; i < 4; ++i)
      b[lane % 4 * 2 + i % 2 + 8 * (i / 2)][lane / 4] = static_cast<double>(bf16_at(p.b, i));
  }
  double sums[16][8] = {};
  for (int row = 0; row < 16; ++row)
    for (int k = 0; k < 16; ++k)
      for (int col = 0; col < 8; ++col) sums[row][col] += a[row][k] * b[k][col];
  for (int lane = 0; lane < 32; ++lane) {
    const auto& p = *static_cast<Product*>(data[lane]);
    for (int i = 0; i < 4; ++i)
      p.sum[i] = static_cast<float>(static_cast<double>(p.sum[i]) +
                                    sums[lane / 4 + 8 * (i / 2)][lane % 4 * 2 + i % 2]);
  }
}

}  // namespace

uint4 load16(const void* p, Where where) {
  check_aligned(p, "a load of 16 bytes", where);
  uint4 out;
  std::memcpy(&out, p, sizeof out);
  return out;
}
void store16(void* p, const uint4& value, Where where) {
  check_aligned(p, "a store of 16 bytes", where);
  std::memcpy(p, &value, sizeof value);
}
void copy16_async(void* s_to, const void* g_from, Where where) {
  check_aligned(s_to, "a copy of 16 bytes to", where);
  check_aligned(g_from, "a copy of 16 bytes from", where);
  copy_later(s_to, g_from, 16);
}
void load_matrices(uint32_t (&out)[4], const void* s_row, Where where) {
  check_aligned(s_row, "a matrix row", where);
  MatrixLoad mine{static_cast<const unsigned char*>(s_row), out};
  meet_warp({"load_matrices", 0xffffffffU, where, apply_load, &mine});
}
void multiply_bf16(float (&sum)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], Where where) {
  Product mine{sum, a, b};
  meet_warp({"multiply_bf16", 0xffffffffU, where, apply_product, &mine});
}

}  // namespace cuda_emulation
