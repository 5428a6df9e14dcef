// The op table of the reference backend.
#pragma once

#include <dovetail/host_program.hpp>

namespace dovetail::reference {

/// The op of that name, or null. Only core ops: composites run by their definitions.
const HostOp* find_op(std::string_view name);

}  // namespace dovetail::reference
