// template render, template check: chat templates by themselves; no model is loaded.
#include <algorithm>
#include <ctime>
#include <filesystem>

#include "core/base/json.hpp"
#include "core/base/log.hpp"
#include "core/base/nearest.hpp"
#include "core/cli/command.hpp"
#include "core/cli/request_json.hpp"
#include "core/cli/session.hpp"
#include "core/text/chat_templates.hpp"
#include "core/text/reply/reply_format.hpp"
#include "core/text/template/chat_template.hpp"
#include "core/text/template/inventory.hpp"

namespace dovetail::core {
namespace {

namespace fs = std::filesystem;

struct TemplateOptions {
  std::string file, name, input;
  bool json = false;
};

Result<ChatTemplates> templates_of_config(const std::string& program, const std::string& file) {
  ModelOptions options;
  options.config = file;
  DVT_TRY(const std::unique_ptr<Runtime> runtime, Runtime::open(program, options));
  const Settings& s = runtime->settings();
  if (s.model.path.empty()) return read_chat_templates(s.chat, *Checkpoint::none());
  DVT_TRY(const std::unique_ptr<Checkpoint> checkpoint,
          Checkpoint::open(s.model.path, s.model.formats, runtime->plugins()));
  return read_chat_templates(s.chat, *checkpoint);
}

// A template's own file, a tokenizer_config.json, a checkpoint's folder or .gguf file, or a config.
Result<ChatTemplates> open_templates(const std::string& program, const std::string& file) {
  std::error_code error;
  const fs::path path = file;
  if (fs::is_directory(path, error)) {
    DVT_TRY(const Folder folder, Folder::open(path));
    Node config;
    if (folder.has("tokenizer_config.json")) {
      DVT_TRY(const std::string text, folder.read("tokenizer_config.json"));
      DVT_TRY(config, parse_json(text, (path / "tokenizer_config.json").string()));
    }
    DVT_TRY(ChatTemplates templates, ChatTemplates::read(&folder, &config));
    const std::vector<std::string> files = folder.files();
    const bool has_gguf = std::any_of(files.begin(), files.end(),
                                      [](const std::string& f) { return f.ends_with(".gguf"); });
    return templates.empty() && has_gguf ? templates_of_config(program, file) : templates;
  }
  const std::string ending = path.extension().string();
  if (ending == ".gguf" || ending == ".yaml" || ending == ".yml")
    return templates_of_config(program, file);
  DVT_TRY(const std::shared_ptr<File> opened, File::open(path));
  DVT_TRY(std::string text, opened->read_all(64u << 20));
  if (ending != ".json") return ChatTemplates(std::move(text));
  DVT_TRY(const Node config, parse_json(text, file));
  return ChatTemplates::read(nullptr, &config);
}

Result<std::string> open_template(const std::string& program, const TemplateOptions& o) {
  DVT_TRY(const ChatTemplates templates, open_templates(program, o.file));
  const Result<const ChatTemplates::Entry*> entry = templates.find(o.name);
  if (!entry) return entry.status().in(o.file);
  return (*entry)->source;
}

// 2026-03-07T09:05:04
Result<std::tm> read_clock(const Node& now) {
  std::tm t{};
  const char* end =
      now.is_string() ? strptime(now.as_string().c_str(), "%Y-%m-%dT%H:%M:%S", &t) : nullptr;
  std::tm checked = t;
  const bool is_date = end != nullptr && *end == '\0' && timegm(&checked) != -1 &&
                       checked.tm_mday == t.tm_mday && checked.tm_mon == t.tm_mon &&
                       checked.tm_sec == t.tm_sec;
  if (!is_date)
    return invalid("\"now\" is " +
                   (now.is_string() ? "\"" + now.as_string() + "\"" : now.kind_name()) +
                   ", expected a time such as \"2026-03-07T09:05:04\"");
  checked.tm_isdst = 0;
  return checked;
}

struct RenderInput {
  Node context;
  RenderOptions options;
};

Result<RenderInput> read_input(const std::string& path) {
  DVT_TRY(const Node input, read_request(path));
  const std::string where = path == "-" ? "standard input" : path;
  if (!input.is_map())
    return invalid(where + ": got " + input.kind_name() + ", expected {\"context\": {...}}");
  RenderInput out;
  for (const auto& [key, value] : input.entries()) {
    if (key == "context") {
      if (!value.is_map())
        return invalid(where + ": \"context\" is " + value.kind_name() +
                       ", expected a map of the template's variables");
      out.context = value;
    } else if (key == "now") {
      const Result<std::tm> now = read_clock(value);
      if (!now) return now.status().in(where);
      out.options.clock = [clock = *now] { return clock; };
    } else {
      return invalid(where + ": unknown key \"" + printable(key) + "\"" +
                     did_you_mean(key, {"context", "now"}) +
                     "; there are \"context\" and \"now\", and variables go into \"context\"");
    }
  }
  if (!out.context.is_map())
    return invalid(where + ": has no \"context\", expected {\"context\": {...}}");
  return out;
}

Status render(const std::string& program, const TemplateOptions& o) {
  DVT_TRY(const std::string source, open_template(program, o));
  DVT_TRY(const ChatTemplate chat_template, ChatTemplate::parse(source, o.file));
  DVT_TRY(const RenderInput input, read_input(o.input));
  DVT_TRY(const Rendered rendered, chat_template.render(input.context, input.options));
  return print(rendered.text);
}

struct Kind {
  const char* key;  // as --json has it
  const std::vector<TemplateUse>& uses;
};

std::vector<Kind> kinds_of(const TemplateInventory& inventory) {
  return {{"statements", inventory.statements}, {"filters", inventory.filters},
          {"tests", inventory.tests},           {"functions", inventory.functions},
          {"methods", inventory.methods},       {"macros", inventory.macros},
          {"variables", inventory.variables}};
}

Node inventory_node(const TemplateInventory& inventory, const ReplyFormat& reply) {
  Node out = Node::make_map();
  out.set("supported", Node::make_bool(inventory.n_missing == 0));
  for (const Kind& kind : kinds_of(inventory)) {
    Node list = Node::make_list();
    for (const TemplateUse& use : kind.uses) {
      Node entry = Node::make_map(), lines = Node::make_list();
      for (const uint32_t line : use.lines) lines.items().push_back(Node::make_int(line));
      entry.set("name", Node::make_string(use.name));
      entry.set("lines", std::move(lines));
      entry.set("supported", Node::make_bool(use.missing.empty()));
      if (!use.missing.empty()) entry.set("reason", Node::make_string(use.missing));
      list.items().push_back(std::move(entry));
    }
    out.set(kind.key, std::move(list));
  }
  out.set("reasoning",
          reply.reasoning ? Node::make_string(std::string(reply.reasoning->name)) : Node());
  out.set("tools", reply.tools ? Node::make_string(std::string(reply.tools->name)) : Node());
  return out;
}

std::string inventory_text(const std::string& file, const TemplateInventory& inventory,
                           const ReplyFormat& reply) {
  std::string text;
  for (const Kind& kind : kinds_of(inventory)) {
    for (const TemplateUse& use : kind.uses) {
      if (use.missing.empty()) continue;
      for (const uint32_t line : use.lines)
        text += file + ":" + std::to_string(line) + ": " + use.missing + "\n";
    }
  }
  text += file + (inventory.n_missing == 0
                      ? ": all that it uses is supported\n"
                      : ": not supported in " + std::to_string(inventory.n_missing) +
                            (inventory.n_missing == 1 ? " place\n" : " places\n"));
  for (const Kind& kind : kinds_of(inventory)) {
    std::string row = kind.key;
    row.resize(12, ' ');
    for (size_t i = 0; i < kind.uses.size(); ++i) {
      row += (i == 0 ? "" : ", ") + kind.uses[i].name;
      if (kind.uses[i].lines.size() > 1) row += " x" + std::to_string(kind.uses[i].lines.size());
    }
    text += row + (kind.uses.empty() ? "none" : "") + "\n";
  }
  text += "reasoning   " + std::string(reply.reasoning ? reply.reasoning->name : "none") + "\n";
  return text + "tool calls  " + std::string(reply.tools ? reply.tools->name : "none") + "\n";
}

Status check(const std::string& program, const TemplateOptions& o) {
  DVT_TRY(const std::string source, open_template(program, o));
  DVT_TRY(const TemplateInventory inventory, take_inventory(source, o.file));
  const ReplyFormat reply = ReplyFormat::detect(source);
  DVT_TRY(print(o.json ? to_json(inventory_node(inventory, reply), 2) + "\n"
                       : inventory_text(o.file, inventory, reply)));
  // What is missing has been said.
  return inventory.n_missing == 0 ? Status::ok() : Status{Code::kUnsupported, ""};
}

}  // namespace

void add_template_commands(Cli& cli) {
  CLI::App* group = cli.app.add_subcommand(
      "template", "Render a chat template, or say what it needs; no model is loaded");
  group->require_subcommand(1);
  group->footer(
      "Examples:\n  dovetail template render models/Qwen3-0.6B --input case.json\n  dovetail "
      "template check models/Qwen3-0.6B");
  auto o = std::make_shared<TemplateOptions>();
  const auto add = [&](const char* name, const char* help) {
    CLI::App* command = group->add_subcommand(name, help);
    command
        ->add_option("FILE", o->file,
                     "a Jinja file, or what has a template in it: a checkpoint's folder, its "
                     "tokenizer_config.json, a .gguf file, a YAML config")
        ->required();
    command->add_option("--name", o->name, "which one, where there are several");
    return command;
  };
  CLI::App* rendering =
      add("render", "Print the text that a template makes of an input, and nothing else");
  rendering
      ->add_option("--input", o->input,
                   "a JSON file, or - for standard input: {\"context\": all variables of the "
                   "template, \"now\": the time for strftime_now}")
      ->required();
  rendering->footer(
      "Example:\n  echo '{\"context\": {\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}], "
      "\"add_generation_prompt\": true}}' |\n    dovetail template render models/Qwen3-0.6B "
      "--input -");
  rendering->callback([&cli, o] { cli.action = [&cli, o] { return render(cli.program, *o); }; });
  CLI::App* checking = add("check", "Say what a template uses, and what of it is not supported");
  checking->add_flag("--json", o->json, "print one JSON object instead of text");
  checking->footer(
      "Exit code 4 where something is not supported, 3 for a template with a syntax error.\n"
      "Example:\n  dovetail template check models/Qwen3-0.6B");
  checking->callback([&cli, o] { cli.action = [&cli, o] { return check(cli.program, *o); }; });
}

}  // namespace dovetail::core
