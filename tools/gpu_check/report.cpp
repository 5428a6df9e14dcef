// The table that people read, and the same as JSON.
#include <cmath>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "tools/gpu_check/session.hpp"

namespace dovetail::gpu_check {
namespace {

struct Share {
  double percent = 0;
  const char* of = "";
};
/// Of the ceiling that binds: what would take longer, reading or multiplying.
Share share_of(const Ceilings& c, double us, double bytes, double flops) {
  const double read_us = c.read_gb_s > 0 ? bytes / c.read_gb_s * 1e-3 : 0;
  const double matrix_us = c.matrix_tflop_s > 0 ? flops / c.matrix_tflop_s * 1e-6 : 0;
  if (us <= 0 || (read_us <= 0 && matrix_us <= 0)) return {};
  return read_us >= matrix_us ? Share{100 * read_us / us, "read"}
                              : Share{100 * matrix_us / us, "matrix"};
}
double tokens_per_second(const StepRow& row) {
  return row.graph_us > 0 ? static_cast<double>(row.n_tokens) * 1e6 / row.graph_us : 0;
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') out += '\\';
    if (byte < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(byte));
      out += escape;
    } else {
      out += c;
    }
  }
  return out + "\"";
}
/// JSON has no infinity and no NaN.
std::string number(double value) {
  if (!std::isfinite(value)) return "null";
  std::ostringstream out;
  out.precision(9);
  out << value;
  return out.str();
}
template <class Rows, class Text>
std::string list(const Rows& rows, const Text& text) {
  std::string out = "[";
  for (const auto& row : rows) out += (out.size() > 1 ? ",\n    " : "\n    ") + text(row);
  return out + "\n  ]";
}

}  // namespace

void print_table(const Session& s, const MachineInfo& info) {
  std::printf(
      "\n%s; driver CUDA %s, runtime %s; %lld multiprocessors at up to %lld MHz, memory %lld MHz; "
      "%.1f of %.1f GB free, L2 %.0f MB\n",
      info.name.c_str(), info.driver.c_str(), info.runtime.c_str(),
      static_cast<long long>(info.n_multiprocessors), static_cast<long long>(info.clock_mhz),
      static_cast<long long>(info.memory_clock_mhz), static_cast<double>(info.free_bytes) / 1e9,
      static_cast<double>(info.total_bytes) / 1e9, static_cast<double>(info.l2_bytes) / 1e6);
  const Ceilings& c = s.ceilings;
  if (c.read_gb_s > 0)
    std::printf("copy %.0f GB/s, read %.0f GB/s, product kernel (bf16, 4096^3) %.1f TFLOP/s%s\n",
                c.copy_gb_s, c.read_gb_s, c.matrix_tflop_s,
                info.is_emulated ? " (emulated: means nothing)" : "");

  size_t n_failed = 0;
  std::printf("\n%-4s %-24s %-46s %10s %8s\n", "", "check", "shape", "error", "of bound");
  for (const CheckRow& row : s.checks) {
    n_failed += row.failure.empty() ? 0 : 1;
    std::printf("%-4s %-24s %-46s %10.3g %8.3f  %s\n", row.failure.empty() ? "ok" : "FAIL",
                row.name.c_str(), row.shape.c_str(),
                static_cast<double>(row.outcome.greatest_error),
                static_cast<double>(row.outcome.greatest_share), row.failure.c_str());
  }
  if (!s.times.empty())
    std::printf("\n%-26s %-34s %10s %9s %9s %14s\n", "kernel", "shape", "us", "GB/s", "TFLOP/s",
                "of ceiling");
  for (const TimeRow& row : s.times) {
    const Share share = share_of(c, row.us, row.bytes, row.flops);
    std::printf("%-26s %-34s %10.2f %9.0f %9.2f %6.1f %% %s\n", row.name.c_str(), row.shape.c_str(),
                row.us, row.bytes / row.us * 1e-3, row.flops / row.us * 1e-6, share.percent,
                share.of);
  }
  if (!s.steps.empty())
    std::printf("\n%-26s %9s %13s %10s %11s %10s  %s\n", "step", "launches", "as launches",
                "graph us", "tok/s", "of read", "target tok/s");
  for (const StepRow& row : s.steps)
    std::printf("%-26s %9lld %13.1f %10.1f %11.0f %8.1f %%  %s\n", row.name.c_str(),
                static_cast<long long>(row.n_launches), row.launches_us, row.graph_us,
                tokens_per_second(row), share_of(c, row.graph_us, row.bytes, 0).percent,
                row.target.c_str());
  for (const std::string& text : s.failed) std::printf("failed: %s\n", text.c_str());
  for (const std::string& text : s.skipped) std::printf("skipped: %s\n", text.c_str());
  std::printf("\n%zu checks, %zu failed; %zu measurements failed, %zu things skipped\n",
              s.checks.size(), n_failed, s.failed.size(), s.skipped.size());
  for (const CheckRow& row : s.checks)
    if (!row.failure.empty())
      std::printf("FAIL %s %s: %s\n", row.name.c_str(), row.shape.c_str(), row.failure.c_str());
}

bool write_json(const Session& s, const MachineInfo& info, const std::string& path) {
  const auto text_list = [](const std::vector<std::string>& texts) { return list(texts, quoted); };
  std::ofstream out(path);
  out << "{\n  \"device\": " << quoted(info.name) << ", \"driver\": " << quoted(info.driver)
      << ", \"runtime\": " << quoted(info.runtime)
      << ", \"is_emulated\": " << (info.is_emulated ? "true" : "false")
      << ",\n  \"n_multiprocessors\": " << info.n_multiprocessors
      << ", \"clock_mhz\": " << info.clock_mhz
      << ", \"memory_clock_mhz\": " << info.memory_clock_mhz
      << ", \"total_bytes\": " << info.total_bytes << ", \"l2_bytes\": " << info.l2_bytes
      << ",\n  \"copy_gb_s\": " << number(s.ceilings.copy_gb_s)
      << ", \"read_gb_s\": " << number(s.ceilings.read_gb_s)
      << ", \"matrix_tflop_s\": " << number(s.ceilings.matrix_tflop_s);
  out << ",\n  \"checks\": " << list(s.checks, [](const CheckRow& row) {
    return "{\"name\": " + quoted(row.name) + ", \"shape\": " + quoted(row.shape) +
           ", \"passes\": " + (row.failure.empty() ? "true" : "false") +
           ", \"failure\": " + quoted(row.failure) +
           ", \"greatest_error\": " + number(static_cast<double>(row.outcome.greatest_error)) +
           ", \"of_bound\": " + number(static_cast<double>(row.outcome.greatest_share)) + "}";
  });
  out << ",\n  \"kernels\": " << list(s.times, [&](const TimeRow& row) {
    const Share share = share_of(s.ceilings, row.us, row.bytes, row.flops);
    return "{\"name\": " + quoted(row.name) + ", \"shape\": " + quoted(row.shape) +
           ", \"us\": " + number(row.us) + ", \"bytes\": " + number(row.bytes) +
           ", \"flops\": " + number(row.flops) + ", \"percent\": " + number(share.percent) +
           ", \"ceiling\": " + quoted(share.of) + "}";
  });
  out << ",\n  \"steps\": " << list(s.steps, [](const StepRow& row) {
    return "{\"name\": " + quoted(row.name) + ", \"n_tokens\": " + std::to_string(row.n_tokens) +
           ", \"context\": " + std::to_string(row.context) +
           ", \"n_launches\": " + std::to_string(row.n_launches) +
           ", \"launches_us\": " + number(row.launches_us) +
           ", \"graph_us\": " + number(row.graph_us) +
           ", \"tokens_per_second\": " + number(tokens_per_second(row)) +
           ", \"target\": " + quoted(row.target) + "}";
  });
  out << ",\n  \"failed\": " << text_list(s.failed) << ",\n  \"skipped\": " << text_list(s.skipped)
      << "\n}\n";
  out.close();
  return static_cast<bool>(out);
}

}  // namespace dovetail::gpu_check
