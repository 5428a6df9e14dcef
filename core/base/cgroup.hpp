// What the kernel's control groups, version 1 and 2, leave this process: processor time and memory.
#pragma once

#include <cstdint>
#include <string>

namespace dovetail::core {

/// The groups that a process is in, and where their folders are.
struct ControlGroups {
  std::string membership;  // the text of /proc/self/cgroup
  std::string mounts;      // the text of /proc/self/mountinfo

  static ControlGroups of_this_process();
};

/// Processors' worth of time, or infinity without a limit: the least of the group's and of those above.
double cpu_quota(const ControlGroups& groups);

/// Bytes under the limit of the group, and of those above it, that are free or hold files' pages, which
/// the kernel gives up when memory is short; UINT64_MAX without a limit.
uint64_t memory_left(const ControlGroups& groups);

}  // namespace dovetail::core
