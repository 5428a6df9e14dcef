// A decoder of two layers with everything that backends must do: its graph, its weights in each plain
// format, and what it computes, in double and in the plainest way.
//
// The weights are multiples of 2^-9 with few digits, so that f32, bf16 and f16 hold the same numbers and
// one answer is right for all three.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "core/graph/graph.hpp"
#include "core/graph/op_registry.hpp"

namespace dovetail::core::test {

class SmallModel {
 public:
  // Sizes that no vector width divides.
  static constexpr int64_t kVocab = 70, kModel = 40, kHeads = 4, kKvHeads = 2, kHead = 10,
                           kFeedForward = 52, kLayers = 2;
  static constexpr double kEps = 1e-6, kScale = 0.31622776601683794, kRopeFactor = 1.25,
                          kEmbedScale = 1.5;
  static constexpr int64_t window(int64_t layer) { return layer == 1 ? 5 : 0; }

  struct Weight {
    std::vector<int64_t> shape;
    std::vector<float> values;

    int64_t size() const { return static_cast<int64_t>(values.size()); }
  };

  SmallModel() {
    const auto matrix = [this](const std::string& name, int64_t n, int64_t k) {
      fill(name, {n, k}, 0);
    };
    const auto vector = [this](const std::string& name, int64_t n, int base) {
      fill(name, {n}, base);
    };
    matrix("embed", kVocab, kModel);
    for (int64_t i = 0; i < kLayers; ++i) {
      const std::string at = "layers." + std::to_string(i) + ".";
      vector(at + "attn_norm", kModel, 512);
      matrix(at + "q", kHeads * kHead, kModel);
      vector(at + "q_bias", kHeads * kHead, 0);
      matrix(at + "k", kKvHeads * kHead, kModel);
      matrix(at + "v", kKvHeads * kHead, kModel);
      matrix(at + "o", kModel, kHeads * kHead);
      vector(at + "ffn_norm", kModel, i == 0 ? 512 : 0);  // of the second layer: an offset from 1
      matrix(at + "gate", kFeedForward, kModel);
      matrix(at + "up", kFeedForward, kModel);
      matrix(at + "down", kModel, kFeedForward);
    }
    vector("head_norm", kModel, 512);
    for (int64_t i = 0; i < kHead / 2; ++i)
      inv_freq_.push_back(std::pow(10000.0, -2.0 * static_cast<double>(i) / kHead));
  }

  const std::map<std::string, Weight>& weights() const { return weights_; }

  /// The weight's bytes as a checkpoint of this format ("float32", "bf16", "f16") has them.
  static std::vector<uint8_t> stored(const Weight& w, const std::string& format) {
    std::vector<uint8_t> out;
    for (const float v : w.values) {
      uint32_t bits = 0;
      std::memcpy(&bits, &v, sizeof bits);
      if (format == "bf16") bits >>= 16;
      if (format == "f16") bits = half(v);
      for (size_t i = 0; i < (format == "float32" ? 4 : 2); ++i)
        out.push_back(static_cast<uint8_t>(bits >> 8 * i));
    }
    return out;
  }

  /// The graph, with "layer_out.i", "heads.i" and its view "merged_heads.i" observed and the head tied to the embedding.
  Graph graph(const OpRegistry& ops) const {
    GraphWriter w(ops);
    const auto emit = [&w](const char* op, const std::vector<uint32_t>& in,
                           const std::vector<Attr>& attrs = {}) {
      Result<std::vector<uint32_t>> out = w.emit(op, 1, in, attrs);
      EXPECT_TRUE(out) << out.status().message();
      return out && !out->empty() ? out->front() : kNoValue;
    };
    const auto weight = [&](const std::string& name) {
      std::vector<dvt_dim> dims;
      for (const int64_t n : weights_.at(name).shape) dims.push_back(fixed_dim(n));
      return w.weight(name, dims);
    };
    const auto norm = [&](uint32_t x, const std::string& name, int64_t unit_offset) {
      return emit("rms_norm", {x, weight(name)},
                  {number("eps", kEps), integers("unit_offset", {unit_offset})});
    };
    const auto heads = [&](uint32_t x, int64_t n) {
      return emit("reshape", {x}, {integers("n_last", {1}), integers("tail", {n, kHead})});
    };
    const uint32_t tokens = *w.input("tokens"), positions = *w.input("positions"),
                   rows = *w.input("out_rows");
    const auto rope = [&](uint32_t x) {
      Attr freq;
      freq.key = "inv_freq";
      freq.type = DVT_ATTR_F64;
      freq.flags = DVT_ATTR_MUST;
      freq.f64 = inv_freq_;
      return emit("rope", {x, positions}, {freq, number("attention_factor", kRopeFactor)});
    };
    uint32_t x = emit("mul_scalar", {emit("embed", {tokens, weight("embed")})},
                      {number("value", kEmbedScale)});
    for (int64_t i = 0; i < kLayers; ++i) {
      const std::string at = "layers." + std::to_string(i) + ".";
      w.scope(at + "attn");
      const uint32_t k_state = w.add_state(state(at + "k_rows")),
                     v_state = w.add_state(state(at + "v_rows"));
      const uint32_t a = norm(x, at + "attn_norm", 0);
      const uint32_t q =
          rope(heads(emit("linear", {a, weight(at + "q"), weight(at + "q_bias")}), kHeads));
      const uint32_t k = rope(heads(emit("linear", {a, weight(at + "k")}), kKvHeads));
      const uint32_t v = heads(emit("linear", {a, weight(at + "v")}), kKvHeads);
      const uint32_t y = emit("attention", {q, k, v, k_state, v_state, positions},
                              {number("scale", kScale), integers("window", {window(i)})});
      const uint32_t merged =
          emit("reshape", {y}, {integers("n_last", {2}), integers("tail", {kHeads * kHead})});
      EXPECT_TRUE(w.name_value("heads." + std::to_string(i), y, DVT_VALF_OBSERVED));
      EXPECT_TRUE(w.name_value("merged_heads." + std::to_string(i), merged, DVT_VALF_OBSERVED));
      x = emit("add", {x, emit("linear", {merged, weight(at + "o")})});
      w.scope(at + "ffn");
      const uint32_t b = norm(x, at + "ffn_norm", i);
      const uint32_t gate = emit("linear", {b, weight(at + "gate")}),
                     up = emit("linear", {b, weight(at + "up")});
      const uint32_t gated =  // the first layer by SwiGLU, the second by GeGLU
          i == 0 ? emit("swiglu", {gate, up}) : emit("mul", {emit("gelu_tanh", {gate}), up});
      x = emit("add", {x, emit("linear", {gated, weight(at + "down")})});
      EXPECT_TRUE(w.name_value("layer_out." + std::to_string(i), x, DVT_VALF_OBSERVED));
    }
    w.scope("head");
    const uint32_t wanted = norm(emit("take_rows", {x, rows}), "head_norm", 0);
    EXPECT_TRUE(w.name_value("logits", emit("linear", {wanted, weight("embed")}), DVT_VALF_OUTPUT));
    return w.take();
  }

  /// What the graph computes of one sequence from its start.
  struct Answer {
    std::vector<std::vector<double>> logits;                  // [position][V]
    std::vector<std::vector<std::vector<double>>> layer_out;  // [layer][position][D]
  };
  Answer answer(const std::vector<int32_t>& tokens) const {
    const size_t n = tokens.size();
    Answer out;
    std::vector<std::vector<double>> x(n);
    for (size_t t = 0; t < n; ++t) {
      x[t] = row("embed", tokens[t]);
      for (double& value : x[t]) value *= kEmbedScale;
    }
    for (int64_t i = 0; i < kLayers; ++i) {
      const std::string at = "layers." + std::to_string(i) + ".";
      std::vector<std::vector<double>> q(n), k(n), v(n);
      for (size_t t = 0; t < n; ++t) {
        const std::vector<double> a = normed(x[t], at + "attn_norm", 0);
        q[t] = product(at + "q", a);
        for (size_t j = 0; j < q[t].size(); ++j)
          q[t][j] += static_cast<double>(weights_.at(at + "q_bias").values[j]);
        k[t] = product(at + "k", a);
        v[t] = product(at + "v", a);
        rotate(q[t], t);
        rotate(k[t], t);
      }
      for (size_t t = 0; t < n; ++t) {
        x[t] = sum(x[t], product(at + "o", attended(q[t], k, v, t, window(i))));
        const std::vector<double> b = normed(x[t], at + "ffn_norm", i == 0 ? 0 : 1);
        std::vector<double> gate = product(at + "gate", b);
        const std::vector<double> up = product(at + "up", b);
        for (size_t j = 0; j < gate.size(); ++j)
          gate[j] = (i == 0 ? gate[j] / (1 + std::exp(-gate[j])) : gelu(gate[j])) * up[j];
        x[t] = sum(x[t], product(at + "down", gate));
      }
      out.layer_out.push_back(x);
    }
    for (size_t t = 0; t < n; ++t)
      out.logits.push_back(product("embed", normed(x[t], "head_norm", 0)));
    return out;
  }

 private:
  void fill(const std::string& name, std::vector<int64_t> shape, int base) {
    Weight w;
    int64_t n = 1;
    for (const int64_t d : shape) n *= d;
    w.shape = std::move(shape);
    for (int64_t i = 0; i < n; ++i) {  // at most seven binary digits
      const int step = base == 0 ? static_cast<int>(random_() % 201) - 100
                                 : static_cast<int>(random_() % 33) * 4 - 64;
      w.values.push_back(static_cast<float>(base + step) / 512.0f);
    }
    weights_[name] = std::move(w);
  }
  static uint32_t half(float v) {
    if (v == 0) return 0;
    int exponent = 0;
    const float part = std::frexp(std::fabs(v), &exponent) * 2 - 1;
    return (v < 0 ? 0x8000u : 0u) | static_cast<uint32_t>(exponent - 1 + 15) << 10 |
           static_cast<uint32_t>(part * 1024);
  }
  static dvt_state_spec state(const std::string& name) {
    dvt_state_spec spec{};
    spec.struct_size = sizeof spec;
    spec.kind = DVT_STATE_PAGED;
    spec.name = {name.data(), name.size()};  // the graph copies it
    spec.dtype = DVT_ACTIVATION;
    spec.ndim = 2;
    spec.dim[0] = kKvHeads;
    spec.dim[1] = kHead;
    spec.rate = 1;
    spec.rewind = DVT_REWIND_ANY;
    return spec;
  }
  static Attr number(const char* key, double v) {
    Attr a;
    a.key = key;
    a.type = DVT_ATTR_F64;
    a.flags = DVT_ATTR_MUST;
    a.f64 = {v};
    return a;
  }
  static Attr integers(const char* key, std::vector<int64_t> v) {
    Attr a;
    a.key = key;
    a.flags = DVT_ATTR_MUST;
    a.i64 = std::move(v);
    return a;
  }

  std::vector<double> row(const std::string& name, int64_t r) const {
    const Weight& w = weights_.at(name);
    return {w.values.begin() + r * w.shape[1], w.values.begin() + (r + 1) * w.shape[1]};
  }
  std::vector<double> product(const std::string& name, const std::vector<double>& x) const {
    std::vector<double> out;
    for (int64_t r = 0; r < weights_.at(name).shape[0]; ++r) {
      const std::vector<double> w = row(name, r);
      double s = 0;
      for (size_t i = 0; i < x.size(); ++i) s += w[i] * x[i];
      out.push_back(s);
    }
    return out;
  }
  std::vector<double> normed(const std::vector<double>& x, const std::string& name,
                             double offset) const {
    double squares = 0;
    for (const double v : x) squares += v * v;
    const double scale = 1 / std::sqrt(squares / static_cast<double>(x.size()) + kEps);
    std::vector<double> out;
    for (size_t i = 0; i < x.size(); ++i)
      out.push_back(x[i] * scale * (offset + static_cast<double>(weights_.at(name).values[i])));
    return out;
  }
  static std::vector<double> sum(std::vector<double> a, const std::vector<double>& b) {
    for (size_t i = 0; i < a.size(); ++i) a[i] += b[i];
    return a;
  }
  static double gelu(double x) {
    return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
  }
  void rotate(std::vector<double>& heads, size_t position) const {
    for (size_t h = 0; h < heads.size(); h += kHead)
      for (size_t i = 0; i < kHead / 2; ++i) {
        const double angle =
            static_cast<double>(static_cast<float>(position) * static_cast<float>(inv_freq_[i]));
        double &a = heads[h + i], &b = heads[h + i + kHead / 2];
        const double c = std::cos(angle) * kRopeFactor, s = std::sin(angle) * kRopeFactor;
        const double turned = a * c - b * s;
        b = b * c + a * s;
        a = turned;
      }
  }
  static std::vector<double> attended(const std::vector<double>& q,
                                      const std::vector<std::vector<double>>& k,
                                      const std::vector<std::vector<double>>& v, size_t t,
                                      int64_t window) {
    const size_t from =
        window > 0 && t + 1 > static_cast<size_t>(window) ? t + 1 - static_cast<size_t>(window) : 0;
    std::vector<double> out(kHeads * kHead, 0.0);
    for (size_t h = 0; h < kHeads; ++h) {
      const size_t group = h / (kHeads / kKvHeads) * kHead;
      std::vector<double> weights;
      double total = 0;
      for (size_t p = from; p <= t; ++p) {
        double score = 0;
        for (size_t e = 0; e < kHead; ++e) score += q[h * kHead + e] * k[p][group + e];
        weights.push_back(std::exp(score * kScale));
        total += weights.back();
      }
      for (size_t p = from; p <= t; ++p)
        for (size_t e = 0; e < kHead; ++e)
          out[h * kHead + e] += weights[p - from] / total * v[p][group + e];
    }
    return out;
  }

  std::mt19937 random_{7};
  std::map<std::string, Weight> weights_;
  std::vector<double> inv_freq_;
};

}  // namespace dovetail::core::test
