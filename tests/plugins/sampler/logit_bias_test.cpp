// logit_bias. B064.
#include "tests/plugins/sampler/stage_rig.hpp"

namespace dovetail::core::test {
namespace {

using Ids = std::vector<uint32_t>;
using Logits = std::vector<float>;

// What a request with this map is refused with; "" if it is not.
std::string refusal(const std::string& map) {
  const Stage stage("logit_bias", "{}", "{\"logit_bias\": " + map + "}", {}, 1000);
  return stage.status().message();
}

TEST(LogitBias, AddsToTheLogits) {
  Stage stage("logit_bias", R"({"logit_bias": {"1": 2.5, "3": -99.5}})");
  EXPECT_EQ(stage.logits({1, 1, 1, 1}), (Logits{1, 3.5, 1, -98.5}));
  EXPECT_EQ(Stage("logit_bias", "{}").logits({1, 2}), (Logits{1, 2}));
  EXPECT_EQ(Stage("logit_bias", R"({"logit_bias": {"1": 2.5}})", R"({"logit_bias": {"0": 1}})")
                .logits({1, 1}),
            (Logits{2, 1}))
      << "a request's map replaces the stage's";
  EXPECT_EQ(Stage("logit_bias", "{}").effect(), uint32_t{DVT_EFFECT_KEEPS_ARGMAX});
}

TEST(LogitBias, OfMinus100NeverPicksTheTokenHoweverLikely) {
  Stage stage("logit_bias", "{}", R"({"logit_bias": {"2": -100}})");
  EXPECT_EQ(stage.kept({0, 0, 1000, 0}), (Ids{0, 1, 3}));
  Draw only_that({0, 0, 1000, 0});
  only_that.list.c += 2;
  only_that.list.n = 1;
  EXPECT_EQ(stage.apply(only_that).message(),
            "logit_bias: -100 bans every token that could come next; allow at least one");
}

TEST(LogitBias, Of100AlwaysPicksTheTokenHoweverUnlikely) {
  EXPECT_EQ(Stage("logit_bias", "{}", R"({"logit_bias": {"1": 100}})").kept({500, -1000, 0}),
            (Ids{1}));
  EXPECT_EQ(Stage("logit_bias", "{}", R"({"logit_bias": {"1": 100, "2": 100, "0": -100}})")
                .kept({500, -1000, 0}),
            (Ids{1, 2}));
  EXPECT_EQ(Stage("logit_bias", "{}", R"({"logit_bias": {"7": 100}})").kept({500, -1000}),
            (Ids{0, 1}))
      << "an id that may not be drawn leaves nothing to choose";
}

TEST(LogitBias, RefusesKeysThatAreNoIds) {
  EXPECT_EQ(refusal(R"({"999": 1})"), "");
  for (const char* key :
       {"1000", "999999999", "99999999999999999999", "-1", "abc", "", "1.0", " 1", "+1", "0x1"})
    EXPECT_NE(
        refusal("{\"" + std::string(key) + "\": 1}").find("is not a token id, expected 0 to 999"),
        std::string::npos)
        << key;
  EXPECT_NE(refusal(R"({"7": 1, "07": 1})").find("names an id that another key names too"),
            std::string::npos);
  EXPECT_NE(refusal("[1]").find("logit_bias: got a list, expected a map of token id to bias"),
            std::string::npos);
}

TEST(LogitBias, RefusesValuesThatAreNoBias) {
  for (const char* value : {"null", "true", "\"x\"", "[1]"})
    EXPECT_NE(
        refusal("{\"5\": " + std::string(value) + "}").find("expected a number from -100 to 100"),
        std::string::npos)
        << value;
  for (const char* value : {"101", "-100.001", "1e300"})
    EXPECT_NE(refusal("{\"5\": " + std::string(value) + "}").find("key \"5\" has "),
              std::string::npos)
        << value;
}

}  // namespace
}  // namespace dovetail::core::test
