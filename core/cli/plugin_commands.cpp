// plugins list | inspect | explain
#include <filesystem>

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

// A file's path, and what looks like one, so that its absence is named; all else is a plugin's name.
bool is_file(const std::string& what) {
  const std::filesystem::path path = what;
  std::error_code error;
  return path.extension() == ".so" || std::filesystem::is_regular_file(path, error);
}

Status show(const Inspection& inspection, const std::vector<dvt_param>* params, bool json) {
  if (!json) return print(inspection_text(inspection) + (params ? params_text(*params) : ""));
  Node node = inspection_node(inspection);
  if (params) node.set("parameters", params_node(*params));
  return print(to_json(node, 2) + "\n");
}

Status inspect_file(const PluginsOptions& o) {
  DVT_TRY(const Inspection inspection, inspect_plugin_file(o.what));
  DVT_TRY(show(inspection, nullptr, o.json));
  return inspection.is_good() ? Status::ok() : inspection.findings[0].status.in(o.what);
}

// What a plugin declares is known once it is loaded, which one that was refused never is.
Status inspect_named(const std::string& program, const PluginsOptions& o) {
  DVT_TRY(const std::unique_ptr<Runtime> runtime, Runtime::open_plugins_only(program, o.paths));
  DVT_TRY(const Candidate* candidate, candidate_named(runtime->plugins(), o.what));
  const Inspection& file = candidate->file;
  if (candidate->state == Candidate::State::kRefused) {
    DVT_TRY(show(file, nullptr, o.json));
    return candidate->reason.in(file.path.string());
  }
  DVT_TRY(const LoadedPlugin* plugin, runtime->plugins().load(candidate->kind, file.manifest->id));
  const std::vector<dvt_param> params = plugin->params();
  return show(file, &params, o.json);
}

}  // namespace

void add_plugin_commands(Cli& cli) {
  CLI::App* plugins = cli.app.add_subcommand("plugins", "List, inspect or explain plugins");
  plugins->require_subcommand(1);
  plugins->footer("Examples:\n  dovetail plugins list\n  dovetail plugins inspect top_k");
  const auto add = [plugins](const char* name, const char* help, const char* examples,
                             const std::shared_ptr<PluginsOptions>& o) {
    CLI::App* command = plugins->add_subcommand(name, help);
    command->add_flag("--json", o->json, "print JSON");
    command
        ->add_option("--path", o->paths,
                     "a further folder to search first, as plugins.path of a config, which is not "
                     "read here")
        ->allow_extra_args(false);
    command->footer(examples);
    return command;
  };

  auto list = std::make_shared<PluginsOptions>();
  CLI::App* list_command = add("list", "The plugins that count, by kind",
                               "Example:\n  dovetail plugins list --path build/plugins", list);
  list_command->callback([&cli, list] {
    cli.action = [&cli, list]() -> Status {
      DVT_TRY(const std::unique_ptr<Runtime> runtime,
              Runtime::open_plugins_only(cli.program, list->paths));
      return print(list->json ? to_json(plugins_list_node(runtime->plugins()), 2) + "\n"
                              : plugins_list_text(runtime->plugins()));
    };
  });

  auto explain = std::make_shared<PluginsOptions>();
  CLI::App* explain_command =
      add("explain", "Every candidate for a plugin, why it counts or not, and where was looked",
          "Examples:\n  dovetail plugins explain cpu\n"
          "  dovetail plugins explain my_stage --path build/plugins",
          explain);
  explain_command->add_option("PLUGIN", explain->what, "a name, KIND/NAME or an id")->required();
  explain_command->callback([&cli, explain] {
    cli.action = [&cli, explain]() -> Status {
      DVT_TRY(const std::unique_ptr<Runtime> runtime,
              Runtime::open_plugins_only(cli.program, explain->paths));
      if (explain->json) {
        DVT_TRY(const Node node, plugin_explain_node(runtime->plugins(), explain->what));
        return print(to_json(node, 2) + "\n");
      }
      DVT_TRY(const std::string text, plugin_explain_text(runtime->plugins(), explain->what));
      return print(text);
    };
  });

  auto inspect = std::make_shared<PluginsOptions>();
  CLI::App* inspect_command =
      add("inspect",
          "Check one file without loading it, or show the plugin of a name with its parameters",
          "Examples:\n  dovetail plugins inspect top_k\n"
          "  dovetail plugins inspect build/plugins/sampler/my_stage.so",
          inspect);
  inspect_command->add_option("PLUGIN", inspect->what, "a .so file, or a name, KIND/NAME or an id")
      ->required();
  inspect_command->callback([&cli, inspect] {
    cli.action = [&cli, inspect]() -> Status {
      return is_file(inspect->what) ? inspect_file(*inspect) : inspect_named(cli.program, *inspect);
    };
  });
}

}  // namespace dovetail::core
