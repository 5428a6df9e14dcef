// Inventory: what a template uses, and what of it this engine lacks, without rendering it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.hpp"

namespace dovetail::core {

struct TemplateUse {
  std::string name;
  std::vector<uint32_t> lines;  // 1-based, one for each place, ascending
  std::string missing;          // why it does not work; empty where it does
};

/// Each list is sorted by name.
struct TemplateInventory {
  std::vector<TemplateUse> statements;  // "for", "set", "macro"
  std::vector<TemplateUse> filters, tests, functions;
  std::vector<TemplateUse> methods;    // called on strings, lists, dicts, loop and cyclers
  std::vector<TemplateUse> macros;     // of its own, by their definitions
  std::vector<TemplateUse> variables;  // read from the context: no statement before has set them
  std::vector<TemplateUse> fields;     // attributes and constant string keys, read or tested
  uint32_t n_missing = 0;              // uses with a reason in `missing`

  bool reads_field(std::string_view name) const;
};

/// Something is missing where rendering would fail when it gets there. A filter or test that is missing
/// inside an `if` counts too: the template loads and fails when it is reached.
/// errors   kFormat: a syntax error, as ChatTemplate::parse has it.
Result<TemplateInventory> take_inventory(const std::string& source, const std::string& name);

}  // namespace dovetail::core
