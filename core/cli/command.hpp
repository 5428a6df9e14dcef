// What the commands of `dovetail` share: the option tree, the chosen action, exit codes.
#pragma once

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/base/status.hpp"

namespace dovetail::core {

// Exit codes, documented in `dovetail --help` and docs/cli.md.
enum ExitCode : int {
  kExitOk = 0,
  kExitFailure = 1,      // anything not below
  kExitUsage = 2,        // a wrong option, config or request
  kExitFile = 3,         // a file is missing, damaged or cannot be written
  kExitUnsupported = 4,  // right, but not something this build or plugin can do
  kExitMemory = 5,       // it does not fit
  kExitDiffers = 6,      // compared, and beyond the tolerance
  kExitInterrupted = 130,
};
int exit_code(const Status& status);
/// What the user reads: "dovetail: error: ..."; after Ctrl-C always "interrupted", however a plugin calls it.
std::string error_text(const Status& status);

/// The option tree and what to do after parsing. Each add_* function makes its subcommands.
struct Cli {
  Cli();
  CLI::App app{"Run language models made of plugins.", "dovetail"};
  std::function<Status()> action;
  ExitCode found = kExitOk;  // what an action that did its work has to say by the exit code
  std::string program;       // argv[0], resolved: plugins and configs are found relative to it
};

/// Options that every command with a model takes.
struct ModelOptions {
  std::string config;                        // file, folder, or empty for the embedded model
  std::string default_config = "demo.yaml";  // what empty means, in the folder of configs
  std::vector<std::string> sets;             // key=value
  bool json = false;

  /// Adds CONFIG (a positional, required or not), --set and --json.
  void add_to(CLI::App& command, bool config_required, bool with_json = true);
};

void add_run_commands(Cli& cli);        // run, chat
void add_chat_command(Cli& cli);        // chat, called by add_run_commands
void add_text_commands(Cli& cli);       // tokenize, train-tokenizer
void add_template_commands(Cli& cli);   // template render|check
void add_logits_command(Cli& cli);      // logits
void add_perplexity_command(Cli& cli);  // perplexity
void add_compare_command(Cli& cli);     // compare
void add_doctor_command(Cli& cli);      // doctor
void add_quantize_command(Cli& cli);    // quantize
void add_pull_command(Cli& cli);        // pull
void add_inspect_commands(Cli& cli);    // inspect, plan
void add_bench_command(Cli& cli);       // bench
void add_demo_commands(Cli& cli);       // demo tokens|next|cache|fast
void add_plugin_commands(Cli& cli);     // plugins list|inspect|explain
void add_config_commands(Cli& cli);     // config check|show|schema
void add_cache_commands(Cli& cli);      // cache ls|clear
void add_completion_command(Cli& cli);  // completion bash|zsh|fish

/// Takes integers from 0 to `most`. Without it CLI11 takes what is beyond 64 bits for the nearest that is not.
CLI::Validator integer_up_to(uint64_t most);

/// Set by Ctrl-C; a second Ctrl-C ends the process at once.
bool interrupted();
/// The same flag as plugin calls read it.
const uint32_t* interrupt_flag();
/// Forgets a Ctrl-C that has been answered: the next one is a first one again.
void clear_interrupt();
void handle_interrupts();

/// `text` in single quotes, as bash, zsh and fish read them.
std::string shell_quoted(const std::string& text);
/// `text` as one word of a command to type: as it is, or quoted where a shell would read it differently.
std::string shell_word(const std::string& text);

/// Writes to standard output and says so when that fails (a closed pipe, a full disk).
Status print(std::string_view text);

}  // namespace dovetail::core
