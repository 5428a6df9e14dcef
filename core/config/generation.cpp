#include "core/config/generation.hpp"

#include <string>
#include <string_view>
#include <utility>

#include "core/config/check_value.hpp"
#include "core/config/schema.hpp"

namespace dovetail::core {
namespace {

constexpr std::string_view kPenalty = "repetition_penalty";
constexpr std::string_view kTemperature = "temperature";
constexpr std::string_view kFilters[] = {"top_k", "top_p", "min_p", "typical_p"};

const Node* value_of(const Node& map, std::string_view key) {
  const Node* value = map.find(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

Status bad_value(const Node& value, std::string_view key, const char* expected) {
  return bad_format(value.origin().str() + ": \"" + std::string(key) + "\" is " +
                    describe_value(value) + ", expected " + expected);
}

// Adds the stage of that name, if the document has a value for it.
Status add_stage(const Node& generation, std::string_view key, Node& chain) {
  const Node* value = value_of(generation, key);
  if (value == nullptr) return Status::ok();
  if (!value->is_number()) return bad_value(*value, key, "a number");
  Node stage = Node::make_map();
  stage.set_origin(value->origin());
  stage.set(key, *value);
  chain.items().push_back(std::move(stage));
  return Status::ok();
}

Result<Node> chain_of(const Node& generation) {
  Node chain = Node::make_list();
  chain.set_origin(generation.origin());
  DVT_TRY(add_stage(generation, kPenalty, chain));
  const Node* samples = value_of(generation, "do_sample");
  if (samples != nullptr && !samples->is_bool())
    return bad_value(*samples, "do_sample", "true or false");
  if (samples != nullptr && !samples->as_bool()) {
    Node zero = Node::make_int(0), greedy = Node::make_map();
    zero.set_origin(samples->origin());
    greedy.set_origin(samples->origin());
    greedy.set(kTemperature, std::move(zero));
    chain.items().push_back(std::move(greedy));
    return chain;
  }
  DVT_TRY(add_stage(generation, kTemperature, chain));
  for (const std::string_view key : kFilters) DVT_TRY(add_stage(generation, key, chain));
  return chain;
}

}  // namespace

Result<Node> defaults_of_generation(const Node& generation) {
  if (!generation.is_map())
    return bad_format(generation.origin().str() + ": the generation config is " +
                      generation.kind_name() + ", expected a map");
  Node out = Node::make_map();
  out.set_origin(generation.origin());
  DVT_TRY(Node chain, chain_of(generation));
  if (!chain.items().empty()) out.set(kSamplerKey, std::move(chain));
  if (const Node* tokens = value_of(generation, "max_new_tokens")) {
    if (!tokens->is_int()) return bad_value(*tokens, "max_new_tokens", "an integer");
    Node generate = Node::make_map();
    generate.set_origin(tokens->origin());
    generate.set("max_tokens", *tokens);
    out.set("generate", std::move(generate));
  }
  return out;
}

}  // namespace dovetail::core
