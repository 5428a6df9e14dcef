#include "core/config/merge.hpp"

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

#include "core/config/schema.hpp"
#include "core/config/source_text.hpp"
#include "core/config/stages.hpp"
#include "core/config/yaml.hpp"

namespace dovetail::core {
namespace {

Node empty_like(const Node& map) {
  Node out = Node::make_map();
  out.set_origin(map.origin());
  return out;
}

bool is_index(std::string_view part) {
  return part[0] == '-' || (part[0] >= '0' && part[0] <= '9');
}

Result<Node*> list_item(Node& list, std::string_view part, const std::string& so_far) {
  size_t index = 0;
  const auto [stop, error] = std::from_chars(part.data(), part.data() + part.size(), index);
  if (error != std::errc() || stop != part.data() + part.size()) {
    return invalid(quote_for_message(so_far) + " is a list, expected an index such as " + so_far +
                   ".0, got " + quote_for_message(part));
  }
  if (index >= list.items().size()) {
    return invalid("the index " + std::string(part) + " is past the end of " +
                   quote_for_message(so_far) + ", which has " +
                   std::to_string(list.items().size()) + " items; to add one, set the whole list");
  }
  return &list.items()[index];
}

// The value under `key`, made where it is missing. A list is taken from the defaults.
Node& map_item(Node& map, std::string_view key, const Node* defaults) {
  if (Node* found = map.find(key); found != nullptr && !found->is_null()) return *found;
  const Node* below = defaults == nullptr ? nullptr : defaults->find(key);
  return map.set(key, below != nullptr && below->is_list() ? *below : Node());
}

}  // namespace

Node merge(Node base, const Node& over) {
  if (!base.is_map() || !over.is_map()) return over;
  for (const auto& [key, value] : over.entries()) {
    Node* below = base.find(key);
    base.set(key, below == nullptr ? value : merge(std::move(*below), value));
  }
  base.set_origin(over.origin());
  return base;
}

Node merge_configs(Node base, const Node& over) {
  const Node *below = base.find(kSamplerKey), *above = over.find(kSamplerKey);
  const bool changes_a_chain = below && below->is_list() && above && above->is_map();
  Node chain = changes_a_chain ? with_stages(*below, *above) : Node();
  Node out = merge(std::move(base), over);
  if (changes_a_chain) out.set(kSamplerKey, std::move(chain));
  return out;
}

Node merge_defaults(const Node& defaults, const Node& over) {
  if (!over.is_map()) return over;
  Node out = empty_like(over);
  if (defaults.is_map()) {
    for (const auto& [key, value] : defaults.entries()) {
      const Node* above = over.find(key);
      const bool is_set = above != nullptr && !above->is_null();
      if (is_set) {
        out.set(key, merge_defaults(value, *above));
      } else if (!value.is_null()) {
        out.set(key, value);
      }
    }
  }
  for (const auto& [key, value] : over.entries()) {
    if (!value.is_null() && out.find(key) == nullptr) out.set(key, merge_defaults(Node(), value));
  }
  return out;
}

Status set_path(Node& root, const Node& defaults, std::string_view path, Node value) {
  Node* at = &root;
  const Node* below = &defaults;
  size_t depth = 0;
  for (size_t start = 0; start <= path.size();) {
    const size_t end = std::min(path.find('.', start), path.size());
    const std::string_view part = path.substr(start, end - start);
    const std::string so_far(path.substr(0, start == 0 ? 0 : start - 1));
    if (part.empty()) return invalid("the path " + quote_for_message(path) + " has an empty part");
    if (++depth > kYamlMaxDepth)
      return invalid("the path has more than " + std::to_string(kYamlMaxDepth) + " parts");
    if (at->is_null()) {
      Node map = Node::make_map();
      map.set_origin(value.origin());
      *at = std::move(map);
    }
    if (at->is_list() && so_far == kSamplerKey && !is_index(part)) {
      at = &stage_of(*at, part);
      below = nullptr;
    } else if (at->is_list()) {
      DVT_TRY(at, list_item(*at, part, so_far));
      below = nullptr;
    } else if (at->is_map()) {
      at = &map_item(*at, part, below);
      below = below == nullptr ? nullptr : below->find(part);
    } else {
      return invalid(quote_for_message(so_far) + " is " + at->kind_name() +
                     ", which has nothing below it; set it as a whole");
    }
    start = end + 1;
  }
  *at = std::move(value);
  return Status::ok();
}

}  // namespace dovetail::core
