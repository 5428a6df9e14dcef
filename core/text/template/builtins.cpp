// Lookup in the tables, and the matching of arguments to parameters.
#include "core/text/template/builtins.hpp"

#include <algorithm>
#include <array>
#include <unordered_map>

namespace dovetail::core::jinja {
namespace {

// Filters of Jinja that no chat template uses and this engine lacks.
constexpr std::string_view kFiltersOfJinjaOnly[] = {"filesizeformat", "forceescape", "pprint",
                                                    "urlize", "xmlattr"};

std::unordered_map<std::string_view, const FilterEntry*> filters_by_name() {
  std::unordered_map<std::string_view, const FilterEntry*> by_name;
  for (const auto table : {text_filters(), value_filters(), sequence_filters()}) {
    for (const FilterEntry& entry : table) by_name.emplace(entry.name, &entry);
  }
  return by_name;
}

}  // namespace

const FilterEntry* find_filter(std::string_view name) {
  static const auto by_name = filters_by_name();
  const auto at = by_name.find(name);
  return at == by_name.end() ? nullptr : at->second;
}

const TestEntry* find_test(std::string_view name) {
  const auto table = all_tests();
  const auto at = std::find_if(table.begin(), table.end(),
                               [&](const TestEntry& entry) { return entry.name == name; });
  return at == table.end() ? nullptr : &*at;
}

Fault unknown_filter(std::string_view name) {
  const bool is_jinja = std::find(std::begin(kFiltersOfJinjaOnly), std::end(kFiltersOfJinjaOnly),
                                  name) != std::end(kFiltersOfJinjaOnly);
  if (is_jinja) {
    return {Code::kUnsupported, "the filter '" + std::string(name) + "' is not supported"};
  }
  return {Code::kFormat, "no filter is named '" + std::string(name) + "'"};
}

Fault unknown_test(std::string_view name) {
  return {Code::kFormat, "no test is named '" + std::string(name) + "'"};
}

Bound::Bound(std::string_view callee, const Args& args,
             std::initializer_list<std::string_view> parameters, size_t n_required)
    : callee_(callee), names_(parameters), values_(parameters.size(), nullptr) {
  const std::string name(callee);
  if (args.positional.size() > names_.size()) {
    fail(name + " takes at most " + std::to_string(names_.size()) + " argument(s), got " +
         std::to_string(args.positional.size()));
  }
  for (size_t i = 0; i < args.positional.size(); ++i) values_[i] = &args.positional[i];
  for (const auto& [key, value] : args.named) {
    const auto at = std::find(names_.begin(), names_.end(), key);
    if (at == names_.end()) fail(name + " got an unexpected keyword argument '" + key + "'");
    const Value*& slot = values_[static_cast<size_t>(at - names_.begin())];
    if (slot != nullptr) fail(name + " got multiple values for argument '" + key + "'");
    slot = &value;
  }
  for (size_t i = 0; i < n_required; ++i) {
    if (values_[i] == nullptr) fail(name + " lacks its argument " + name_of(i));
  }
}

std::string Bound::name_of(size_t i) const {
  return in_quotes(names_[i]);
}

Value Bound::value_or(size_t i, Value fallback) const {
  return given(i) ? at(i) : fallback;
}

bool Bound::flag(size_t i, bool fallback) const {
  return given(i) ? at(i).truth() : fallback;
}

int64_t Bound::integer(size_t i, int64_t fallback) const {
  if (!given(i)) return fallback;
  if (at(i).is(Kind::kInt) || at(i).is(Kind::kBool)) return at(i).as_int();
  if (at(i).is_undefined()) fail(at(i).reason());
  fail(std::string(callee_) + ": argument " + name_of(i) + " is " + at(i).type_name() +
       ", expected int");
}

std::string_view Bound::string(size_t i, std::string_view fallback) const {
  return given(i) ? text(i).bytes() : fallback;
}

const SourcedText& Bound::text(size_t i) const {
  if (at(i).is_undefined()) fail(at(i).reason());
  if (!at(i).is_string()) {
    fail(std::string(callee_) + ": argument " + name_of(i) + " is " + at(i).type_name() +
         ", expected str");
  }
  return at(i).text();
}

}  // namespace dovetail::core::jinja
