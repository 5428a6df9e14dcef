// Mutated configs, always the same ones: every text is either read or refused with a place.
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "core/config/check_value.hpp"
#include "core/config/load.hpp"
#include "core/config/settings.hpp"
#include "core/config/show.hpp"
#include "core/config/validate.hpp"
#include "tests/core/config/nodes.hpp"

namespace dovetail::core {
namespace {

std::string file_text(const std::string& path) {
  std::ifstream in(path);
  EXPECT_TRUE(in.good()) << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::string> seeds() {
  return {
      file_text("configs/defaults.yaml"),
      file_text("configs/qwen3-0.6b.yaml"),
      "dovetail: 1\nmodel: &m {arch: hash, vocab_size: 64}\nbackend:\n  plugin: cpu\n  weights: "
      "{default: int4, lm_head: int8}\n"
      "sampler:\n  - greedy\n  - top_k: {k: 3, min_keep: 1}\n  - logit_bias: {17: "
      "-1.5}\ngenerate:\n"
      "  stop: [\"a\\n\", 'it''s']\n  seed: 0x1F\nchat:\n  template: |\n    {% for m in messages "
      "%}\n    {{ m }}\n",
      "a: &x [1, 2e-3, .5]\nb: *x\nc: >-\n  folded\n  text\n? d\n: {e: null, \"f\": ~}\n",
  };
}

class Mutator {
 public:
  explicit Mutator(uint32_t seed) : random_(seed) {}

  std::string operator()(std::string text) {
    const int n_edits = 1 + below(4);
    for (int i = 0; i < n_edits; ++i) edit(text);
    return text;
  }

 private:
  int below(size_t n) { return static_cast<int>(random_() % n); }

  void edit(std::string& text) {
    static const std::vector<std::string> pieces = {":",
                                                    ": ",
                                                    "- ",
                                                    "-",
                                                    "[",
                                                    "]",
                                                    "{",
                                                    "}",
                                                    ",",
                                                    "&a ",
                                                    "*a",
                                                    "!",
                                                    "!!str ",
                                                    "|",
                                                    ">",
                                                    "'",
                                                    "\"",
                                                    "\\",
                                                    "#",
                                                    "\n",
                                                    "\r\n",
                                                    "\t",
                                                    "  ",
                                                    "---\n",
                                                    "...\n",
                                                    "<<: ",
                                                    "? ",
                                                    "%",
                                                    "~",
                                                    "null",
                                                    "08",
                                                    "1e400",
                                                    ".inf",
                                                    "${X}",
                                                    "$${",
                                                    "\xFF",
                                                    std::string(1, '\0'),
                                                    "\xEF\xBB\xBF",
                                                    "\xC3\xA9",
                                                    "a: 1\n",
                                                    "[[[[",
                                                    "@",
                                                    "`",
                                                    "=",
                                                    "0x",
                                                    "\x04"};
    const size_t at = text.empty() ? 0 : static_cast<size_t>(below(text.size()));
    switch (below(4)) {
      case 0:
        text.insert(at, pieces[static_cast<size_t>(below(pieces.size()))]);
        break;
      case 1:
        text.erase(at, static_cast<size_t>(1 + below(8)));
        break;
      case 2: {
        const std::string copy = text.substr(at, static_cast<size_t>(below(40)));
        text.insert(static_cast<size_t>(below(text.size() + 1)), copy);
        break;
      }
      default:
        if (!text.empty()) text[at] = static_cast<char>(random_());
    }
  }

  std::mt19937 random_;
};

TEST(YamlFuzz, EveryMutationIsReadOrRefusedWithAPlace) {
  const std::vector<std::string> texts = seeds();
  Mutator mutate(20261130);
  int n_read = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::string text = mutate(texts[static_cast<size_t>(i) % texts.size()]);
    const Result<Node> node = parse_yaml(text, "x.yaml");
    if (!node) {
      ASSERT_TRUE(node.status().message().starts_with("x.yaml:")) << node.status().message();
      continue;
    }
    ++n_read;
    const std::string shown = show_config(*node, true);
    Result<Node> again = parse_yaml(shown, "shown");
    ASSERT_TRUE(again.is_ok()) << again.status().message() << "\n" << shown << "\nfrom:\n" << text;
  }
  EXPECT_GT(n_read, 2'000);
  EXPECT_LT(n_read, 18'000);
}

TEST(YamlFuzz, MutatedConfigsGoThroughEveryLayer) {
  const std::vector<std::string> texts = seeds();
  const DeclaredPlugins plugins = some_plugins();
  Mutator mutate(7);
  LoadOptions options;
  options.defaults_path = "configs/defaults.yaml";
  options.environment = [](const std::string& name) {
    return name == "X" ? std::optional<std::string>("value") : std::nullopt;
  };
  int n_loaded = 0;
  for (int i = 0; i < 3'000; ++i) {
    const std::string text = mutate(texts[static_cast<size_t>(i) % 3]);
    const Result<Node> config = load_config_text(text, "configs/x.yaml", options);
    if (!config) continue;
    ++n_loaded;
    (void)validate(*config, plugins.params());
    const Result<Settings> settings = read_settings(*config);
    if (!settings) continue;
    for (const PluginUse& stage : settings->sampler) {
      const std::vector<ParamSpec>* specs = plugins.params().find("sampler", stage.name);
      if (specs != nullptr) (void)complete_params(stage.params, *specs, stage.path);
    }
  }
  EXPECT_GT(n_loaded, 100);
}

}  // namespace
}  // namespace dovetail::core
