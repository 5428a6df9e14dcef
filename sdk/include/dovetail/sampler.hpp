// Write a sampler stage: one class for the stage, one for a request. See docs/plugin-guide.md.
//
//   class TopK {
//    public:
//     static constexpr std::array params = {int_param("top_k", "0", "keep the k likeliest; 0 = off", -1)};
//     TopK(const StageOpen& in) : k_(in.defaults.integer("top_k")) {}
//     struct Request {
//       Request(const TopK& stage, const RequestOpen& in) : k(in.integer("top_k", stage.k_)) {}
//       void apply(Candidates& c) { ... }
//     };
//   };
//   DVT_EXPORT_SAMPLER(TopK)
//
// A Request may also have accept(uint32_t id) and rewind(uint64_t n), save() and load().
#pragma once

#include <dovetail/abi/sampler.h>
#include <dovetail/plugin.hpp>

#include <algorithm>
#include <cmath>
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
  /// Keeps the first n (at least one).
  void keep(size_t n) { raw_->n = std::clamp<uint64_t>(n, 1, raw_->n); }
  bool is_sorted() const { return raw_->sorted == 1; }
  bool by_id() const { return raw_->sorted == 2; }
  void order_lost() { raw_->sorted = 0; }

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
    std::partial_sort(raw_->c, raw_->c + n, raw_->c + raw_->n, likelier);
    raw_->sorted = 0;
  }
  /// Keeps the n likeliest, sorted.
  void keep_likeliest(size_t n) {
    sort_first(n);
    keep(n);
    raw_->sorted = 1;
  }
  /// The candidate of an id, or null. By bisection while the order is by id.
  dvt_cand* find(uint32_t id) const {
    dvt_cand* const end = raw_->c + raw_->n;
    dvt_cand* const it =
        by_id() ? std::lower_bound(raw_->c, end, id, [](const dvt_cand& c, uint32_t v) { return c.id < v; })
                : std::find_if(raw_->c, end, [id](const dvt_cand& c) { return c.id == id; });
    return it != end && it->id == id ? it : nullptr;
  }
  /// After logits changed: the order by id still holds, the order by logit does not.
  void logits_changed() {
    if (is_sorted()) order_lost();
  }
  /// softmax of the logits, in candidate order, in double.
  void probabilities(std::vector<double>& out) const {
    double top = -std::numeric_limits<double>::infinity();
    for (const dvt_cand& c : all()) top = std::max(top, static_cast<double>(c.logit));
    out.resize(size());
    double sum = 0;
    for (size_t i = 0; i < size(); ++i) sum += out[i] = std::exp(static_cast<double>(raw_->c[i].logit) - top);
    for (double& p : out) p /= sum;
  }

 private:
  dvt_cands* raw_;
};

template <class T>
struct SamplerTable {
  using Request = typename T::Request;
  static Request& req(void* r) { return *static_cast<Request*>(r); }

  static dvt_code open(void* plugin, dvt_call* call, dvt_doc defaults, uint32_t vocab_size, void** out) noexcept {
    return guard(call, [&] { *out = new Opened{T(StageOpen{Params(host_of(plugin).doc(defaults)), vocab_size}), host_of(plugin)}; });
  }
  static void close(void* stage) noexcept { delete static_cast<Opened*>(stage); }
  static dvt_code begin(void* stage, dvt_call* call, dvt_doc overrides, const uint32_t* prompt, uint64_t n,
                        void** out) noexcept {
    return guard(call, [&] {
      const auto& opened = *static_cast<const Opened*>(stage);
      *out = new Request(opened.stage, RequestOpen{Params(opened.host.doc(overrides)), {prompt, static_cast<size_t>(n)}});
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
      if constexpr (requires(Request& q) { q.accept(id); }) req(r).accept(id);
    });
  }
  static dvt_code rewind(void* r, dvt_call* call, uint64_t n) noexcept {
    return guard(call, [&] {
      if constexpr (requires(Request& q) { q.rewind(n); }) req(r).rewind(n);
    });
  }
  static dvt_code save(void* r, dvt_call* call, void* out, uint64_t cap, uint64_t* need) noexcept {
    return guard(call, [&] {
      *need = 0;
      if constexpr (requires(Request& q) { q.save(); }) {
        const std::vector<uint8_t> bytes = req(r).save();
        give(std::span<const uint8_t>(bytes), static_cast<uint8_t*>(out), cap, need);
      }
    });
  }
  static dvt_code load(void* r, dvt_call* call, dvt_bytes in) noexcept {
    return guard(call, [&] {
      if constexpr (requires(Request& q) { q.load(std::span<const uint8_t>()); })
        req(r).load({static_cast<const uint8_t*>(in.p), static_cast<size_t>(in.n)});
    });
  }

  struct Opened {
    T stage;
    Host host;
  };
  static constexpr dvt_sampler_v1 table = {sizeof(dvt_sampler_v1), 0,      open,   close,  begin,
                                           end,                    apply,  accept, rewind, save, load};
  static const void* find(std::string_view name) { return name == "dovetail.sampler/1" ? &table : nullptr; }
};

}  // namespace dovetail

#define DVT_EXPORT_SAMPLER(Class)                                                                       \
  DVT_DEFINE_PLUGIN("sampler", ("dovetail.sampler/1"), (), ::dovetail::SamplerTable<Class>::find, \
                    ::dovetail::params_of<Class>())
