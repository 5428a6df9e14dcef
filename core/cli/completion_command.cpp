// completion: a script for bash, zsh or fish, generated from the option tree itself.
#include "core/cli/command.hpp"

namespace dovetail::core {
namespace {

// One command of the tree: "" is dovetail itself, "demo cache" a nested one.
struct Entry {
  std::string path;
  std::vector<std::pair<std::string, std::string>> words;  // what may follow, with its description
};

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

void collect(const CLI::App& app, const std::string& path, std::vector<Entry>& out) {
  Entry entry{path, {}};
  const std::vector<const CLI::App*> commands =
      app.get_subcommands([](const CLI::App*) { return true; });
  for (const CLI::App* c : commands)
    entry.words.emplace_back(c->get_name(), first_line(c->get_description()));
  for (const CLI::Option* o : app.get_options()) {
    for (const std::string& name : o->get_lnames())
      entry.words.emplace_back("--" + name, first_line(o->get_description()));
    for (const std::string& name : o->get_snames())
      entry.words.emplace_back("-" + name, first_line(o->get_description()));
  }
  out.push_back(std::move(entry));
  for (const CLI::App* c : commands)
    collect(*c, path.empty() ? c->get_name() : path + " " + c->get_name(), out);
}

std::string words_of(const Entry& e) {
  std::string out;
  for (const auto& [word, help] : e.words) out += (out.empty() ? "" : " ") + word;
  return out;
}

// The command so far is the longest chain of words that are commands; files complete the rest.
std::string posix_cases(const std::vector<Entry>& entries, const std::string& assign) {
  std::string out = "  case \"$path\" in\n";
  for (const Entry& e : entries)
    out += "    " + shell_quoted(e.path) + ") " + assign + shell_quoted(words_of(e)) + ";;\n";
  return out + "  esac\n";
}

std::string known_paths(const std::vector<Entry>& entries) {
  std::string out;
  for (const Entry& e : entries)
    if (!e.path.empty()) out += (out.empty() ? "" : "|") + shell_quoted(e.path);
  return out;
}

std::string bash_script(const std::vector<Entry>& entries) {
  return "# bash completion of dovetail: source <(dovetail completion bash)\n"
         "_dovetail() {\n"
         "  local cur=\"${COMP_WORDS[COMP_CWORD]}\" path='' next words='' i\n"
         "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
         "    next=\"${path:+$path }${COMP_WORDS[i]}\"\n"
         "    case \"$next\" in " +
         known_paths(entries) +
         ") path=\"$next\";; *) break;; esac\n"
         "  done\n" +
         posix_cases(entries, "words=") +
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
         "  if [[ ${#COMPREPLY[@]} -eq 0 && $cur != -* ]]; then COMPREPLY=($(compgen -f -- "
         "\"$cur\")); fi\n"
         "}\n"
         "complete -o filenames -F _dovetail dovetail\n";
}

std::string zsh_script(const std::vector<Entry>& entries) {
  return "#compdef dovetail\n"
         "# zsh completion of dovetail: dovetail completion zsh > a folder of $fpath/_dovetail\n"
         "_dovetail() {\n"
         "  local path_='' next list='' i\n"
         "  for ((i = 2; i < CURRENT; i++)); do\n"
         "    next=\"${path_:+$path_ }${words[i]}\"\n"
         "    case \"$next\" in " +
         known_paths(entries) +
         ") path_=\"$next\";; *) break;; esac\n"
         "  done\n"
         "  local path=\"$path_\"\n" +
         posix_cases(entries, "list=") +
         "  compadd -- ${=list}\n"
         "  _files\n"
         "}\n"
         "compdef _dovetail dovetail\n";
}

std::string fish_script(const std::vector<Entry>& entries) {
  std::string out = "# fish completion of dovetail: dovetail completion fish | source\n";
  for (const Entry& e : entries) {
    std::string condition = "__fish_use_subcommand";
    if (!e.path.empty()) {
      condition.clear();
      for (size_t at = 0; at < e.path.size();) {
        const size_t end = std::min(e.path.find(' ', at), e.path.size());
        condition += (condition.empty() ? "" : "; and ") +
                     ("__fish_seen_subcommand_from " + e.path.substr(at, end - at));
        at = end + 1;
      }
    }
    for (const auto& [word, help] : e.words) {
      out += "complete -c dovetail -n " + shell_quoted(condition);
      if (word.starts_with("--"))
        out += " -l " + word.substr(2);
      else if (word.starts_with("-"))
        out += " -s " + word.substr(1);
      else
        out += " -a " + word;
      out += " -d " + shell_quoted(help) + "\n";
    }
  }
  return out;
}

}  // namespace

void add_completion_command(Cli& cli) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = cli.app.add_subcommand("completion", "Print a completion script for a shell");
  command->add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->footer(
      "Examples:\n  source <(dovetail completion bash)\n  dovetail completion fish | source");
  command->callback([&cli, shell] {
    cli.action = [&cli, shell] {
      std::vector<Entry> entries;
      collect(cli.app, "", entries);
      return print(*shell == "bash"  ? bash_script(entries)
                   : *shell == "zsh" ? zsh_script(entries)
                                     : fish_script(entries));
    };
  });
}

}  // namespace dovetail::core
