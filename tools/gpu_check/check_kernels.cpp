// Every kernel of kernels/cuda.hpp against its reference: at shapes of Qwen3-0.6B, and at small ones that nothing
// divides.
#include <kernels/attend.hpp>

#include <algorithm>
#include <array>
#include <utility>

#include "tools/gpu_check/session.hpp"

namespace dovetail::gpu_check {
namespace {

namespace k = kernels::cuda;
using reference::Pointwise;

std::string by(std::initializer_list<int64_t> sizes) {
  std::string out;
  for (const int64_t n : sizes) out += (out.empty() ? "" : "x") + std::to_string(n);
  return out;
}
/// Where a device is emulated, small shapes alone.
template <class T>
std::vector<T> shapes(const Session& session, std::vector<T> small, const std::vector<T>& real) {
  if (!session.is_tiny()) small.insert(small.end(), real.begin(), real.end());
  return small;
}

struct Rows {
  int64_t n_rows, row_len;
};

void check_rows(Session& s) {
  // Short rows are a warp's, long ones a block's.
  for (const auto& [n, len] :
       shapes<Rows>(s, {{1, 1}, {5, 33}, {3, 1030}, {2, 2056}},
                    {{1, 1024}, {64, 1024}, {256, 1024}, {4096, 128}, {64, 4096}})) {
    for (const float offset : {0.0F, 1.0F})
      s.check("rms_norm", by({n, len}) + (offset == 0.0F ? "" : " + offset"), [&](Lab& lab) {
        float *x = lab.noise(n * len, 3.0F), *weight = lab.noise(len), *out = lab.floats(n * len);
        const Expected expected = lab.expected(n * len);
        k::rms_norm(lab.stream(), out, x, weight, n, len, 1e-6F, offset);
        reference::rms_norm(lab.stream(), expected, x, weight, n, len, 1e-6F, offset);
        lab.hold(out, expected, n * len);
      });
    s.check("mean_rows", by({n, len}), [&](Lab& lab) {
      float *x = lab.noise(n * len), *out = lab.floats(n);
      const Expected expected = lab.expected(n);
      k::mean_rows(lab.stream(), out, x, n, len);
      reference::mean_rows(lab.stream(), expected, x, n, len);
      lab.hold(out, expected, n);
    });
  }
  for (const auto& [n, len] :
       shapes<Rows>(s, {{1, 1}, {3, 33}, {2, 1030}}, {{1, 151936}, {16, 576}, {8, 151936}})) {
    s.check("softmax", by({n, len}), [&](Lab& lab) {
      float *x = lab.noise(n * len, 8.0F), *out = lab.floats(n * len);
      const Expected expected = lab.expected(n * len);
      k::softmax(lab.stream(), out, x, n, len);
      reference::softmax(lab.stream(), expected, x, n, len);
      lab.hold(out, expected, n * len);
    });
    for (const bool has_mask : {false, true})
      s.check("argmax", by({n, len}) + (has_mask ? " masked" : ""), [&](Lab& lab) {
        float* x = lab.floats(n * len);
        fill_levels(lab.stream(), x, n * len, 5, 50);  // the greatest one more than once
        auto* mask = lab.room<uint32_t>((len + 31) / 32);
        fill_bytes(lab.stream(), mask, (len + 31) / 32 * 4, 6);
        const uint32_t* g_mask = has_mask ? mask : nullptr;
        auto* ids = lab.room<int32_t>(n);
        const Expected expected = lab.expected(n);
        float* got = lab.floats(n);
        k::argmax(lab.stream(), ids, x, g_mask, n, len);
        as_floats(lab.stream(), got, ids, n);
        reference::argmax(lab.stream(), expected, x, g_mask, n, len);
        lab.hold(got, expected, n);
      });
  }
  s.check("take_tokens", "300 tokens", [&](Lab& lab) {
    constexpr int64_t kTokens = 300, kSampled = 7;
    std::vector<int32_t> tokens, from, expected;
    std::vector<int32_t> sampled = {40, -1, 42, 43, 44, 45, 46, 50, 51, 52, 53, 54, 55, -1};
    for (int32_t i = 0; i < kTokens; ++i) {
      tokens.push_back(1000 + i);
      from.push_back(i % 3 == 0 ? -1 : i % 14);
      const int32_t id =
          from.back() < 0 ? tokens.back() : sampled[static_cast<size_t>(from.back())];
      expected.push_back(std::max(id, 0));
    }
    auto *g_tokens = lab.copied(tokens), *g_sampled = lab.copied(sampled);
    k::take_tokens(lab.stream(), g_tokens, lab.copied(from), g_sampled, kTokens, kSampled);
    lab.hold_bytes(g_tokens, lab.copied(expected), kTokens * 4);
    std::copy_n(sampled.begin(), kSampled, sampled.begin() + kSampled);
    lab.hold_bytes(g_sampled, lab.copied(sampled), 2 * kSampled * 4);
  });
}

void check_pointwise(Session& s) {
  using Binary = void(Stream, float*, const float*, const float*, int64_t, k::Broadcast);
  using Unary = void(Stream, float*, const float*, int64_t);
  using Scalar = void(Stream, float*, const float*, float, int64_t);
  for (const int64_t n : shapes<int64_t>(s, {1, 255, 1000}, {3072, 256 * 3072})) {
    const auto check = [&](const std::string& name, Pointwise op, k::Broadcast of_b, float value,
                           bool has_b, const auto& launch) {
      s.check(name, std::to_string(n), [&](Lab& lab) {
        float *a = lab.noise(n, 6.0F), *b = has_b ? lab.noise(n) : nullptr, *out = lab.floats(n);
        if (op == Pointwise::kRsqrt) fill_levels(lab.stream(), a, n, 3, 1000);  // zero too
        const Expected expected = lab.expected(n);
        launch(lab.stream(), out, a, b);
        reference::pointwise(lab.stream(), op, expected, a, b, value, n, of_b.repeat, of_b.period);
        lab.hold(out, expected, n);
      });
    };
    const k::Broadcast all{1, n}, some{3, (n + 4) / 5};
    for (const auto& [name, op, fn] :
         {std::tuple<const char*, Pointwise, Binary*>{"add", Pointwise::kAdd, k::add},
          {"mul", Pointwise::kMul, k::mul}})
      for (const k::Broadcast& b : {all, some})
        check(name, op, b, 0, true,
              [&, launch = fn](Stream stream, float* out, float* x, float* y) {
                launch(stream, out, x, y, n, b);
              });
    check(
        "silu_mul", Pointwise::kSiluMul, all, 0, true,
        [&](Stream stream, float* out, float* x, float* y) { k::silu_mul(stream, out, x, y, n); });
    for (const auto& [name, op, fn] :
         {std::tuple<const char*, Pointwise, Unary*>{"silu", Pointwise::kSilu, k::silu},
          {"gelu_tanh", Pointwise::kGeluTanh, k::gelu_tanh},
          {"rsqrt", Pointwise::kRsqrt, k::rsqrt}})
      check(name, op, all, 0, false, [&, launch = fn](Stream stream, float* out, float* x, float*) {
        launch(stream, out, x, n);
      });
    for (const auto& [name, op, fn] : {std::tuple<const char*, Pointwise, Scalar*>{
                                           "add_scalar", Pointwise::kAddScalar, k::add_scalar},
                                       {"mul_scalar", Pointwise::kMulScalar, k::mul_scalar}})
      check(name, op, all, 0.37F, false,
            [&, launch = fn](Stream stream, float* out, float* x, float*) {
              launch(stream, out, x, 0.37F, n);
            });
  }
}

struct HeadShape {
  int64_t n_tokens, n_heads, head_dim, half_len;
};
void check_rope(Session& s) {
  for (const HeadShape& h :
       shapes<HeadShape>(s, {{1, 1, 2, 1}, {5, 3, 20, 7}},
                         {{1, 16, 128, 64}, {64, 16, 128, 64}, {256, 8, 128, 64}})) {
    const std::string shape =
        by({h.n_tokens, h.n_heads, h.head_dim}) + " half " + std::to_string(h.half_len);
    s.check("rope_table", shape, [&](Lab& lab) {
      const int64_t n = h.n_tokens * h.half_len;
      std::vector<int32_t> positions;
      std::vector<float> frequencies;
      for (int64_t t = 0; t < h.n_tokens; ++t) positions.push_back(static_cast<int32_t>(t * 157));
      for (int64_t i = 0; i < h.half_len; ++i)
        frequencies.push_back(1.0F / static_cast<float>(1 + i * i * 40));
      auto* g_positions = lab.copied(positions);
      auto* g_frequencies = lab.copied(frequencies);
      float *cosines = lab.floats(n), *sines = lab.floats(n);
      const Expected of_cosines = lab.expected(n), of_sines = lab.expected(n);
      k::rope_table(lab.stream(), cosines, sines, g_positions, g_frequencies, h.n_tokens,
                    h.half_len, 0.9F);
      reference::rope_table(lab.stream(), of_cosines, of_sines, g_positions, g_frequencies,
                            h.n_tokens, h.half_len, 0.9F);
      lab.hold(cosines, of_cosines, n);
      lab.hold(sines, of_sines, n);
    });
    s.check("rope_half_split", shape, [&](Lab& lab) {
      const int64_t stride = h.n_heads * h.head_dim, n = h.n_tokens * stride;
      float *x = lab.noise(n), *out = lab.floats(n);
      float *c = lab.noise(h.n_tokens * h.half_len), *sn = lab.noise(h.n_tokens * h.half_len);
      const Expected expected = lab.expected(n);
      k::rope_half_split(lab.stream(), out, stride, x, stride, c, sn, h.n_tokens, h.n_heads,
                         h.head_dim, h.half_len);
      reference::rope_half_split(lab.stream(), expected, x, c, sn, h.n_tokens, h.n_heads,
                                 h.head_dim, h.half_len);
      lab.hold(out, expected, n);
    });
  }
}

bool is_packed(MatrixNumbers numbers) {
  return numbers >= MatrixNumbers::kInt8;
}
kernels::WeightFormat format_of(MatrixNumbers numbers) {
  for (int i = 0; i < kernels::kWeightFormats; ++i)
    if (k::numbers_of(static_cast<kernels::WeightFormat>(i)) == numbers)
      return static_cast<kernels::WeightFormat>(i);
  throw std::logic_error("not a packed format");
}
void gather(Stream stream, float* g_out, const Matrix& table, const int32_t* g_ids, int64_t n_ids) {
  if (table.numbers == MatrixNumbers::kFloat32)
    return k::gather_rows(stream, g_out, static_cast<const float*>(table.g_w), g_ids, n_ids,
                          table.k_len);
  if (table.numbers == MatrixNumbers::kBf16)
    return k::gather_rows(stream, g_out, static_cast<const uint16_t*>(table.g_w), g_ids, n_ids,
                          table.k_len);
  if (table.numbers == MatrixNumbers::kF16)
    return k::gather_rows(stream, g_out, static_cast<const kernels::F16*>(table.g_w), g_ids, n_ids,
                          table.k_len);
  k::gather_packed_rows(stream, g_out, table.g_w, format_of(table.numbers), g_ids, n_ids,
                        table.k_len);
}
void check_gather(Session& s) {
  for (const MatrixNumbers numbers : kAllNumbers) {
    const int64_t odd_len = is_packed(numbers) ? 96 : 37;
    for (const auto& [n_rows, len] : shapes<Rows>(s, {{41, odd_len}}, {{151936, 1024}}))
      s.check("gather_rows " + name_of(numbers), by({n_rows, len}), [&](Lab& lab) {
        std::vector<int32_t> ids;
        for (int64_t i = 0; i < 19; ++i)
          ids.push_back(static_cast<int32_t>((i * 7919 + 40) % n_rows));
        const auto n = static_cast<int64_t>(ids.size());
        const Matrix table = lab.matrix(numbers, n_rows, len);
        auto* g_ids = lab.copied(ids);
        float* out = lab.floats(n * len);
        const Expected expected = lab.expected(n * len);
        gather(lab.stream(), out, table, g_ids, n);
        reference::gather_rows(lab.stream(), expected, table, g_ids, n);
        lab.hold(out, expected, n * len);
      });
  }
}

struct Product {
  int64_t n_tokens, n_rows, k_len;
};
void check_linear(Session& s) {
  for (const auto& [n, len] : shapes<Rows>(s, {{3, 1}, {2, 52}}, {{64, 1024}, {256, 3072}}))
    s.check("cut_activations", by({n, len}), [&](Lab& lab) {
      const int64_t n_cut = n * k::cut_row_len(len);
      float *x = lab.noise(n * len, 5.0F), *got = lab.floats(n_cut);
      void* cut = lab.bytes(k::cut_bytes(n, len));
      const Expected expected = lab.expected(n_cut);
      k::cut_activations(lab.stream(), cut, x, n, len);
      reference::sum_parts(lab.stream(), got, cut, n, len);
      reference::filled_rows(lab.stream(), expected, x, n, len);
      lab.hold(got, expected, n_cut);
    });
  for (const MatrixNumbers numbers : kAllNumbers) {
    const int64_t odd = is_packed(numbers) ? 96 : 52;
    for (const Product& p :
         shapes<Product>(s, {{1, 16, 32}, {3, 40, odd}, {8, 33, 160}, {70, 17, odd}},
                         {{1, 2048, 1024},
                          {8, 3072, 1024},
                          {64, 1024, 3072},
                          {256, 1024, 2048},
                          {2, 151936, 1024}}))
      for (const bool is_added : {false, true}) {
        if (is_added && p.n_rows > 10000) continue;
        s.check("linear " + name_of(numbers),
                by({p.n_tokens, p.n_rows, p.k_len}) + (is_added ? " + bias + residual" : ""),
                [&](Lab& lab) {
                  const int64_t n = p.n_tokens * p.n_rows;
                  float *x = lab.noise(p.n_tokens * p.k_len), *y = lab.floats(n);
                  float* bias = is_added ? lab.noise(p.n_rows) : nullptr;
                  float* residual = is_added ? lab.noise(n) : nullptr;
                  const Matrix w = lab.matrix(numbers, p.n_rows, p.k_len);
                  void* cut = lab.bytes(k::cut_bytes(p.n_tokens, p.k_len));
                  const Expected expected = lab.expected(n);
                  k::cut_activations(lab.stream(), cut, x, p.n_tokens, p.k_len);
                  k::linear(lab.stream(), y, cut, w, bias, residual, p.n_tokens);
                  reference::linear(lab.stream(), expected, x, nullptr, w, bias, residual,
                                    p.n_tokens);
                  lab.hold(y, expected, n);
                });
      }
  }
}

struct Attention {
  std::string name;
  std::vector<Part> parts;
  int64_t n_kv_heads, n_group_heads, head_dim, page_len, window;
};
std::vector<Attention> attentions(const Session& s) {
  std::vector<Part> batch;
  for (int64_t i = 0; i < 256; ++i) batch.push_back({i < 250 ? 100 + i : 575, 1});
  return shapes<Attention>(
      s,
      {{"ragged", {{0, 3}, {70, 1}, {5, 20}}, 2, 3, 20, 4, INT64_MAX},
       {"long heads, window", {{40, 2}}, 1, 2, 136, 16, 30},
       {"two chunks", {{520, 1}}, 1, 2, 8, 16, INT64_MAX}},
      {{"decode of 1 at 128", {{127, 1}}, 8, 2, 128, 16, INT64_MAX},
       {"decode of 256 to 576", batch, 8, 2, 128, 16, INT64_MAX},
       {"decode at 8192", {{8191, 1}, {4000, 1}}, 8, 2, 128, 16, INT64_MAX},
       {"prefill of 300 after 500, 200", {{500, 300}, {0, 200}}, 8, 2, 128, 16, INT64_MAX},
       {"window of 512 at 2000", {{2000, 9}}, 8, 4, 128, 16, 512}});
}
void check_cache(Session& s) {
  for (const CacheNumbers cache : kAllCaches)
    for (const Attention& a : attentions(s)) {
      s.check("cache_write " + name_of(cache), a.name, [&](Lab& lab) {
        const CachedStep step =
            cached_step(lab, a.parts, cache, a.n_kv_heads, a.n_group_heads, a.head_dim, a.page_len);
        void *got = noise_cache(lab, step, cache, 9), *expected = noise_cache(lab, step, cache, 9);
        float* rows = lab.noise(step.rows.n_tokens * a.n_kv_heads * a.head_dim);
        cache_write_of(lab.stream(), got, cache, step.layout, step.rows, rows);
        reference::cache_write(lab.stream(), expected, cache, step.layout, step.rows, rows);
        lab.hold_bytes(got, expected, step.cache_bytes);
      });
      for (const bool in_parts : {false, true})
        s.check("attend " + name_of(cache), a.name + (in_parts ? ", in parts" : ""), [&](Lab& lab) {
          const CachedStep step = cached_step(lab, a.parts, cache, a.n_kv_heads, a.n_group_heads,
                                              a.head_dim, a.page_len);
          const int64_t n_heads = a.n_kv_heads * a.n_group_heads, n_tokens = step.rows.n_tokens;
          const int64_t n = n_tokens * n_heads * a.head_dim;
          const float scale = 2.0F / static_cast<float>(a.head_dim);
          void *keys = noise_cache(lab, step, cache, 11),
               *values = noise_cache(lab, step, cache, 12);
          float *q = lab.noise(n, 8.0F), *out = lab.floats(n);
          k::AttendArgs args{out, q, step.g_tiles, step.n_tiles, n_heads, a.window, scale};
          const int64_t n_arrived = step.n_tiles * n_heads;
          auto* arrived = lab.zeros<uint32_t>(n_arrived);
          if (in_parts) {
            args.n_chunks = (step.longest + kernels::kAttendChunk - 1) / kernels::kAttendChunk;
            args.g_parts =
                lab.floats(k::attend_parts_len(n_tokens, n_heads, a.head_dim, args.n_chunks));
            args.g_arrived = arrived;
          }
          const Expected expected = lab.expected(n);
          attend_of(lab.stream(), args, cache, step.layout, step.rows, keys, values);
          reference::attend(lab.stream(), expected, q, keys, values, cache, step.layout, step.rows,
                            n_heads, a.window, scale, lab.floats(n_tokens * n_heads * step.longest),
                            step.longest);
          lab.hold(out, expected, n);
          lab.hold_bytes(arrived, lab.zeros<uint32_t>(n_arrived), n_arrived * 4);
        });
    }
}

}  // namespace

void check_kernels(Session& session) {
  check_rows(session);
  check_pointwise(session);
  check_rope(session);
  check_gather(session);
  check_linear(session);
  check_cache(session);
}

}  // namespace dovetail::gpu_check
