// plugins list | inspect | explain
#include "core/base/json.hpp"
#include "core/cli/command.hpp"
#include "core/cli/session.hpp"
#include "core/plugin/report.hpp"

namespace dovetail::core {
namespace {

struct PluginsOptions {
  std::string what;
  std::vector<std::string> paths;
  bool json = false;
};

}  // namespace

void add_plugin_commands(Cli& cli) {
  CLI::App* plugins = cli.app.add_subcommand("plugins", "List, inspect or explain plugins");
  plugins->require_subcommand(1);
  const auto add = [plugins](const char* name, const char* help, const char* argument, const std::shared_ptr<PluginsOptions>& o) {
    CLI::App* command = plugins->add_subcommand(name, help);
    if (argument) command->add_option(argument, o->what)->required();
    command->add_flag("--json", o->json, "print JSON");
    return command;
  };

  auto list = std::make_shared<PluginsOptions>();
  CLI::App* list_command = add("list", "The plugins that count, by kind", nullptr, list);
  list_command->add_option("--path", list->paths, "a further folder to search first");
  list_command->callback([&cli, list] {
    cli.action = [&cli, list]() -> Status {
      DVT_TRY(const std::unique_ptr<Runtime> runtime, Runtime::open_plugins_only(cli.program, list->paths));
      return print(list->json ? to_json(plugins_list_node(runtime->plugins()), 2) + "\n" : plugins_list_text(runtime->plugins()));
    };
  });

  auto explain = std::make_shared<PluginsOptions>();
  CLI::App* explain_command = add("explain", "Every candidate for a plugin, why it counts or not, and where was looked", "PLUGIN", explain);
  explain_command->add_option("--path", explain->paths, "a further folder to search first");
  explain_command->callback([&cli, explain] {
    cli.action = [&cli, explain]() -> Status {
      DVT_TRY(const std::unique_ptr<Runtime> runtime, Runtime::open_plugins_only(cli.program, explain->paths));
      if (explain->json) {
        DVT_TRY(const Node node, plugin_explain_node(runtime->plugins(), explain->what));
        return print(to_json(node, 2) + "\n");
      }
      DVT_TRY(const std::string text, plugin_explain_text(runtime->plugins(), explain->what));
      return print(text);
    };
  });

  auto inspect = std::make_shared<PluginsOptions>();
  CLI::App* inspect_command = add("inspect", "Check one file without loading it: manifest, needs, hardening", "FILE", inspect);
  inspect_command->callback([&cli, inspect] {
    cli.action = [inspect]() -> Status {
      DVT_TRY(const Inspection inspection, inspect_plugin_file(inspect->what));
      DVT_TRY(print(inspect->json ? to_json(inspection_node(inspection), 2) + "\n" : inspection_text(inspection)));
      return inspection.is_good() ? Status::ok() : inspection.findings[0].status.in(inspect->what);
    };
  });
}

}  // namespace dovetail::core
