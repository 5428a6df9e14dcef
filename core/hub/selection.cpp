#include "core/hub/selection.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "core/base/files.hpp"
#include "core/base/folder.hpp"
#include "core/base/json.hpp"
#include "core/base/log.hpp"
#include "core/base/nearest.hpp"

namespace dovetail::core {
namespace {

constexpr std::array<std::string_view, 13> kDocuments = {"config.json",
                                                         "generation_config.json",
                                                         "tokenizer.json",
                                                         "tokenizer_config.json",
                                                         "vocab.json",
                                                         "merges.txt",
                                                         "special_tokens_map.json",
                                                         "added_tokens.json",
                                                         "tokenizer.model",
                                                         "chat_template.jinja",
                                                         "chat_template.json",
                                                         "LICENSE",
                                                         "NOTICE"};
constexpr std::string_view kSingle = "model.safetensors";
constexpr std::string_view kIndex = "model.safetensors.index.json";
constexpr std::array<std::string_view, 7> kPickleEndings = {".bin", ".pt",     ".pth",   ".ckpt",
                                                            ".pkl", ".pickle", ".joblib"};

bool is_pickle(std::string_view name) {
  return std::any_of(kPickleEndings.begin(), kPickleEndings.end(),
                     [&](std::string_view ending) { return name.ends_with(ending); });
}

// Git's own files, such as .gitattributes; a folder keeps the record of a pull under such a name.
bool is_hidden(std::string_view name) {
  return name.starts_with('.') || name.find("/.") != std::string_view::npos;
}

bool is_document(std::string_view name) {
  return std::find(kDocuments.begin(), kDocuments.end(), name) != kDocuments.end();
}

bool matches(const std::string& name, const std::vector<std::string>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(), [&](std::string pattern) {
    if (pattern.ends_with('/')) pattern += '*';
    return fnmatch(pattern.c_str(), name.c_str(), FNM_NOESCAPE) == 0;
  });
}

// "dir/x-00002-of-00003.gguf" is a part of "dir/x": what stands before the number, if it is one.
std::optional<std::string> split_stem(std::string_view name) {
  constexpr std::string_view kShape = "-#####-of-#####.gguf";
  if (!name.ends_with(".gguf") || name.size() <= kShape.size()) return std::nullopt;
  const std::string_view end = name.substr(name.size() - kShape.size());
  for (size_t i = 0; i < kShape.size(); ++i) {
    const bool fits = kShape[i] == '#' ? end[i] >= '0' && end[i] <= '9' : end[i] == kShape[i];
    if (!fits) return std::nullopt;
  }
  // The count belongs to it: two splits of one model into different numbers are two.
  return std::string(name.substr(0, name.size() - kShape.size())) + std::string(end.substr(6));
}

std::string model_of(const std::string& gguf) {
  return split_stem(gguf).value_or(gguf);
}

const HubFile* find_file(const HubListing& listing, std::string_view name) {
  for (const HubFile& file : listing.files)
    if (file.name == name) return &file;
  return nullptr;
}

std::string sized(const HubFile& file) {
  return printable(file.name) + (file.size ? " (" + bytes_text(*file.size) + ")" : "");
}

std::string names_of(const std::vector<std::string>& names, size_t most) {
  std::string out;
  for (size_t i = 0; i < names.size() && i < most; ++i) out += (i ? ", " : "") + names[i];
  if (names.size() > most) out += " and " + std::to_string(names.size() - most) + " more";
  return out;
}

// Files of a listing, each once.
class Picker {
 public:
  explicit Picker(const HubListing& listing) : listing_(listing) {}
  void add(const HubFile& file) { names_.insert(file.name); }
  std::vector<HubFile> files(const std::vector<std::string>& exclude) const {
    std::vector<HubFile> documents, weights;
    for (const HubFile& file : listing_.files) {
      if (!names_.contains(file.name) || matches(file.name, exclude)) continue;
      (is_document(file.name) || file.name == kIndex ? documents : weights).push_back(file);
    }
    documents.insert(documents.end(), weights.begin(), weights.end());
    return documents;
  }

 private:
  const HubListing& listing_;
  std::set<std::string> names_;
};

Status add_named(const HubListing& listing, const std::string& name, Picker& out) {
  const HubFile* file = find_file(listing, name);
  if (!file) {
    std::vector<std::string> names;
    for (const HubFile& f : listing.files) names.push_back(f.name);
    return invalid(listing.id + ": has no file \"" + printable(name) + "\"" +
                   did_you_mean(name, names));
  }
  if (is_pickle(name))
    return invalid(
        listing.id + ": " + printable(name) +
        " is not pulled: such files can run code when they are loaded, and Dovetail reads "
        "none");
  out.add(*file);
  if (!split_stem(name)) return Status::ok();
  for (const HubFile& f : listing.files)
    if (f.name.ends_with(".gguf") && model_of(f.name) == model_of(name)) out.add(f);
  return Status::ok();
}

Status add_shards(const HubListing& listing, const std::string& text, Picker& out) {
  const std::string source = listing.id + ": " + std::string(kIndex);
  DVT_TRY(const Node index, parse_json(text, source));
  const Node* map = index.find("weight_map");
  if (!map || !map->is_map()) return bad_format(source + ": has no map \"weight_map\"");
  for (const auto& [tensor, shard] : map->entries()) {
    const HubFile* file = shard.is_string() ? find_file(listing, shard.as_string()) : nullptr;
    if (!file || !file->name.ends_with(".safetensors"))
      return bad_format(source + ": tensor \"" + printable(tensor) + "\" is in " +
                        (shard.is_string() ? "\"" + printable(shard.as_string()) + "\""
                                           : std::string(shard.kind_name())) +
                        ", expected a .safetensors file that the model has");
    out.add(*file);
  }
  return Status::ok();
}

// The GGUF models there are: those of several parts once, by their first.
std::vector<const HubFile*> gguf_models(const HubListing& listing) {
  std::map<std::string, const HubFile*> models;
  std::vector<const HubFile*> out;
  for (const HubFile& file : listing.files)
    if (file.name.ends_with(".gguf") && models.emplace(model_of(file.name), &file).second)
      out.push_back(&file);
  return out;
}

Status add_weights(const HubListing& listing, const Wanted& wanted,
                   const std::function<Result<std::string>(const HubFile&)>& read, Picker& out) {
  if (const HubFile* single = find_file(listing, kSingle)) {
    out.add(*single);
    return Status::ok();
  }
  if (const HubFile* index = find_file(listing, kIndex)) {
    out.add(*index);
    if (matches(std::string(kIndex), wanted.exclude)) return Status::ok();
    DVT_TRY(const std::string text, read(*index));
    return add_shards(listing, text, out);
  }
  const std::vector<const HubFile*> models = gguf_models(listing);
  if (models.size() == 1) return add_named(listing, models[0]->name, out);
  std::vector<std::string> names;
  names.reserve(models.size());
  for (const HubFile* file : models) names.push_back(sized(*file));
  constexpr size_t kMost = 40;
  if (!models.empty())
    return invalid(listing.id + ": has " + std::to_string(models.size()) +
                   " GGUF models; name one, as in: dovetail pull " + listing.id + " " +
                   printable(models[0]->name) + "; there are: " + names_of(names, kMost));
  for (const HubFile& file : listing.files)
    if (file.name.ends_with(".safetensors") || is_pickle(file.name)) names.push_back(sized(file));
  return unsupported(listing.id + ": has no weights that Dovetail reads (model.safetensors, " +
                     std::string(kIndex) + " or a .gguf file)" +
                     (names.empty() ? "" : "; there are: " + names_of(names, 10)) +
                     "; --include pulls files anyway");
}

Status check_names(const HubListing& listing, const std::vector<HubFile>& files) {
  for (const HubFile& file : files) {
    if (Status s = check_name_inside(file.name); !s) return bad_format(s.message()).in(listing.id);
    const std::filesystem::path path(file.name);
    if (path.lexically_normal().native() != file.name || !path.has_filename() ||
        is_hidden(file.name))
      return bad_format(listing.id + ": \"" + printable(file.name) +
                        "\" is no plain file name; --exclude leaves it out");
  }
  return Status::ok();
}

}  // namespace

Result<Selection> select_files(const HubListing& listing, const Wanted& wanted,
                               const std::function<Result<std::string>(const HubFile&)>& read) {
  Selection out;
  Picker picker(listing);
  for (const std::string& name : wanted.names) DVT_TRY(add_named(listing, name, picker));
  for (const HubFile& file : listing.files) {
    if (!matches(file.name, wanted.include) || matches(file.name, wanted.exclude)) continue;
    if (is_pickle(file.name))
      out.refused.push_back(file.name);
    else if (!is_hidden(file.name))
      picker.add(file);
  }
  if (wanted.names.empty() && wanted.include.empty()) {
    for (const HubFile& file : listing.files)
      if (is_document(file.name)) picker.add(file);
    DVT_TRY(add_weights(listing, wanted, read, picker));
  }
  out.files = picker.files(wanted.exclude);
  if (out.files.empty()) {
    std::vector<std::string> names;
    for (const HubFile& file : listing.files) names.push_back(printable(file.name));
    return invalid(listing.id + ": nothing is left to pull of its files: " + names_of(names, 40) +
                   (out.refused.empty() ? "" : "; pickles are not pulled"));
  }
  DVT_TRY(check_names(listing, out.files));
  return out;
}

}  // namespace dovetail::core
