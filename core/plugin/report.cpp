// Tables in plain text. What a plugin's file says is escaped before it is printed.
#include "core/plugin/report.hpp"

#include <algorithm>
#include <map>
#include <vector>

#include "core/base/log.hpp"
#include "core/base/nearest.hpp"
#include "core/plugin/library.hpp"

namespace dovetail::core {
namespace {

namespace fs = std::filesystem;
using Table = std::vector<std::vector<std::string>>;

/// Columns two spaces apart; the last one is not padded.
std::string table_text(const Table& rows, const std::string& indent) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i + 1 < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line = indent;
    for (size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line.append(widths[i] - row[i].size() + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ", ") + printable(word);
  return out;
}

Node list_node(const std::vector<std::string>& words) {
  Node out = Node::make_list();
  for (const std::string& word : words) out.items().push_back(Node::make_string(word));
  return out;
}

const char* state_name(Candidate::State state) {
  switch (state) {
    case Candidate::State::kFound:
      return "usable";
    case Candidate::State::kLoaded:
      return "loaded";
    case Candidate::State::kRefused:
      return "refused";
    case Candidate::State::kShadowed:
      return "shadowed";
  }
  return "unknown";
}

bool counts(const Candidate& c) {
  return c.state == Candidate::State::kFound || c.state == Candidate::State::kLoaded;
}

std::vector<const Candidate*> candidates_for(PluginRegistry& registry, std::string_view plugin) {
  registry.try_out(plugin);
  std::vector<const Candidate*> out;
  for (const Candidate& c : registry.candidates()) {
    if (is_meant(c, plugin)) out.push_back(&c);
  }
  return out;
}

std::string verdict_text(const Candidate& c) {
  switch (c.state) {
    case Candidate::State::kFound:
      return "usable";
    case Candidate::State::kLoaded:
      return "loaded";
    case Candidate::State::kRefused:
      return std::string("refused at step \"") + step_name(c.step) + "\"";
    case Candidate::State::kShadowed:
      return "shadowed";
  }
  return {};
}

std::string loads_text(const Candidate& c) {
  if (c.is_trusted) return "in place: it came with the program";
  const bool sealed = !c.file.brings_libraries() && c.file.size <= SealedCopy::kMostBytes;
  return std::string(sealed ? "as a sealed copy" : "as a private copy in your cache") +
         ", after a probe in a child process";
}

std::string reason_text(const Candidate& c) {
  if (c.state == Candidate::State::kRefused) return c.reason.message();
  if (c.state == Candidate::State::kShadowed)
    return c.shadowed_by + " comes first; remove one of them";
  return {};
}

Node candidate_node(const Candidate& c) {
  Node out = Node::make_map();
  out.set("path", Node::make_string(c.file.path.string()));
  out.set("origin", Node::make_string(c.origin));
  out.set("kind", Node::make_string(c.kind));
  out.set("name", Node::make_string(c.name));
  if (c.file.manifest) {
    out.set("id", Node::make_string(c.file.manifest->id));
    out.set("version", Node::make_string(c.file.manifest->version));
    out.set("provides", list_node(c.file.manifest->provides));
    out.set("keys", list_node(c.file.manifest->keys));
  }
  out.set("trusted", Node::make_bool(c.is_trusted));
  out.set("state", Node::make_string(state_name(c.state)));
  if (c.state == Candidate::State::kRefused) {
    out.set("step", Node::make_string(step_name(c.step)));
    out.set("reason", Node::make_string(c.reason.message()));
  }
  if (c.state == Candidate::State::kShadowed)
    out.set("shadowed_by", Node::make_string(c.shadowed_by));
  return out;
}

Node places_node(const PluginRegistry& registry) {
  Node out = Node::make_list();
  for (const SearchPlace& place : registry.places()) {
    Node item = Node::make_map();
    item.set("path", Node::make_string(place.path.string()));
    item.set("origin", Node::make_string(place.origin));
    if (!place.problem.empty()) item.set("problem", Node::make_string(place.problem));
    out.items().push_back(std::move(item));
  }
  return out;
}

std::string places_text(const PluginRegistry& registry) {
  Table rows;
  for (const SearchPlace& place : registry.places()) {
    rows.push_back({place.origin, place.path.string() +
                                      (place.problem.empty() ? "" : "  (" + place.problem + ")")});
  }
  return "searched, first wins:\n" + table_text(rows, "  ");
}

Status nothing_found(const PluginRegistry& registry, std::string_view plugin) {
  std::vector<std::string> names;
  std::string places;
  const bool with_kind = plugin.find('/') != std::string_view::npos;
  for (const Candidate& c : registry.candidates())
    names.push_back(with_kind ? c.kind + "/" + c.name : c.name);
  for (const SearchPlace& place : registry.places())
    places += (places.empty() ? "" : ", ") + place.path.string();
  return invalid("no file is a candidate for plugin \"" + printable(plugin) + "\"" +
                 did_you_mean(plugin, names) + "; looked in " + places +
                 "; --path adds a folder, as plugins.path does in a config");
}

const char* yes_or_no(bool value) {
  return value ? "yes" : "no";
}

const char* type_name(uint32_t type) {
  switch (type) {
    case DVT_PARAM_BOOL:
      return "true or false";
    case DVT_PARAM_INT:
      return "integer";
    case DVT_PARAM_FLOAT:
      return "number";
    case DVT_PARAM_STR:
      return "string";
    case DVT_PARAM_MAP:
      return "map";
    case DVT_PARAM_STR_LIST:
      return "list of strings";
    case DVT_PARAM_INT_LIST:
      return "list of integers";
    case DVT_PARAM_FLOAT_LIST:
      return "list of numbers";
    default:
      return "unknown";
  }
}

std::string default_of(const dvt_param& p) {
  if ((p.flags & DVT_PARAM_REQUIRED) != 0) return "required";
  return p.default_text.n == 0 ? "no default" : "default " + printable(text_of(p.default_text));
}

}  // namespace

std::string plugins_list_text(const PluginRegistry& registry) {
  std::map<std::string, Table> by_kind;
  size_t n_refused = 0, n_shadowed = 0;
  for (const Candidate& c : registry.candidates()) {
    n_refused += c.state == Candidate::State::kRefused;
    n_shadowed += c.state == Candidate::State::kShadowed;
    if (!counts(c)) continue;
    const std::string keys = joined(c.file.manifest->keys);
    by_kind[c.kind].push_back({c.name, printable(c.file.manifest->version), c.file.manifest->id,
                               c.origin, keys.empty() ? "" : "for " + keys});
  }
  std::string out;
  for (auto& [kind, rows] : by_kind) {
    std::sort(rows.begin(), rows.end());
    out += kind + "\n" + table_text(rows, "  ");
  }
  if (by_kind.empty()) out += "no plugins\n" + places_text(registry);
  if (n_refused + n_shadowed > 0) {
    out += "\n" + std::to_string(n_refused) + " refused, " + std::to_string(n_shadowed) +
           " shadowed; the reasons: dovetail plugins explain NAME\n";
    Table rows;
    for (const Candidate& c : registry.candidates()) {
      if (!counts(c))
        rows.push_back({c.kind + "/" + c.name, verdict_text(c), c.file.path.string()});
    }
    out += table_text(rows, "  ");
  }
  return out;
}

Node plugins_list_node(const PluginRegistry& registry) {
  Node plugins = Node::make_list();
  for (const Candidate& c : registry.candidates()) plugins.items().push_back(candidate_node(c));
  Node out = Node::make_map();
  out.set("plugins", std::move(plugins));
  out.set("searched", places_node(registry));
  return out;
}

Result<std::string> plugin_explain_text(PluginRegistry& registry, std::string_view plugin) {
  const std::vector<const Candidate*> found = candidates_for(registry, plugin);
  if (found.empty()) return nothing_found(registry, plugin);
  std::string out = std::to_string(found.size()) +
                    (found.size() == 1 ? " candidate" : " candidates") + " for \"" +
                    printable(plugin) + "\", first wins:\n";
  for (size_t i = 0; i < found.size(); ++i) {
    const Candidate& c = *found[i];
    out += "  " + std::to_string(i + 1) + ". " + c.file.path.string() + "\n";
    Table rows = {{"found in", c.origin}};
    if (c.file.manifest)
      rows.push_back({"is", c.file.manifest->id + " " + printable(c.file.manifest->version) + " (" +
                                c.kind + "/" + c.name + ")"});
    rows.push_back({"loads", loads_text(c)});
    rows.push_back({"verdict", verdict_text(c)});
    if (const std::string reason = reason_text(c); !reason.empty())
      rows.push_back({"because", printable(reason)});
    out += table_text(rows, "     ");
  }
  return out + places_text(registry);
}

Result<Node> plugin_explain_node(PluginRegistry& registry, std::string_view plugin) {
  const std::vector<const Candidate*> found = candidates_for(registry, plugin);
  if (found.empty()) return nothing_found(registry, plugin);
  Node list = Node::make_list();
  for (const Candidate* c : found) list.items().push_back(candidate_node(*c));
  Node out = Node::make_map();
  out.set("candidates", std::move(list));
  out.set("searched", places_node(registry));
  return out;
}

Result<Inspection> inspect_plugin_file(const std::string& path) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  if (error) return io_error(path + ": cannot open: " + errno_text(error.value()));
  LibraryFinder libraries;
  return inspect_plugin(real, libraries);
}

Result<const Candidate*> candidate_named(const PluginRegistry& registry, std::string_view plugin) {
  const Candidate* first = nullptr;
  for (const Candidate& c : registry.candidates()) {
    if (!is_meant(c, plugin)) continue;
    if (counts(c)) return &c;
    if (!first) first = &c;
  }
  if (!first) return nothing_found(registry, plugin);
  return first;
}

std::string inspection_text(const Inspection& in) {
  std::string out = in.path.string() + " (" + bytes_text(in.size) + ")\n";
  if (in.manifest) {
    const Manifest& m = *in.manifest;
    out +=
        "manifest\n" +
        table_text({{"id", m.id},
                    {"kind", m.kind},
                    {"name", m.name},
                    {"version", printable(m.version)},
                    {"provides", joined(m.provides)},
                    {"keys", joined(m.keys)},
                    {"interface", std::to_string(m.abi_major) + "." + std::to_string(m.abi_minor) +
                                      ", draft " + printable(m.abi_hash)},
                    {"compiler", printable(m.compiler)},
                    {"sanitizer", printable(m.sanitizer)}},
                   "  ");
  }
  if (in.elf) {
    const ElfFile& elf = *in.elf;
    std::map<std::string, std::vector<std::string>> versions;
    for (const ElfVersionNeed& need : elf.needed_versions)
      versions[need.library].push_back(need.version);
    Table needs;
    for (const std::string& library : elf.needed)
      needs.push_back({printable(library), joined(versions[library])});
    out += "needs\n" + (needs.empty() ? std::string("  nothing\n") : table_text(needs, "  "));
    out +=
        "file\n" + table_text({{"machine", machine_name(elf.machine)},
                               {"exports", joined(elf.exported)},
                               {"runpath", elf.runpath.empty() ? "none" : printable(elf.runpath)},
                               {"relro", yes_or_no(elf.relro)},
                               {"bound at load", yes_or_no(elf.bind_now)},
                               {"text relocations", yes_or_no(elf.text_relocations)},
                               {"executable stack", yes_or_no(elf.executable_stack)},
                               {"writable code", yes_or_no(elf.writable_code)},
                               {"static TLS", yes_or_no(elf.static_tls)},
                               {"unique symbols", std::to_string(elf.n_unique_symbols)}},
                              "  ");
  }
  if (in.is_good()) return out + "verdict\n  passes every check before loading\n";
  Table findings;
  for (const Finding& f : in.findings)
    findings.push_back({step_name(f.step), printable(f.status.message())});
  return out + "verdict\n  is refused\n" + table_text(findings, "  ");
}

Node inspection_node(const Inspection& in) {
  Node out = Node::make_map();
  out.set("path", Node::make_string(in.path.string()));
  out.set("bytes", Node::make_int(static_cast<int64_t>(in.size)));
  if (in.manifest) {
    const Manifest& m = *in.manifest;
    Node node = Node::make_map();
    node.set("id", Node::make_string(m.id));
    node.set("kind", Node::make_string(m.kind));
    node.set("name", Node::make_string(m.name));
    node.set("version", Node::make_string(m.version));
    node.set("abi_major", Node::make_int(m.abi_major));
    node.set("abi_minor", Node::make_int(m.abi_minor));
    node.set("abi_hash", Node::make_string(m.abi_hash));
    node.set("compiler", Node::make_string(m.compiler));
    node.set("sanitizer", Node::make_string(m.sanitizer));
    node.set("provides", list_node(m.provides));
    node.set("keys", list_node(m.keys));
    out.set("manifest", std::move(node));
  }
  if (in.elf) {
    const ElfFile& elf = *in.elf;
    Node versions = Node::make_list();
    for (const ElfVersionNeed& need : elf.needed_versions)
      versions.items().push_back(Node::make_string(need.library + " " + need.version));
    Node node = Node::make_map();
    node.set("machine", Node::make_string(machine_name(elf.machine)));
    node.set("needed", list_node(elf.needed));
    node.set("needed_versions", std::move(versions));
    node.set("exported", list_node(elf.exported));
    node.set("runpath", Node::make_string(elf.runpath));
    node.set("relro", Node::make_bool(elf.relro));
    node.set("bind_now", Node::make_bool(elf.bind_now));
    node.set("text_relocations", Node::make_bool(elf.text_relocations));
    node.set("executable_stack", Node::make_bool(elf.executable_stack));
    node.set("writable_code", Node::make_bool(elf.writable_code));
    node.set("static_tls", Node::make_bool(elf.static_tls));
    node.set("unique_symbols", Node::make_int(elf.n_unique_symbols));
    out.set("file", std::move(node));
  }
  Node findings = Node::make_list();
  for (const Finding& f : in.findings) {
    Node node = Node::make_map();
    node.set("step", Node::make_string(step_name(f.step)));
    node.set("reason", Node::make_string(f.status.message()));
    findings.items().push_back(std::move(node));
  }
  out.set("findings", std::move(findings));
  return out;
}

std::string params_text(const std::vector<dvt_param>& params) {
  Table rows;
  for (const dvt_param& p : params) {
    rows.push_back(
        {printable(text_of(p.name)), type_name(p.type), default_of(p), printable(text_of(p.help))});
  }
  return "parameters\n" + (rows.empty() ? std::string("  none\n") : table_text(rows, "  "));
}

Node params_node(const std::vector<dvt_param>& params) {
  Node out = Node::make_list();
  for (const dvt_param& p : params) {
    Node item = Node::make_map();
    item.set("name", Node::make_string(std::string(text_of(p.name))));
    item.set("type", Node::make_string(type_name(p.type)));
    item.set("required", Node::make_bool((p.flags & DVT_PARAM_REQUIRED) != 0));
    item.set("default", p.default_text.n == 0
                            ? Node()
                            : Node::make_string(std::string(text_of(p.default_text))));
    item.set("help", Node::make_string(std::string(text_of(p.help))));
    out.items().push_back(std::move(item));
  }
  return out;
}

}  // namespace dovetail::core
