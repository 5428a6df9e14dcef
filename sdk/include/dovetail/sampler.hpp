// Write a sampler stage: one class for the stage, one for a request. See docs/plugin-guide.md and, for
// what the stages that come with Dovetail do, docs/sampling.md.
//
//   class TopK {
//    public:
//     static constexpr std::array params = {int_param("top_k", "0", "keep the k likeliest; 0 = off", -1)};
//     explicit TopK(const StageOpen& in) : k_(in.defaults.integer("top_k")) {}
//
//     struct Request {
//       Request(const TopK& stage, const RequestOpen& in) : k(in.overrides.integer("top_k", stage.k_)) {}
//       void apply(Candidates& c) {
//         if (k > 0) c.keep_likeliest(static_cast<size_t>(k));
//       }
//       int64_t k;
//     };
//
//    private:
//     int64_t k_;
//   };
//   DVT_EXPORT_SAMPLER(TopK)
//
// A Request may also have
//   accept(uint32_t id)        id was generated; the prompt's ids came with RequestOpen
//   rewind(uint64_t n)         forget the last n accepted ids: they are no longer part of the text
//   save() and load(bytes)     what accept has made of the request, as bytes, and a new request of the
//                              same prompt that goes on from there
//   effect()                   a DVT_EFFECT_*
// A stage that counts needs the first four, which token_counts.hpp gives it. Without rewind it goes on
// counting ids that were taken back; without save and load it counts from zero where a request is
// resumed. The contract suite asks for both; the host's engine does not take back or resume yet.
#pragma once

#include <dovetail/abi/sampler.h>
#include <dovetail/plugin.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

namespace dovetail {

/// Declared parameters with their values; the host has checked types and ranges.
class Params {
 public:
  explicit Params(Doc doc) : doc_(doc) {}
  Doc doc() const { return doc_; }
  double number(std::string_view name) const { return doc_[name].as_float(); }
  int64_t integer(std::string_view name) const { return doc_[name].as_int(); }
  bool flag(std::string_view name) const { return doc_[name].as_bool(); }
  std::string_view string(std::string_view name) const { return doc_[name].as_string(); }
  // With the value of the stage when the request does not set its own.
  double number(std::string_view name, double fallback) const {
    const Doc v = doc_[name];
    return v.is_null() ? fallback : v.as_float();
  }
  int64_t integer(std::string_view name, int64_t fallback) const {
    const Doc v = doc_[name];
    return v.is_null() ? fallback : v.as_int();
  }

 private:
  Doc doc_;
};

struct StageOpen {
  Params defaults;
  uint32_t vocab_size;
};

struct RequestOpen {
  Params overrides;
  std::span<const uint32_t> prompt;
};

/// The candidates of one draw; see dvt_cands for what `sorted` means.
class Candidates {
 public:
  explicit Candidates(dvt_cands* raw) : raw_(raw) {}
  std::span<dvt_cand> all() const { return {raw_->c, static_cast<size_t>(raw_->n)}; }
  size_t size() const { return raw_->n; }
  dvt_cand& operator[](size_t i) const { return raw_->c[i]; }
  bool is_sorted() const { return raw_->sorted == 1; }
  bool by_id() const { return raw_->sorted == 2; }

  static bool likelier(const dvt_cand& a, const dvt_cand& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
  }
  /// Sorts by logit, highest first; the lower id first on ties.
  void sort() {
    if (is_sorted()) return;
    std::sort(raw_->c, raw_->c + raw_->n, likelier);
    raw_->sorted = 1;
  }
  /// The n likeliest first and sorted; the rest behind them in any order. Cheaper than sort().
  void sort_first(size_t n) {
    if (is_sorted() || n >= size()) return sort();
    raw_->sorted = 0;
    dvt_cand* const first = raw_->c;
    std::make_heap(first, first + n, likelier);  // the least likely of the n is first[0]
    for (size_t begin = n; n > 0 && begin < size(); begin += kBlock) {
      const size_t end = std::min(begin + kBlock, size());
      if (highest(begin, end) < first[0].logit) continue;  // nearly always
      for (size_t i = begin; i < end; ++i) {
        if (!likelier(first[i], first[0])) continue;
        std::pop_heap(first, first + n, likelier);
        std::swap(first[i], first[n - 1]);
        std::push_heap(first, first + n, likelier);
      }
    }
    std::sort_heap(first, first + n, likelier);
  }
  /// Keeps the first n (at least one), which sort_first() has sorted.
  void keep_sorted(size_t n) {
    raw_->n = std::clamp<uint64_t>(n, 1, raw_->n);
    raw_->sorted = 1;
  }
  /// Keeps the n likeliest (at least one), sorted.
  void keep_likeliest(size_t n) {
    sort_first(std::max<size_t>(n, 1));
    keep_sorted(n);
  }
  /// Keeps those that wanted(candidate) holds for, in their order. If there are none it changes
  /// nothing and returns false.
  template <class Fn>
  bool keep_if(Fn&& wanted) {
    const auto any = std::find_if(raw_->c, raw_->c + raw_->n, wanted);
    if (any == raw_->c + raw_->n) return false;
    raw_->n = static_cast<uint64_t>(
        std::remove_if(raw_->c, raw_->c + raw_->n, [&](const dvt_cand& c) { return !wanted(c); }) -
        raw_->c);
    return true;
  }
  /// Keeps those at the positions that wanted(i) holds for, in their order; at least one must.
  template <class Fn>
  void keep_if_at(Fn&& wanted) {
    size_t n = 0;
    for (size_t i = 0; i < size(); ++i)
      if (wanted(i)) raw_->c[n++] = raw_->c[i];
    raw_->n = n;
  }
  /// Calls change(candidate, value) for each candidate whose id is a key of `by_key`.
  template <class V, class Fn>
  void change(const std::map<uint32_t, V>& by_key, Fn&& change) {
    if (by_key.empty()) return;
    if (by_id()) {
      dvt_cand* at = raw_->c;
      dvt_cand* const end = raw_->c + raw_->n;
      for (const auto& [id, value] : by_key) {
        at = std::lower_bound(at, end, id, [](const dvt_cand& c, uint32_t v) { return c.id < v; });
        if (at != end && at->id == id) change(*at, value);
      }
      return;  // the order by id still holds
    }
    for (dvt_cand& c : all())
      if (const auto it = by_key.find(c.id); it != by_key.end()) change(c, it->second);
    raw_->sorted = 0;
  }
  /// After logits changed in another way than change(): the order by logit may be lost.
  void logits_changed() {
    if (is_sorted()) raw_->sorted = 0;
  }

  /// The highest logit.
  float top() const { return is_sorted() ? raw_->c[0].logit : highest(0, size()); }
  /// exp(logit - top): what softmax divides by the sum of all. Infinite logits share it all.
  static double weight(float logit, float top) {
    if (std::isinf(top)) return logit == top ? 1.0 : 0.0;
    return std::exp(static_cast<double>(logit) - static_cast<double>(top));
  }
  /// The weights in candidate order; returns their sum. weight / sum is the probability.
  double weights(std::vector<double>& out) const {
    const float highest = top();
    out.resize(size());
    double sum = 0;
    for (size_t i = 0; i < size(); ++i) sum += out[i] = weight(raw_->c[i].logit, highest);
    return sum;
  }

 private:
  static constexpr size_t kBlock = 64;

  /// The highest logit of candidates begin .. end-1: several at a time, so that it becomes vector code.
  float highest(size_t begin, size_t end) const {
    constexpr size_t kChains = 8;
    float most[kChains];
    std::fill(most, most + kChains, -std::numeric_limits<float>::infinity());
    const auto take = [this](float& so_far, size_t i) {
      so_far = raw_->c[i].logit > so_far ? raw_->c[i].logit : so_far;
    };
    for (; begin + kChains <= end; begin += kChains)
      for (size_t k = 0; k < kChains; ++k) take(most[k], begin + k);
    for (; begin < end; ++begin) take(most[0], begin);
    return *std::max_element(most, most + kChains);
  }

  dvt_cands* raw_;
};

template <class T>
struct SamplerTable {
  using Request = typename T::Request;
  static Request& req(void* r) { return *static_cast<Request*>(r); }

  static dvt_code open(void* plugin, dvt_call* call, dvt_doc defaults, uint32_t vocab_size,
                       void** out) noexcept {
    return guard(call, [&] {
      // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new): guard() catches it
      *out = new Opened{T(StageOpen{Params(host_of(plugin).doc(defaults)), vocab_size}),
                        host_of(plugin)};
    });
  }
  static void close(void* stage) noexcept { delete static_cast<Opened*>(stage); }
  static dvt_code begin(void* stage, dvt_call* call, dvt_doc overrides, const uint32_t* prompt,
                        uint64_t n, void** out) noexcept {
    return guard(call, [&] {
      const auto& opened = *static_cast<const Opened*>(stage);
      // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new): guard() catches it
      *out = new Request(opened.stage, RequestOpen{Params(opened.host.doc(overrides)),
                                                   {prompt, static_cast<size_t>(n)}});
    });
  }
  static void end(void* r) noexcept { delete static_cast<Request*>(r); }
  static dvt_code apply(void* r, dvt_call* call, dvt_cands* c) noexcept {
    return guard(call, [&] {
      Candidates candidates(c);
      req(r).apply(candidates);
    });
  }
  static dvt_code accept(void* r, dvt_call* call, uint32_t id) noexcept {
    return guard(call, [&] {
      if constexpr (requires(Request & q) { q.accept(id); }) req(r).accept(id);
    });
  }
  static dvt_code rewind(void* r, dvt_call* call, uint64_t n) noexcept {
    return guard(call, [&] {
      if constexpr (requires(Request & q) { q.rewind(n); }) req(r).rewind(n);
    });
  }
  static dvt_code save(void* r, dvt_call* call, void* out, uint64_t cap, uint64_t* need) noexcept {
    return guard(call, [&] {
      *need = 0;
      if constexpr (requires(Request & q) { q.save(); }) {
        const std::vector<uint8_t> bytes = req(r).save();
        give(std::span<const uint8_t>(bytes), static_cast<uint8_t*>(out), cap, need);
      }
    });
  }
  static dvt_code load(void* r, dvt_call* call, dvt_bytes in) noexcept {
    return guard(call, [&] {
      if constexpr (requires(Request & q) { q.load(std::span<const uint8_t>()); }) {
        req(r).load({static_cast<const uint8_t*>(in.p), static_cast<size_t>(in.n)});
      } else if (in.n != 0) {
        throw Error("got " + std::to_string(in.n) + " bytes of saved state, expected none",
                    DVT_EFORMAT);
      }
    });
  }
  static uint32_t effect(void* r) noexcept {
    if constexpr (requires(const Request& q) { q.effect(); }) return req(r).effect();
    return DVT_EFFECT_ANY;
  }

  struct Opened {
    T stage;
    Host host;
  };
  static constexpr dvt_sampler_v1 table = {sizeof(dvt_sampler_v1),
                                           0,
                                           open,
                                           close,
                                           begin,
                                           end,
                                           apply,
                                           accept,
                                           rewind,
                                           save,
                                           load,
                                           effect};
  static const void* find(std::string_view name) {
    return name == "dovetail.sampler/1" ? &table : nullptr;
  }
};

}  // namespace dovetail

#define DVT_EXPORT_SAMPLER(Class)                                                                 \
  DVT_DEFINE_PLUGIN("sampler", ("dovetail.sampler/1"), (), ::dovetail::SamplerTable<Class>::find, \
                    ::dovetail::params_of<Class>())
