// CUDA's small vectors.
#pragma once

// NOLINTBEGIN(readability-identifier-naming): CUDA's names
struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x, y, z;
  // NOLINTNEXTLINE(google-explicit-constructor): as CUDA's
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
inline float2 make_float2(float x, float y) {
  return {x, y};
}
inline float4 make_float4(float x, float y, float z, float w) {
  return {x, y, z, w};
}
inline uint2 make_uint2(unsigned x, unsigned y) {
  return {x, y};
}
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) {
  return {x, y, z, w};
}
// NOLINTEND(readability-identifier-naming)
