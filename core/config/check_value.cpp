#include "core/config/check_value.hpp"

#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>

#include "core/base/nearest.hpp"
#include "core/config/source_text.hpp"

namespace dovetail::core {
namespace {

using Type = ParamSpec::Type;

// 1 rather than 1.000000.
std::string number_text(double value) {
  Node node = std::nearbyint(value) == value && std::abs(value) < 1e15
                  ? Node::make_int(static_cast<int64_t>(value))
                  : Node::make_float(value);
  return describe_value(node);
}

std::string range_text(const ParamSpec& spec) {
  if (spec.min && spec.max && *spec.min == *spec.max) return " equal to " + number_text(*spec.min);
  std::string out;
  if (spec.min) out += (spec.min_exclusive ? " over " : " of at least ") + number_text(*spec.min);
  if (spec.min && spec.max) out += " and";
  if (spec.max) out += (spec.max_exclusive ? " under " : " at most ") + number_text(*spec.max);
  return out;
}

std::string choices_text(const std::vector<std::string>& choices) {
  std::string out = "one of ";
  for (size_t i = 0; i < choices.size(); ++i) out += (i == 0 ? "" : ", ") + choices[i];
  return out;
}

std::string expected_one(const ParamSpec& spec) {
  switch (spec.type) {
    case Type::kBool:
      return "true or false";
    case Type::kInt:
      return "an integer" + range_text(spec);
    case Type::kFloat:
      return "a number" + range_text(spec);
    case Type::kString:
      return spec.choices.empty() ? "a string" : choices_text(spec.choices);
    case Type::kPath:
      return "a file name";
    case Type::kAny:
      return "a value";
  }
  return "a value";
}

bool is_in_range(double value, const ParamSpec& spec) {
  if (!std::isfinite(value)) return false;
  if (spec.min && (spec.min_exclusive ? value <= *spec.min : value < *spec.min)) return false;
  return !(spec.max && (spec.max_exclusive ? value >= *spec.max : value > *spec.max));
}

bool is_choice(const std::string& text, const std::vector<std::string>& choices) {
  if (choices.empty()) return true;
  for (const std::string& choice : choices) {
    if (choice == text) return true;
  }
  return false;
}

bool fits_one(const Node& value, const ParamSpec& spec) {
  switch (spec.type) {
    case Type::kBool:
      return value.is_bool();
    case Type::kInt:
      return value.is_int() && is_in_range(value.as_float(), spec);
    case Type::kFloat:
      return value.is_number() && is_in_range(value.as_float(), spec);
    case Type::kString:
      return value.is_string() && is_choice(value.as_string(), spec.choices);
    case Type::kPath:
      return value.is_string();
    case Type::kAny:
      return true;
  }
  return false;
}

// What to try, where the fault has a usual cause.
std::string hint(const Node& value, const ParamSpec& spec) {
  if (value.is_string() && spec.type == Type::kString)
    return did_you_mean(value.as_string(), spec.choices);
  const bool wants_string = spec.type == Type::kString || spec.type == Type::kPath;
  if (wants_string && (value.is_number() || value.is_bool()))
    return "; put it in quotes if it is text";
  if (spec.type == Type::kInt && value.is_number() && !value.is_int()) {
    const bool has_digits_only =
        value.number_text().find_first_not_of("+-0123456789") == std::string::npos;
    return has_digits_only ? "; the largest is " + std::to_string(INT64_MAX)
                           : "; write it with digits only";
  }
  if (spec.type == Type::kFloat && value.is_string() &&
      value.as_string().find('_') != std::string::npos) {
    return "; write it without \"_\"";
  }
  return "";
}

void check_one(const Node& value, const ParamSpec& spec, const std::string& path, Faults& faults) {
  if (fits_one(value, spec)) return;
  faults.add(value.origin(), path + ": got " + describe_value(value) + ", expected " +
                                 expectation(spec) + hint(value, spec));
}

}  // namespace

void Faults::add(const Origin& origin, const std::string& what) {
  if (lines_.size() < kMaxShown) {
    lines_.push_back(origin.str() + ": " + what);
  } else {
    ++n_more_;
  }
}

Status Faults::status() const {
  if (lines_.empty()) return Status::ok();
  std::string all;
  for (const std::string& line : lines_) all += (all.empty() ? "" : "\n") + line;
  if (n_more_ > 0) all += "\nand " + std::to_string(n_more_) + " more";
  return invalid(std::move(all));
}

std::string describe_value(const Node& value) {
  switch (value.kind()) {
    case Node::Kind::kBool:
      return value.as_bool() ? "true" : "false";
    case Node::Kind::kInt:
      return value.number_text().empty() ? std::to_string(value.as_int()) : value.number_text();
    case Node::Kind::kFloat:
      return value.number_text().empty() ? std::to_string(value.as_float()) : value.number_text();
    case Node::Kind::kString:
      return "the string " + quote_for_message(value.as_string());
    default:
      return value.kind_name();
  }
}

std::string expectation(const ParamSpec& spec) {
  const std::string one = expected_one(spec);
  if (spec.forms == ParamSpec::kMap)
    return spec.type == Type::kAny ? "a map" : "a map, each value " + one;
  if (spec.forms == ParamSpec::kList) return "a list, each item " + one;
  std::string out = one;
  if ((spec.forms & ParamSpec::kList) != 0) out += ", or a list of them";
  if ((spec.forms & ParamSpec::kMap) != 0) out += ", or a map of them";
  return out;
}

void check_value(const Node& value, const ParamSpec& spec, const std::string& path,
                 Faults& faults) {
  if (value.is_null()) return;
  const auto below = [&](const std::string& key) { return path + "." + key; };
  const bool allows_list = (spec.forms & ParamSpec::kList) != 0;
  const bool allows_map = (spec.forms & ParamSpec::kMap) != 0;
  if (value.is_list() && allows_list) {
    size_t i = 0;
    for (const Node& item : value.items()) {
      check_one(item, spec, below(std::to_string(i++)), faults);
    }
  } else if (value.is_map() && allows_map) {
    for (const auto& [key, item] : value.entries()) check_one(item, spec, below(key), faults);
  } else if ((spec.forms & ParamSpec::kOne) != 0) {
    check_one(value, spec, path, faults);
  } else {
    faults.add(value.origin(),
               path + ": got " + describe_value(value) + ", expected " + expectation(spec));
  }
}

std::vector<std::string> names_of(const std::vector<ParamSpec>& specs) {
  std::vector<std::string> names;
  names.reserve(specs.size());
  for (const ParamSpec& spec : specs) names.push_back(spec.name);
  return names;
}

const ParamSpec* find_spec(const std::vector<ParamSpec>& specs, std::string_view name) {
  for (const ParamSpec& spec : specs) {
    if (spec.name == name) return &spec;
  }
  return nullptr;
}

void add_unknown_key(const Node::Entry& entry, const std::string& path,
                     const std::vector<std::string>& known, Faults& faults) {
  const auto& [key, value] = entry;
  std::string what = "unknown key " + quote_for_message(key) +
                     (path.empty() ? " at the top level" : " in " + path);
  const size_t colon = key.find(':');
  const std::string suggestion = did_you_mean(key, known);
  if (value.is_null() && colon != std::string::npos) {
    what += "; write a space after the colon";
  } else if (!suggestion.empty()) {
    what += suggestion;
  } else if (known.empty()) {
    what += ", which takes none";
  } else {
    what += ", expected ";
    for (size_t i = 0; i < known.size(); ++i) what += (i == 0 ? "" : ", ") + known[i];
    if (path.empty()) what += "; a sampler stage's parameter is set as sampler.0.temperature";
  }
  faults.add(value.origin(), what);
}

void check_required(const Node& map, const std::vector<ParamSpec>& specs, const std::string& path,
                    Faults& faults) {
  for (const ParamSpec& spec : specs) {
    if (!spec.required || spec.default_value) continue;
    const Node* value = map.find(spec.name);
    if (value != nullptr && !value->is_null()) continue;
    faults.add(map.origin(), (path.empty() ? "" : path + ": ") + "the key \"" + spec.name +
                                 "\" is missing, expected " + expectation(spec));
  }
}

bool is_params_map(const Node& value, const std::vector<ParamSpec>& specs) {
  if (!value.is_map()) return false;
  const bool first_is_map = !specs.empty() && (specs[0].forms & ParamSpec::kMap) != 0;
  if (!first_is_map) return true;
  for (const Node::Entry& entry : value.entries()) {
    if (find_spec(specs, entry.first) == nullptr) return false;
  }
  return true;
}

void check_params(const Node& value, const std::vector<ParamSpec>& specs, const std::string& path,
                  Faults& faults) {
  if (is_params_map(value, specs)) {
    const std::vector<std::string> known = names_of(specs);
    for (const Node::Entry& entry : value.entries()) {
      const ParamSpec* spec = find_spec(specs, entry.first);
      if (spec == nullptr) {
        add_unknown_key(entry, path, known, faults);
      } else {
        check_value(entry.second, *spec, path + "." + entry.first, faults);
      }
    }
    check_required(value, specs, path, faults);
  } else if (value.is_null()) {
    check_required(value, specs, path, faults);
  } else if (specs.empty()) {
    faults.add(value.origin(),
               path + ": got " + describe_value(value) + ", but it takes no parameters");
  } else {
    check_value(value, specs[0], path, faults);
    if (specs.size() > 1) check_required(value, {specs.begin() + 1, specs.end()}, path, faults);
  }
}

Result<Node> complete_params(const Node& value, const std::vector<ParamSpec>& specs,
                             const std::string& path) {
  Faults faults;
  check_params(value, specs, path, faults);
  DVT_TRY(faults.status());
  const bool is_map = is_params_map(value, specs);
  Node out = Node::make_map();
  out.set_origin(value.origin());
  for (size_t i = 0; i < specs.size(); ++i) {
    const ParamSpec& spec = specs[i];
    const Node* given = is_map ? value.find(spec.name) : i == 0 ? &value : nullptr;
    if (given != nullptr && !given->is_null()) {
      out.set(spec.name, *given);
    } else if (spec.default_value) {
      Node filled = *spec.default_value;
      if (filled.origin().source == nullptr) {
        filled.set_origin({std::make_shared<const std::string>("default of " + path), 0, 0});
      }
      out.set(spec.name, std::move(filled));
    }
  }
  return out;
}

}  // namespace dovetail::core
