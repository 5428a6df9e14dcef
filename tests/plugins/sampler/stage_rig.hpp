// Sampler plugins as the build made them: loaded from the build's plugin folder and driven through
// the C tables, with the core's own host services.
#pragma once

#include <dlfcn.h>
#include <dovetail/abi/plugin.h>
#include <dovetail/abi/sampler.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/json.hpp"
#include "core/base/thread_pool.hpp"
#include "core/plugin/call_frame.hpp"
#include "core/plugin/host.hpp"

namespace dovetail::core::test {

inline std::string plugin_file(const std::string& name) {
  return std::string(DVT_BUILD_DIR) + "/lib/dovetail/plugins/sampler/" + name + ".so";
}

inline HostServices& host_services() {
  static ThreadPool pool(1);
  static HostServices services(pool);
  return services;
}

/// A loaded plugin, started once and stopped when the program ends.
struct SamplerPlugin {
  SamplerPlugin() = default;
  ~SamplerPlugin() {
    if (self == nullptr) return;
    CallFrame call;
    EXPECT_EQ(descriptor->drain(call, self), DVT_OK);
    descriptor->stop(self);
  }
  SamplerPlugin(const SamplerPlugin&) = delete;
  SamplerPlugin& operator=(const SamplerPlugin&) = delete;

  const dvt_plugin_v1* descriptor = nullptr;
  const dvt_sampler_v1* table = nullptr;
  void* self = nullptr;

  static const SamplerPlugin& load(const std::string& file) {
    (void)host_services();  // outlives the plugins
    static std::map<std::string, SamplerPlugin> loaded;
    if (const auto it = loaded.find(file); it != loaded.end()) return it->second;
    SamplerPlugin& p = loaded[file];
    void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(library, nullptr) << dlerror();
    if (library == nullptr) return p;
    const auto query = reinterpret_cast<dvt_plugin_query_fn>(dlsym(library, "dvt_plugin_query"));
    EXPECT_NE(query, nullptr) << file;
    if (query == nullptr) return p;
    p.descriptor = query(DVT_ABI_MAJOR, DVT_ABI_MINOR);
    CallFrame call;
    EXPECT_EQ(p.descriptor->start(call, host_services().table_for("sampler/test"), &p.self),
              DVT_OK);
    p.table = static_cast<const dvt_sampler_v1*>(
        p.descriptor->get_interface(p.self, abi_text("dovetail.sampler/1")));
    return p;
  }
};

inline Node json(const std::string& text) {
  Result<Node> node = parse_json(text, "test");
  EXPECT_TRUE(node) << node.status().message();
  return node ? std::move(*node) : Node();
}

using Candidate = std::pair<uint32_t, float>;

/// Candidates in a buffer of their own, as the core would hand them in.
struct Draw {
  std::vector<dvt_cand> buffer;
  dvt_cands list{};

  /// order: 2 by id, 1 sorted by logit, 0 shuffled
  explicit Draw(const std::vector<float>& logits, uint32_t order = 2) {
    for (size_t id = 0; id < logits.size(); ++id)
      buffer.push_back({static_cast<uint32_t>(id), logits[id]});
    if (order == 1)
      std::sort(buffer.begin(), buffer.end(), [](const dvt_cand& a, const dvt_cand& b) {
        return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
      });
    if (order == 0) {
      std::reverse(buffer.begin(), buffer.end());
      std::rotate(buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(buffer.size() / 3),
                  buffer.end());
    }
    list = {sizeof list, order, buffer.data(), buffer.size()};
  }
  Draw(const Draw&) = delete;
  Draw& operator=(const Draw&) = delete;

  std::vector<Candidate> by_id() const {
    std::vector<Candidate> out;
    for (uint64_t i = 0; i < list.n; ++i) out.emplace_back(list.c[i].id, list.c[i].logit);
    std::sort(out.begin(), out.end());
    return out;
  }
  std::vector<uint32_t> ids() const {
    std::vector<uint32_t> out;
    for (const Candidate& c : by_id()) out.push_back(c.first);
    return out;
  }
};

/// One stage with one request.
class Stage {
 public:
  Stage(const SamplerPlugin& plugin, const std::string& defaults, const std::string& overrides = {},
        const std::vector<uint32_t>& prompt = {}, uint32_t vocab_size = 1000)
      : table_(plugin.table),
        defaults_(json(defaults)),
        overrides_(overrides.empty() ? Node() : json(overrides)) {
    status_ =
        call_.check(table_->open(plugin.self, call_, doc_handle(defaults_), vocab_size, &stage_));
    if (!status_.is_ok()) return;
    status_ =
        call_.check(table_->begin(stage_, call_, overrides.empty() ? 0 : doc_handle(overrides_),
                                  prompt.data(), prompt.size(), &request_));
  }
  Stage(const std::string& name, const std::string& defaults, const std::string& overrides = {},
        const std::vector<uint32_t>& prompt = {}, uint32_t vocab_size = 1000)
      : Stage(SamplerPlugin::load(plugin_file(name)), defaults, overrides, prompt, vocab_size) {}
  ~Stage() {
    if (request_ != nullptr) table_->end(request_);
    if (stage_ != nullptr) table_->close(stage_);
  }
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  /// What open or begin said.
  const Status& status() const { return status_; }
  Status apply(Draw& draw) { return call_.check(table_->apply(request_, call_, &draw.list)); }
  Status accept(uint32_t id) { return call_.check(table_->accept(request_, call_, id)); }
  Status rewind(uint64_t n) { return call_.check(table_->rewind(request_, call_, n)); }
  Status load(const std::vector<uint8_t>& bytes) {
    return call_.check(table_->load(request_, call_, {bytes.data(), bytes.size()}));
  }
  std::vector<uint8_t> save() {
    uint64_t need = 0;
    (void)call_.check(table_->save(request_, call_, nullptr, 0, &need));
    std::vector<uint8_t> bytes(need);
    EXPECT_TRUE(call_.check(table_->save(request_, call_, bytes.data(), bytes.size(), &need)));
    return bytes;
  }
  uint32_t effect() const { return table_->effect(request_); }

  /// The ids that are left of these logits, in each order that the core may hand in.
  std::vector<uint32_t> kept(const std::vector<float>& logits) {
    Draw draw(logits);
    EXPECT_TRUE(apply(draw));
    for (uint32_t order : {0u, 1u}) {
      Draw other(logits, order);
      EXPECT_TRUE(apply(other));
      EXPECT_EQ(other.ids(), draw.ids()) << "order " << order;
    }
    return draw.ids();
  }
  /// The logits that are left, by id.
  std::vector<float> logits(const std::vector<float>& in) {
    Draw draw(in);
    EXPECT_TRUE(apply(draw));
    std::vector<float> out;
    for (const Candidate& c : draw.by_id()) out.push_back(c.second);
    return out;
  }

 private:
  const dvt_sampler_v1* table_;
  Node defaults_, overrides_;
  CallFrame call_;
  Status status_;
  void* stage_ = nullptr;
  void* request_ = nullptr;
};

inline std::vector<float> logits_of(const std::vector<double>& probabilities) {
  std::vector<float> out;
  for (double p : probabilities) out.push_back(static_cast<float>(std::log(p)));
  return out;
}

}  // namespace dovetail::core::test
