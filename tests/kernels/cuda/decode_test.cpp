// The launches of few tokens against those that they stand for: the same bits, with every kind of weights.
#include <kernels/cached_rows.hpp>
#include <kernels/cuda_decode.hpp>

#include <algorithm>
#include <memory>
#include <string>

#include "tests/kernels/cuda/device_rig.hpp"

namespace dovetail::kernels::cuda {
namespace {

constexpr MatrixNumbers kNumbers[] = {
    MatrixNumbers::kFloat32, MatrixNumbers::kBf16,  MatrixNumbers::kF16, MatrixNumbers::kInt8,
    MatrixNumbers::kInt4,    MatrixNumbers::kInt4q, MatrixNumbers::kInt6};
bool is_packed(MatrixNumbers numbers) {
  return numbers >= MatrixNumbers::kInt8;
}

/// A matrix of noise, in those numbers.
struct Weights {
  Weights(MatrixNumbers numbers, int64_t n_rows, int64_t k_len, uint32_t seed) {
    const std::vector<float> values = noise(n_rows * k_len, seed);
    const auto keep = [&](const auto& stored) {
      bytes.resize(stored.size() * sizeof(stored[0]));
      std::memcpy(bytes.data(), stored.data(), bytes.size());
    };
    constexpr QuantizeRowsFn* kQuantize[] = {ref::quantize_rows_int8, ref::quantize_rows_int4,
                                             ref::quantize_rows_int4q, ref::quantize_rows_int6};
    if (numbers == MatrixNumbers::kFloat32) keep(values);
    if (numbers == MatrixNumbers::kBf16) keep(to_bf16(values));
    if (numbers == MatrixNumbers::kF16) keep(to_f16(values));
    for (int i = 0; i < kWeightFormats; ++i) {
      const auto format = static_cast<WeightFormat>(i);
      if (numbers_of(format) != numbers) continue;
      bytes.resize(static_cast<size_t>(packed_bytes(format, n_rows, k_len)));
      kQuantize[i](bytes.data(), values.data(), 0, n_rows, n_rows, k_len);
    }
    matrix = {bytes.data(), numbers, n_rows, k_len};
  }
  Weights(const Weights&) = delete;
  Weights& operator=(const Weights&) = delete;

  DeviceVector<uint8_t> bytes;
  Matrix matrix;
};

/// The launches that take the place of one: rms_norm where there is a weight, cut_activations, linear.
DeviceVector<float> chain(const DeviceVector<float>& x, const DecodeNorm& norm, const Matrix& w,
                          const float* bias, const float* residual, int64_t n_tokens) {
  DeviceVector<float> in = x, y(static_cast<size_t>(n_tokens * w.n_rows));
  if (norm.g_weight != nullptr)
    rms_norm(kStream, in.data(), x.data(), norm.g_weight, n_tokens, w.k_len, norm.eps,
             norm.weight_offset);
  DeviceVector<uint8_t> cut(static_cast<size_t>(cut_bytes(n_tokens, w.k_len)));
  cut_activations(kStream, cut.data(), in.data(), n_tokens, w.k_len);
  linear(kStream, y.data(), cut.data(), w, bias, residual, n_tokens);
  return y;
}
template <class Values>
void expect_bits(const Values& got, const Values& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_EQ(std::memcmp(&got[i], &expected[i], sizeof got[i]), 0)
        << "element " << i << ": got " << +got[i] << ", expected " << +expected[i];
}

struct Shape {
  int64_t n_tokens, n_rows, k_len;
};
/// Tails of rows and of k (packed rows are whole blocks), rows that eight warps norm, more blocks of k than are
/// loaded ahead.
std::vector<Shape> shapes_for(MatrixNumbers numbers) {
  if (is_packed(numbers)) return {{1, 40, 64}, {8, 16, 1088}};
  return {{1, 40, 52}, {3, 33, 1030}, {8, 16, 2056}, {5, 5, 1}};
}
std::string text_of(MatrixNumbers numbers, const Shape& s) {
  return "numbers " + std::to_string(static_cast<int>(numbers)) + ", " +
         std::to_string(s.n_tokens) + " tokens, " + std::to_string(s.n_rows) + " rows of " +
         std::to_string(s.k_len);
}

TEST(CudaDecodeLinear, GivesTheBitsOfItsLaunches) {
  for (const MatrixNumbers numbers : kNumbers)
    for (const Shape& s : shapes_for(numbers)) {
      SCOPED_TRACE(text_of(numbers, s));
      const Weights w(numbers, s.n_rows, s.k_len, 61);
      const auto x = device_noise(s.n_tokens * s.k_len, 62),
                 norm_weight = device_noise(s.k_len, 63);
      const auto bias = device_noise(s.n_rows, 64),
                 before = device_noise(s.n_tokens * s.n_rows, 65);
      const auto run = [&](const DecodeNorm& norm, const float* g_bias, const float* g_residual) {
        return under_all_schedules([&] {
          DeviceVector<float> y(before.size(), -7.0F);
          decode_linear(kStream, y.data(), x.data(), norm, w.matrix, g_bias, g_residual,
                        s.n_tokens);
          return y;
        });
      };
      const DecodeNorm none{}, norm{norm_weight.data(), 1e-5F, 1.0F};
      expect_bits(run(none, nullptr, before.data()),
                  chain(x, none, w.matrix, nullptr, before.data(), s.n_tokens));
      expect_bits(run(norm, bias.data(), nullptr),
                  chain(x, norm, w.matrix, bias.data(), nullptr, s.n_tokens));
    }
}

TEST(CudaDecodeGateUp, GivesTheBitsOfItsLaunches) {
  for (const MatrixNumbers numbers : kNumbers)
    for (const Shape& s : shapes_for(numbers)) {
      SCOPED_TRACE(text_of(numbers, s));
      const Weights gate(numbers, s.n_rows, s.k_len, 71), up(numbers, s.n_rows, s.k_len, 72);
      const auto x = device_noise(s.n_tokens * s.k_len, 73),
                 norm_weight = device_noise(s.k_len, 74);
      const auto bias = device_noise(s.n_rows, 75);
      const DecodeNorm norm{norm_weight.data(), 1e-6F, 0.0F};
      const auto got = under_all_schedules([&] {
        DeviceVector<float> y(static_cast<size_t>(s.n_tokens * s.n_rows), -7.0F);
        decode_gate_up(kStream, y.data(), x.data(), norm, gate.matrix, up.matrix, bias.data(),
                       nullptr, s.n_tokens);
        return y;
      });
      const auto gate_sums = chain(x, norm, gate.matrix, bias.data(), nullptr, s.n_tokens);
      const auto up_sums = chain(x, norm, up.matrix, nullptr, nullptr, s.n_tokens);
      DeviceVector<float> expected(got.size());
      silu_mul(kStream, expected.data(), gate_sums.data(), up_sums.data(), std::ssize(expected));
      expect_bits(got, expected);
    }
}

/// Heads of q, k and v; how many tokens, from which position on.
struct Heads {
  int64_t n_tokens, n_heads, n_kv_heads, head_dim, half_len, k_len;
  bool has_norms;
};
template <class Element>
constexpr CacheNumbers kCache = CacheNumbers::kFloat32;
template <>
constexpr CacheNumbers kCache<uint16_t> = CacheNumbers::kBf16;
template <>
constexpr CacheNumbers kCache<int8_t> = CacheNumbers::kInt8;

template <class Element>
struct QkvRig {
  QkvRig(MatrixNumbers numbers, const Heads& heads)
      : h(heads),
        wq(numbers, h.n_heads * h.head_dim, h.k_len, 81),
        wk(numbers, h.n_kv_heads * h.head_dim, h.k_len, 82),
        wv(numbers, h.n_kv_heads * h.head_dim, h.k_len, 83),
        layout{h.n_kv_heads, h.head_dim, kPageLen,
               h.n_kv_heads * kPageLen * cached_row_len<Element>(h.head_dim)} {
    for (int64_t t = 0; t < h.n_tokens; ++t) {  // each token of a sequence of its own
      positions.push_back(static_cast<int32_t>(2 * t));
      page_begin.push_back(static_cast<uint32_t>(t * kPagesOfToken));
      for (int64_t p = 0; p < kPagesOfToken; ++p)
        pages.push_back(static_cast<uint32_t>(t * kPagesOfToken + kPagesOfToken - 1 - p));
    }
    x = device_noise(h.n_tokens * h.k_len, 84);
    norm_weight = device_noise(h.k_len, 85);
    q_norm = device_noise(h.head_dim, 86), k_norm = device_noise(h.head_dim, 87);
    q_bias = device_noise(h.n_heads * h.head_dim, 88);
    cos = device_noise(h.n_tokens * h.half_len, 89),
    sin = device_noise(h.n_tokens * h.half_len, 90);
    cache_len = static_cast<size_t>(h.n_tokens * kPagesOfToken * layout.page_stride);
  }
  static constexpr int64_t kPageLen = 4, kPagesOfToken = 4;

  StepRows step() const { return {positions.data(), page_begin.data(), pages.data(), h.n_tokens}; }
  DecodeNorm norm() const { return {norm_weight.data(), 1e-6F, 0.0F}; }
  DecodeNorm head_norm(const DeviceVector<float>& weight) const {
    return {h.has_norms ? weight.data() : nullptr, 1e-5F, 1.0F};
  }
  /// q, then the bytes of both caches.
  struct Result {
    DeviceVector<float> q;
    DeviceVector<Element> keys, values;
  };
  Result empty() const {
    return {DeviceVector<float>(static_cast<size_t>(h.n_tokens * h.n_heads * h.head_dim), -7.0F),
            DeviceVector<Element>(cache_len, Element{1}),
            DeviceVector<Element>(cache_len, Element{1})};
  }
  Result at_once() const {
    Result out = empty();
    DeviceVector<float> products(
        static_cast<size_t>(decode_qkv_products_len(h.n_heads, h.n_kv_heads, h.head_dim)), NAN);
    DeviceVector<uint32_t> arrived(static_cast<size_t>(h.n_heads + 2 * h.n_kv_heads), 0);
    decode_qkv(kStream, {x.data(),
                         norm(),
                         {wq.matrix.g_w, q_bias.data(), head_norm(q_norm)},
                         {wk.matrix.g_w, nullptr, head_norm(k_norm)},
                         {wv.matrix.g_w, nullptr, {}},
                         wq.matrix.numbers,
                         h.k_len,
                         h.n_heads,
                         cos.data(),
                         sin.data(),
                         h.half_len,
                         out.q.data(),
                         layout,
                         kCache<Element>,
                         out.keys.data(),
                         out.values.data(),
                         step(),
                         products.data(),
                         arrived.data()});
    EXPECT_EQ(std::ranges::count(arrived, 0U), std::ssize(arrived));
    return out;
  }
  DeviceVector<float> turned(DeviceVector<float> rows, const DecodeNorm& of_head,
                             int64_t n_heads) const {
    if (of_head.g_weight != nullptr)
      rms_norm(kStream, rows.data(), rows.data(), of_head.g_weight, h.n_tokens * n_heads,
               h.head_dim, of_head.eps, of_head.weight_offset);
    DeviceVector<float> out(rows.size());
    const int64_t stride = n_heads * h.head_dim;
    rope_half_split(kStream, out.data(), stride, rows.data(), stride, cos.data(), sin.data(),
                    h.n_tokens, n_heads, h.head_dim, h.half_len);
    return out;
  }
  Result in_turn() const {
    Result out = empty();
    out.q = turned(chain(x, norm(), wq.matrix, q_bias.data(), nullptr, h.n_tokens),
                   head_norm(q_norm), h.n_heads);
    const auto keys = turned(chain(x, norm(), wk.matrix, nullptr, nullptr, h.n_tokens),
                             head_norm(k_norm), h.n_kv_heads);
    const auto values = chain(x, norm(), wv.matrix, nullptr, nullptr, h.n_tokens);
    cache_write(kStream, out.keys.data(), layout, step(), keys.data());
    cache_write(kStream, out.values.data(), layout, step(), values.data());
    return out;
  }

  Heads h;
  Weights wq, wk, wv;
  KvLayout layout;
  DeviceVector<int32_t> positions;
  DeviceVector<uint32_t> page_begin, pages;
  DeviceVector<float> x, norm_weight, q_norm, k_norm, q_bias, cos, sin;
  size_t cache_len = 0;
};

template <class Element>
void expect_qkv(MatrixNumbers numbers, const Heads& heads) {
  SCOPED_TRACE("numbers " + std::to_string(static_cast<int>(numbers)) + ", heads of " +
               std::to_string(heads.head_dim));
  const QkvRig<Element> rig(numbers, heads);
  const auto expected = rig.in_turn();
  expect_bits(under_all_schedules([&] { return rig.at_once().q; }), expected.q);
  expect_bits(under_all_schedules([&] { return rig.at_once().keys; }), expected.keys);
  expect_bits(under_all_schedules([&] { return rig.at_once().values; }), expected.values);
}
TEST(CudaDecodeQkv, GivesTheBitsOfItsLaunches) {
  for (const MatrixNumbers numbers : kNumbers) {
    const int64_t k_len = is_packed(numbers) ? 64 : 52;
    expect_qkv<uint16_t>(numbers, {3, 4, 2, 32, 16, k_len, true});
  }
}
// Heads that tiles do not divide, and that are turned in part; the longest ones.
TEST(CudaDecodeQkv, TakesHeadsOfAnyLengthAndEveryCache) {
  for (const auto numbers : {MatrixNumbers::kBf16, MatrixNumbers::kInt4}) {
    expect_qkv<float>(numbers, {8, 4, 2, 10, 3, 64, false});
    expect_qkv<int8_t>(numbers, {2, 6, 2, 44, 22, 64, true});
    expect_qkv<uint16_t>(numbers, {1, 2, 1, 256, 64, 32, true});
  }
}

}  // namespace
}  // namespace dovetail::kernels::cuda
