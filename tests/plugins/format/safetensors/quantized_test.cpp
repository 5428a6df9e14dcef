// Matrices in parts: fp8 with scales, GPTQ and AWQ. What is right is also held to numpy's numbers by tests/golden; here
// are the corners, and all that is refused.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "reader_rig.hpp"

namespace dovetail::core {
namespace {

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}
// Exact for what these tests use.
uint16_t half(float x) {
  if (x == 0) return 0;
  int e = 0;
  const float m = std::frexp(std::fabs(x), &e);
  return static_cast<uint16_t>((x < 0 ? 0x8000 : 0) | (e + 14) << 10 |
                               static_cast<int>((m * 2 - 1) * 1024));
}
uint16_t brain(float x) {
  return static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16);
}

class QuantizedTest : public ReaderTest {
 protected:
  struct Tensor {
    std::string name, dtype, shape, bytes;
  };
  static std::string file_with(const std::vector<Tensor>& tensors) {
    std::string header = "{", data;
    for (const Tensor& t : tensors) {
      header += (header == "{" ? "\"" : ",\"") + t.name + R"(":{"dtype":")" + t.dtype +
                R"(","shape":)" + t.shape + R"(,"data_offsets":[)" + std::to_string(data.size()) +
                "," + std::to_string(data.size() + t.bytes.size()) + "]}";
      data += t.bytes;
    }
    return file_of(header + "}", 0) + data;
  }
  Status open_with(const std::string& quantization, const std::vector<Tensor>& tensors) {
    write("config.json", R"({"quantization_config":)" + quantization + "}");
    write("model.safetensors", file_with(tensors));
    return open();
  }
  /// The message with which it is refused; "" if it is not.
  std::string refusal(const std::string& quantization, const std::vector<Tensor>& tensors) {
    const Status s = open_with(quantization, tensors);
    EXPECT_EQ(s.message().find('\n'), std::string::npos) << s.message();
    return s.message();
  }
  std::vector<float> rows(const std::string& name, int64_t row0, int64_t n) {
    std::vector<float> out(static_cast<size_t>(n * tensors_.at(name).shape[1]));
    const Status s = read_rows(name, "float32", row0, n, out.data());
    EXPECT_TRUE(s.is_ok()) << s.message();
    return out;
  }
};

constexpr const char* kFp8 =
    R"({"quant_method":"fp8","fmt":"e4m3","activation_scheme":"dynamic","weight_block_size":[2,3]})";
constexpr const char* kGptq =
    R"({"quant_method":"gptq","bits":4,"group_size":8,"desc_act":false,"sym":true})";
constexpr const char* kGptq2 =
    R"({"quant_method":"gptq","bits":4,"group_size":8,"checkpoint_format":"gptq_v2"})";
constexpr const char* kAwq =
    R"({"quant_method":"awq","bits":4,"group_size":4,"zero_point":true,"version":"gemm"})";

// ---------------------------------------------------------------- fp8

TEST_F(QuantizedTest, KnowsEveryNumberOfE4m3) {
  std::vector<uint8_t> all(256);
  for (size_t i = 0; i < 256; ++i) all[i] = static_cast<uint8_t>(i);
  ASSERT_EQ(refusal(R"({"quant_method":"fp8"})",
                    {{"a.weight", "F8_E4M3", "[2,128]", bytes_of(all)},
                     {"a.weight_scale", "F32", "[]", bytes_of<float>({1.0F})}}),
            "");
  const std::vector<float> got = rows("a.weight", 0, 2);
  EXPECT_EQ(got[0x00], 0.0F);
  EXPECT_EQ(got[0x01], std::ldexp(1.0F, -9));  // the least
  EXPECT_EQ(got[0x07], std::ldexp(7.0F, -9));
  EXPECT_EQ(got[0x08], std::ldexp(1.0F, -6));  // the least normal one
  EXPECT_EQ(got[0x38], 1.0F);
  EXPECT_EQ(got[0x7e], 448.0F);
  EXPECT_TRUE(std::isnan(got[0x7f]) && std::isnan(got[0xff]));
  for (size_t i = 0; i < 0x7e; ++i) EXPECT_LT(got[i], got[i + 1]) << i;
  for (size_t i = 0; i < 0x7f; ++i) EXPECT_EQ(got[0x80 + i], -got[i]) << i;
  EXPECT_TRUE(std::signbit(got[0x80]));
}

TEST_F(QuantizedTest, ScalesBlocksThatAreNotWhole) {
  // 3 x 4 in blocks of 2 x 3: scales 2 x 2.
  ASSERT_EQ(refusal(kFp8, {{"a.weight", "F8_E4M3", "[3,4]", std::string(12, '\x38')},
                           {"a.weight_scale_inv", "BF16", "[2,2]",
                            bytes_of<uint16_t>({brain(1), brain(2), brain(4), brain(-8)})},
                           {"a.input_scale", "F32", "[]", bytes_of<float>({9})},
                           {"norm.weight", "F32", "[1]", bytes_of<float>({5})}}),
            "");
  EXPECT_EQ(rows("a.weight", 0, 3), (std::vector<float>{1, 1, 1, 2, 1, 1, 1, 2, 4, 4, 4, -8}));
  EXPECT_EQ(rows("a.weight", 1, 2), (std::vector<float>{1, 1, 1, 2, 4, 4, 4, -8}));
  EXPECT_EQ(tensors_.size(), 2u) << "scales are part of the matrix, those of activations nothing";
  EXPECT_EQ(tensors_["a.weight"].format, "float32");
  EXPECT_EQ(tensors_["a.weight"].bytes, 48u);
  EXPECT_EQ(text_of(in_parts_["a.weight"].second.stored), "f8_e4m3, blocks of 2 x 3");
}

TEST_F(QuantizedTest, ScalesRowsAndWholeMatrices) {
  for (
      const char* config :
      {R"({"quant_method":"fp8","weight_block_size":null})",
       R"({"quant_method":"compressed-tensors","format":"float-quantized","config_groups":{"group_0":{"weights":{"num_bits":8,"strategy":"channel"}}}})"}) {
    for (const char* shape : {"[2]", "[2,1]"}) {
      ASSERT_EQ(refusal(config, {{"a.weight", "F8_E4M3", "[2,2]", std::string(4, '\x38')},
                                 {"a.weight_scale", "F16", shape,
                                  bytes_of<uint16_t>({half(2), half(0.5F)})}}),
                "");
      EXPECT_EQ(rows("a.weight", 0, 2), (std::vector<float>{2, 2, 0.5F, 0.5F}));
    }
    ASSERT_EQ(refusal(config, {{"a.weight", "F8_E4M3", "[2,2]", std::string(4, '\x38')},
                               {"a.weight_scale", "F32", "[1]", bytes_of<float>({3})}}),
              "");
    EXPECT_EQ(rows("a.weight", 1, 1), (std::vector<float>{3, 3}));
  }
}

TEST_F(QuantizedTest, RoundsToBf16WhereThatIsAskedFor) {
  const float scales[] = {1.00390625F, 1.01171875F, std::numeric_limits<float>::quiet_NaN()};
  ASSERT_EQ(refusal(R"({"quant_method":"fp8"})",
                    {{"a.weight", "F8_E4M3", "[3,1]", std::string(3, '\x38')},
                     {"a.weight_scale", "F32", "[3]",
                      bytes_of<float>({scales[0], scales[1], scales[2]})}}),
            "");
  uint16_t got[3] = {};
  ASSERT_TRUE(read_rows("a.weight", "bf16", 0, 3, got).is_ok());
  EXPECT_EQ(got[0], 0x3f80) << "a tie goes to the even one";
  EXPECT_EQ(got[1], 0x3f82);
  EXPECT_EQ(got[2] & 0x7fc0, 0x7fc0);
  EXPECT_EQ(read_rows("a.weight", "q4_0", 0, 1, got).code(), Code::kUnsupported);
}

TEST_F(QuantizedTest, RefusesFp8ThatDoesNotFit) {
  const Tensor weight{"a.weight", "F8_E4M3", "[3,4]", std::string(12, '\x38')};
  const auto scale = [](const char* shape, size_t n, const char* dtype = "F32") {
    return Tensor{"a.weight_scale_inv", dtype, shape, std::string(n, '\0')};
  };
  EXPECT_TRUE(
      has(refusal(kFp8, {weight}), "tensor \"a.weight\" has no \"a.weight_scale_inv\" beside it"));
  EXPECT_TRUE(
      has(refusal(kFp8, {weight, scale("[2,1]", 8)}),
          "model.safetensors: tensor \"a.weight_scale_inv\" is [2, 1], for a weight of [3, 4] "
          "expected [2, 2], one for each block of 2 x 3"));
  EXPECT_TRUE(
      has(refusal(kFp8, {weight, scale("[2,2]", 32, "I64")}), "is i64, expected scales of"));
  EXPECT_TRUE(has(refusal(R"({"quant_method":"fp8"})", {weight, scale("[2,2]", 16)}),
                  "is [2, 2], for a weight of [3, 4] expected one, or [3] (config.json has no "
                  "\"quantization_config.weight_block_size\")"));
  EXPECT_TRUE(has(refusal("null", {weight, scale("[2,2]", 16)}),
                  "is of 8-bit floats with scales beside it, but config.json has no"));
  EXPECT_TRUE(has(refusal(kFp8, {{"a.weight", "F8_E4M3", "[0,4]", ""}, scale("[0,2]", 0)}),
                  "is [0, 4], expected a matrix that is not empty"));
  EXPECT_EQ(refusal("null", {weight}), "") << "without scales it is a tensor like others";
  EXPECT_EQ(tensors_["a.weight"].format, "f8_e4m3");
}

// ---------------------------------------------------------------- GPTQ

// k_len 16, n_rows 8, groups of 8: level of (k, n) is (k + n) % 16; zero of (g, n) is as given.
std::vector<uint32_t> gptq_levels(int64_t k_len = 16, int64_t n_rows = 8) {
  std::vector<uint32_t> out;
  for (int64_t i = 0; i < k_len / 8; ++i)
    for (int64_t n = 0; n < n_rows; ++n) {
      uint32_t word = 0;
      for (int64_t k = 0; k < 8; ++k)
        word |= static_cast<uint32_t>((i * 8 + k + n) % 16) << (4 * k);
      out.push_back(word);
    }
  return out;
}
std::vector<uint16_t> scales_of(size_t n_groups, size_t n_rows = 8) {
  std::vector<uint16_t> out;
  for (size_t i = 0; i < n_groups * n_rows; ++i)
    out.push_back(half(0.25F * static_cast<float>(i + 1)));
  return out;
}

TEST_F(QuantizedTest, ReadsGptqWithBothReadingsOfItsZeros) {
  // Zeros in the file: 7 in the first group, 0 to 7 in the second but 15 in its last.
  const std::vector<uint32_t> zeros = {0x77777777, 0xf6543210};
  for (const bool is_v2 : {false, true}) {
    ASSERT_EQ(
        refusal(is_v2 ? kGptq2 : kGptq, {{"m.qweight", "I32", "[2,8]", bytes_of(gptq_levels())},
                                         {"m.qzeros", "I32", "[2,1]", bytes_of(zeros)},
                                         {"m.scales", "F16", "[2,8]", bytes_of(scales_of(2))},
                                         {"m.bias", "F16", "[8]", std::string(16, '\0')}}),
        "");
    EXPECT_EQ(tensors_["m.weight"].shape, (std::vector<int64_t>{8, 16}));
    EXPECT_EQ(tensors_["m.weight"].format, "float32");
    EXPECT_EQ(tensors_.size(), 2u);
    const std::vector<float> got = rows("m.weight", 0, 8);
    for (int64_t n = 0; n < 8; ++n)
      for (int64_t k = 0; k < 16; ++k) {
        const int64_t g = k / 8, zero = (g == 0 ? 7 : n == 7 ? 15 : n) + (is_v2 ? 0 : 1);
        EXPECT_EQ(got[static_cast<size_t>(n * 16 + k)], 0.25F * static_cast<float>(g * 8 + n + 1) *
                                                            static_cast<float>((k + n) % 16 - zero))
            << n << " " << k;
      }
    const std::vector<float> some = rows("m.weight", 3, 2);
    EXPECT_TRUE(std::equal(some.begin(), some.end(), got.begin() + 3 * 16));
  }
}

TEST_F(QuantizedTest, ReadsGroupsInAnyOrder) {
  const std::vector<int32_t> order = {1, 0, 1, 0, 1, 0, 1, 0, 0, 0, 0, 0, 1, 1, 1, 1};
  ASSERT_EQ(refusal(R"({"quant_method":"gptq","bits":4,"group_size":8,"desc_act":true})",
                    {{"m.qweight", "I32", "[2,8]", bytes_of(gptq_levels())},
                     {"m.qzeros", "I32", "[2,1]", bytes_of<uint32_t>({0x77777777, 0x77777777})},
                     {"m.scales", "F16", "[2,8]", bytes_of(scales_of(2))},
                     {"m.g_idx", "I32", "[16]", bytes_of(order)}}),
            "");
  const std::vector<float> got = rows("m.weight", 2, 1);
  for (size_t k = 0; k < 16; ++k)
    EXPECT_EQ(got[k], 0.25F * static_cast<float>(order[k] * 8 + 3) *
                          static_cast<float>((static_cast<int>(k) + 2) % 16 - 8));
  EXPECT_EQ(text_of(in_parts_["m.weight"].second.stored), "gptq int4, groups of 8 by g_idx");
}

// Symmetric matrices are q4_0 and q8_0 as they are: the same numbers, the scale's own bits.
TEST_F(QuantizedTest, KeepsTheBitsOfSymmetricMatrices) {
  const std::string config = R"({"quant_method":"gptq","bits":4,"group_size":32})";
  const std::vector<Tensor> tensors = {
      {"m.qweight", "I32", "[8,8]", bytes_of(gptq_levels(64))},
      {"m.qzeros", "I32", "[2,1]", bytes_of<uint32_t>({0x77777777, 0x77777777})},
      {"m.scales", "F16", "[2,8]", bytes_of(scales_of(2))}};
  ASSERT_EQ(refusal(config, tensors), "");
  EXPECT_EQ(tensors_["m.weight"].format, "q4_0");
  EXPECT_EQ(tensors_["m.weight"].bytes, 8u * 2 * 18);
  std::vector<uint8_t> got(36);
  ASSERT_TRUE(read_rows("m.weight", "q4_0", 5, 1, got.data()).is_ok());
  for (size_t block = 0; block < 2; ++block) {
    const uint8_t* b = got.data() + block * 18;
    EXPECT_EQ(b[0] | b[1] << 8, scales_of(2)[block * 8 + 5]);
    for (size_t i = 0; i < 16; ++i) {
      EXPECT_EQ(b[2 + i] & 15U, (block * 32 + i + 5) % 16);
      EXPECT_EQ(b[2 + i] >> 4U, (block * 32 + 16 + i + 5) % 16);
    }
  }
  for (const auto& [at, value] :
       {std::pair<size_t, Tensor>(
            1, {"m.qzeros", "I32", "[2,1]", bytes_of<uint32_t>({0x77777777, 0x77777778})}),
        {2, {"m.scales", "F32", "[2,8]", std::string(64, '\0')}}}) {
    std::vector<Tensor> other = tensors;
    other[at] = value;
    ASSERT_EQ(refusal(config, other), "");
    EXPECT_EQ(tensors_["m.weight"].format, "float32") << value.name;
  }
}

TEST_F(QuantizedTest, ReadsEightBitsAndOneGroup) {
  std::vector<uint32_t> levels;  // k_len 32, n_rows 4: (k * 8 + n) % 256
  for (uint32_t i = 0; i < 8; ++i)
    for (uint32_t n = 0; n < 4; ++n) {
      uint32_t word = 0;
      for (uint32_t k = 0; k < 4; ++k) word |= ((i * 4 + k) * 8 + n) % 256 << (8 * k);
      levels.push_back(word);
    }
  ASSERT_EQ(refusal(R"({"quant_method":"gptq","bits":8,"group_size":-1})",
                    {{"m.qweight", "I32", "[8,4]", bytes_of(levels)},
                     {"m.qzeros", "I32", "[1,1]", bytes_of<uint32_t>({0x7f7f7f7f})},
                     {"m.scales", "F16", "[1,4]", bytes_of(scales_of(1, 4))}}),
            "");
  EXPECT_EQ(tensors_["m.weight"].format, "q8_0");
  std::vector<uint8_t> packed(34);
  ASSERT_TRUE(read_rows("m.weight", "q8_0", 1, 1, packed.data()).is_ok());
  const std::vector<float> got = rows("m.weight", 1, 1);
  for (int k = 0; k < 32; ++k) {
    EXPECT_EQ(got[static_cast<size_t>(k)], 0.5F * static_cast<float>((k * 8 + 1) % 256 - 128)) << k;
    EXPECT_EQ(static_cast<int8_t>(packed[static_cast<size_t>(2 + k)]), (k * 8 + 1) % 256 - 128)
        << k;
  }
}

// ---------------------------------------------------------------- AWQ

TEST_F(QuantizedTest, ReadsAwqInItsOrder) {
  // Level of (k, n) is (3 k + n) % 16, zero of (g, n) is n + g; eight along n lie as 0 2 4 6 1 3 5 7.
  constexpr uint32_t kOrder[] = {0, 2, 4, 6, 1, 3, 5, 7};
  const auto word = [&](const auto& level) {
    uint32_t out = 0;
    for (uint32_t place = 0; place < 8; ++place) out |= level(kOrder[place]) << (4 * place);
    return out;
  };
  std::vector<uint32_t> levels, zeros;
  for (uint32_t k = 0; k < 8; ++k)
    for (uint32_t half_of = 0; half_of < 2; ++half_of)
      levels.push_back(word([&](uint32_t n) { return (3 * k + half_of * 8 + n) % 16; }));
  for (uint32_t g = 0; g < 2; ++g)
    for (uint32_t half_of = 0; half_of < 2; ++half_of)
      zeros.push_back(word([&](uint32_t n) { return (half_of * 4 + n + g) % 16; }));
  ASSERT_EQ(refusal(kAwq, {{"m.qweight", "I32", "[8,2]", bytes_of(levels)},
                           {"m.qzeros", "I32", "[2,2]", bytes_of(zeros)},
                           {"m.scales", "F16", "[2,16]", bytes_of(scales_of(2, 16))}}),
            "");
  EXPECT_EQ(tensors_["m.weight"].shape, (std::vector<int64_t>{16, 8}));
  const std::vector<float> got = rows("m.weight", 0, 16);
  for (int n = 0; n < 16; ++n)
    for (int k = 0; k < 8; ++k) {
      const int g = k / 4, zero = (n / 8 * 4 + n % 8 + g) % 16;
      EXPECT_EQ(
          got[static_cast<size_t>(n * 8 + k)],
          0.25F * static_cast<float>(g * 16 + n + 1) * static_cast<float>((3 * k + n) % 16 - zero))
          << n << " " << k;
    }
}

// ---------------------------------------------------------------- refused

TEST_F(QuantizedTest, RefusesIntsThatDoNotFit) {
  const std::vector<Tensor> right = {{"m.qweight", "I32", "[2,8]", std::string(64, '\0')},
                                     {"m.qzeros", "I32", "[2,1]", std::string(8, '\0')},
                                     {"m.scales", "F16", "[2,8]", std::string(32, '\0')},
                                     {"m.g_idx", "I32", "[16]", std::string(64, '\0')}};
  EXPECT_EQ(refusal(kGptq, right), "");
  const auto without = [&](size_t i) {
    std::vector<Tensor> out = right;
    out.erase(out.begin() + static_cast<std::ptrdiff_t>(i));
    return out;
  };
  const auto with = [&](size_t i, const char* dtype, const char* shape, size_t n) {
    std::vector<Tensor> out = right;
    out[i] = {right[i].name, dtype, shape, std::string(n, '\0')};
    return out;
  };
  const std::string why = " (a weight of [8, 16] in groups of 8, 4 bits a number)";
  EXPECT_TRUE(
      has(refusal(kGptq, without(1)),
          "model.safetensors: tensor \"m.qweight\" has no \"m.qzeros\" beside it, which its "
          "numbers need; download incomplete?"));
  EXPECT_TRUE(has(refusal(kGptq, without(2)), "has no \"m.scales\" beside it"));
  EXPECT_EQ(refusal(kGptq, without(3)), "") << "in order";
  EXPECT_TRUE(
      has(refusal(R"({"quant_method":"gptq","bits":4,"group_size":8,"desc_act":true})", without(3)),
          "has no \"m.g_idx\" beside it"));
  EXPECT_TRUE(has(refusal(kGptq, with(1, "I32", "[1,1]", 4)),
                  "tensor \"m.qzeros\" is i32 [1, 1], expected i32 [2, 1]" + why));
  EXPECT_TRUE(
      has(refusal(kGptq, with(1, "F32", "[2,1]", 8)), "is float32 [2, 1], expected i32 [2, 1]"));
  EXPECT_TRUE(has(refusal(kGptq, with(2, "F16", "[8,2]", 32)),
                  "tensor \"m.scales\" is f16 [8, 2], expected float32, bf16 or f16 [2, 8]" + why));
  EXPECT_TRUE(has(refusal(kGptq, with(3, "I32", "[8]", 32)), "is i32 [8], expected i32 [16]"));
  EXPECT_TRUE(
      has(refusal(kGptq, with(0, "I64", "[2,4]", 64)), "is i64 [2, 4], expected a matrix of i32"));
  EXPECT_TRUE(has(refusal(kGptq, with(0, "I32", "[0,8]", 0)),
                  "expected a matrix of i32 that is not empty"));
  EXPECT_TRUE(
      has(refusal(kGptq, with(0, "I32", "[2305843009213693952,0]", 0)), "that is not empty"));
  EXPECT_TRUE(has(refusal(kGptq, with(0, "I32", "[4611686018427387904,0]", 0)), "overflows"));
  EXPECT_TRUE(has(refusal(kGptq, with(0, "I32", "[16]", 64)), "expected a matrix of i32"));
  EXPECT_TRUE(has(refusal(kGptq, with(0, "I32", "[2,9]", 72)),
                  "is of a matrix with 9 rows, expected a multiple of 8"));
  for (const int32_t bad : {2, -1, 1 << 30}) {
    std::vector<Tensor> out = right;
    std::memcpy(out[3].bytes.data() + 5 * 4, &bad, 4);
    EXPECT_TRUE(has(refusal(kGptq, out), "tensor \"m.g_idx\" has group " + std::to_string(bad) +
                                             " at 5, expected 0 to 1"));
  }
  EXPECT_TRUE(has(refusal("null", right),
                  "is of a quantised matrix, but config.json has no \"quantization_config\""));
  EXPECT_TRUE(
      has(refusal(R"({"quant_method":"fp8"})", right), "config.json says quant_method \"fp8\""));
}

TEST_F(QuantizedTest, RefusesWhatItDoesNotKnow) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"(7)", "\"quantization_config\" is 7, expected a map"},
      {R"({})", "\"quantization_config.quant_method\" is missing"},
      {R"({"quant_method":"bitsandbytes"})",
       "\"quantization_config.quant_method\" is \"bitsandbytes\", this reader knows fp8, gptq, "
       "awq"},
      {R"({"quant_method":7})", "quant_method\" is 7, expected a string"},
      {R"({"quant_method":"fp8","fmt":"e5m2"})", "fmt\" is \"e5m2\", this reader knows e4m3"},
      {R"({"quant_method":"fp8","weight_block_size":[128]})", "is a list of 1, expected two sizes"},
      {R"({"quant_method":"fp8","weight_block_size":[0,128]})", "expected two sizes"},
      {R"({"quant_method":"compressed-tensors","format":"pack-quantized"})",
       "\"pack-quantized\", of compressed-tensors"},
      {R"({"quant_method":"gptq","bits":3,"group_size":8})",
       "bits\" is 3, this reader knows 4 and 8"},
      {R"({"quant_method":"gptq","bits":"4","group_size":8})", "bits\" is \"4\""},
      {R"({"quant_method":"gptq","group_size":8})", "bits\" is missing"},
      {R"({"quant_method":"gptq","bits":4})", "group_size\" is missing"},
      {R"({"quant_method":"gptq","bits":4,"group_size":0})", "group_size\" is 0, expected"},
      {R"({"quant_method":"gptq","bits":4,"group_size":8,"checkpoint_format":"marlin"})",
       "\"marlin\", this reader knows gptq and gptq_v2"},
      {R"({"quant_method":"gptq","bits":4,"group_size":8,"is_marlin_format":true})", "marlin"},
      {R"({"quant_method":"gptq","bits":4,"group_size":8,"desc_act":"no"})",
       "desc_act\" is \"no\", expected true or false"},
      {R"({"quant_method":"gptq","bits":4,"group_size":8,"dynamic":{"+:x":{"bits":8}}})",
       "dynamic\" gives modules \"+:x\" settings"},
      {R"({"quant_method":"awq","bits":8,"group_size":8})", "bits\" is 8, this reader knows 4"},
      {R"({"quant_method":"awq","bits":4,"group_size":8,"version":"gemv"})",
       "version\" is \"gemv\", this reader knows gemm"}};
  for (const auto& [config, message] : cases) {
    const std::string got = refusal(config, {{"w", "F32", "[1]", std::string(4, '\0')}});
    EXPECT_TRUE(has(got, message)) << config << ": " << got;
    EXPECT_TRUE(has(got, "config.json:1:")) << got;
  }
  EXPECT_EQ(
      refusal(
          R"({"quant_method":"GPTQ","w_bit":4,"bits":4,"group_size":8,"dynamic":{"-:lm_head":{}}})",
          {}),
      "");
  EXPECT_EQ(refusal(R"({"quant_method":"awq","w_bit":4,"q_group_size":128,"version":"GEMM"})", {}),
            "");
}

// Damaged headers: refused, or rows that lie within the bytes that are there.
TEST_F(QuantizedTest, SurvivesDamagedHeaders) {
  const std::vector<std::pair<const char*, std::vector<Tensor>>> cases = {
      {kFp8,
       {{"a.weight", "F8_E4M3", "[3,4]", std::string(12, '\x38')},
        {"a.weight_scale_inv", "BF16", "[2,2]", std::string(8, 'x')}}},
      {kGptq,
       {{"m.qweight", "I32", "[2,8]", bytes_of(gptq_levels())},
        {"m.qzeros", "I32", "[2,1]", std::string(8, 'z')},
        {"m.scales", "F16", "[2,8]", bytes_of(scales_of(2))},
        {"m.g_idx", "I32", "[16]", std::string(64, '\0')}}},
      {kAwq,
       {{"m.qweight", "I32", "[8,1]", std::string(32, 'q')},
        {"m.qzeros", "I32", "[2,1]", std::string(8, 'z')},
        {"m.scales", "F16", "[2,8]", bytes_of(scales_of(2))}}}};
  std::mt19937 random(11);
  size_t n_read = 0, n_refused = 0;
  for (const auto& [config, tensors] : cases) {
    write("config.json", std::string(R"({"quantization_config":)") + config + "}");
    const std::string good = file_with(tensors);
    for (int i = 0; i < 1000; ++i) {
      std::string bytes = good;  // of the same length: most headers stay ones
      for (uint32_t n = random() % 3; n > 0; --n)
        bytes[8 + random() % (bytes.size() - 8)] = "0123456789F[],"[random() % 14];
      write("model.safetensors", bytes);
      if (const Status s = open(); !s.is_ok()) {
        ++n_refused;
        EXPECT_FALSE(s.message().empty());
        continue;
      }
      for (const auto& [name, t] : in_parts_) {
        std::vector<uint8_t> own(t.second.bytes);
        EXPECT_TRUE(
            read_rows(name, text_of(t.second.format), 0, t.second.shape[0], own.data()).is_ok());
        ++n_read;
      }
    }
  }
  EXPECT_GT(n_read, 300u);
  EXPECT_GT(n_refused, 300u);
}

}  // namespace
}  // namespace dovetail::core
