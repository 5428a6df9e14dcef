// gpu_check: what a GPU can do, whether every CUDA kernel is right on it, and how long each takes.
//
// exit      0 all checks hold; 1 one fails, or a measurement; 2 wrong usage; 3 there is no driver or no device
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "tools/gpu_check/session.hpp"

namespace dovetail::gpu_check {
namespace {

constexpr int kHolds = 0, kFails = 1, kWrongUsage = 2, kNoDevice = 3;

constexpr const char* kUsage =
    "usage: gpu_check [--quick] [--only NAME] [--seconds N] [--json FILE] [--tiny]\n"
    "  --quick      checks alone, no times\n"
    "  --only NAME  what has NAME in its name or shape: \"linear int8\", \"step\", \"8B\"\n"
    "  --seconds N  leaves out what begins later than this (110)\n"
    "  --json FILE  the table again, for programs\n"
    "  --tiny       small shapes alone, as under emulation\n";

std::optional<Options> options_of(int argc, char** argv) {
  Options out;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg == "--quick") {
      out.checks_only = true;
    } else if (arg == "--tiny") {
      out.tiny = true;
    } else if (i + 1 < argc && arg == "--only") {
      out.only = argv[++i];
    } else if (i + 1 < argc && arg == "--json") {
      out.json_path = argv[++i];
    } else if (i + 1 < argc && arg == "--seconds") {
      char* end = nullptr;
      out.seconds = std::strtod(argv[++i], &end);
      if (*end != '\0' || end == argv[i] || !(out.seconds > 0)) {
        std::fprintf(stderr, "gpu_check: --seconds %s is not a number above 0\n", argv[i]);
        return {};
      }
    } else {
      std::fprintf(stderr, "gpu_check: what is \"%s\"?\n", arg.c_str());
      return {};
    }
  }
  return out;
}

int run(const Options& options) {
  std::string why_none;
  const std::unique_ptr<Machine> machine = Machine::open(why_none);
  if (!machine) {
    std::fprintf(stderr, "gpu_check: %s\n", why_none.c_str());
    return kNoDevice;
  }
  const MachineInfo info = machine->info();
  Session session(*machine, options);
  if (!options.checks_only) measure_ceilings(session);
  // Whole steps before single kernels: where time is short, they say more.
  check_kernels(session);
  check_decode_kernels(session);
  if (!options.checks_only) {
    time_steps(session);
    time_kernels(session);
  }
  print_table(session, info);
  if (!options.json_path.empty() && !write_json(session, info, options.json_path)) {
    std::fprintf(stderr, "gpu_check: cannot write %s\n", options.json_path.c_str());
    return kWrongUsage;
  }
  if (session.checks.empty() && session.times.empty() && session.steps.empty() &&
      session.failed.empty() && session.ceilings.read_gb_s == 0) {
    std::fprintf(stderr, "gpu_check: nothing was run; --only \"%s\", --seconds %g\n",
                 options.only.c_str(), options.seconds);
    return kWrongUsage;
  }
  const bool has_failed = !session.failed.empty() ||
                          std::any_of(session.checks.begin(), session.checks.end(),
                                      [](const CheckRow& row) { return !row.failure.empty(); });
  return has_failed ? kFails : kHolds;
}

}  // namespace
}  // namespace dovetail::gpu_check

int main(int argc, char** argv) {
  namespace gpu_check = dovetail::gpu_check;
  const std::optional<gpu_check::Options> options = gpu_check::options_of(argc, argv);
  if (!options) {
    std::fputs(gpu_check::kUsage, stderr);
    return gpu_check::kWrongUsage;
  }
  try {
    return gpu_check::run(*options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpu_check: %s\n", error.what());
    return gpu_check::kFails;
  }
}
