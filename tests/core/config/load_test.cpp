#include "core/config/load.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "core/config/show.hpp"
#include "tests/core/config/nodes.hpp"

namespace dovetail::core {
namespace {

namespace fs = std::filesystem;

/// A folder of config files that goes away with the test.
class LoadConfig : public testing::Test {
 protected:
  LoadConfig() : folder_(fs::path(testing::TempDir()) / ("dvt_load_" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
    options.environment = [this](const std::string& name) -> std::optional<std::string> {
      const auto at = variables.find(name);
      return at == variables.end() ? std::nullopt : std::optional(at->second);
    };
  }
  ~LoadConfig() override { fs::remove_all(folder_); }

  std::string file(const std::string& name, const std::string& text) {
    const fs::path path = folder_ / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return path.string();
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  Node load(const std::string& name) {
    Result<Node> config = load_config(path(name), options);
    EXPECT_TRUE(config.is_ok()) << config.status().message();
    return config ? std::move(config).value() : Node::make_map();
  }
  std::string fault(const std::string& name) {
    const Result<Node> config = load_config(path(name), options);
    return config ? "" : config.status().message();
  }
  void expect_fault(const std::string& name, const std::string& about) {
    EXPECT_NE(fault(name).find(about), std::string::npos) << fault(name);
  }

  LoadOptions options;
  std::map<std::string, std::string> variables;

 private:
  fs::path folder_;
};

// The value at "a.b.0", or null.
Node at(const Node& root, const std::string& dotted) {
  const Node* node = &root;
  size_t start = 0;
  while (node != nullptr && start <= dotted.size()) {
    const size_t end = std::min(dotted.find('.', start), dotted.size());
    const std::string part = dotted.substr(start, end - start);
    node = node->is_list() ? &node->items().at(std::stoul(part)) : node->find(part);
    start = end + 1;
  }
  return node == nullptr ? Node() : *node;
}

TEST_F(LoadConfig, CommandLineWinsOverEnvironmentOverFileOverDefault) {  // B086
  options.defaults_path =
      file("defaults.yaml", "dovetail: 1\ngenerate: {ignore_eos: true, max_tokens: 1}\n");
  file("a.yaml", "dovetail: 1\n");
  EXPECT_EQ(at(load("a.yaml"), "generate.max_tokens").as_int(), 1);
  file("a.yaml", "dovetail: 1\ngenerate: {max_tokens: 2}\n");
  EXPECT_EQ(at(load("a.yaml"), "generate.max_tokens").as_int(), 2);
  variables["DOVETAIL_SET"] = "generate.max_tokens=3";
  EXPECT_EQ(at(load("a.yaml"), "generate.max_tokens").as_int(), 3);
  options.sets = {"generate.max_tokens=4"};
  EXPECT_EQ(at(load("a.yaml"), "generate.max_tokens").as_int(), 4);
  options.sets = {"generate.max_tokens=4", "generate.max_tokens=5"};
  EXPECT_EQ(at(load("a.yaml"), "generate.max_tokens").as_int(), 5);
}

TEST_F(LoadConfig, ShowNamesTheOriginOfEachLayer) {  // B086
  options.defaults_path = file("defaults.yaml", "dovetail: 1\nlog:\n  level: warn\n");
  file("a.yaml", "dovetail: 1\ncontext: 100\n");
  variables["DOVETAIL_SET"] = " generate.seed=7 ; backend.plugin='a;b'";
  options.sets = {"generate.ignore_eos=false"};
  const std::string shown = show_config(load("a.yaml"), true);
  EXPECT_NE(shown.find("level: warn  # " + path("defaults.yaml") + ":3:3\n"), std::string::npos)
      << shown;
  EXPECT_NE(shown.find("context: 100  # " + path("a.yaml") + ":2:1\n"), std::string::npos) << shown;
  EXPECT_NE(shown.find("seed: 7  # DOVETAIL_SET generate.seed\n"), std::string::npos) << shown;
  EXPECT_NE(shown.find("plugin: \"a;b\"  # DOVETAIL_SET backend.plugin\n"), std::string::npos)
      << shown;
  EXPECT_NE(shown.find("ignore_eos: false  # --set generate.ignore_eos\n"), std::string::npos)
      << shown;
}

TEST_F(LoadConfig, FalseZeroAndEmptyAreValues) {  // B086
  options.defaults_path = file(
      "defaults.yaml",
      "dovetail: 1\ngenerate: {ignore_eos: true, max_tokens: 9, stop: [x]}\nchat: {system: hi}\n");
  file("a.yaml",
       "dovetail: 1\ngenerate: {ignore_eos: false, max_tokens: 0, stop: []}\nchat: {system: "
       "\"\"}\n");
  const Node config = load("a.yaml");
  EXPECT_FALSE(at(config, "generate.ignore_eos").as_bool());
  EXPECT_EQ(at(config, "generate.max_tokens").as_int(), 0);
  EXPECT_TRUE(at(config, "generate.stop").items().empty());
  EXPECT_EQ(at(config, "chat.system").as_string(), "");

  file("a.yaml", "dovetail: 1\ngenerate: {ignore_eos: true}\n");
  options.sets = {"generate.ignore_eos=false", "generate.max_tokens=0", "chat.system=''"};
  const Node set = load("a.yaml");
  EXPECT_FALSE(at(set, "generate.ignore_eos").as_bool());
  EXPECT_EQ(at(set, "generate.max_tokens").as_int(), 0);
  EXPECT_EQ(at(set, "chat.system").as_string(), "");
}

TEST_F(LoadConfig, NullMeansTheDefault) {  // B086
  options.defaults_path =
      file("defaults.yaml", "dovetail: 1\nbackend: {plugin: cpu}\nsampler: [greedy]\n");
  file(
      "base.yaml",
      "dovetail: 1\nbackend: {plugin: cuda, threads: 4}\nsampler: [top_k: 1]\nchat: {system: x}\n");
  file("a.yaml",
       "dovetail: 1\nextends: base.yaml\nbackend: {plugin: null, threads: ~}\nsampler:\nchat: "
       "null\n");
  const Node config = load("a.yaml");
  EXPECT_EQ(at(config, "backend.plugin").as_string(), "cpu");
  EXPECT_EQ(config.find("backend")->find("threads"), nullptr);
  EXPECT_EQ(at(config, "sampler.0").as_string(), "greedy");
  EXPECT_EQ(config.find("chat"), nullptr);

  file("a.yaml", "dovetail: 1\nextends: base.yaml\n");
  for (const char* set :
       {"backend.plugin=null", "backend.plugin=", "backend.plugin=~", "backend="}) {
    options.sets = {set};
    EXPECT_EQ(at(load("a.yaml"), "backend.plugin").as_string(), "cpu") << set;
  }
  options.sets = {"backend=null", "backend.plugin=reference"};
  EXPECT_EQ(at(load("a.yaml"), "backend.plugin").as_string(), "reference");
}

TEST_F(LoadConfig, ExtendsMergesMapsAndReplacesLists) {
  file("lib/base.yaml",
       "dovetail: 1\nmodel: {path: m, name: base}\nsampler: [greedy, top_k: 3]\ncontext: 5\n");
  file("lib/over.yaml", "dovetail: 1\nmodel: {name: over}\n");
  file("a.yaml",
       "dovetail: 1\nextends: [lib/base.yaml, lib/over.yaml]\nsampler: [temperature: 1]\n");
  const Node config = load("a.yaml");
  EXPECT_EQ(at(config, "model.path").as_string(), path("lib/m"));
  EXPECT_EQ(at(config, "model.name").as_string(), "over");
  EXPECT_EQ(at(config, "model.name").origin().str(), path("lib/over.yaml") + ":2:9");
  EXPECT_EQ(at(config, "sampler").items().size(), 1u);
  EXPECT_EQ(at(config, "context").as_int(), 5);
  EXPECT_EQ(config.find("extends"), nullptr);
}

TEST_F(LoadConfig, RefusesCirclesAndNamesTheChain) {
  file("a.yaml", "dovetail: 1\nextends: b.yaml\n");
  file("b.yaml", "dovetail: 1\nextends: [c.yaml]\n");
  file("c.yaml", "dovetail: 1\nextends: ../" +
                     fs::path(path("")).parent_path().filename().string() + "/a.yaml\n");
  expect_fault("a.yaml",
               path("a.yaml") + " -> " + path("b.yaml") + " -> " + path("c.yaml") + " -> ");
  EXPECT_TRUE(
      fault("a.yaml").starts_with(path("c.yaml") + ":2:1: extends: goes round in a circle"));
  file("self.yaml", "dovetail: 1\nextends: self.yaml\n");
  expect_fault("self.yaml", "circle");
}

TEST_F(LoadConfig, BoundsHowMuchIsExtended) {
  for (int i = 0; i < 20; ++i) {
    const std::string next = std::to_string(i + 1) + ".yaml";
    file("chain" + std::to_string(i) + ".yaml", "dovetail: 1\nextends: chain" + next + "\n");
    file("wide" + std::to_string(i) + ".yaml",
         "dovetail: 1\nextends: [wide" + next + ", wide" + next + "]\n");
  }
  file("wide9.yaml", "dovetail: 1\n");
  expect_fault("chain0.yaml", "deeper than 16");
  expect_fault("wide0.yaml", "more than 64 configs");
}

TEST_F(LoadConfig, SaysWhichExtendedFileIsMissing) {
  file("a.yaml", "dovetail: 1\nextends: nosuch.yaml\n");
  EXPECT_TRUE(fault("a.yaml").starts_with(path("a.yaml") + ":2:1: extends: " + path("nosuch.yaml") +
                                          ": cannot be opened: No such file"))
      << fault("a.yaml");
  file("a.yaml", "dovetail: 1\nextends: {a: b}\n");
  expect_fault("a.yaml", "extends has a map, expected a file name");
  file("a.yaml", "dovetail: 1\nextends: \"\"\n");
  expect_fault("a.yaml", "expected a file name");
}

TEST_F(LoadConfig, SaysWhatAFileIsNot) {
  expect_fault("nosuch.yaml", "cannot be opened: No such file");
  EXPECT_EQ(load_config(path("nosuch.yaml"), options).status().code(), Code::kIo);
  expect_fault("", "is a folder");
  file("a.yaml", "");
  expect_fault("a.yaml", "nothing in it");
  file("a.yaml", "- 1\n");
  expect_fault("a.yaml", "the config is a list, expected a map");
  file("a.yaml", "model: {}\n");
  expect_fault("a.yaml", "the key \"dovetail\" is missing");
  file("a.yaml", "dovetail: 2\n");
  expect_fault("a.yaml", ":1:1: another version");
  file("a.yaml", "dovetail: \"1\"\n");
  expect_fault("a.yaml", ":1:1: another version");
  file("a.yaml", "dovetail: 1\n# " + std::string(2'000'000, 'x'));
  expect_fault("a.yaml", "1048576 bytes");
}

TEST_F(LoadConfig, SetParsesOneYamlValue) {
  file("a.yaml", "dovetail: 1\nsampler:\n  - temperature: 0.6\n  - greedy\n");
  options.sets = {"sampler.0.temperature=0.2", "generate.stop=[a, 'b']",
                  "backend.weights={default: int8}", "chat.system=a=b: c", "context=0x10"};
  options.sets[3] = "chat.system=a=b";
  const Node config = load("a.yaml");
  EXPECT_EQ(at(config, "sampler.0.temperature").as_float(), 0.2);
  EXPECT_EQ(at(config, "sampler.0.temperature").origin().str(), "--set sampler.0.temperature");
  EXPECT_EQ(at(config, "generate.stop.1").as_string(), "b");
  EXPECT_EQ(at(config, "generate.stop.1").origin().str(), "--set generate.stop");
  EXPECT_EQ(at(config, "backend.weights.default").as_string(), "int8");
  EXPECT_EQ(at(config, "chat.system").as_string(), "a=b");
  EXPECT_EQ(at(config, "context").as_int(), 16);
}

TEST_F(LoadConfig, SetReachesIntoAListOfTheDefaults) {
  options.defaults_path =
      file("defaults.yaml", "dovetail: 1\nsampler: [temperature: 1.0, greedy]\n");
  file("a.yaml", "dovetail: 1\n");
  options.sets = {"sampler.0.temperature=0.2"};
  const Node config = load("a.yaml");
  EXPECT_EQ(at(config, "sampler.0.temperature").as_float(), 0.2);
  EXPECT_EQ(at(config, "sampler.1").as_string(), "greedy");
}

TEST_F(LoadConfig, SetSaysWhatIsWrong) {
  file("a.yaml", "dovetail: 1\nsampler: [greedy]\ngenerate: {stop: [x]}\ncontext: 5\n");
  const std::pair<const char*, const char*> cases[] = {
      {"context", "expected KEY=VALUE"},
      {"=5", "expected KEY=VALUE"},
      {"a..b=5", "empty part"},
      {".a=5", "empty part"},
      {"sampler.1.k=5",
       "--set sampler.1.k: the index 1 is past the end of \"sampler\", which has 1 items"},
      {"generate.stop.x=5", "expected an index such as generate.stop.0, got \"x\""},
      {"sampler.-1=5", "expected an index"},
      {"sampler.99999999999999999999999=5", "expected an index"},
      {"context.x=5", "\"context\" is an integer"},
      {"context=[1", "is not closed"},
      {"context=010", "leading zeros"},
      {"context=five",
       "--set context: context: got the string \"five\", expected an integer of at least 1"},
      {"contxt=5",
       "--set contxt: unknown key \"contxt\" at the top level, did you mean \"context\"?"},
      {"extends=b.yaml", "only a config file"},
      {"a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a."
       "a.a.a.a.a.a.a.a.a.a.a.a."
       "a.a.a.a.a.a.a.a.a.a=5",
       "64 parts"},
  };
  for (const auto& [set, about] : cases) {
    options.sets = {set};
    EXPECT_NE(fault("a.yaml").find(about), std::string::npos)
        << set << "\ngot: " << fault("a.yaml");
  }
}

TEST_F(LoadConfig, ExpandsVariablesAfterMerging) {
  file("base.yaml", "dovetail: 1\nmodel: {path: \"${NO_SUCH}/x\"}\n");
  file("a.yaml",
       "dovetail: 1\nextends: ${BASE:-base}.yaml\nmodel: {path: /m, name: \"$${HOME}\"}\nlog: "
       "{level: \"${LEVEL}\"}\n");
  variables["LEVEL"] = "info";
  const Node config = load("a.yaml");
  EXPECT_EQ(at(config, "model.path").as_string(), "/m");
  EXPECT_EQ(at(config, "model.name").as_string(), "${HOME}");
  EXPECT_EQ(at(config, "log.level").as_string(), "info");
  expect_fault("base.yaml",
               path("base.yaml") + ":2:9: model.path: the variable NO_SUCH is not set");
}

TEST_F(LoadConfig, TakesPathsFromTheFileThatWroteThem) {
  file("lib/base.yaml", "dovetail: 1\nmodel: {path: ../m/./x}\nplugins: {path: [p, /q]}\n");
  file("a.yaml", "dovetail: 1\nextends: lib/base.yaml\ntokenizer: {path: t}\n");
  Node config = load("a.yaml");
  EXPECT_EQ(at(config, "model.path").as_string(), path("m/x"));
  EXPECT_EQ(at(config, "tokenizer.path").as_string(), path("t"));
  EXPECT_EQ(at(config, "plugins.path.0").as_string(), path("lib/p"));
  EXPECT_EQ(at(config, "plugins.path.1").as_string(), "/q");
  EXPECT_EQ(at(config, "model.path").origin().str(), path("lib/base.yaml") + ":2:9");

  options.sets = {"model.path=here", "tokenizer.path=~/t"};
  variables["HOME"] = "/home/jane";
  config = load("a.yaml");
  EXPECT_EQ(at(config, "model.path").as_string(), (fs::current_path() / "here").string());
  EXPECT_EQ(at(config, "tokenizer.path").as_string(), "/home/jane/t");
}

TEST_F(LoadConfig, TakesAPathThatAVariableBeginsFromTheWorkingFolder) {
  file("a.yaml", "dovetail: 1\nmodel: {path: \"${DOVETAIL_MODELS:-models}/x\"}\n");
  EXPECT_EQ(at(load("a.yaml"), "model.path").as_string(), path("models/x"));
  variables["DOVETAIL_MODELS"] = "mine";
  EXPECT_EQ(at(load("a.yaml"), "model.path").as_string(), (fs::current_path() / "mine/x").string());
  variables["DOVETAIL_MODELS"] = "/mine";
  EXPECT_EQ(at(load("a.yaml"), "model.path").as_string(), "/mine/x");
}

TEST_F(LoadConfig, WhatItShowsCanBeFedBackFromAnotherFolder) {
  file("a.yaml",
       "dovetail: 1\nmodel: {path: m, name: \"$${x}\"}\nsampler: [greedy, temperature: 1.e-1, "
       "top_k: {k: 0x10}]\n"
       "chat:\n  template: |\n    {% if x %}  # no comment\n\ttab \"q\" \\ 'é'\n\n");
  file("a.yaml",
       "dovetail: 1\nmodel: {path: m, name: \"$${x}\"}\nsampler: [greedy, temperature: 1.e-1, "
       "top_k: {k: 0x10}]\n"
       "chat:\n  template: |\n    {% if x %}  # no comment\n    \ttab \"q\" \\ 'é'\n\n");
  const Node config = load("a.yaml");
  for (const bool with_origins : {false, true}) {
    file("elsewhere/b.yaml", show_config(config, with_origins));
    EXPECT_TRUE(same_values(load("elsewhere/b.yaml"), config)) << show_config(config, with_origins);
  }
}

TEST_F(LoadConfig, ACheckpointAloneIsAConfig) {
  options.defaults_path = file("defaults.yaml", "dovetail: 1\nbackend: {plugin: cpu}\n");
  options.sets = {"context=7"};
  const Result<ConfigLayers> layers = ConfigLayers::for_checkpoint("some/${dir}", options);
  ASSERT_TRUE(layers.is_ok()) << layers.status().message();
  const Result<Node> config = layers->effective();
  ASSERT_TRUE(config.is_ok()) << config.status().message();
  EXPECT_EQ(at(*config, "model.path").as_string(), (fs::current_path() / "some/${dir}").string());
  EXPECT_EQ(at(*config, "model.path").origin().str(), "command line");
  EXPECT_EQ(at(*config, "backend.plugin").as_string(), "cpu");
  EXPECT_EQ(at(*config, "context").as_int(), 7);
}

}  // namespace
}  // namespace dovetail::core
