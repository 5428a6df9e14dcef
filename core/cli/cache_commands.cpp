// cache ls | clear: packed weights that are kept for the next start
#include <chrono>
#include <ctime>

#include "core/base/json.hpp"
#include "core/base/log.hpp"
#include "core/cli/command.hpp"
#include "core/model/repack_cache.hpp"

namespace dovetail::core {
namespace {

std::string time_text(std::filesystem::file_time_type t) {
  const auto system = std::chrono::time_point_cast<std::chrono::system_clock::duration>(
      t - std::filesystem::file_time_type::clock::now() + std::chrono::system_clock::now());
  const std::time_t seconds = std::chrono::system_clock::to_time_t(system);
  std::tm parts{};
  localtime_r(&seconds, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &parts);
  return text;
}

Result<std::filesystem::path> folder() {
  const std::optional<std::filesystem::path> found = RepackCache::default_folder();
  if (!found) return invalid("there is no cache folder; set XDG_CACHE_HOME or HOME");
  return *found;
}

Status list(bool json) {
  DVT_TRY(const std::filesystem::path where, folder());
  const std::vector<RepackCache::Entry> entries = RepackCache::list(where);
  uint64_t total = 0;
  Node files = Node::make_list();
  std::string text;
  for (const RepackCache::Entry& e : entries) {
    total += e.bytes;
    Node file = Node::make_map();
    file.set("file", Node::make_string(e.path.string()));
    file.set("model", Node::make_string(e.model));
    file.set("backend", Node::make_string(e.backend));
    file.set("bytes", Node::make_int(static_cast<int64_t>(e.bytes)));
    file.set("used", Node::make_string(time_text(e.used)));
    files.items().push_back(std::move(file));
    std::string size = bytes_text(e.bytes);
    size.insert(0, 10 - std::min<size_t>(10, size.size()), ' ');
    text += size + "  " + time_text(e.used) + "  " + e.backend + "  " +
            (e.model.empty() ? "left behind by a writer" : printable(e.model)) + "\n";
  }
  if (json) {
    Node out = Node::make_map();
    out.set("folder", Node::make_string(where.string()));
    out.set("bytes", Node::make_int(static_cast<int64_t>(total)));
    out.set("files", std::move(files));
    return print(to_json(out, 2) + "\n");
  }
  return print(text + bytes_text(total) + " in " + std::to_string(entries.size()) + " files of " +
               where.string() + "\n");
}

Status clear() {
  DVT_TRY(const std::filesystem::path where, folder());
  DVT_TRY(const uint64_t freed, RepackCache::clear(where));
  return print(bytes_text(freed) + " freed in " + where.string() + "\n");
}

}  // namespace

void add_cache_commands(Cli& cli) {
  CLI::App* cache = cli.app.add_subcommand(
      "cache", "Show or clear the packed weights that are kept for the next start");
  cache->require_subcommand(1);
  cache->footer("Examples:\n  dovetail cache ls\n  dovetail cache clear");
  auto json = std::make_shared<bool>(false);
  CLI::App* ls = cache->add_subcommand("ls", "What is kept, last used first");
  ls->footer("Example:\n  dovetail cache ls --json");
  ls->add_flag("--json", *json, "print JSON instead of a table");
  ls->callback([&cli, json] { cli.action = [json] { return list(*json); }; });
  CLI::App* remove = cache->add_subcommand("clear", "Remove all of it");
  remove->footer("Example:\n  dovetail cache clear");
  remove->callback([&cli] { cli.action = [] { return clear(); }; });
}

}  // namespace dovetail::core
