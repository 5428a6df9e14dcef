// Functions of one element at a time for CUDA; contracts in kernels/cuda.hpp and kernels/pointwise.hpp,
// oracle in kernels/ref/pointwise.cpp. Bound by memory.
// grid, block  one thread an element, 256 in a block. No shared memory. Occupancy: not limited.
#include <kernels/cuda.hpp>
#include <kernels/pointwise.hpp>

#include "kernels/cuda/silu.hpp"

namespace dovetail::kernels::cuda {
namespace {

constexpr int kThreads = 256;

__device__ inline int64_t element_of_thread() {
  return int64_t{blockIdx.x} * kThreads + threadIdx.x;
}

struct Add {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct Mul {
  __device__ float operator()(float a, float b) const { return a * b; }
};
struct SiluMul {
  __device__ float operator()(float a, float b) const { return silu_of(a) * b; }
};
struct Silu {
  __device__ float operator()(float x) const { return silu_of(x); }
};
struct GeluTanh {
  // x / (1 + e^-2u) with -2u = x * (slope + cubic * x^2). Where the exponent overflows x < 0 gives -0.
  __device__ float operator()(float x) const {
    const float u = x * fmaf(kGeluCubic, x * x, kGeluSlope);
    return x / (1.0F + expf(u));
  }
};
struct AddScalar {
  float value;
  __device__ float operator()(float x) const { return x + value; }
};
struct MulScalar {
  float value;
  __device__ float operator()(float x) const { return x * value; }
};
struct Rsqrt {
  __device__ float operator()(float x) const { return 1.0F / sqrtf(x); }
};

template <class Fn>
__global__ void __launch_bounds__(kThreads)
    unary_kernel(float* g_out, const float* g_x, int64_t n, Fn fn) {
  const int64_t i = element_of_thread();
  if (i < n) g_out[i] = fn(g_x[i]);
}
template <class Fn>
__global__ void __launch_bounds__(kThreads)
    binary_kernel(float* g_out, const float* g_a, const float* g_b, int64_t n, Broadcast b, Fn fn) {
  const int64_t i = element_of_thread();
  if (i < n) g_out[i] = fn(g_a[i], g_b[i / b.repeat % b.period]);
}

template <class Fn>
void unary(Stream stream, float* g_out, const float* g_x, int64_t n, Fn fn) {
  if (n == 0) return;
  DVT_LAUNCH(unary_kernel<Fn>, static_cast<unsigned>(blocks_for(n, kThreads)), kThreads, 0, stream,
             g_out, g_x, n, fn);
}
template <class Fn>
void binary(Stream stream, float* g_out, const float* g_a, const float* g_b, int64_t n, Broadcast b,
            Fn fn) {
  if (n == 0) return;
  DVT_LAUNCH(binary_kernel<Fn>, static_cast<unsigned>(blocks_for(n, kThreads)), kThreads, 0, stream,
             g_out, g_a, g_b, n, b, fn);
}

}  // namespace

void add(Stream stream, float* g_out, const float* g_a, const float* g_b, int64_t n, Broadcast b) {
  binary(stream, g_out, g_a, g_b, n, b, Add{});
}
void mul(Stream stream, float* g_out, const float* g_a, const float* g_b, int64_t n, Broadcast b) {
  binary(stream, g_out, g_a, g_b, n, b, Mul{});
}
void silu_mul(Stream stream, float* g_out, const float* g_a, const float* g_b, int64_t n) {
  binary(stream, g_out, g_a, g_b, n, {1, n}, SiluMul{});
}
void silu(Stream stream, float* g_out, const float* g_x, int64_t n) {
  unary(stream, g_out, g_x, n, Silu{});
}
void gelu_tanh(Stream stream, float* g_out, const float* g_x, int64_t n) {
  unary(stream, g_out, g_x, n, GeluTanh{});
}
void add_scalar(Stream stream, float* g_out, const float* g_x, float value, int64_t n) {
  unary(stream, g_out, g_x, n, AddScalar{value});
}
void mul_scalar(Stream stream, float* g_out, const float* g_x, float value, int64_t n) {
  unary(stream, g_out, g_x, n, MulScalar{value});
}
void rsqrt(Stream stream, float* g_out, const float* g_x, int64_t n) {
  unary(stream, g_out, g_x, n, Rsqrt{});
}

}  // namespace dovetail::kernels::cuda
