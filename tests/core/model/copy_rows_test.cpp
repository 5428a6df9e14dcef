// Rows of a tensor in order, however the file has them.
#include <gtest/gtest.h>

#include <numeric>

#include "core/model/checkpoint.hpp"

namespace dovetail::core {
namespace {

std::string rows_of(const TensorInfo& t, int64_t first, int64_t n) {
  std::string out(t.bytes.size() / static_cast<size_t>(t.shape[0]) * static_cast<size_t>(n), '.');
  copy_rows(t, first, n, reinterpret_cast<std::byte*>(out.data()));
  return out;
}

TEST(CopyRows, PutsPairsInOrder) {
  const std::string stored = "a0d0b0e0c0f0A1D1B1E1C1F1";  // two runs of six rows of two bytes
  TensorInfo t;
  t.shape = {12, 1};
  t.bytes = std::as_bytes(std::span(stored));
  EXPECT_EQ(rows_of(t, 0, 12), stored);
  EXPECT_EQ(rows_of(t, 3, 2), "e0c0");
  t.paired_rows = 6;
  EXPECT_EQ(rows_of(t, 0, 12), "a0b0c0d0e0f0A1B1C1D1E1F1");
  EXPECT_EQ(rows_of(t, 4, 5), "e0f0A1B1C1") << "from one run into the next";
  EXPECT_EQ(rows_of(t, 12, 0), "");
  t.paired_rows = 2;
  EXPECT_EQ(rows_of(t, 0, 12), stored) << "pairs of one row each are in order";
}

TEST(CopyRows, OfNothingAreNoBytes) {
  TensorInfo t;
  t.shape = {3, 0};
  copy_rows(t, 0, 3, nullptr);  // the sanitizers watch
  EXPECT_EQ(rows_of(t, 1, 2), "");
}

}  // namespace
}  // namespace dovetail::core
