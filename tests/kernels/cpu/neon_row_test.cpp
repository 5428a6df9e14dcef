#include <kernels/cpu.hpp>

#include <cstdlib>
#include <string_view>

#include <gtest/gtest.h>
#include <sys/auxv.h>

namespace dovetail::kernels {
namespace {

// The emulated runs say what their processor has, so that none of them tests less than it claims.
TEST(NeonRow, TakesDotProductsWhereTheProcessorHasThem) {
  const bool has_dot_products = (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
  const char* expected = std::getenv("DVT_EXPECT_DOTPROD");
  if (expected != nullptr) EXPECT_EQ(has_dot_products, std::string_view(expected) == "1");

  const CpuKernels& neon = cpu_kernels(Isa::kNeon);
  const CpuKernels& portable = cpu_kernels(Isa::kPortable);
  for (LinearQuantizedFn* CpuKernels::*op :
       {&CpuKernels::linear_int8, &CpuKernels::linear_add_int8, &CpuKernels::linear_int4,
        &CpuKernels::linear_add_int4, &CpuKernels::linear_int4q, &CpuKernels::linear_add_int4q,
        &CpuKernels::linear_int6, &CpuKernels::linear_add_int6}) {
    EXPECT_EQ(neon.*op != portable.*op, has_dot_products);
  }
  EXPECT_NE(neon.linear_bf16, portable.linear_bf16);
}

}  // namespace
}  // namespace dovetail::kernels
