#include <kernels/cpu.hpp>

#include <cstring>
#include <string>

#include <gtest/gtest.h>

namespace dovetail::kernels {
namespace {

TEST(Dispatch, FindsRowsByTheNamesTheyCarry) {
  for (const Isa isa : kIsas) {
    if (!can_run(isa)) continue;
    EXPECT_EQ(find_isa(cpu_kernels(isa).name), isa);
  }
  EXPECT_EQ(find_isa("avx2"), Isa::kAvx2);
  EXPECT_EQ(find_isa("avx512"), Isa::kAvx512);
  EXPECT_EQ(find_isa("neon"), Isa::kNeon);
  EXPECT_FALSE(find_isa("AVX2").has_value());
  EXPECT_FALSE(find_isa("").has_value());
}

TEST(Dispatch, PicksARowThatTheMachineCanRun) {
  EXPECT_TRUE(can_run(Isa::kPortable));
  EXPECT_TRUE(can_run(detect_isa()));
  EXPECT_EQ(detect_isa() == Isa::kPortable, !can_run(Isa::kAvx2) && !can_run(Isa::kNeon));
  EXPECT_EQ(detect_isa() == Isa::kAvx512, can_run(Isa::kAvx512));
  EXPECT_EQ(detect_isa() == Isa::kNeon, can_run(Isa::kNeon));
}

TEST(Dispatch, FillsEveryCellOfEveryRow) {
  for (const Isa isa : kIsas) {
    if (!can_run(isa)) continue;
    const CpuKernels& row = cpu_kernels(isa);
    void* cells[sizeof(CpuKernels) / sizeof(void*)];
    static_assert(sizeof cells == sizeof(CpuKernels), "a row is pointers only");
    std::memcpy(cells, &row, sizeof cells);
    for (size_t i = 0; i < std::size(cells); ++i) {
      EXPECT_NE(cells[i], nullptr) << row.name << " cell " << i;
    }
  }
}

}  // namespace
}  // namespace dovetail::kernels
