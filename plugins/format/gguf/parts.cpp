#include "parts.hpp"

#include <optional>
#include <set>

namespace dovetail::gguf {
namespace {

constexpr std::string_view kSuffix = ".gguf";
constexpr std::string_view kOf = "-of-";
constexpr size_t kDigits = 5;

std::string_view base_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

// "Qwen3-00002-of-00003.gguf"
struct PartName {
  std::string stem;
  uint32_t number, count;

  std::string at(uint32_t n) const {
    return stem + "-" + padded(n) + std::string(kOf) + padded(count) + ".gguf";
  }
  static std::string padded(uint32_t n) {
    const std::string digits = std::to_string(n);
    return std::string(kDigits - std::min(kDigits, digits.size()), '0') + digits;
  }
};

std::optional<uint32_t> digits_of(std::string_view text) {
  uint32_t out = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    out = out * 10 + static_cast<uint32_t>(c - '0');
  }
  return out;
}

std::optional<PartName> part_name(std::string_view name) {
  constexpr size_t kTail = 1 + kDigits + kOf.size() + kDigits;
  if (!name.ends_with(kSuffix)) return std::nullopt;
  name.remove_suffix(kSuffix.size());
  if (name.size() <= kTail) return std::nullopt;
  const std::string_view tail = name.substr(name.size() - kTail);
  const auto number = digits_of(tail.substr(1, kDigits)),
             count = digits_of(tail.substr(kTail - kDigits));
  if (tail[0] != '-' || tail.substr(1 + kDigits, kOf.size()) != kOf || !number || !count)
    return std::nullopt;
  return PartName{std::string(name.substr(0, name.size() - kTail)), *number, *count};
}

std::string_view mapped(const FormatOpen& in, const File& file, Call call) {
  const dvt_host_v1* host = in.host.table();
  dvt_bytes bytes{};
  call.check(host->file_map(host->self, call.frame(), file.handle(), &bytes));
  return {static_cast<const char*>(bytes.p), static_cast<size_t>(bytes.n)};
}

bool is_model(std::string_view name) {
  return name.ends_with(kSuffix) && !name.starts_with("mmproj");
}

// Every part says which it is and how many there are.
void check_part(const Header& part, uint32_t index, uint32_t count) {
  const auto number = part.metadata.integer("split.no"), of = part.metadata.integer("split.count");
  if (number == index && of == count) return;
  refuse(part.metadata.file(),
         "says that it is part " + (number ? std::to_string(*number + 1) : "?") + " of " +
             (of ? std::to_string(*of) : "?") + " (split.no, split.count), expected part " +
             std::to_string(index + 1) + " of " + std::to_string(count) +
             "; do the files belong together?");
}

void check_tensors(const std::vector<Header>& parts) {
  std::set<std::string_view> names;
  int64_t n = 0;
  for (const Header& part : parts)
    for (const Entry& e : part.entries) {
      if (!names.insert(e.name).second)
        refuse(part.metadata.file(),
               "has tensor " + quote(e.name) + ", which a part before it has too");
      ++n;
    }
  const auto expected = parts[0].metadata.integer("split.tensors.count");
  if (expected && *expected != n)
    refuse(parts[0].metadata.file(), "says that all parts have " + std::to_string(*expected) +
                                         " tensors (split.tensors.count), they have " +
                                         std::to_string(n) + "; do the files belong together?");
}

}  // namespace

bool has_model(const Folder& folder) {
  for (const std::string& name : folder.names())
    if (is_model(name)) return true;
  return false;
}

std::string find_model(const FormatOpen& in, Call) {
  std::vector<std::string> models;
  std::set<std::pair<std::string, uint32_t>> split;  // one of several parts
  for (const std::string& name : in.dir.names()) {
    if (!is_model(name)) continue;
    const auto part = part_name(name);
    if (!part || split.emplace(part->stem, part->count).second) models.push_back(name);
  }
  if (models.size() > 1)
    throw Error("the folder has " + std::to_string(models.size()) + " GGUF models, such as " +
                models[0] + " and " + models[1] + "; name one of the files");
  return models.empty() ? std::string() : models[0];
}

std::vector<Header> read_parts(const FormatOpen& in, const File& file, Call call) {
  std::vector<Header> parts;
  const Header named = read_header(file, mapped(in, file, call));
  const std::optional<int64_t> count = named.metadata.integer("split.count");
  if (!count || *count <= 1) {
    parts.push_back(named);
    return parts;
  }
  const std::string own(base_name(file.name()));
  const std::optional<PartName> name = part_name(own);
  if (!name || name->count != *count || name->number < 1 || name->number > name->count)
    refuse(file, "is one of " + std::to_string(*count) +
                     " parts (split.count), but its name does not end in -NNNNN-of-" +
                     PartName::padded(static_cast<uint32_t>(std::min<int64_t>(*count, 99999))) +
                     ".gguf, by which the others are found");
  std::string missing;
  uint32_t n_missing = 0;
  for (uint32_t i = 1; i <= name->count; ++i)
    if (i != name->number && !in.dir.has(name->at(i)) && n_missing++ < 5)
      missing += (missing.empty() ? "" : ", ") + name->at(i);
  if (n_missing > 5) missing += " and " + std::to_string(n_missing - 5) + " more";
  if (n_missing > 0)
    throw Error(file.name() + ": is one of " + std::to_string(name->count) +
                    " parts, not there: " + missing + "; download incomplete?",
                DVT_EIO);
  for (uint32_t i = 1; i <= name->count; ++i) {
    if (i == name->number) {
      parts.push_back(named);
    } else {
      const File part = in.dir.open(call, name->at(i));
      parts.push_back(read_header(part, mapped(in, part, call)));
    }
    check_part(parts.back(), i - 1, name->count);
    call.progress(i, name->count, "reading the parts' headers");
  }
  check_tensors(parts);
  return parts;
}

}  // namespace dovetail::gguf
