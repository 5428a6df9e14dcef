// JSON of the note to a Manifest, every member checked for its kind.
#include "core/plugin/manifest.hpp"

#include <algorithm>

#include "core/base/json.hpp"
#include "core/base/log.hpp"
#include "core/base/node.hpp"

namespace dovetail::core {
namespace {

constexpr size_t kMostBytes = size_t{16} * 1024;
constexpr size_t kMostWord = 128;
constexpr uint32_t kNoteType = 1;

// Words that become file names, YAML words and table cells.
bool is_word(std::string_view text) {
  return !text.empty() && text.size() <= kMostWord && text.front() != '.' && text.front() != '-' &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '_' || c == '-' || c == '.';
         });
}

class ManifestReader {
 public:
  explicit ManifestReader(const Node& root) : root_(root) {}

  Result<std::string> text(const char* key) const {
    const Node* value = root_.find(key);
    if (value == nullptr) return missing(key);
    if (!value->is_string()) return wrong(key, *value, "a string");
    return value->as_string();
  }
  Result<std::string> word(const char* key) const {
    DVT_TRY(std::string value, text(key));
    if (is_word(value)) return value;
    return bad_format(std::string("its manifest's \"") + key + "\" is \"" +
                      printable(value.substr(0, kMostWord)) +
                      "\", expected letters, digits, '.', '_' and '-'");
  }
  Result<std::vector<std::string>> texts(const char* key) const {
    const Node* value = root_.find(key);
    if (value == nullptr) return missing(key);
    if (!value->is_list()) return wrong(key, *value, "a list of strings");
    std::vector<std::string> out;
    for (const Node& item : value->items()) {
      if (!item.is_string()) return wrong(key, item, "strings in its list");
      out.push_back(item.as_string());
    }
    return out;
  }
  Status version(int64_t& major, int64_t& minor) const {
    const Node* value = root_.find("abi");
    if (value == nullptr) return missing("abi");
    if (!value->is_list() || value->items().size() != 2 || !value->items()[0].is_int() ||
        !value->items()[1].is_int()) {
      return wrong("abi", *value, "[major, minor]");
    }
    major = value->items()[0].as_int();
    minor = value->items()[1].as_int();
    return Status::ok();
  }

 private:
  static Status missing(const char* key) {
    return bad_format(std::string("its manifest has no \"") + key + "\"");
  }
  static Status wrong(const char* key, const Node& value, const char* expected) {
    return bad_format(std::string("its manifest's \"") + key + "\" has " + value.kind_name() +
                      ", expected " + expected);
  }
  const Node& root_;
};

}  // namespace

Result<Manifest> read_manifest(const ElfFile& file) {
  const ElfNote* found = nullptr;
  for (const ElfNote& note : file.notes) {
    if (note.owner != "DOVETAIL" || note.type != kNoteType) continue;
    if (found != nullptr) return bad_format("has two manifests");
    found = &note;
  }
  if (found == nullptr)
    return bad_format(
        "has no manifest: it is not a Dovetail plugin, or was not built with "
        "dovetail_add_plugin()");
  if (found->content.size() > kMostBytes) return bad_format("its manifest is longer than 16 KiB");
  std::string_view json = found->content;
  while (!json.empty() && json.back() == '\0') json.remove_suffix(1);

  JsonLimits limits;
  limits.max_depth = 8;
  limits.max_values = 4096;
  DVT_TRY(const Node root, parse_json(json, "manifest", limits));
  if (!root.is_map())
    return bad_format(std::string("its manifest is ") + root.kind_name() + ", expected a map");
  const ManifestReader in(root);
  Manifest m;
  DVT_TRY(m.id, in.word("id"));
  DVT_TRY(m.kind, in.word("kind"));
  DVT_TRY(m.name, in.word("name"));
  DVT_TRY(m.version, in.text("version"));
  DVT_TRY(m.abi_hash, in.text("abi_hash"));
  DVT_TRY(m.sanitizer, in.text("sanitizer"));
  DVT_TRY(m.compiler, in.text("compiler"));
  DVT_TRY(m.provides, in.texts("provides"));
  DVT_TRY(m.keys, in.texts("keys"));
  DVT_TRY(in.version(m.abi_major, m.abi_minor));
  return m;
}

}  // namespace dovetail::core
