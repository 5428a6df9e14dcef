// What every sampler plugin must do, whatever it is for: tried on each one that the build made, with
// values of its declared parameters.
#include <filesystem>
#include <random>

#include "tests/plugins/sampler/stage_rig.hpp"

namespace dovetail::core::test {
namespace {

constexpr uint32_t kVocab = 64;

std::vector<std::string> plugin_files() {
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(
           std::filesystem::path(plugin_file("x")).parent_path(), error))
    if (entry.path().extension() == ".so") files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

// Values to try of a parameter, as JSON.
std::vector<std::string> values_of(const dvt_param& p) {
  if (p.type == DVT_PARAM_BOOL) return {"true", "false"};
  if (p.type == DVT_PARAM_MAP)
    return {R"({"3": 4.5, "5": -100, "9": -2})", R"({"3": 100, "4": 100})", "{}"};
  std::vector<std::string> out;
  const bool is_int = p.type == DVT_PARAM_INT;
  if (!is_int && p.type != DVT_PARAM_FLOAT) return out;
  for (const double v : {-1.0, 0.0, 0.3, 0.5, 0.9, 1.0, 1.5, 3.0, 20.0}) {
    if (is_int && v != std::floor(v)) continue;
    if (v < p.min || (v == p.min && (p.flags & DVT_PARAM_MIN_EXCLUSIVE))) continue;
    if (v > p.max || (v == p.max && (p.flags & DVT_PARAM_MAX_EXCLUSIVE))) continue;
    out.push_back(is_int ? std::to_string(static_cast<int>(v)) : std::to_string(v));
  }
  return out;
}

class SamplerContract : public testing::TestWithParam<std::string> {
 protected:
  SamplerContract() : plugin_(SamplerPlugin::load(GetParam())) {}

  // Its parameters with one of them at each of its values, the others at their defaults.
  std::vector<std::string> settings() const {
    const auto param_at = [&](uint64_t i) -> const dvt_param& {
      const auto* bytes = reinterpret_cast<const uint8_t*>(plugin_.descriptor->params);
      return *reinterpret_cast<const dvt_param*>(bytes +
                                                 i * plugin_.descriptor->params[0].struct_size);
    };
    std::vector<std::string> out;
    const uint64_t n = plugin_.descriptor->n_params;
    if (n == 0) return {"{}"};
    for (uint64_t chosen = 0; chosen < n; ++chosen) {
      for (const std::string& value : values_of(param_at(chosen))) {
        std::string map;
        for (uint64_t i = 0; i < n; ++i) {
          const dvt_param& p = param_at(i);
          const std::string text = i == chosen ? value : std::string(text_of(p.default_text));
          if (!text.empty())
            map += (map.empty() ? "\"" : ", \"") + std::string(text_of(p.name)) + "\": " + text;
        }
        out.push_back("{" + map + "}");
      }
    }
    return out;
  }
  const SamplerPlugin& plugin_;
};

// Logits of many shapes: random, flat, tied, extreme, infinite, one candidate.
std::vector<std::vector<float>> logit_shapes() {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  std::vector<std::vector<float>> out = {{1.5f},
                                         std::vector<float>(kVocab, 0.25f),
                                         {3, 3, 2, 2, 1, 1},
                                         {1e30f, -1e30f, 0, 1e30f},
                                         {kInf, 0, kInf, -kInf, 1}};
  out.emplace_back();  // so near to each other that arithmetic may make them one
  for (int i = 0; i < 9; ++i) out.back().push_back(1.99f + static_cast<float>(i) * 0x1p-23f);
  std::mt19937 random(17);
  for (int i = 0; i < 12; ++i) {
    std::vector<float> logits(2 + random() % (kVocab - 2));
    for (float& l : logits)
      l = (static_cast<float>(random() % 4001) - 2000) / (i % 2 == 0 ? 250.0f : 2000.0f);
    out.push_back(std::move(logits));
  }
  return out;
}

void expect_true_to_its_flag(const Draw& draw, const std::string& what) {
  const dvt_cands& c = draw.list;
  for (uint64_t i = 1; i < c.n; ++i) {
    const dvt_cand &a = c.c[i - 1], &b = c.c[i];
    if (c.sorted == 1) {
      ASSERT_TRUE(a.logit > b.logit || (a.logit == b.logit && a.id < b.id))
          << what << ": not sorted at " << i;
    }
    if (c.sorted == 2) {
      ASSERT_LT(a.id, b.id) << what << ": not by id at " << i;
    }
  }
  ASSERT_LE(c.sorted, 2u) << what;
}

TEST_P(SamplerContract, DescribesItself) {
  const dvt_plugin_v1* d = plugin_.descriptor;
  ASSERT_NE(d, nullptr);
  EXPECT_EQ(text_of(d->kind), "sampler");
  EXPECT_EQ(text_of(d->name), std::filesystem::path(GetParam()).stem().string());
  EXPECT_EQ(text_of(d->abi_hash), DVT_ABI_HASH);
  EXPECT_EQ(d->get_interface(plugin_.self, abi_text("dovetail.nothing/1")), nullptr);
  const dvt_sampler_v1* t = plugin_.table;
  ASSERT_NE(t, nullptr);
  EXPECT_GE(t->struct_size, offsetof(dvt_sampler_v1, accept));
  EXPECT_TRUE(t->open && t->close && t->begin && t->end && t->apply);
  EXPECT_EQ(t->save != nullptr, t->load != nullptr);
  EXPECT_EQ(t->accept != nullptr, t->rewind != nullptr) << "what counts can be taken back";
  for (uint64_t i = 0; i < d->n_params; ++i) {
    EXPECT_FALSE(text_of(d->params[i].help).empty());
    EXPECT_EQ(text_of(d->params[i].help).find('\n'), std::string_view::npos);
    EXPECT_LE(d->params[i].min, d->params[i].max);
  }
}

TEST_P(SamplerContract, LeavesSomeOfTheCandidatesInTheOrderThatItSays) {
  for (const std::string& setting : settings()) {
    for (const std::vector<float>& logits : logit_shapes()) {
      std::vector<Candidate> first;
      for (uint32_t order : {2u, 1u, 0u}) {
        Stage stage(plugin_, setting, "", {1, 2, 2}, kVocab);
        ASSERT_TRUE(stage.status()) << setting << ": " << stage.status().message();
        for (uint32_t id : {2u, 3u, 3u}) ASSERT_TRUE(stage.accept(id));
        Draw draw(logits, order);
        const dvt_cand* const at = draw.list.c;
        const Status s = stage.apply(draw);
        ASSERT_TRUE(s) << setting << ": " << s.message();
        ASSERT_EQ(draw.list.c, at);
        ASSERT_GE(draw.list.n, 1u) << setting;
        ASSERT_LE(draw.list.n, logits.size()) << setting;
        const std::vector<Candidate> left = draw.by_id();
        for (size_t i = 0; i < left.size(); ++i) {
          ASSERT_LT(left[i].first, logits.size()) << setting;
          ASSERT_FALSE(std::isnan(left[i].second)) << setting;
          if (i > 0) {
            ASSERT_NE(left[i].first, left[i - 1].first) << setting << ": an id twice";
          }
        }
        expect_true_to_its_flag(draw, setting);
        if (order == 2) first = left;
        ASSERT_EQ(left, first) << setting << ": depends on the order of the candidates";
        // Without accept between, the same again.
        Draw again(logits, order);
        ASSERT_TRUE(stage.apply(again));
        ASSERT_EQ(again.by_id(), left) << setting << ": apply changes the request";
      }
    }
  }
}

TEST_P(SamplerContract, DoesToTheArgmaxWhatItSays) {
  if (!DVT_HAS(plugin_.table, effect)) return;  // it says nothing
  for (const std::string& setting : settings()) {
    Stage stage(plugin_, setting, "", {1, 2, 2}, kVocab);
    for (uint32_t id : {2u, 3u, 3u}) ASSERT_TRUE(stage.accept(id));
    const uint32_t effect = stage.effect();
    ASSERT_LE(effect, uint32_t{DVT_EFFECT_ARGMAX});
    for (const std::vector<float>& logits : logit_shapes()) {
      const auto best =
          static_cast<uint32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
      Draw draw(logits);
      ASSERT_TRUE(stage.apply(draw));
      const std::vector<Candidate> left = draw.by_id();
      const auto winner = std::max_element(
          left.begin(), left.end(),
          [](const Candidate& a, const Candidate& b) { return a.second < b.second; });
      if (effect != DVT_EFFECT_ANY) {
        EXPECT_EQ(winner->first, best) << setting;
      }
      if (effect == DVT_EFFECT_ARGMAX) {
        EXPECT_EQ(left.size(), 1u) << setting;
      }
    }
  }
}

// One stage as seen from outside: what it leaves of every shape.
std::vector<std::vector<Candidate>> behaviour(Stage& stage) {
  std::vector<std::vector<Candidate>> out;
  for (const std::vector<float>& logits : logit_shapes()) {
    Draw draw(logits);
    EXPECT_TRUE(stage.apply(draw));
    out.push_back(draw.by_id());
  }
  return out;
}

TEST_P(SamplerContract, SavedAndLoadedMidwayEqualsAStraightRun) {
  const std::vector<uint32_t> prompt = {1, 2, 2}, text = {2, 3, 3, 60, 0, 2, 9};
  for (const std::string& setting : settings()) {
    Stage straight(plugin_, setting, "", prompt, kVocab);
    for (size_t cut = 0; cut <= text.size(); ++cut) {
      Stage before(plugin_, setting, "", prompt, kVocab),
          after(plugin_, setting, "", prompt, kVocab);
      for (size_t i = 0; i < cut; ++i) ASSERT_TRUE(before.accept(text[i]));
      ASSERT_TRUE(after.accept(7)) << "load replaces what was there";
      ASSERT_TRUE(after.load(before.save()));
      ASSERT_EQ(behaviour(after), behaviour(before)) << setting;
      ASSERT_EQ(after.save(), before.save());
      for (size_t i = cut; i < text.size(); ++i) ASSERT_TRUE(after.accept(text[i]));
      ASSERT_TRUE(after.rewind(text.size())) << "what was loaded can be taken back";
      ASSERT_EQ(behaviour(after), behaviour(straight)) << setting;
    }
  }
}

TEST_P(SamplerContract, RewoundEqualsNeverHavingAccepted) {
  const std::vector<uint32_t> text = {2, 3, 3, 60, 0, 2, 9};
  for (const std::string& setting : settings()) {
    for (size_t n = 0; n <= text.size(); ++n) {
      Stage never(plugin_, setting, "", {2, 5}, kVocab),
          rewound(plugin_, setting, "", {2, 5}, kVocab);
      for (size_t i = 0; i < text.size(); ++i) {
        if (i < text.size() - n) {
          ASSERT_TRUE(never.accept(text[i]));
        }
        ASSERT_TRUE(rewound.accept(text[i]));
      }
      ASSERT_TRUE(rewound.rewind(n));
      ASSERT_EQ(behaviour(rewound), behaviour(never)) << setting << ", " << n << " back";
      ASSERT_EQ(rewound.save(), never.save());
    }
  }
}

TEST_P(SamplerContract, ServesRequestsApart) {
  for (const std::string& setting : settings()) {
    Stage alone(plugin_, setting, "", {}, kVocab), other(plugin_, setting, "", {}, kVocab);
    const auto expected = behaviour(alone);
    for (uint32_t id : {1u, 2u, 3u, 3u}) ASSERT_TRUE(other.accept(id));
    ASSERT_EQ(behaviour(alone), expected) << setting;
  }
}

TEST_P(SamplerContract, TakesAnySavedBytesWithoutHarm) {
  std::mt19937 random(23);
  for (int i = 0; i < 200; ++i) {
    Stage stage(plugin_, settings().front(), "", {}, kVocab);
    std::vector<uint8_t> bytes(random() % 40);
    for (uint8_t& b : bytes) b = static_cast<uint8_t>(random());
    (void)stage.load(bytes);
    (void)behaviour(stage);
  }
}

TEST_P(SamplerContract, KeepsTheRuleOfCapAndNeed) {
  Stage stage(plugin_, settings().front(), "", {}, kVocab);
  for (uint32_t id : {1u, 2u, 3u}) ASSERT_TRUE(stage.accept(id));
  const std::vector<uint8_t> whole = stage.save();  // asks with no room first
  EXPECT_EQ(stage.save(), whole);
}

INSTANTIATE_TEST_SUITE_P(Built, SamplerContract, testing::ValuesIn(plugin_files()),
                         [](const auto& info) {
                           return std::filesystem::path(info.param).stem().string();
                         });

TEST(SamplerContractSuite, HasPluginsToTry) {
  EXPECT_GE(plugin_files().size(), 10u);
}

}  // namespace
}  // namespace dovetail::core::test
