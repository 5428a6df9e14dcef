// The op table of the CPU backend: every op it runs natively, composites included.
#pragma once

#include <dovetail/host_program.hpp>

namespace dovetail::cpu {

/// The op of that name, or null. Ops call the row of kernels that is the program's context.
const HostOp* find_op(std::string_view name);

}  // namespace dovetail::cpu
