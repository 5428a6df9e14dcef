// Data as the template sees it.
#include "core/text/template/big_int.hpp"
#include "core/text/template/interpreter.hpp"
#include "core/text/template/literals.hpp"

namespace dovetail::core::jinja {
namespace {

// A number beyond int64 comes as a float that kept its digits.
Value number_of(const Node& node) {
  const std::string& text = node.number_text();
  if (text.empty() || text.find_first_not_of("-0123456789") != text.npos) {
    return Value::number(node.as_float());
  }
  Value integer = parse_integer(text, 10);
  return integer.is_undefined() ? Value::number(node.as_float()) : integer;
}

Value converted(const Node& node, Source source, uint32_t depth, Budget& budget) {
  budget.check_value_depth(depth);
  budget.step();
  switch (node.kind()) {
    case Node::Kind::kNull:
      return Value::none();
    case Node::Kind::kBool:
      return Value::boolean(node.as_bool());
    case Node::Kind::kInt:
      return Value::integer(node.as_int());
    case Node::Kind::kFloat:
      return number_of(node);
    case Node::Kind::kString:
      budget.charge(node.as_string().size());
      return Value::string(SourcedText(node.as_string(), source));
    case Node::Kind::kList: {
      std::vector<Value> items;
      items.reserve(node.items().size());
      for (const Node& item : node.items()) {
        items.push_back(converted(item, source, depth + 1, budget));
      }
      return Value::list(std::move(items), budget);
    }
    case Node::Kind::kMap:
      break;
  }
  std::vector<std::pair<Value, Value>> entries;
  entries.reserve(node.entries().size());
  for (const auto& [key, value] : node.entries()) {
    entries.emplace_back(Value::string(SourcedText(key, source)),
                         converted(value, source, depth + 1, budget));
  }
  return Value::dict(std::move(entries), budget);
}

}  // namespace

Value value_of(const Node& node, Source source, Budget& budget) {
  return converted(node, source, 1, budget);
}

}  // namespace dovetail::core::jinja
