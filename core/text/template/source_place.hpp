// Places in a template's source, as messages name them.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/status.hpp"
#include "core/text/template/lexer.hpp"

namespace dovetail::core::jinja {

struct Place {
  uint32_t line = 1, column = 1;  // in bytes
};
Place place_in(const std::string& source, uint32_t offset);

/// "name:line:column: message"
std::string located(const std::string& name, const std::string& source, Span at,
                    const std::string& message);

/// The source with its line breaks normalized; spans point into it.
/// errors   kFormat: over 4 MiB, not UTF-8.
Result<std::string> prepare_source(const std::string& source, const std::string& name);

}  // namespace dovetail::core::jinja
