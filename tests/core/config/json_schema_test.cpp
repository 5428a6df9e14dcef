#include "core/config/json_schema.hpp"

#include <gtest/gtest.h>

#include <string>

#include "core/base/json.hpp"
#include "tests/core/config/nodes.hpp"

namespace dovetail::core {
namespace {

const Node& at(const Node& schema, const std::string& pointer) {
  static const Node nothing;
  const Node* node = &schema;
  size_t start = 1;
  while (start <= pointer.size()) {
    const size_t end = std::min(pointer.find('/', start), pointer.size());
    const std::string part = pointer.substr(start, end - start);
    if (node->is_list()) {
      const size_t i = std::stoul(part);
      node = i < node->items().size() ? &node->items()[i] : nullptr;
    } else {
      node = node->find(part);
    }
    if (node == nullptr) {
      ADD_FAILURE() << "no " << pointer << " in " << to_json(schema, 1);
      return nothing;
    }
    start = end + 1;
  }
  return *node;
}

TEST(JsonSchema, HasEveryFixedKeyAndRefusesOthers) {
  const Node schema = json_schema({});
  EXPECT_EQ(at(schema, "/$schema").as_string(), "https://json-schema.org/draft/2020-12/schema");
  EXPECT_FALSE(at(schema, "/additionalProperties").as_bool());
  EXPECT_EQ(at(schema, "/required/0").as_string(), "dovetail");
  for (const Section& section : config_sections()) {
    const std::string base = section.name.empty() ? "" : "/properties/" + section.name;
    for (const ParamSpec& spec : section.keys) {
      EXPECT_EQ(at(schema, base + "/properties/" + spec.name + "/description").as_string(),
                spec.help);
    }
  }
  EXPECT_TRUE(at(schema, "/properties/sampler/type").is_list());
}

TEST(JsonSchema, SaysTypeRangeAndChoices) {
  const Node schema = json_schema(some_plugins().params());
  const Node& seqs = at(schema, "/properties/scheduler/properties/max_seqs/anyOf");
  EXPECT_EQ(at(seqs, "/0/type").as_string(), "integer");
  EXPECT_EQ(at(seqs, "/0/minimum").as_int(), 1);
  EXPECT_EQ(at(seqs, "/1/type").as_string(), "null");
  EXPECT_EQ(at(schema, "/properties/log/properties/level/anyOf/0/enum/2").as_string(), "info");
  const Node& stages = at(schema, "/properties/sampler/items/anyOf/1/properties");
  EXPECT_EQ(at(stages, "/top_p/anyOf/0/exclusiveMinimum").as_int(), 0);
  EXPECT_EQ(at(stages, "/top_p/anyOf/1/required/0").as_string(), "p");
  EXPECT_EQ(at(stages, "/top_k/anyOf/1/properties/min_keep/default").as_int(), 1);
  EXPECT_FALSE(at(schema, "/properties/backend/unevaluatedProperties").as_bool());
  EXPECT_EQ(at(schema, "/properties/backend/allOf/1/if/properties/plugin/const").as_string(),
            "cpu");
  EXPECT_TRUE(at(schema, "/properties/backend/allOf/1/then/properties/isa").is_map());
}

TEST(JsonSchema, IsValidJson) {
  const std::string json = to_json(json_schema(some_plugins().params()), 2);
  const Result<Node> again = parse_json(json, "schema");
  ASSERT_TRUE(again.is_ok()) << again.status().message();
}

}  // namespace
}  // namespace dovetail::core
