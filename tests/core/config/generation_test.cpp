// What a checkpoint says of sampling, as a layer of the config, and a chain that layers change by name.
#include "core/config/generation.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/json.hpp"
#include "core/config/load.hpp"
#include "tests/core/config/nodes.hpp"

namespace dovetail::core {
namespace {

Node json(const std::string& text) {
  Result<Node> node = parse_json(text, "m/generation_config.json");
  EXPECT_TRUE(node.is_ok()) << node.status().message();
  return node ? std::move(*node) : Node();
}
Node layer_of(const std::string& text) {
  Result<Node> layer = defaults_of_generation(json(text));
  EXPECT_TRUE(layer.is_ok()) << layer.status().message();
  return layer ? std::move(*layer) : Node();
}
std::string refusal(const std::string& text) {
  const Result<Node> layer = defaults_of_generation(json(text));
  return layer ? "" : layer.status().message();
}

/// The effective config of a text over the layer of a checkpoint.
Node effective(const std::string& yaml, const std::string& generation,
               std::vector<std::string> sets = {}) {
  LoadOptions options;
  options.environment = [](const std::string&) { return std::nullopt; };
  options.sets = std::move(sets);
  const Result<ConfigLayers> layers =
      ConfigLayers::read_text("dovetail: 1\n" + yaml, "/etc/x.yaml", options);
  EXPECT_TRUE(layers.is_ok()) << layers.status().message();
  const Result<Node> config = layers->effective(layer_of(generation));
  EXPECT_TRUE(config.is_ok()) << config.status().message();
  return config ? *config : Node::make_map();
}
Node chain_of(const std::string& yaml, const std::string& generation,
              std::vector<std::string> sets = {}) {
  const Node config = effective(yaml, generation, std::move(sets));
  const Node* chain = config.find("sampler");
  return chain ? *chain : Node();
}

constexpr const char* kQwen = R"({"do_sample": true, "temperature": 0.6, "top_k": 20, "top_p": 0.95,
  "eos_token_id": [151645, 151643], "pad_token_id": 151643, "bos_token_id": 151643})";

TEST(Generation, BecomesAChainInTheUsualOrder) {
  EXPECT_TRUE(same_values(layer_of(kQwen),
                          parsed("{sampler: [temperature: 0.6, top_k: 20, top_p: 0.95]}")));
  EXPECT_TRUE(same_values(
      layer_of(R"({"typical_p": 0.9, "min_p": 0.1, "top_p": 0.8, "top_k": 5, "temperature": 2,
                   "repetition_penalty": 1.1, "max_new_tokens": 2048})"),
      parsed(
          "{sampler: [repetition_penalty: 1.1, temperature: 2, top_k: 5, top_p: 0.8, min_p: 0.1, "
          "typical_p: 0.9], generate: {max_tokens: 2048}}")));
}

TEST(Generation, WithoutSamplingIsTheLikeliest) {
  EXPECT_TRUE(same_values(layer_of(R"({"do_sample": false, "temperature": 0.6, "top_k": 20,
                                       "repetition_penalty": 1.2})"),
                          parsed("{sampler: [repetition_penalty: 1.2, temperature: 0]}")));
}

TEST(Generation, SaysNothingWhereItHasNothing) {
  for (const char* text : {"{}", R"({"eos_token_id": 2, "transformers_version": "5.0"})",
                           R"({"do_sample": true})", R"({"temperature": null, "do_sample": null})"})
    EXPECT_TRUE(same_values(layer_of(text), parsed("{}"))) << text;
}

TEST(Generation, KeepsThePlaceOfEachValue) {
  const Node layer = layer_of("{\n \"top_k\": 20,\n \"max_new_tokens\": 5}");
  EXPECT_EQ(layer.find("sampler")->items()[0].find("top_k")->origin().str(),
            "m/generation_config.json:2:11");
  EXPECT_EQ(layer.find("generate")->find("max_tokens")->origin().str(),
            "m/generation_config.json:3:20");
  EXPECT_EQ(layer_of("{\n \"do_sample\": false}")
                .find("sampler")
                ->items()[0]
                .find("temperature")
                ->origin()
                .str(),
            "m/generation_config.json:2:15");
}

TEST(Generation, RefusesWrongTypesWithTheirPlace) {
  EXPECT_EQ(
      refusal(R"({"temperature": "hot"})"),
      "m/generation_config.json:1:17: \"temperature\" is the string \"hot\", expected a number");
  EXPECT_EQ(refusal(R"({"do_sample": 1})"),
            "m/generation_config.json:1:15: \"do_sample\" is 1, expected true or false");
  EXPECT_NE(refusal(R"({"max_new_tokens": 1.5})").find("expected an integer"), std::string::npos);
  EXPECT_NE(refusal(R"({"top_k": [20]})").find("\"top_k\" is a list, expected a number"),
            std::string::npos);
  EXPECT_NE(refusal("[1]").find("the generation config is a list, expected a map"),
            std::string::npos);
}

TEST(Generation, IsUnderTheConfigAndOverTheDefaults) {
  EXPECT_TRUE(
      same_values(chain_of("", kQwen), parsed("[temperature: 0.6, top_k: 20, top_p: 0.95]")));
  EXPECT_TRUE(same_values(chain_of("sampler:\n", kQwen),  // null: the default
                          parsed("[temperature: 0.6, top_k: 20, top_p: 0.95]")));
  EXPECT_TRUE(same_values(chain_of("sampler: []\n", kQwen), parsed("[]")));
  EXPECT_TRUE(same_values(chain_of("sampler: [top_k: 3]\n", kQwen), parsed("[top_k: 3]")));
  const Node config = effective("generate: {max_tokens: 7}\n", R"({"max_new_tokens": 2048})");
  EXPECT_EQ(config.find("generate")->find("max_tokens")->as_int(), 7);
}

TEST(Generation, AMapChangesTheChainStageByStage) {
  EXPECT_TRUE(same_values(chain_of("sampler: {top_k: 3}\n", kQwen),
                          parsed("[temperature: 0.6, top_k: 3, top_p: 0.95]")));
  EXPECT_TRUE(same_values(
      chain_of("sampler: {min_p: 0.1, repetition_penalty: 1.1, temperature: null, other: 5}\n",
               kQwen),
      parsed("[repetition_penalty: 1.1, temperature: 0.6, top_k: 20, top_p: 0.95, min_p: 0.1, "
             "other: 5]")));
  EXPECT_TRUE(same_values(chain_of("sampler: {temperature: 0.7}\n", R"({"do_sample": false})"),
                          parsed("[temperature: 0.7]")))
      << "what asks for a temperature samples";
  EXPECT_TRUE(same_values(chain_of("sampler: {top_k: 3, temperature: 1}\n", "{}"),
                          parsed("[temperature: 1, top_k: 3]")))
      << "over no chain";
  const Node chain = chain_of("sampler: {top_k: 3}\n", kQwen);
  EXPECT_EQ(chain.items()[0].find("temperature")->origin().str(), "m/generation_config.json:1:36");
  EXPECT_EQ(chain.items()[1].find("top_k")->origin().str(), "/etc/x.yaml:2:11");
}

TEST(Generation, SetNamesStages) {
  EXPECT_TRUE(same_values(chain_of("", kQwen, {"sampler.temperature=0", "sampler.min_p=0.2"}),
                          parsed("[temperature: 0, top_k: 20, top_p: 0.95, min_p: 0.2]")));
  EXPECT_TRUE(same_values(chain_of("", kQwen, {"sampler.1.top_k=5"}),
                          parsed("[temperature: 0.6, top_k: 5, top_p: 0.95]")));
  EXPECT_TRUE(same_values(
      chain_of("sampler: [greedy, top_k: {top_k: 3}]\n", kQwen, {"sampler.top_k.min_keep=2"}),
      parsed("[greedy, top_k: {top_k: 3, min_keep: 2}]")));
  EXPECT_TRUE(same_values(chain_of("sampler: {top_k: 3}\n", kQwen, {"sampler.top_p=0.5"}),
                          parsed("[temperature: 0.6, top_k: 3, top_p: 0.5]")));
  EXPECT_TRUE(same_values(chain_of("", "{}", {"sampler.top_p=0.5"}), parsed("[top_p: 0.5]")));
  EXPECT_TRUE(same_values(chain_of("sampler: {top_k: 3}\n", kQwen, {"sampler.2.top_p=0.5"}),
                          parsed("[temperature: 0.6, top_k: 3, top_p: 0.5]")));
}

TEST(Generation, LayersThatExtendChangeAChainToo) {
  LoadOptions options;
  options.environment = [](const std::string&) { return std::nullopt; };
  options.sets = {"sampler=[temperature: 1, top_p: 0.5]", "sampler.top_p=0.25",
                  "sampler={min_p: 0.1}"};
  const Result<ConfigLayers> layers =
      ConfigLayers::read_text("dovetail: 1\nsampler: {top_k: 3}\n", "/etc/x.yaml", options);
  ASSERT_TRUE(layers.is_ok());
  EXPECT_TRUE(same_values(*layers->effective(layer_of(kQwen))->find("sampler"),
                          parsed("[temperature: 1, top_p: 0.25, min_p: 0.1]")));
  const Result<Node> rest = layers->without_sampler();
  ASSERT_TRUE(rest.is_ok()) << rest.status().message();
  EXPECT_EQ(rest->find("sampler"), nullptr);
}

}  // namespace
}  // namespace dovetail::core
