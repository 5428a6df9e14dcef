// The fused kernels of kernels/cuda_decode.hpp: against the references one after another, and bit for bit against the
// launches that they stand for.
#include "tools/gpu_check/session.hpp"

namespace dovetail::gpu_check {
namespace {

namespace k = kernels::cuda;

constexpr float kEps = 1e-6F;

struct Product {
  int64_t n_tokens, n_rows, k_len;
};
std::vector<Product> products(const Session& s, MatrixNumbers numbers, bool is_gate_up) {
  const int64_t odd = numbers >= MatrixNumbers::kInt8 ? 96 : 52;
  std::vector<Product> out = {{1, 40, odd}, {8, 17, 1088}};
  if (s.is_tiny()) return out;
  if (is_gate_up)
    out.insert(out.end(), {{1, 3072, 1024}, {8, 3072, 1024}, {5, 12288, 4096}});
  else
    out.insert(out.end(), {{1, 1024, 3072}, {8, 1024, 2048}, {1, 151936, 1024}, {3, 4096, 12288}});
  return out;
}
std::string text_of(const Product& p) {
  return std::to_string(p.n_tokens) + "x" + std::to_string(p.n_rows) + "x" +
         std::to_string(p.k_len);
}

/// Activations after a norm that may be none: what the references and the launches read.
struct Input {
  Input(Lab& lab, int64_t n_tokens, int64_t k_len, bool has_norm)
      : x(lab.noise(n_tokens * k_len)),
        norm{has_norm ? lab.noise(k_len) : nullptr, kEps, 0.0F},
        expected{x, nullptr},
        cut(lab.bytes(k::cut_bytes(n_tokens, k_len))) {
    float* normed = x;
    if (has_norm) {
      expected = lab.expected(n_tokens * k_len);
      reference::rms_norm(lab.stream(), expected, x, norm.g_weight, n_tokens, k_len, kEps, 0.0F);
      normed = lab.floats(n_tokens * k_len);
      k::rms_norm(lab.stream(), normed, x, norm.g_weight, n_tokens, k_len, kEps, 0.0F);
    }
    k::cut_activations(lab.stream(), cut, normed, n_tokens, k_len);
  }
  float* x;
  k::DecodeNorm norm;
  Expected expected;
  void* cut;
};

void check_decode_linear(Session& s, MatrixNumbers numbers) {
  for (const Product& p : products(s, numbers, false))
    for (const bool has_norm : {false, true})
      s.check("decode_linear " + name_of(numbers),
              text_of(p) + (has_norm ? " norm + bias" : " + residual"), [&](Lab& lab) {
                const int64_t n = p.n_tokens * p.n_rows;
                const Input in(lab, p.n_tokens, p.k_len, has_norm);
                const Matrix w = lab.matrix(numbers, p.n_rows, p.k_len);
                float* bias = has_norm ? lab.noise(p.n_rows) : nullptr;
                float* residual = has_norm ? nullptr : lab.noise(n);
                float *y = lab.floats(n), *in_turn = lab.floats(n);
                const Expected expected = lab.expected(n);
                k::decode_linear(lab.stream(), y, in.x, in.norm, w, bias, residual, p.n_tokens);
                reference::linear(lab.stream(), expected, in.expected.g_values,
                                  in.expected.g_bounds, w, bias, residual, p.n_tokens);
                lab.hold(y, expected, n);
                k::linear(lab.stream(), in_turn, in.cut, w, bias, residual, p.n_tokens);
                lab.hold_same(y, in_turn, n);
              });
}

void check_decode_gate_up(Session& s, MatrixNumbers numbers) {
  for (const Product& p : products(s, numbers, true))
    s.check("decode_gate_up " + name_of(numbers), text_of(p), [&](Lab& lab) {
      const int64_t n = p.n_tokens * p.n_rows;
      const Input in(lab, p.n_tokens, p.k_len, true);
      const Matrix gate = lab.matrix(numbers, p.n_rows, p.k_len);
      const Matrix up = lab.matrix(numbers, p.n_rows, p.k_len);
      float* bias = lab.noise(p.n_rows);
      float *y = lab.floats(n), *gates = lab.floats(n), *ups = lab.floats(n);
      const Expected of_gate = lab.expected(n), of_up = lab.expected(n), expected = lab.expected(n);
      k::decode_gate_up(lab.stream(), y, in.x, in.norm, gate, up, bias, nullptr, p.n_tokens);
      const auto product = [&](const Expected& out, float* got, const Matrix& w, float* b) {
        reference::linear(lab.stream(), out, in.expected.g_values, in.expected.g_bounds, w, b,
                          nullptr, p.n_tokens);
        k::linear(lab.stream(), got, in.cut, w, b, nullptr, p.n_tokens);
      };
      product(of_gate, gates, gate, bias);
      product(of_up, ups, up, nullptr);
      reference::silu_mul(lab.stream(), expected, of_gate, of_up, n);
      lab.hold(y, expected, n);
      k::silu_mul(lab.stream(), gates, gates, ups, n);
      lab.hold_same(y, gates, n);
    });
}

struct Heads {
  int64_t n_tokens, n_heads, n_kv_heads, head_dim, half_len, k_len;
  bool has_norms;
};
/// Both caches, and q, as the launches of one op each leave them; and what is expected of rows before they are stored.
void check_decode_qkv(Session& s, MatrixNumbers numbers, CacheNumbers cache, const Heads& h) {
  const std::string shape = std::to_string(h.n_tokens) + " tokens, heads " +
                            std::to_string(h.n_heads) + "+" + std::to_string(h.n_kv_heads) +
                            " of " + std::to_string(h.head_dim) + ", cache " + name_of(cache);
  s.check("decode_qkv " + name_of(numbers), shape, [&](Lab& lab) {
    std::vector<Part> parts;
    for (int64_t t = 0; t < h.n_tokens; ++t) parts.push_back({3 + 5 * t, 1});
    const CachedStep step =
        cached_step(lab, parts, cache, h.n_kv_heads, h.n_heads / h.n_kv_heads, h.head_dim, 16);
    const Input in(lab, h.n_tokens, h.k_len, true);
    const int64_t n_q = h.n_tokens * h.n_heads * h.head_dim;
    const int64_t n_kv = h.n_tokens * h.n_kv_heads * h.head_dim;
    const Matrix wq = lab.matrix(numbers, h.n_heads * h.head_dim, h.k_len);
    const Matrix wk = lab.matrix(numbers, h.n_kv_heads * h.head_dim, h.k_len);
    const Matrix wv = lab.matrix(numbers, h.n_kv_heads * h.head_dim, h.k_len);
    float* bias = lab.noise(h.n_heads * h.head_dim);
    const float* q_norm = h.has_norms ? lab.noise(h.head_dim) : nullptr;
    const float* k_norm = h.has_norms ? lab.noise(h.head_dim) : nullptr;
    float *c = lab.noise(h.n_tokens * h.half_len), *sn = lab.noise(h.n_tokens * h.half_len);
    float* q = lab.floats(n_q);
    void *keys = noise_cache(lab, step, cache, 31), *values = noise_cache(lab, step, cache, 32);
    const int64_t n_arrived = h.n_heads + 2 * h.n_kv_heads;
    auto* arrived = lab.zeros<uint32_t>(n_arrived);
    k::decode_qkv(lab.stream(),
                  {in.x,
                   in.norm,
                   {wq.g_w, bias, {q_norm, kEps, 1.0F}},
                   {wk.g_w, nullptr, {k_norm, kEps, 1.0F}},
                   {wv.g_w, nullptr, {}},
                   numbers,
                   h.k_len,
                   h.n_heads,
                   c,
                   sn,
                   h.half_len,
                   q,
                   step.layout,
                   cache,
                   keys,
                   values,
                   step.rows,
                   lab.floats(k::decode_qkv_products_len(h.n_heads, h.n_kv_heads, h.head_dim)),
                   arrived});

    const auto heads_of = [&](const Matrix& w, const float* b, const float* norm, bool is_turned) {
      const int64_t n_heads = w.n_rows / h.head_dim, n = h.n_tokens * w.n_rows;
      const Expected rows = lab.expected(n), out = lab.expected(n);
      reference::linear(lab.stream(), rows, in.expected.g_values, in.expected.g_bounds, w, b,
                        nullptr, h.n_tokens);
      reference::finish_heads(lab.stream(), out, rows, norm, kEps, 1.0F, is_turned ? c : nullptr,
                              sn, h.n_tokens, n_heads, h.head_dim, h.half_len);
      return out;
    };
    const auto in_turn = [&](const Matrix& w, const float* b, const float* norm, bool is_turned) {
      const int64_t n_heads = w.n_rows / h.head_dim, n = h.n_tokens * w.n_rows;
      float *rows = lab.floats(n), *turned = lab.floats(n);
      k::linear(lab.stream(), rows, in.cut, w, b, nullptr, h.n_tokens);
      if (norm != nullptr)
        k::rms_norm(lab.stream(), rows, rows, norm, h.n_tokens * n_heads, h.head_dim, kEps, 1.0F);
      if (!is_turned) return rows;
      k::rope_half_split(lab.stream(), turned, w.n_rows, rows, w.n_rows, c, sn, h.n_tokens, n_heads,
                         h.head_dim, h.half_len);
      return turned;
    };
    lab.hold(q, heads_of(wq, bias, q_norm, true), n_q);
    lab.hold_same(q, in_turn(wq, bias, q_norm, true), n_q);
    const auto hold_cache = [&](const void* g_base, uint32_t seed, const Matrix& w,
                                const float* norm, bool is_turned) {
      const Expected expected = heads_of(w, nullptr, norm, is_turned);
      reference::add_storing(lab.stream(), expected, cache, h.n_tokens * h.n_kv_heads, h.head_dim);
      float* stored = lab.floats(n_kv);
      reference::cache_read(lab.stream(), stored, g_base, cache, step.layout, step.rows);
      lab.hold(stored, expected, n_kv);
      void* other = noise_cache(lab, step, cache, seed);
      cache_write_of(lab.stream(), other, cache, step.layout, step.rows,
                     in_turn(w, nullptr, norm, is_turned));
      lab.hold_bytes(g_base, other, step.cache_bytes);
    };
    hold_cache(keys, 31, wk, k_norm, true);
    hold_cache(values, 32, wv, nullptr, false);
    lab.hold_bytes(arrived, lab.zeros<uint32_t>(n_arrived), n_arrived * 4);
  });
}

}  // namespace

void check_decode_kernels(Session& session) {
  for (const MatrixNumbers numbers : kAllNumbers) {
    check_decode_linear(session, numbers);
    check_decode_gate_up(session, numbers);
    for (const CacheNumbers cache : kAllCaches) {
      check_decode_qkv(session, numbers, cache, {3, 4, 2, 20, 7, 64, true});
      check_decode_qkv(session, numbers, cache, {2, 2, 1, 44, 22, 32, false});
      if (session.is_tiny()) continue;
      for (const int64_t n_tokens : {1, 8})
        check_decode_qkv(session, numbers, cache, {n_tokens, 16, 8, 128, 64, 1024, true});
    }
  }
}

}  // namespace dovetail::gpu_check
