// The emulation itself: what it must find in wrong kernels, and what right ones get.
#include <cuda_emulation/device.hpp>

#include <numeric>

#include <gtest/gtest.h>

namespace cuda_emulation {
namespace {

constexpr unsigned kAll = 0xffffffffU;

/// The results of a kernel under each order of threads and blocks.
template <class Run>
std::vector<std::vector<float>> under_all_schedules(const Run& run) {
  std::vector<std::vector<float>> out;
  for (const Schedule& schedule : all_schedules()) {
    set_schedule(schedule);
    out.push_back(run());
  }
  set_schedule({});
  return out;
}
template <class Kernel, class... Args>
std::string fault_of(const LaunchShape& shape, Kernel kernel, Args... args) {
  try {
    launch(nullptr, shape, kernel, args...);
  } catch (const Fault& fault) {
    return fault.what();
  }
  return "no fault";
}
void expect_has(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text << "\nlacks: " << part;
}

// ---------------------------------------------------------------- right kernels

__global__ void index_kernel(int* out) {
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  out[block * blockDim.x * blockDim.y * blockDim.z + thread] +=
      static_cast<int>(1000 * block + thread);
}
TEST(Emulation, RunsEveryThreadOfEveryBlockOnce) {
  for (const Schedule& schedule : all_schedules()) {
    set_schedule(schedule);
    std::vector<int> out(3 * 2 * 2 * 40, 0);
    launch(nullptr, {"index", dim3(3, 2, 2), dim3(5, 4, 2)}, index_kernel, out.data());
    for (int i = 0; i < 480; ++i) ASSERT_EQ(out[static_cast<size_t>(i)], 1000 * (i / 40) + i % 40);
  }
  set_schedule({});
}

template <bool kHasBarrier>
__global__ void reverse_kernel(float* out, const float* x) {
  DVT_SHARED(float, s_x, [128]);
  s_x[threadIdx.x] = x[threadIdx.x];
  if constexpr (kHasBarrier) __syncthreads();
  out[threadIdx.x] = s_x[127 - threadIdx.x];
}
template <bool kHasBarrier>
std::vector<float> reversed() {
  std::vector<float> x(128), out(128);
  std::iota(x.begin(), x.end(), 1.0F);
  launch(nullptr, {"reverse", 1, 128}, reverse_kernel<kHasBarrier>, out.data(), x.data());
  return out;
}
TEST(Emulation, BarriersMakeSharedMemoryVisible) {
  for (const auto& got : under_all_schedules(reversed<true>))
    for (int i = 0; i < 128; ++i)
      ASSERT_EQ(got[static_cast<size_t>(i)], static_cast<float>(128 - i));
}
TEST(Emulation, AMissingBarrierShowsInTheResults) {
  const auto got = under_all_schedules(reversed<false>);
  EXPECT_TRUE(std::isnan(got[0][0])) << "poison of shared memory that nobody has written";
  EXPECT_NE(std::memcmp(got[0].data(), got[1].data(), 128 * sizeof(float)), 0);
}

__global__ void poison_kernel(int* out) {
  DVT_SHARED(int, s_first, [32]);
  DVT_SHARED_DYNAMIC(s_bytes);
  auto* s_second = reinterpret_cast<int*>(s_bytes);
  out[blockIdx.x * 64 + threadIdx.x] = s_first[threadIdx.x];
  out[blockIdx.x * 64 + 32 + threadIdx.x] = s_second[threadIdx.x];
  s_first[threadIdx.x] = s_second[threadIdx.x] = 7;
}
TEST(Emulation, PoisonsSharedMemoryBeforeEachBlock) {
  std::vector<int> out(3 * 64);
  launch(nullptr, {"poison", 3, 32, 128}, poison_kernel, out.data());
  for (const int v : out) ASSERT_EQ(v, -1);
}

__global__ void shuffle_kernel(int* out) {
  const int lane = static_cast<int>(threadIdx.x % 32), at = static_cast<int>(threadIdx.x) * 8;
  out[at] = __shfl_xor_sync(kAll, lane, 5);
  out[at + 1] = __shfl_down_sync(kAll, lane, 3);
  out[at + 2] = __shfl_up_sync(kAll, lane, 3, 8);
  out[at + 3] = __shfl_sync(kAll, lane, 2, 4);
  out[at + 4] = static_cast<int>(__ballot_sync(kAll, lane % 3 == 0));
  out[at + 5] = __any_sync(kAll, lane == 9) + 2 * __all_sync(kAll, lane < 32);
  // Two halves of a warp, each with its own mask, one of them twice as often.
  const unsigned half = lane < 16 ? 0xffffU : 0xffff0000U;
  out[at + 6] = __shfl_xor_sync(half, lane, 1);
  if (lane < 16) out[at + 6] += 100 * __shfl_xor_sync(half, lane, 2);
  __syncwarp();
  int sum = lane;
  for (int bits = 16; bits > 0; bits /= 2) sum += __shfl_xor_sync(kAll, sum, bits);
  out[at + 7] = sum;
}
TEST(Emulation, LanesShuffleAndVote) {
  for (const Schedule& schedule : all_schedules()) {
    set_schedule(schedule);
    std::vector<int> out(64 * 8);
    launch(nullptr, {"shuffle", 1, 64}, shuffle_kernel, out.data());
    for (int t = 0; t < 64; ++t) {
      const int lane = t % 32;
      const int* got = &out[static_cast<size_t>(t) * 8];
      EXPECT_EQ(got[0], lane ^ 5);
      EXPECT_EQ(got[1], lane + 3 < 32 ? lane + 3 : lane);
      EXPECT_EQ(got[2], lane % 8 >= 3 ? lane - 3 : lane);
      EXPECT_EQ(got[3], lane / 4 * 4 + 2);
      EXPECT_EQ(static_cast<unsigned>(got[4]), 0x49249249U);
      EXPECT_EQ(got[5], 3);
      EXPECT_EQ(got[6], (lane ^ 1) + (lane < 16 ? 100 * (lane ^ 2) : 0));
      EXPECT_EQ(got[7], 496);
    }
  }
  set_schedule({});
}

__global__ void count_kernel(int* n, int* greatest, float* sum) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  atomicAdd(n, 1);
  atomicMax(greatest, i * 7 % 101);
  atomicAdd(sum, 0.5F);
}
TEST(Emulation, AddsAtomically) {
  int n = 0, greatest = -5;
  float sum = 0;
  launch(nullptr, {"count", 4, 96}, count_kernel, &n, &greatest, &sum);
  EXPECT_EQ(n, 384);
  EXPECT_EQ(greatest, 100);
  EXPECT_EQ(sum, 192.0F);
}

template <bool kWaits>
__global__ void copy_kernel(float* out, const float* x) {
  DVT_SHARED(float, s_x, [2][128]);
  const unsigned at = threadIdx.x * 4;
  copy16_async(&s_x[0][at], x + at);
  copy_commit();
  copy16_async(&s_x[1][at], x + 128 + at);
  copy_commit();
  if constexpr (kWaits) copy_wait<1>();
  __syncthreads();
  for (int i = 0; i < 4; ++i) out[at + i] = s_x[0][127 - at - i];
  if constexpr (kWaits) copy_wait<0>();
  __syncthreads();
  for (int i = 0; i < 4; ++i) out[128 + at + i] = s_x[1][127 - at - i];
}
TEST(Emulation, CopiesInTheBackgroundAreThereAfterTheWait) {
  alignas(16) float x[256];
  float out[256];
  std::iota(x, x + 256, 0.0F);
  launch(nullptr, {"copy", 1, 32}, copy_kernel<true>, out, x);
  for (int i = 0; i < 128; ++i) {
    ASSERT_EQ(out[i], x[127 - i]);
    ASSERT_EQ(out[128 + i], x[255 - i]);
  }
  launch(nullptr, {"copy", 1, 32}, copy_kernel<false>, out, x);
  EXPECT_TRUE(std::isnan(out[0])) << "read before it was waited for";
}

__global__ void product_kernel(float* out, const uint16_t* a, const uint16_t* b) {
  DVT_SHARED(uint16_t, s_a, [16][16]);
  const unsigned lane = threadIdx.x;
  for (unsigned i = lane; i < 256; i += 32) s_a[i / 16][i % 16] = a[i];
  __syncwarp();
  // Matrices in the order of a's fragment: rows 0-7 and 8-15 of columns 0-7, then of 8-15.
  uint32_t a_part[4], b_part[2];
  load_matrices(a_part, &s_a[lane % 16][lane / 16 * 8]);
  for (unsigned i = 0; i < 2; ++i) {
    const unsigned k = lane % 4 * 2 + 8 * i, col = lane / 4;
    b_part[i] = b[k * 8 + col] | uint32_t{b[(k + 1) * 8 + col]} << 16;
  }
  float sum[4] = {1, 1, 1, 1};
  multiply_bf16(sum, a_part, b_part);
  for (unsigned i = 0; i < 4; ++i)
    out[(lane / 4 + 8 * (i / 2)) * 8 + lane % 4 * 2 + i % 2] = sum[i];
}
TEST(Emulation, MultipliesMatricesByTheirFragments) {
  uint16_t a[256], b[128];
  float out[128], x[256], y[128];
  const auto fill = [](uint16_t* bits, float* values, int n, int step) {
    for (int i = 0; i < n; ++i) {
      values[i] = static_cast<float>(i * step % 31 - 15);
      bits[i] = static_cast<uint16_t>(std::bit_cast<uint32_t>(values[i]) >> 16);
    }
  };
  fill(a, x, 256, 7);
  fill(b, y, 128, 11);
  launch(nullptr, {"product", 1, 32}, product_kernel, out, a, b);
  for (int row = 0; row < 16; ++row)
    for (int col = 0; col < 8; ++col) {
      float expected = 1;
      for (int k = 0; k < 16; ++k) expected += x[row * 16 + k] * y[k * 8 + col];
      ASSERT_EQ(out[row * 8 + col], expected) << row << ", " << col;
    }
}

// ---------------------------------------------------------------- wrong kernels

__global__ void half_barrier_kernel() {
  if (threadIdx.x < 40) __syncthreads();
}
TEST(Emulation, ReportsABarrierThatNotAllThreadsReach) {
  for (const Schedule& schedule : all_schedules()) {
    set_schedule(schedule);
    const std::string why = fault_of({"half_barrier", 2, 64}, half_barrier_kernel);
    expect_has(why, "half_barrier, block (");
    expect_has(why, "threads 0-39 in __syncthreads at emulation_test.cpp:");
    expect_has(why, "threads 40-63 left the kernel");
  }
  set_schedule({});
}

__global__ void two_barriers_kernel() {
  if (threadIdx.x % 2 == 0)
    __syncthreads();
  else
    __syncthreads();
}
TEST(Emulation, ReportsThreadsAtDifferentBarriers) {
  const std::string why = fault_of({"two_barriers", 1, 64}, two_barriers_kernel);
  expect_has(why, "two_barriers, block (0, 0, 0): threads diverged at a barrier");
  expect_has(why, "thread 1 in __syncthreads at");
}

__global__ void shuffle_across_barrier_kernel(int* out) {
  if (threadIdx.x == 3) __syncthreads();
  out[threadIdx.x] = __shfl_xor_sync(kAll, 1, 1);
  if (threadIdx.x != 3) __syncthreads();
}
TEST(Emulation, ReportsDeadlock) {
  std::vector<int> out(32);
  const std::string why =
      fault_of({"shuffle_across_barrier", 1, 32}, shuffle_across_barrier_kernel, out.data());
  expect_has(why, "threads wait for ever");
  expect_has(why, "thread 3 in __syncthreads at");
  expect_has(why, "threads 0-2, 4-31 in __shfl_xor_sync with mask ffffffff at");
}

__global__ void masks_kernel(int* out) {
  const unsigned mask = threadIdx.x < 16 ? kAll : 0xffff0000U;
  out[threadIdx.x] = __shfl_xor_sync(mask, 1, 1);
}
__global__ void two_meetings_kernel(int* out) {
  if (threadIdx.x % 2 == 0)
    out[threadIdx.x] = __shfl_xor_sync(kAll, 1, 1);
  else
    __syncwarp();
}
__global__ void foreign_mask_kernel() {
  if (threadIdx.x == 5) __syncwarp(0xf);
}
__global__ void gone_lane_kernel() {
  if (threadIdx.x == 0) return;
  __syncwarp();
}
TEST(Emulation, ReportsMasksThatDoNotFit) {
  std::vector<int> out(32);
  const std::string masks = fault_of({"masks", 1, 32}, masks_kernel, out.data());
  expect_has(masks, "threads 0-15 in __shfl_xor_sync with mask ffffffff at emulation_test.cpp:");
  expect_has(masks, "threads 16-31 left the kernel");
  expect_has(fault_of({"two_meetings", 1, 32}, two_meetings_kernel, out.data()),
             "lanes diverged: ");
  expect_has(fault_of({"foreign_mask", 1, 32}, foreign_mask_kernel),
             "thread (5, 0, 0), emulation_test.cpp:");
  expect_has(fault_of({"gone_lane", 1, 32}, gone_lane_kernel), "lane 0, which left the kernel");
  expect_has(fault_of({"few_lanes", 1, 24}, gone_lane_kernel), "which");
}

__global__ void misaligned_kernel(const float* x) {
  (void)load16(x + threadIdx.x);
}
__global__ void much_shared_kernel() {
  DVT_SHARED(float, s_x, [13000]);
  s_x[threadIdx.x] = 0;
}
TEST(Emulation, ReportsWhatADeviceWouldNotDo) {
  alignas(16) const float x[8] = {};
  expect_has(fault_of({"misaligned", 1, 2}, misaligned_kernel, x),
             "thread (1, 0, 0), emulation_test.cpp:");
  expect_has(fault_of({"much_shared", 1, 32}, much_shared_kernel), "52000 bytes of shared");
  expect_has(fault_of({"much_shared", 1, 32, 300000}, much_shared_kernel), "300000 bytes");
  expect_has(fault_of({"big_block", 1, 1025}, much_shared_kernel), "1025 threads");
  expect_has(fault_of({"no_grid", 0, 32}, much_shared_kernel), "a grid of (0, 1, 1)");
}
TEST(Emulation, GoesOnAfterAFault) {
  expect_has(fault_of({"half_barrier", 1, 64}, half_barrier_kernel), "wait for ever");
  EXPECT_EQ(reversed<true>()[0], 128.0F);
}

#if defined(__SANITIZE_ADDRESS__)
__global__ void past_the_end_kernel(float* out, int n_shared) {
  DVT_SHARED(float, s_x, [32]);
  for (int i = 0; i < n_shared; ++i) s_x[i] = 1;
  out[threadIdx.x] = s_x[0];
}
TEST(EmulationDeathTest, AddressSanitizerFindsWhatLiesOutside) {
  std::vector<float> out(32);
  launch(nullptr, {"past_the_end", 1, 32}, past_the_end_kernel, out.data(), 32);
  EXPECT_DEATH(launch(nullptr, {"past_the_end", 1, 33}, past_the_end_kernel, out.data(), 32),
               "heap-buffer-overflow");
  EXPECT_DEATH(launch(nullptr, {"past_the_end", 1, 32}, past_the_end_kernel, out.data(), 33),
               "heap-buffer-overflow");
}
#endif

}  // namespace
}  // namespace cuda_emulation
