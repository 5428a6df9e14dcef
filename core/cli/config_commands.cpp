// config check | show | schema
#include "core/base/json.hpp"
#include "core/cli/command.hpp"
#include "core/cli/session.hpp"
#include "core/config/json_schema.hpp"
#include "core/config/show.hpp"

namespace dovetail::core {

void add_config_commands(Cli& cli) {
  CLI::App* config = cli.app.add_subcommand("config", "Check, show or describe configs");
  config->require_subcommand(1);
  config->footer(
      "Examples:\n  dovetail config check my.yaml\n  dovetail config show my.yaml --set "
      "context=512");

  auto check_options = std::make_shared<ModelOptions>();
  CLI::App* check =
      config->add_subcommand("check",
                             "Say whether a config is right, and every fault if not; whether its "
                             "checkpoint can be run, dovetail plan says");
  check_options->add_to(*check, true, /*with_json=*/false);
  check->footer("Example:\n  dovetail config check my.yaml");
  check->callback([&cli, check_options] {
    cli.action = [&cli, check_options]() -> Status {
      DVT_TRY(const std::unique_ptr<Runtime> runtime, Runtime::open(cli.program, *check_options));
      return print(runtime->config_name() + ": ok\n");
    };
  });

  auto show_options = std::make_shared<ModelOptions>();
  auto origins = std::make_shared<bool>(true);
  CLI::App* show = config->add_subcommand(
      "show", "Print the effective config with the origin of each value; it can be fed back");
  show_options->add_to(*show, false);
  show->add_flag("--origins,!--no-origins", *origins, "say where each value was written (default)");
  show->footer(
      "Examples:\n  dovetail config show my.yaml --set context=512\n  dovetail config show --json");
  show->callback([&cli, show_options, origins] {
    cli.action = [&cli, show_options, origins]() -> Status {
      DVT_TRY(const std::unique_ptr<Runtime> runtime, Runtime::open(cli.program, *show_options));
      if (show_options->json) return print(to_json(runtime->config(), 2) + "\n");
      return print(show_config(runtime->config(), *origins));
    };
  });

  CLI::App* schema = config->add_subcommand(
      "schema",
      "Print a JSON Schema of configs with the installed plugins' parameters, for editors");
  schema->footer("Example:\n  dovetail config schema > dovetail.schema.json");
  schema->callback([&cli] {
    cli.action = [&cli]() -> Status {
      DVT_TRY(const std::unique_ptr<Runtime> runtime, Runtime::open_plugins_only(cli.program));
      return print(to_json(json_schema(runtime->plugin_params()), 2) + "\n");
    };
  });
}

}  // namespace dovetail::core
