// The processors that this process may run on.
#pragma once

#include <filesystem>
#include <vector>

namespace dovetail::core {

/// Numbers of the processors in the calling thread's affinity mask, ascending; at least one.
/// threads  any.
std::vector<int> allowed_cpus();

/// The same processors, one of each core first, then the second of each: threads given the front of
/// the list share a core only when there are more of them than cores. `sysfs` is where the kernel
/// lists processors; one that it says nothing about counts as a core of its own.
std::vector<int> cores_first(const std::vector<int>& cpus,
                             const std::filesystem::path& sysfs = "/sys/devices/system/cpu");

}  // namespace dovetail::core
