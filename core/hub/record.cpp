#include "core/hub/record.hpp"

#include "core/base/files.hpp"
#include "core/base/json.hpp"

namespace dovetail::core {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kLongest = 16 << 20;

std::string text_at(const Node& map, std::string_view key) {
  const Node* value = map.find(key);
  return value && value->is_string() ? value->as_string() : "";
}

PullRecord::Entry read_entry(const Node& node) {
  PullRecord::Entry out;
  const Node* size = node.find("size");
  if (size && size->is_int() && size->as_int() >= 0)
    out.size = static_cast<uint64_t>(size->as_int());
  out.checksum = Checksum::parse(text_at(node, "checksum"));
  out.version = text_at(node, "version");
  const Node* whole = node.find("whole");
  out.is_whole = whole && whole->is_bool() && whole->as_bool();
  return out;
}

}  // namespace

fs::path PullRecord::path_in(const fs::path& folder) {
  return folder / ".pull.json";
}

Result<std::optional<PullRecord>> PullRecord::load(const fs::path& folder) {
  std::error_code error;
  const fs::path path = path_in(folder);
  if (!fs::exists(path, error)) return std::optional<PullRecord>();
  DVT_TRY(const std::shared_ptr<File> file, File::open(path));
  DVT_TRY(const std::string text, file->read_all(kLongest));
  Result<Node> root = parse_json(text, path.string());
  const Node* files = root ? root->find("files") : nullptr;
  if (!files || !files->is_map() || text_at(*root, "model").empty())
    return bad_format(
        (root ? path.string() + ": is no record of a pull" : root.status().message()) +
        "; deleted, it is made again");
  PullRecord out;
  out.id = text_at(*root, "model");
  out.revision = text_at(*root, "revision");
  out.commit = text_at(*root, "commit");
  for (const auto& [name, entry] : files->entries()) out.files[name] = read_entry(entry);
  return std::optional<PullRecord>(std::move(out));
}

Status PullRecord::save(const fs::path& folder) const {
  Node list = Node::make_map();
  for (const auto& [name, entry] : files) {
    Node item = Node::make_map();
    if (entry.size) item.set("size", Node::make_int(static_cast<int64_t>(*entry.size)));
    if (!entry.checksum.hex.empty()) item.set("checksum", Node::make_string(entry.checksum.hex));
    if (!entry.version.empty()) item.set("version", Node::make_string(entry.version));
    item.set("whole", Node::make_bool(entry.is_whole));
    list.set(name, std::move(item));
  }
  Node root = Node::make_map();
  root.set("model", Node::make_string(id));
  root.set("revision", Node::make_string(revision));
  root.set("commit", Node::make_string(commit));
  root.set("files", std::move(list));
  // Under one name: what a killed pull left of it, the next one takes.
  DVT_TRY(const std::unique_ptr<FileWriter> file, FileWriter::resume(path_in(folder), "next"));
  DVT_TRY(file->restart());
  DVT_TRY(file->write(to_json(root, 2) + "\n"));
  return file->commit();
}

HubListing PullRecord::listing() const {
  HubListing out{id, commit, {}};
  for (const auto& [name, entry] : files) out.files.push_back({name, entry.size, entry.checksum});
  return out;
}

}  // namespace dovetail::core
