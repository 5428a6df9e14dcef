// The `dovetail` command: parses the command line, runs one action, turns its Status into one line
// on standard error and an exit code.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/log.hpp"
#include "core/base/nearest.hpp"
#include "core/cli/command.hpp"

namespace {

constexpr const char* kFooter = R"(Examples:
  dovetail run "It was a dark night"             continue a text with the embedded model
  dovetail run configs/qwen3-0.6b.yaml "Why is the sky blue?"
  dovetail run models/Qwen3-0.6B "Hi" --set backend.plugin=reference
  dovetail pull Qwen/Qwen3-0.6B                  download a model into models/Qwen3-0.6B
  dovetail plan configs/qwen3-8b.yaml            what it would take, before loading
  dovetail quantize models/Qwen3-0.6B -o models/small --weights int4
  dovetail bench configs/qwen3-0.6b.yaml         speed, and its share of what the machine can do
  dovetail perplexity configs/demo.yaml book.txt  how well a model predicts a text
  dovetail compare configs/demo.yaml --b-set backend.weights=int4
  dovetail doctor --set backend.plugin=cuda      the first op that a backend computes wrongly
  dovetail plugins list                          what is installed

Exit codes: 0 done, 1 failed, 2 wrong usage, config or request, 3 a file is missing or damaged,
4 not supported, 5 not enough memory, 6 compared and beyond the tolerance, 130 interrupted.)";

std::string program_path(const char* argv0) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::string(argv0) : self.string();
}

std::string see_help(const CLI::App& command) {
  std::string path = command.get_name();
  for (const CLI::App* above = command.get_parent(); above; above = above->get_parent())
    path = above->get_name() + " " + path;
  return " (see " + path + " --help)";
}

// CLI11 says of an unknown command only that one is required.
dovetail::core::Status check_command(const CLI::App& app, int argc, char** argv) {
  using namespace dovetail::core;
  const CLI::App* at = &app;
  for (int i = 1; i < argc && argv[i][0] != '-'; ++i) {
    const std::vector<const CLI::App*> commands = at->get_subcommands({});
    if (commands.empty()) return Status::ok();
    std::vector<std::string> names;
    for (const CLI::App* command : commands) names.push_back(command->get_name());
    const auto found = std::find(names.begin(), names.end(), argv[i]);
    if (found == names.end())
      return invalid("there is no command \"" + printable(argv[i]) + "\"" +
                     did_you_mean(argv[i], names) + see_help(*at));
    at = commands[static_cast<size_t>(found - names.begin())];
  }
  return Status::ok();
}

// A parse error in the words of CLI11, with the help of the command that it came up in.
std::string parse_error_text(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* command = &app;
  for (std::vector<CLI::App*> parsed = app.get_subcommands(); !parsed.empty();
       parsed = command->get_subcommands())
    command = parsed.back();
  std::string text = error.what();
  const bool is_unknown_option =
      dynamic_cast<const CLI::ExtrasError*>(&error) && text.find(" --") != std::string::npos;
  if (is_unknown_option && command->get_option_no_throw("--set"))
    text += "; a key of the config is set as --set sampler.0.temperature=0.2";
  return dovetail::core::printable(text) + see_help(*command);
}

int run(int argc, char** argv) {
  using namespace dovetail::core;
  Cli cli;
  cli.program = program_path(argv[0]);
  cli.app.set_version_flag("--version", std::string("dovetail ") + DVT_VERSION +
                                            " (plugin interface draft " + DVT_ABI_HASH + ")");
  add_run_commands(cli);
  add_text_commands(cli);
  add_template_commands(cli);
  add_logits_command(cli);
  add_perplexity_command(cli);
  add_compare_command(cli);
  add_doctor_command(cli);
  add_inspect_commands(cli);
  add_pull_command(cli);
  add_quantize_command(cli);
  add_bench_command(cli);
  add_demo_commands(cli);
  add_plugin_commands(cli);
  add_config_commands(cli);
  add_cache_commands(cli);
  add_completion_command(cli);
  // After the commands, which would inherit them.
  cli.app.footer(kFooter);
  cli.app.set_help_all_flag("--help-all", "the help of every command");
  try {
    if (const Status known = check_command(cli.app, argc, argv); !known) {
      std::fprintf(stderr, "dovetail: error: %s\n", known.message().c_str());
      return kExitUsage;
    }
    cli.app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) {  // --help, --version
      std::ostringstream text;
      cli.app.exit(e, text, text);
      const Status printed = print(text.str());
      if (!printed) std::fprintf(stderr, "dovetail: error: %s\n", printed.message().c_str());
      return exit_code(printed);
    }
    std::fprintf(stderr, "dovetail: error: %s\n", parse_error_text(cli.app, e).c_str());
    return kExitUsage;
  }
  handle_interrupts();
  if (!cli.action) {
    std::fprintf(stderr, "%s", cli.app.help().c_str());
    return kExitUsage;
  }
  const Status status = cli.action();
  if (!status.is_ok() && !status.message().empty())
    std::fprintf(stderr, "%s\n", error_text(status).c_str());
  return status.is_ok() ? cli.found : exit_code(status);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::bad_alloc&) {
    std::fputs("dovetail: error: out of memory\n", stderr);
    return dovetail::core::kExitMemory;
  } catch (const std::exception& e) {  // a library's, not caught where it should have been
    std::fprintf(stderr, "dovetail: internal error: %s\n", e.what());
    return dovetail::core::kExitFailure;
  }
}
