#include "core/config/validate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/config/check_value.hpp"
#include "tests/core/config/nodes.hpp"

namespace dovetail::core {
namespace {

class Validate : public testing::Test {
 protected:
  std::string faults(const std::string& text) {
    return validate(parsed("dovetail: 1\n" + text), plugins.params()).message();
  }
  void expect_right(const std::string& text) { EXPECT_EQ(faults(text), "") << text; }
  // Exactly one fault, which begins so; the text starts on line 2.
  void expect_fault(const std::string& text, const std::string& message) {
    EXPECT_TRUE(faults(text).starts_with("x.yaml:" + message))
        << "in: " << text << "\ngot: " << faults(text);
    EXPECT_EQ(faults(text).find('\n'), std::string::npos) << faults(text);
  }

  DeclaredPlugins plugins = some_plugins();
};

TEST_F(Validate, TakesTheExampleOfTheDesign) {
  expect_right(
      "model: {path: models/Qwen3-0.6B}\nbackend: {plugin: cpu, weights: int8}\n"
      "sampler:\n  - temperature: 0.6\n  - top_k: 20\n  - top_p: 0.95\n");
}

TEST_F(Validate, TakesEveryFormOfAValue) {
  expect_right(
      "backend: {weights: {default: int4, lm_head: int8}, threads: 2, isa: avx2}\nsampler: []\n");
  expect_right(
      "generate: {stop: x, stop_ids: 5}\nmodel: {arch: hash, vocab_size: 64, format: a}\n");
  expect_right(
      "generate: {stop: [x, y], stop_ids: [5, 6]}\nmodel: {format: [a, b]}\nextends: [a.yaml]\n");
  expect_right(
      "sampler:\n  - greedy\n  - top_k: {k: 3}\n  - top_k:\n  - top_k\n  - top_k: {k: null, "
      "min_keep: 2}\n");
  expect_right(
      "sampler:\n  - logit_bias: {17: -1.5}\n  - logit_bias: {bias: {17: 2}}\n  - temperature: "
      "1\n");
  expect_right(
      "chat: {system: \"\", enable_thinking: false}\ngenerate: {max_tokens: 0, seed: 0}\n");
  expect_right("backend:\nsampler:\nchat: {template: null}\nlog: {level: ~}\n");
}

TEST_F(Validate, NamesUnknownKeysAndTheNearest) {
  expect_fault("modle: {}", "2:1: unknown key \"modle\" at the top level, did you mean \"model\"?");
  expect_fault("smapler: []",
               "2:1: unknown key \"smapler\" at the top level, did you mean \"sampler\"?");
  expect_fault("generate: {max_token: 1}",
               "2:12: unknown key \"max_token\" in generate, did you mean \"max_tokens\"?");
  expect_fault("sampler:\n- tempreture: 0.6",
               "3:3: sampler.0: no sampler plugin \"tempreture\" is installed, did you mean "
               "\"temperature\"?");
  expect_fault("sampler:\n- top_k: {kk: 1}",
               "3:11: unknown key \"kk\" in sampler.0.top_k, did you mean \"k\"?");
  expect_fault("sampler:\n- gredy",
               "3:3: no sampler plugin \"gredy\" is installed, did you mean \"greedy\"?");
  expect_fault("backend: {plugin: cpu, iso: auto}",
               "2:24: unknown key \"iso\" in backend, did you mean \"isa\"?");
  expect_fault("backend: {plugin: cup}",
               "2:11: no backend plugin \"cup\" is installed, did you mean \"cpu\"?");
  expect_fault("backend: {plugin: reference, isa: auto}",
               "2:30: unknown key \"isa\" in backend, expected plugin, weights, threads");
  expect_fault("log: {colour: 1}", "2:7: unknown key \"colour\" in log, expected level");
  expect_fault("log: {level:info}",
               "2:7: unknown key \"level:info\" in log; write a space after the colon");
}

TEST_F(Validate, SaysWhatItGotAndWhatItExpected) {
  expect_fault("context: 4k",
               "2:1: context: got the string \"4k\", expected an integer of at least 1");
  expect_fault(
      "context: 1e3",
      "2:1: context: got 1e3, expected an integer of at least 1; write it with digits only");
  expect_fault("context: 0", "2:1: context: got 0, expected an integer of at least 1");
  expect_fault(
      "context: 99999999999999999999",
      "2:1: context: got 99999999999999999999, expected an integer of at least 1; the largest is "
      "9223372036854775807");
  expect_fault("context: [5]", "2:1: context: got a list, expected an integer");
  expect_fault("generate: {ignore_eos: no}",
               "2:12: generate.ignore_eos: got the string \"no\", expected true or false");
  expect_fault("generate: {ignore_eos: 1}",
               "2:12: generate.ignore_eos: got 1, expected true or false");
  expect_fault("model: {name: 7}",
               "2:9: model.name: got 7, expected a string; put it in quotes if it is text");
  expect_fault("model: {path: {a: b}}", "2:9: model.path: got a map, expected a file name");
  expect_fault("log: {level: inof}",
               "2:7: log.level: got the string \"inof\", expected one of trace, debug, info, warn, "
               "error, off, did you mean \"info\"?");
  expect_fault("generate: {stop: [a, 1]}",
               "2:22: generate.stop.1: got 1, expected a string, or a list of them");
  expect_fault("generate: {stop: [null]}", "2:19: generate.stop.0: got null, expected a string");
  expect_fault("backend: {weights: {lm_head: 8}}",
               "2:21: backend.weights.lm_head: got 8, expected a string, or a map of them");
  expect_fault(
      "backend: cpu",
      "2:1: backend: got the string \"cpu\", expected a map such as \"backend: {plugin: ...}\"");
}

TEST_F(Validate, RefusesATextWhereANumberIsWanted) {  // B088
  expect_fault("sampler:\n- temperature: 1_000",
               "3:3: sampler.0.temperature: got the string \"1_000\", expected a number of at "
               "least 0; write it without \"_\"");
  expect_fault("sampler:\n- top_k: 0o8",
               "3:3: sampler.0.top_k: got the string \"0o8\", expected an integer");
  expect_fault("sampler:\n- temperature: \"0.5\"",
               "3:3: sampler.0.temperature: got the string \"0.5\", expected a number");
  for (const char* number : {"1e-6", "1E-5", "1.e-6", ".5", "+1", "0x1F", "3"}) {
    expect_right(std::string("sampler:\n- temperature: ") + number);
  }
}

TEST_F(Validate, HoldsPluginsToTheirRanges) {
  expect_fault("sampler:\n- top_p: 0",
               "3:3: sampler.0.top_p: got 0, expected a number over 0 and at most 1");
  expect_fault("sampler:\n- top_p: 1.01",
               "3:3: sampler.0.top_p: got 1.01, expected a number over 0 and at most 1");
  expect_fault("sampler:\n- temperature: -1e-9",
               "3:3: sampler.0.temperature: got -1e-9, expected a number of at least 0");
  expect_fault("sampler:\n- top_k: {k: 1, min_keep: 0}", "3:17: sampler.0.top_k.min_keep: got 0");
  expect_fault("backend: {plugin: cpu, isa: avx}",
               "2:24: backend.isa: got the string \"avx\", expected one of auto, portable, avx2");
  expect_fault("sampler:\n- logit_bias: {17: x}",
               "3:16: sampler.0.logit_bias.17: got the string \"x\"");
  expect_right("sampler:\n- top_p: 1\n- top_p: 1e-300\n");
}

TEST_F(Validate, WantsOneStagePerItem) {
  expect_fault("sampler: greedy",
               "2:1: sampler: got the string \"greedy\", expected a list of stages");
  expect_fault("sampler: {temperature: 1}", "2:1: sampler: got a map, expected a list of stages");
  expect_fault("sampler:\n- {top_k: 1, top_p: 1}",
               "3:14: sampler.0: got the keys \"top_k\", \"top_p\", expected one stage");
  expect_fault(
      "sampler:\n- {temperature: 1, temprature: 1}",
      "3:20: sampler.0: got the keys \"temperature\", \"temprature\", expected one stage: a name, "
      "or a "
      "name and its parameters such as \"temperature: 0.6\", did you mean \"temperature\"?");
  expect_fault("sampler:\n- {}", "3:3: sampler.0: got a map, expected one stage");
  expect_fault("sampler:\n- null", "3:3: sampler.0: got null");
  expect_fault("sampler:\n- 5", "3:3: sampler.0: got 5");
  expect_fault("sampler:\n- greedy: 1", "3:3: sampler.0.greedy: got 1, but it takes no parameters");
  expect_fault("sampler:\n- greedy: {x: 1}",
               "3:12: unknown key \"x\" in sampler.0.greedy, which takes none");
  expect_fault("sampler:\n- top_k: [1]", "3:3: sampler.0.top_k: got a list, expected an integer");
}

TEST_F(Validate, WantsWhatIsRequired) {
  expect_fault("sampler:\n- top_p",
               "3:3: sampler.0: the key \"p\" is missing, expected a number over 0");
  expect_fault("sampler:\n- top_p: {}", "3:3: sampler.0.top_p: the key \"p\" is missing");
  expect_fault("sampler:\n- top_p: {p: null}", "3:3: sampler.0.top_p: the key \"p\" is missing");
  expect_fault("model: {arch: hash}",
               "2:1: model: the key \"vocab_size\" is missing, expected an integer");
  EXPECT_NE(validate(parsed("model: {}"), {}).message().find("the key \"dovetail\" is missing"),
            std::string::npos);
  EXPECT_NE(
      validate(parsed("dovetail: 2"), {}).message().find("got 2, expected an integer equal to 1"),
      std::string::npos);
}

TEST_F(Validate, LeavesPluginsAloneUntilTheyAreKnown) {
  const Node config = parsed(
      "dovetail: 1\nbackend: {plugin: any, x: 1}\nmodel: {y: 2}\ntokenizer: {z: 3}\nsampler: [any, "
      "other: 5]\n");
  EXPECT_TRUE(validate(config, {}).is_ok());
  EXPECT_FALSE(validate(parsed("dovetail: 1\nkv_cache: {x: 1}\n"), {}).is_ok());
}

TEST_F(Validate, ReportsAllFaultsButNotTooMany) {
  const std::string three = faults("contxt: 1\nlog: {level: x}\nsampler: [nosuch]\n");
  EXPECT_EQ(std::count(three.begin(), three.end(), '\n'), 2) << three;
  std::string keys;
  for (int i = 0; i < 30; ++i) keys += "zzzzz" + std::to_string(i) + ": 1\n";
  const std::string many = faults(keys);
  EXPECT_EQ(std::count(many.begin(), many.end(), '\n'), 20) << many;
  EXPECT_TRUE(many.ends_with("\nand 10 more")) << many;
}

TEST_F(Validate, CompletesParametersWithDefaults) {
  const std::vector<ParamSpec>& top_k = plugins.specs[{"sampler", "top_k"}];
  const auto completed = [&](const std::string& yaml) {
    Result<Node> out = complete_params(parsed(yaml), top_k, "sampler.1.top_k");
    EXPECT_TRUE(out.is_ok()) << out.status().message();
    return out ? std::move(out).value() : Node::make_map();
  };
  EXPECT_TRUE(same_values(completed("20"), parsed("{k: 20, min_keep: 1}")));
  EXPECT_TRUE(same_values(completed("0"), parsed("{k: 0, min_keep: 1}")));
  EXPECT_TRUE(same_values(completed("null"), parsed("{k: 40, min_keep: 1}")));
  EXPECT_TRUE(same_values(completed("{min_keep: 3, k: null}"), parsed("{k: 40, min_keep: 3}")));
  EXPECT_EQ(completed("null").find("k")->origin().str(), "default of sampler.1.top_k");
  EXPECT_FALSE(complete_params(parsed("-1"), top_k, "sampler.1.top_k").is_ok());

  const std::vector<ParamSpec>& bias = plugins.specs[{"sampler", "logit_bias"}];
  EXPECT_TRUE(
      same_values(*complete_params(parsed("{17: 1}"), bias, "x"), parsed("{bias: {17: 1}}")));
  EXPECT_TRUE(same_values(*complete_params(parsed("{bias: {17: 1}}"), bias, "x"),
                          parsed("{bias: {17: 1}}")));
}

}  // namespace
}  // namespace dovetail::core
