#include "core/base/cgroup.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <optional>
#include <sstream>
#include <string_view>
#include <vector>

namespace dovetail::core {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

bool has_word(std::string_view comma_separated, std::string_view word) {
  return ("," + std::string(comma_separated) + ",").find("," + std::string(word) + ",") !=
         std::string::npos;
}

// A hierarchy of groups: the group `root` of it is seen as the folder `point`.
struct Mount {
  fs::path root, point;
};

// Lines look like "31 23 0:28 /root /mount/point rw shared:1 - cgroup2 source options".
std::optional<Mount> find_mount(const std::string& mounts, bool is_version_2,
                                std::string_view controller) {
  std::istringstream lines(mounts);
  for (std::string line; std::getline(lines, line);) {
    const size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    std::istringstream before(line.substr(0, dash)), after(line.substr(dash + 3));
    std::string skipped, root, point, type, source, options;
    before >> skipped >> skipped >> skipped >> root >> point;
    after >> type >> source >> options;
    if (is_version_2 ? type == "cgroup2" : type == "cgroup" && has_word(options, controller))
      return Mount{root, point};
  }
  return std::nullopt;
}

struct Group {
  fs::path folder;
  bool is_version_2;
};

// The group, seen from the mount's top if it lies outside of it, and those above it.
void add_with_parents(const fs::path& group, const Mount& mount, bool is_version_2,
                      std::vector<Group>& out) {
  const fs::path below = group.lexically_relative(mount.root);
  const bool is_top = below.empty() || below == "." || *below.begin() == "..";
  for (fs::path folder = is_top ? mount.point : mount.point / below;;
       folder = folder.parent_path()) {
    out.push_back({folder, is_version_2});
    if (folder == mount.point) return;
  }
}

// All groups that limit what `controller` is about.
std::vector<Group> groups_of(const ControlGroups& groups, std::string_view controller) {
  std::vector<Group> out;
  std::istringstream lines(groups.membership);
  for (std::string line; std::getline(lines, line);) {  // "4:cpu,cpuacct:/group" or "0::/group"
    std::istringstream fields(line);
    std::string number, controllers, group;
    std::getline(std::getline(fields, number, ':'), controllers, ':');
    std::getline(fields, group);
    const bool is_version_2 = controllers.empty();
    if (group.empty() || (!is_version_2 && !has_word(controllers, controller))) continue;
    const std::optional<Mount> mount = find_mount(groups.mounts, is_version_2, controller);
    if (mount) add_with_parents(group, *mount, is_version_2, out);
  }
  return out;
}

// The number at the start of a file; nothing for "max", -1 and a file that is not there.
std::optional<uint64_t> number_in(const fs::path& file) {
  std::istringstream in(text_of(file));
  uint64_t value = 0;
  if (in.peek() != '-' && in >> value) return value;
  return std::nullopt;
}

// Bytes of files' pages: those of memory.stat's lines for this group and those below it.
uint64_t file_bytes(const Group& group) {
  const std::string prefix = group.is_version_2 ? "" : "total_";
  std::istringstream in(text_of(group.folder / "memory.stat"));
  uint64_t sum = 0, value = 0;
  for (std::string name; in >> name >> value;)
    if (name == prefix + "active_file" || name == prefix + "inactive_file") sum += value;
  return sum;
}

}  // namespace

ControlGroups ControlGroups::of_this_process() {
  return {text_of("/proc/self/cgroup"), text_of("/proc/self/mountinfo")};
}

double cpu_quota(const ControlGroups& groups) {
  double least = std::numeric_limits<double>::infinity();
  for (const auto& [folder, is_version_2] : groups_of(groups, "cpu")) {
    double quota_us = 0, period_us = 0;
    if (is_version_2) {
      std::istringstream(text_of(folder / "cpu.max")) >> quota_us >> period_us;  // or "max 100000"
    } else {
      quota_us = static_cast<double>(number_in(folder / "cpu.cfs_quota_us").value_or(0));
      period_us = static_cast<double>(number_in(folder / "cpu.cfs_period_us").value_or(0));
    }
    if (quota_us > 0 && period_us > 0) least = std::min(least, quota_us / period_us);
  }
  return least;
}

uint64_t memory_left(const ControlGroups& groups) {
  uint64_t least = std::numeric_limits<uint64_t>::max();
  for (const Group& g : groups_of(groups, "memory")) {
    const auto limit =
        number_in(g.folder / (g.is_version_2 ? "memory.max" : "memory.limit_in_bytes"));
    const auto used =
        number_in(g.folder / (g.is_version_2 ? "memory.current" : "memory.usage_in_bytes"));
    if (!limit || !used) continue;
    const uint64_t kept = *used - std::min(*used, file_bytes(g));
    least = std::min(least, *limit - std::min(*limit, kept));
  }
  return least;
}

}  // namespace dovetail::core
