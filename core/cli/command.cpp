#include "core/cli/command.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>

#include "core/base/files.hpp"
#include "core/base/log.hpp"

namespace dovetail::core {
namespace {

uint32_t g_interrupted = 0;  // written by the signal handler, read as an atomic

extern "C" void on_interrupt(int signal) {
  if (__atomic_exchange_n(&g_interrupted, 1, __ATOMIC_RELAXED) != 0) _exit(128 + signal);
}

// CLI11 writes a positional of several words as "words(0x)"; its option_text says what they are.
class HelpFormatter : public CLI::Formatter {
  std::string make_option_usage(const CLI::Option* o) const override {
    return o->get_option_text().empty() ? CLI::Formatter::make_option_usage(o)
                                        : o->get_option_text();
  }
  std::string make_option_name(const CLI::Option* o, bool is_positional) const override {
    return o->get_option_text().empty() ? CLI::Formatter::make_option_name(o, is_positional)
                                        : o->get_option_text();
  }
  std::string make_option_opts(const CLI::Option* o) const override {
    return o->get_option_text().empty() ? CLI::Formatter::make_option_opts(o) : "";
  }
};

}  // namespace

Cli::Cli() {
  app.formatter(std::make_shared<HelpFormatter>());
  app.require_subcommand(1);
}

int exit_code(const Status& status) {
  switch (status.code()) {
    case Code::kOk:
      return kExitOk;
    case Code::kInvalid:
      return kExitUsage;
    case Code::kIo:
    case Code::kFormat:
      return kExitFile;
    case Code::kUnsupported:
    case Code::kVersion:
      return kExitUnsupported;
    case Code::kNoMemory:
      return kExitMemory;
    case Code::kCancelled:
      return kExitInterrupted;
    default:
      return kExitFailure;
  }
}

std::string error_text(const Status& status) {
  std::string what = status.message();
  if (status.code() == Code::kCancelled && !what.starts_with("interrupted"))
    what = what == "cancelled" ? "interrupted" : "interrupted: " + what;
  return printable(Status(status.code(), what).in("dovetail: error").message(),
                   /*keep_line_breaks=*/true);
}

void ModelOptions::add_to(CLI::App& command, bool config_required, bool with_json) {
  auto* option = command.add_option("CONFIG", config, "a YAML config or a checkpoint's folder");
  if (config_required) option->required();
  command
      .add_option("--set", sets, "override one key of the config: --set sampler.0.temperature=0.2")
      ->allow_extra_args(false);
  if (with_json) command.add_flag("--json", json, "print one JSON object instead of text");
}

CLI::Validator integer_up_to(uint64_t most) {
  const auto check = [most](const std::string& text) -> std::string {
    uint64_t value = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error == std::errc() && stop == end && value <= most) return "";
    return "got \"" + printable(text) + "\", expected an integer of at least 0 and at most " +
           std::to_string(most);
  };
  return {check, ""};
}

bool interrupted() {
  return __atomic_load_n(&g_interrupted, __ATOMIC_RELAXED) != 0;
}
const uint32_t* interrupt_flag() {
  return &g_interrupted;
}
void clear_interrupt() {
  __atomic_store_n(&g_interrupted, 0, __ATOMIC_RELAXED);
}

void handle_interrupts() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);  // print() reports it
}

std::string shell_quoted(const std::string& text) {
  std::string out = "'";
  for (char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string shell_word(const std::string& text) {
  const bool is_plain = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-_./+,:@%").find(c) != std::string_view::npos;
  });
  return is_plain ? text : shell_quoted(text);
}

Status print(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(STDOUT_FILENO, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return io_error("cannot write to standard output: " + errno_text(errno));
    text.remove_prefix(static_cast<size_t>(n));
  }
  return Status::ok();
}

}  // namespace dovetail::core
