#include "core/base/cpus.hpp"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <numeric>
#include <thread>
#include <utility>

namespace dovetail::core {
namespace {

namespace fs = std::filesystem;

// The mask with room for n_cpus; nothing if the kernel has more.
std::vector<int> affinity_mask(int n_cpus) {
  std::vector<int> cpus;
  cpu_set_t* mask = CPU_ALLOC(n_cpus);
  if (mask == nullptr) return cpus;
  const size_t n_bytes = CPU_ALLOC_SIZE(n_cpus);
  if (sched_getaffinity(0, n_bytes, mask) == 0)
    for (int cpu = 0; cpu < n_cpus; ++cpu)
      if (CPU_ISSET_S(cpu, n_bytes, mask)) cpus.push_back(cpu);
  CPU_FREE(mask);
  return cpus;
}

// The lowest processor of the same core.
int core_of(int cpu, const fs::path& sysfs) {
  std::ifstream in(sysfs / ("cpu" + std::to_string(cpu)) / "topology" / "thread_siblings_list");
  int first = cpu;  // "0,4" or "0-1"
  return in >> first ? first : cpu;
}

}  // namespace

std::vector<int> allowed_cpus() {
  for (int n_cpus = 1024; n_cpus <= 1 << 20; n_cpus *= 4)
    if (std::vector<int> cpus = affinity_mask(n_cpus); !cpus.empty()) return cpus;
  std::vector<int> all(std::max(1u, std::thread::hardware_concurrency()));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

std::vector<int> cores_first(const std::vector<int>& cpus, const fs::path& sysfs) {
  std::vector<std::pair<int, int>> ranked;  // its rank within its core, and the processor
  std::vector<int> cores;
  for (const int cpu : cpus) {
    const int core = core_of(cpu, sysfs);
    ranked.emplace_back(std::count(cores.begin(), cores.end(), core), cpu);
    cores.push_back(core);
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<int> out;
  out.reserve(ranked.size());
  for (const auto& [rank, cpu] : ranked) out.push_back(cpu);
  return out;
}

}  // namespace dovetail::core
