// What the device can do, and how long each kernel takes at shapes of Qwen3-0.6B, and the largest of Qwen3-8B.
#include <kernels/attend.hpp>

#include <algorithm>

#include "tools/gpu_check/session.hpp"

namespace dovetail::gpu_check {
namespace {

namespace k = kernels::cuda;

constexpr double kGiga = 1e9;
std::string tokens(int64_t n) {
  return std::to_string(n) + (n == 1 ? " token" : " tokens");
}

struct Shape {
  std::string what;
  int64_t n_rows, k_len;
};

void time_products(Session& s) {
  const std::vector<Shape> shapes =
      s.is_tiny() ? std::vector<Shape>{{"tiny", 32, 64}}
                  : std::vector<Shape>{{"0.6B q", 2048, 1024},      {"0.6B o", 1024, 2048},
                                       {"0.6B gate", 3072, 1024},   {"0.6B down", 1024, 3072},
                                       {"0.6B head", 151936, 1024}, {"8B gate", 12288, 4096},
                                       {"8B down", 4096, 12288}};
  const std::vector<int64_t> batches =
      s.is_tiny() ? std::vector<int64_t>{1, 9} : std::vector<int64_t>{1, 8, 64, 256};
  for (const Shape& shape : shapes)
    for (const MatrixNumbers numbers : kAllNumbers)
      for (const int64_t n : batches) {
        // Of the other formats, what decode is about.
        const bool is_main = numbers == MatrixNumbers::kBf16;
        if (!is_main && !s.is_tiny() && (n == 256 || (n == 64 && shape.what != "0.6B gate")))
          continue;
        const auto w_bytes = static_cast<double>(matrix_bytes(numbers, shape.n_rows, shape.k_len));
        const double bytes =
            w_bytes + static_cast<double>(n * (shape.n_rows * 4 + shape.k_len * 6));
        const double flops = 2.0 * static_cast<double>(n * shape.n_rows * shape.k_len);
        const auto weights = [&s, numbers, shape](Lab& lab, int64_t n_copies) {
          std::vector<Matrix> out;
          for (int64_t i = 0; i < n_copies; ++i)
            out.push_back(lab.matrix(numbers, shape.n_rows, shape.k_len));
          return out;
        };
        s.time("linear " + name_of(numbers), shape.what + ", " + tokens(n), bytes, flops,
               [&](Lab& lab, int64_t n_copies) -> std::function<void(int64_t)> {
                 void* cut = lab.bytes(k::cut_bytes(n, shape.k_len));
                 k::cut_activations(lab.stream(), cut, lab.noise(n * shape.k_len), n, shape.k_len);
                 return [=, w = weights(lab, n_copies), stream = lab.stream(),
                         y = lab.floats(n * shape.n_rows)](int64_t i) {
                   k::linear(stream, y, cut, w[static_cast<size_t>(i)], nullptr, nullptr, n);
                 };
               });
        if (n > k::kDecodeTokens) continue;
        const auto decode = [&](const std::string& name, bool is_gate_up) {
          const double times = is_gate_up ? 2 : 1;
          s.time(name + " " + name_of(numbers), shape.what + ", " + tokens(n),
                 bytes + (times - 1) * w_bytes, times * flops,
                 [&](Lab& lab, int64_t n_copies) -> std::function<void(int64_t)> {
                   const k::DecodeNorm norm{lab.noise(shape.k_len), 1e-6F, 0.0F};
                   return [=, w = weights(lab, n_copies),
                           up = is_gate_up ? weights(lab, n_copies) : std::vector<Matrix>{},
                           stream = lab.stream(), x = lab.noise(n * shape.k_len),
                           y = lab.floats(n * shape.n_rows)](int64_t i) {
                     const auto at = static_cast<size_t>(i);
                     if (is_gate_up)
                       k::decode_gate_up(stream, y, x, norm, w[at], up[at], nullptr, nullptr, n);
                     else
                       k::decode_linear(stream, y, x, norm, w[at], nullptr, nullptr, n);
                   };
                 });
        };
        decode("decode_linear", false);
        if (shape.what.find("gate") != std::string::npos || s.is_tiny())
          decode("decode_gate_up", true);
      }
}

struct Heads {
  std::string what;
  int64_t n_heads, n_kv_heads, head_dim, d_model;
};
void time_attention(Session& s) {
  const Heads h = s.is_tiny() ? Heads{"tiny", 4, 2, 16, 64} : Heads{"0.6B", 16, 8, 128, 1024};
  const std::vector<int64_t> batches =
      s.is_tiny() ? std::vector<int64_t>{1, 9} : std::vector<int64_t>{1, 8, 64, 256};
  const std::vector<int64_t> contexts =
      s.is_tiny() ? std::vector<int64_t>{20} : std::vector<int64_t>{128, 576, 4096};
  for (const CacheNumbers cache : kAllCaches)
    for (const int64_t n : batches) {
      const double number_bytes = cache == CacheNumbers::kFloat32 ? 4
                                  : cache == CacheNumbers::kBf16  ? 2
                                                                  : 1;
      for (const int64_t context : contexts) {
        if (n * context > 256 * 576) continue;
        for (const bool in_parts : {false, true}) {
          if (in_parts && context <= kernels::kAttendChunk) continue;
          const double bytes =
              2 * number_bytes * static_cast<double>(n * context * h.n_kv_heads * h.head_dim);
          s.time("attend " + name_of(cache),
                 h.what + ", " + tokens(n) + " at " + std::to_string(context) +
                     (in_parts ? ", in parts" : ""),
                 bytes, 4.0 * static_cast<double>(n * context * h.n_heads * h.head_dim),
                 [&](Lab& lab, int64_t n_copies) -> std::function<void(int64_t)> {
                   const std::vector<Part> parts(static_cast<size_t>(n), {context - 1, 1});
                   const CachedStep step = cached_step(lab, parts, cache, h.n_kv_heads,
                                                       h.n_heads / h.n_kv_heads, h.head_dim, 16);
                   std::vector<void*> caches;
                   for (int64_t i = 0; i < 2 * n_copies; ++i)
                     caches.push_back(noise_cache(lab, step, cache, static_cast<uint32_t>(i)));
                   k::AttendArgs args{lab.floats(n * h.n_heads * h.head_dim),
                                      lab.noise(n * h.n_heads * h.head_dim),
                                      step.g_tiles,
                                      step.n_tiles,
                                      h.n_heads,
                                      INT64_MAX,
                                      0.088F};
                   if (in_parts) {
                     args.n_chunks = (context + kernels::kAttendChunk - 1) / kernels::kAttendChunk;
                     args.g_parts =
                         lab.floats(k::attend_parts_len(n, h.n_heads, h.head_dim, args.n_chunks));
                     args.g_arrived = lab.zeros<uint32_t>(step.n_tiles * h.n_heads);
                   }
                   return [=, stream = lab.stream()](int64_t i) {
                     attend_of(stream, args, cache, step.layout, step.rows,
                               caches[static_cast<size_t>(2 * i)],
                               caches[static_cast<size_t>(2 * i + 1)]);
                   };
                 });
        }
      }
      const auto n_kv = static_cast<double>(n * h.n_kv_heads * h.head_dim);
      s.time("cache_write " + name_of(cache), h.what + ", " + tokens(n), n_kv * (4 + number_bytes),
             0, [&](Lab& lab, int64_t) -> std::function<void(int64_t)> {
               const std::vector<Part> parts(static_cast<size_t>(n), {127 % 20, 1});
               const CachedStep step = cached_step(lab, parts, cache, h.n_kv_heads,
                                                   h.n_heads / h.n_kv_heads, h.head_dim, 16);
               return [=, stream = lab.stream(), g_cache = noise_cache(lab, step, cache, 3),
                       rows = lab.noise(n * h.n_kv_heads * h.head_dim)](int64_t) {
                 cache_write_of(stream, g_cache, cache, step.layout, step.rows, rows);
               };
             });
    }
  for (const MatrixNumbers numbers : kAllNumbers)
    for (const int64_t n : {1, 8}) {
      const int64_t q_rows = h.n_heads * h.head_dim, kv_rows = h.n_kv_heads * h.head_dim;
      const auto bytes =
          static_cast<double>(matrix_bytes(numbers, q_rows + 2 * kv_rows, h.d_model));
      s.time("decode_qkv " + name_of(numbers), h.what + ", " + tokens(n), bytes,
             2.0 * static_cast<double>(n * (q_rows + 2 * kv_rows) * h.d_model),
             [&](Lab& lab, int64_t n_copies) -> std::function<void(int64_t)> {
               const std::vector<Part> parts(static_cast<size_t>(n), {19, 1});
               const CachedStep step = cached_step(lab, parts, CacheNumbers::kBf16, h.n_kv_heads,
                                                   h.n_heads / h.n_kv_heads, h.head_dim, 16);
               const k::DecodeNorm of_head{lab.noise(h.head_dim), 1e-6F, 0.0F};
               k::DecodeQkv base{};
               base.g_x = lab.noise(n * h.d_model);
               base.norm = {lab.noise(h.d_model), 1e-6F, 0.0F};
               base.numbers = numbers, base.k_len = h.d_model, base.n_heads = h.n_heads;
               base.half_len = h.head_dim / 2;
               base.g_cos = lab.noise(n * base.half_len), base.g_sin = lab.noise(n * base.half_len);
               base.g_q = lab.floats(n * q_rows);
               base.layout = step.layout, base.cache = CacheNumbers::kBf16, base.step = step.rows;
               base.g_keys = noise_cache(lab, step, CacheNumbers::kBf16, 1);
               base.g_values = noise_cache(lab, step, CacheNumbers::kBf16, 2);
               base.g_products =
                   lab.floats(k::decode_qkv_products_len(h.n_heads, h.n_kv_heads, h.head_dim));
               base.g_arrived = lab.zeros<uint32_t>(h.n_heads + 2 * h.n_kv_heads);
               std::vector<k::DecodeQkv> copies;
               for (int64_t i = 0; i < n_copies; ++i) {
                 base.q = {lab.matrix(numbers, q_rows, h.d_model).g_w, nullptr, of_head};
                 base.k = {lab.matrix(numbers, kv_rows, h.d_model).g_w, nullptr, of_head};
                 base.v = {lab.matrix(numbers, kv_rows, h.d_model).g_w, nullptr, {}};
                 copies.push_back(base);
               }
               return [copies, stream = lab.stream()](int64_t i) {
                 k::decode_qkv(stream, copies[static_cast<size_t>(i)]);
               };
             });
    }
}

/// The ops that read and write each number once.
void time_elements(Session& s) {
  const std::vector<int64_t> batches =
      s.is_tiny() ? std::vector<int64_t>{1} : std::vector<int64_t>{1, 8, 64, 256};
  const int64_t d = s.is_tiny() ? 64 : 1024, f = 3 * d, n_vocab = s.is_tiny() ? 300 : 151936;
  for (const int64_t n : batches) {
    const auto simple =
        [&](const std::string& name, int64_t n_in, int64_t n_out, double bytes,
            const std::function<void(Stream, float*, const float*, const float*)>& launch) {
          s.time(name, tokens(n), bytes, 0, [&](Lab& lab, int64_t) -> std::function<void(int64_t)> {
            return [launch, stream = lab.stream(), a = lab.noise(n_in), b = lab.noise(n_in),
                    out = lab.floats(n_out)](int64_t) { launch(stream, out, a, b); };
          });
        };
    const auto bytes = [](int64_t n_floats) { return 4.0 * static_cast<double>(n_floats); };
    simple("rms_norm", n * d, n * d, bytes(2 * n * d),
           [=](Stream st, float* out, const float* a, const float* b) {
             k::rms_norm(st, out, a, b, n, d, 1e-6F, 0.0F);
           });
    simple("rms_norm of heads", n * 2 * d, n * 2 * d, bytes(4 * n * d),
           [=](Stream st, float* out, const float* a, const float* b) {
             k::rms_norm(st, out, a, b, n * 2 * d / 64, 64, 1e-6F, 0.0F);
           });
    simple("mean_rows", n * d, n, bytes(n * d),
           [=](Stream st, float* out, const float* a, const float*) {
             k::mean_rows(st, out, a, n, d);
           });
    simple("softmax", n * n_vocab, n * n_vocab, bytes(2 * n * n_vocab),
           [=](Stream st, float* out, const float* a, const float*) {
             k::softmax(st, out, a, n, n_vocab);
           });
    simple("argmax", n * n_vocab, n, bytes(n * n_vocab),
           [=](Stream st, float* out, const float* a, const float*) {
             k::argmax(st, reinterpret_cast<int32_t*>(out), a, nullptr, n, n_vocab);
           });
    simple("cut_activations", n * d, n * d * 2, 10.0 * static_cast<double>(n * d),
           [=](Stream st, float* out, const float* a, const float*) {
             k::cut_activations(st, out, a, n, d);
           });
    const int64_t m = n * f;
    const k::Broadcast all{1, m};
    simple("add", m, m, bytes(3 * m), [=](Stream st, float* out, const float* a, const float* b) {
      k::add(st, out, a, b, m, all);
    });
    simple("mul", m, m, bytes(3 * m), [=](Stream st, float* out, const float* a, const float* b) {
      k::mul(st, out, a, b, m, all);
    });
    simple("silu_mul", m, m, bytes(3 * m),
           [=](Stream st, float* out, const float* a, const float* b) {
             k::silu_mul(st, out, a, b, m);
           });
    simple("silu", m, m, bytes(2 * m),
           [=](Stream st, float* out, const float* a, const float*) { k::silu(st, out, a, m); });
    simple(
        "gelu_tanh", m, m, bytes(2 * m),
        [=](Stream st, float* out, const float* a, const float*) { k::gelu_tanh(st, out, a, m); });
    simple("rsqrt", m, m, bytes(2 * m),
           [=](Stream st, float* out, const float* a, const float*) { k::rsqrt(st, out, a, m); });
    simple("add_scalar", m, m, bytes(2 * m),
           [=](Stream st, float* out, const float* a, const float*) {
             k::add_scalar(st, out, a, 1.5F, m);
           });
    simple("mul_scalar", m, m, bytes(2 * m),
           [=](Stream st, float* out, const float* a, const float*) {
             k::mul_scalar(st, out, a, 1.5F, m);
           });
    const int64_t head_dim = s.is_tiny() ? 16 : 128, n_heads = 2 * d / head_dim;
    simple("rope_half_split", n * 2 * d, n * 2 * d, bytes(4 * n * d),
           [=](Stream st, float* out, const float* a, const float* b) {
             k::rope_half_split(st, out, 2 * d, a, 2 * d, b, b, n, n_heads, head_dim, head_dim / 2);
           });
    const std::vector<int32_t> ids(static_cast<size_t>(n), 5);
    const auto with_ids =
        [&](const std::string& name, double n_bytes,
            const std::function<std::function<void()>(Lab&, const int32_t*)>& prepare) {
          s.time(name, tokens(n), n_bytes, 0,
                 [&](Lab& lab, int64_t) -> std::function<void(int64_t)> {
                   return [launch = prepare(lab, lab.copied(ids))](int64_t) { launch(); };
                 });
        };
    with_ids("rope_table", bytes(n * head_dim),
             [&](Lab& lab, const int32_t* g_ids) -> std::function<void()> {
               return [=, st = lab.stream(), c = lab.floats(n * head_dim / 2),
                       sn = lab.floats(n * head_dim / 2), freq = lab.noise(head_dim / 2)] {
                 k::rope_table(st, c, sn, g_ids, freq, n, head_dim / 2, 1.0F);
               };
             });
    with_ids("gather_rows bf16", 6.0 * static_cast<double>(n * d),
             [&](Lab& lab, const int32_t* g_ids) -> std::function<void()> {
               return [=, st = lab.stream(), out = lab.floats(n * d),
                       table = lab.matrix(MatrixNumbers::kBf16, 16, d)] {
                 k::gather_rows(st, out, static_cast<const uint16_t*>(table.g_w), g_ids, n, d);
               };
             });
    with_ids("gather_packed_rows int4", 4.5 * static_cast<double>(n * d),
             [&](Lab& lab, const int32_t* g_ids) -> std::function<void()> {
               return [=, st = lab.stream(), out = lab.floats(n * d),
                       table = lab.matrix(MatrixNumbers::kInt4, 16, d)] {
                 k::gather_packed_rows(st, out, table.g_w, kernels::WeightFormat::kInt4, g_ids, n,
                                       d);
               };
             });
    with_ids("take_tokens", 8.0 * static_cast<double>(n),
             [&](Lab& lab, const int32_t* g_ids) -> std::function<void()> {
               return [=, st = lab.stream(), to = lab.room<int32_t>(n),
                       sampled = lab.zeros<int32_t>(2 * std::max<int64_t>(n, 8))] {
                 k::take_tokens(st, to, g_ids, sampled, n, std::max<int64_t>(n, 8));
               };
             });
  }
}

}  // namespace

void measure_ceilings(Session& s) {
  const int64_t n_bytes = s.is_tiny() ? 1 << 16 : int64_t{4} << 30;
  s.measure("ceiling", "copy", [&](Lab& lab) {
    void *from = lab.bytes(n_bytes), *to = lab.bytes(n_bytes);
    fill_bytes(lab.stream(), from, n_bytes, 1);
    const double us =
        median_us(lab.machine(), 1, [&](int64_t) { lab.machine().copy(to, from, n_bytes); });
    s.ceilings.copy_gb_s = 2 * static_cast<double>(n_bytes) / us * 1e6 / kGiga;  // read and written
  });
  s.measure("ceiling", "read", [&](Lab& lab) {
    void* from = lab.bytes(n_bytes);
    fill_bytes(lab.stream(), from, n_bytes, 1);
    auto* sum = lab.zeros<uint32_t>(1);
    const double us =
        median_us(lab.machine(), 1, [&](int64_t) { read_all(lab.stream(), sum, from, n_bytes); });
    s.ceilings.read_gb_s = static_cast<double>(n_bytes) / us * 1e6 / kGiga;
  });
  const int64_t size = s.is_tiny() ? 64 : 4096;
  s.measure("ceiling", "matrix, the product kernel", [&](Lab& lab) {
    const Matrix w = lab.matrix(MatrixNumbers::kBf16, size, size);
    void* cut = lab.bytes(k::cut_bytes(size, size));
    k::cut_activations(lab.stream(), cut, lab.noise(size * size), size, size);
    float* y = lab.floats(size * size);
    const double us = median_us(lab.machine(), 1, [&](int64_t) {
      k::linear(lab.stream(), y, cut, w, nullptr, nullptr, size);
    });
    const auto n = static_cast<double>(size);
    s.ceilings.matrix_tflop_s = 2 * n * n * n / us * 1e6 / 1e12;
  });
}

void time_kernels(Session& session) {
  time_products(session);
  time_attention(session);
  time_elements(session);
}

}  // namespace dovetail::gpu_check
