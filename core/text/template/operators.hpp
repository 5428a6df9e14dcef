// Operators, attributes, items and slices, as Python and Jinja's sandbox define them.
#pragma once

#include <string_view>

#include "core/text/template/ast.hpp"
#include "core/text/template/value.hpp"

namespace dovetail::core::jinja {

Value arithmetic(ArithmeticOp op, const Value& a, const Value& b, Budget& budget);
Value negative(const Value& v);
Value positive(const Value& v);
Value absolute(const Value& v);
int compare_to_zero(const Value& number);  // -1, 0 or 1
double real_of(const Value& number);       // fails where no double is that large

bool contains(const Value& container, const Value& item, Budget& budget);
bool compare(CompareOp op, const Value& a, const Value& b, Budget& budget);

/// `object.name`: a method or attribute of the type first, then the item with that key.
Value get_attribute(const Value& object, std::string_view name, Budget& budget);
/// `object[key]`: the item first, then, for a string key, the attribute.
Value get_item(const Value& object, const Value& key, Budget& budget);
/// `object[start:stop:step]`; a bound that is not given is none.
Value get_slice(const Value& object, const Value& start, const Value& stop, const Value& step,
                Budget& budget);

/// `text` with & < > " ' escaped for HTML.
SourcedText escape_html(const SourcedText& text, Budget& budget);

}  // namespace dovetail::core::jinja
