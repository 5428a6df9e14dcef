#include <kernels/read_stream.hpp>

#include <vector>

#include <gtest/gtest.h>

#include "tests/kernels/variants.hpp"

namespace dovetail::kernels {
namespace {

TEST(ReadStream, SumsEveryByteAtAnyAlignmentAndLength) {
  std::vector<unsigned char> bytes(1100);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(i * 37 + 11);
  for (const CpuKernels* row : variants()) {
    for (const int64_t offset : {0, 1, 7, 31}) {
      for (const int64_t n : {0, 1, 7, 8, 63, 64, 65, 255, 256, 257, 1000}) {
        for (ReadStreamFn* read : {row->read_stream, row->read_stream_ahead}) {
          EXPECT_EQ(read(bytes.data() + offset, n), ref::read_stream(bytes.data() + offset, n))
              << row->name << " offset " << offset << " n " << n;
        }
      }
    }
  }
}

}  // namespace
}  // namespace dovetail::kernels
