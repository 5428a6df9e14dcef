// Every block format of GGUF against numbers from gguf-py (tests/data/gguf/README.md), bit by bit.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <kernels/gguf_blocks.hpp>

namespace dovetail::kernels {
namespace {

std::vector<uint8_t> from_hex(const std::string& text) {
  std::vector<uint8_t> out;
  for (size_t i = 0; i + 1 < text.size(); i += 2)
    out.push_back(static_cast<uint8_t>(std::stoi(text.substr(i, 2), nullptr, 16)));
  return out;
}

TEST(GgufBlocks, UnpackToTheNumbersOfTheReference) {
  std::ifstream file("tests/data/gguf/blocks.txt");
  std::set<std::string> seen;
  for (std::string name, blocks_hex, values_hex; file >> name >> blocks_hex >> values_hex;) {
    const GgufFormat* format = find_gguf_format(name);
    ASSERT_NE(format, nullptr) << name;
    const std::vector<uint8_t> blocks = from_hex(blocks_hex), expected = from_hex(values_hex);
    const auto n = static_cast<int64_t>(blocks.size()) / format->block_bytes;
    ASSERT_EQ(n * format->block_bytes, static_cast<int64_t>(blocks.size())) << name;
    ASSERT_EQ(n * format->block_len * 4, static_cast<int64_t>(expected.size())) << name;
    std::vector<float> out(static_cast<size_t>(n * format->block_len));
    format->unpack(out.data(), blocks.data(), n);
    for (size_t i = 0; i < out.size(); ++i) {
      float value = 0;
      std::memcpy(&value, expected.data() + i * 4, 4);
      ASSERT_EQ(out[i], value) << name << " " << i;
      ASSERT_EQ(std::signbit(out[i]), std::signbit(value)) << name << " " << i;
    }
    seen.insert(name);
  }
  EXPECT_EQ(seen.size(), 13u);
}

TEST(GgufBlocks, UnpackFromAnyAddress) {
  for (const char* name : {"q4_0", "q8_0", "q4_k", "q6_k", "iq4_xs", "mxfp4"}) {
    const GgufFormat* format = find_gguf_format(name);
    std::vector<uint8_t> blocks(static_cast<size_t>(2 * format->block_bytes + 1));
    for (size_t i = 1; i < blocks.size(); ++i) blocks[i] = static_cast<uint8_t>(i * 7 % 60);
    const std::vector<uint8_t> even(blocks.begin() + 1, blocks.end());
    std::vector<float> a(static_cast<size_t>(2 * format->block_len)), b = a;
    format->unpack(a.data(), blocks.data() + 1, 2);
    format->unpack(b.data(), even.data(), 2);
    EXPECT_EQ(a, b) << name;
  }
}

TEST(GgufBlocks, OnlyKnownNamesAreFound) {
  EXPECT_EQ(find_gguf_format("q4_2"), nullptr);
  EXPECT_EQ(find_gguf_format("int4.1"), nullptr);
  EXPECT_EQ(find_gguf_format(""), nullptr);
  EXPECT_STREQ(find_gguf_format("q5_k")->name, "q5_k");
}

}  // namespace
}  // namespace dovetail::kernels
