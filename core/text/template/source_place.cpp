#include "core/text/template/source_place.hpp"

#include <algorithm>

#include "core/text/template/unicode.hpp"

namespace dovetail::core::jinja {
namespace {

constexpr size_t kMaxSourceBytes = 4 << 20;

}  // namespace

Place place_in(const std::string& source, uint32_t offset) {
  const size_t end = std::min<size_t>(offset, source.size());
  const auto newlines =
      std::count(source.begin(), source.begin() + static_cast<ptrdiff_t>(end), '\n');
  const size_t newline = end == 0 ? source.npos : source.rfind('\n', end - 1);
  const size_t column = newline == source.npos ? end + 1 : end - newline;
  return {static_cast<uint32_t>(newlines) + 1, static_cast<uint32_t>(column)};
}

std::string located(const std::string& name, const std::string& source, Span at,
                    const std::string& message) {
  const Place place = place_in(source, at.begin);
  return name + ":" + std::to_string(place.line) + ":" + std::to_string(place.column) + ": " +
         message;
}

Result<std::string> prepare_source(const std::string& source, const std::string& name) {
  if (source.size() > kMaxSourceBytes) {
    return bad_format(name + ": the template has " + std::to_string(source.size()) +
                      " bytes, expected at most " + std::to_string(kMaxSourceBytes));
  }
  if (!is_valid_utf8(source)) return bad_format(name + ": the template is not valid UTF-8");
  return normalize_source(source);
}

}  // namespace dovetail::core::jinja
