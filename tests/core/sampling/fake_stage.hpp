// A sampler stage in plain C tables, with what it does given by the test.
#pragma once

#include <dovetail/abi/sampler.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace dovetail::core::test {

struct FakeStage {
  std::function<void(dvt_cands&)> apply = [](dvt_cands&) {};
  std::string failure;  // what begin and apply report, if not empty
  uint32_t effect = DVT_EFFECT_ANY;
  int n_open = 0, n_begun = 0;
  std::vector<uint32_t> accepted;
  std::vector<uint32_t> prompt;

  dvt_code fail(dvt_call* call) const {
    if (failure.empty()) return DVT_OK;
    call->fail(call, DVT_EINVAL, {failure.data(), failure.size()}, {});
    return DVT_EINVAL;
  }
  static FakeStage& of(void* p) { return *static_cast<FakeStage*>(p); }

  static dvt_sampler_v1 make_table() {
    dvt_sampler_v1 t{};
    t.struct_size = sizeof t;
    t.open = [](void* plugin, dvt_call*, dvt_doc, uint32_t, void** out) noexcept -> dvt_code {
      ++of(plugin).n_open;
      *out = plugin;
      return DVT_OK;
    };
    t.close = [](void* s) noexcept { --of(s).n_open; };
    t.begin = [](void* s, dvt_call* call, dvt_doc, const uint32_t* prompt, uint64_t n,
                 void** out) noexcept -> dvt_code {
      if (const dvt_code code = of(s).fail(call); code != DVT_OK) return code;
      ++of(s).n_begun;
      of(s).prompt.assign(prompt, prompt + n);
      *out = s;
      return DVT_OK;
    };
    t.end = [](void* r) noexcept { --of(r).n_begun; };
    t.apply = [](void* r, dvt_call* call, dvt_cands* c) noexcept -> dvt_code {
      if (const dvt_code code = of(r).fail(call); code != DVT_OK) return code;
      of(r).apply(*c);
      return DVT_OK;
    };
    t.accept = [](void* r, dvt_call*, uint32_t id) noexcept -> dvt_code {
      of(r).accepted.push_back(id);
      return DVT_OK;
    };
    t.rewind = [](void* r, dvt_call*, uint64_t n) noexcept -> dvt_code {
      of(r).accepted.resize(of(r).accepted.size() - n);
      return DVT_OK;
    };
    t.effect = [](void* r) noexcept { return of(r).effect; };
    return t;
  }
  static const dvt_sampler_v1* table() {
    static const dvt_sampler_v1 t = make_table();
    return &t;
  }
};

}  // namespace dovetail::core::test
