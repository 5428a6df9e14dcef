// format/safetensors: a folder with model.safetensors, or model.safetensors.index.json and its
// shards, or one named .safetensors file; the documents are the Hugging Face files beside them.
// Source: the safetensors format description, version 0.3 and later.
#include <dovetail/format.hpp>

#include <deque>
#include <map>

#include "header.hpp"

namespace dovetail::safetensors {

constexpr std::string_view kSingle = "model.safetensors";
constexpr std::string_view kIndex = "model.safetensors.index.json";

class Safetensors {
 public:
  static uint32_t probe(const FormatOpen& in, std::span<const uint8_t> head, Call) {
    if (!in.file) return in.dir.has(kSingle) || in.dir.has(kIndex) ? 100 : 0;
    if (in.file.name().ends_with(".safetensors")) return 100;
    // A header of a plausible length that begins with "{".
    return head.size() > 9 && head[8] == '{' && head[6] == 0 && head[7] == 0 ? 60 : 0;
  }

  Safetensors(const FormatOpen& in, Call call) : in_(in) {
    if (in.file) {
      add_all(in.file, call);
    } else if (in.dir.has(kIndex)) {
      read_index(call);
    } else {
      add_all(in.dir.open(call, kSingle), call);
    }
  }

  const std::vector<dvt_tensor>& tensors() const { return tensors_; }

  Doc document(std::string_view which, Call call) {
    if (which == "config") return in_.dir.json(call, "config.json");
    if (which == "generation") return in_.dir.json(call, "generation_config.json");
    if (which == "tokenizer") return in_.dir.json(call, "tokenizer.json");
    if (which == "tokenizer_config") return in_.dir.json(call, "tokenizer_config.json");
    return {};
  }

 private:
  void add(const File& file, Entry entry) {
    const Entry& e = entries_.emplace_back(std::move(entry));
    dvt_tensor t{};
    t.struct_size = sizeof t;
    t.ndim = static_cast<uint32_t>(e.shape.size());
    t.name = to_abi(e.name);
    t.format = to_abi(e.format);
    std::copy(e.shape.begin(), e.shape.end(), t.shape);
    t.file = file.handle();
    t.offset = e.begin;
    t.bytes = e.end - e.begin;
    tensors_.push_back(t);
  }
  void add_all(const File& file, Call call) {
    for (Entry& e : read_header(in_, file, call)) add(file, std::move(e));
  }

  // The index decides which shard a tensor is in; each shard must hold what the index says.
  void read_index(Call call) {
    const Doc index = in_.dir.json(call, kIndex);
    const Doc map = index["weight_map"];
    if (!map.is_map()) throw Error(std::string(kIndex) + ": has no map \"weight_map\"", DVT_EFORMAT, index.where());
    std::map<std::string, std::map<std::string, bool, std::less<>>, std::less<>> shards;  // shard -> tensor -> found
    std::map<std::string, std::string, std::less<>> home;
    for (uint64_t i = 0; i < map.size(); ++i) {
      const auto [tensor, shard] = map.entry(i);
      if (!shard.is_string() || shard.as_string().empty())
        throw Error("tensor \"" + std::string(tensor) + "\" has " + shard.kind_name() + " as shard, expected a file name", DVT_EFORMAT, shard.where());
      shards[std::string(shard.as_string())][std::string(tensor)] = false;
      home[std::string(tensor)] = shard.as_string();
    }
    std::string missing;
    for (const auto& [shard, tensors] : shards)
      if (is_plain_path(shard) && !in_.dir.has(shard)) missing += (missing.empty() ? "" : ", ") + shard;
    if (!missing.empty())
      throw Error("shards that " + std::string(kIndex) + " lists are not there: " + missing + "; download incomplete?", DVT_EIO);
    uint64_t done = 0;
    size_t unlisted = 0;
    std::string unlisted_example;
    std::map<std::string, std::string, std::less<>> elsewhere;
    for (auto& [shard, tensors] : shards) {
      const File file = in_.dir.open(call, shard);
      for (Entry& e : read_header(in_, file, call)) {
        const auto listed = tensors.find(e.name);
        if (listed != tensors.end()) {
          listed->second = true;
          add(file, std::move(e));
        } else if (home.find(e.name) != home.end()) {
          elsewhere.emplace(e.name, shard);  // the index decides: this copy is not used
        } else if (unlisted++ == 0) {
          unlisted_example = e.name;
        }
      }
      call.progress(++done, shards.size(), "reading shard headers");
    }
    for (const auto& [shard, tensors] : shards)
      for (const auto& [name, found] : tensors) {
        if (found) continue;
        if (const auto it = elsewhere.find(name); it != elsewhere.end())
          throw Error(std::string(kIndex) + ": says that tensor \"" + name + "\" is in " + shard + ", it is in " + it->second + "; the mapping is wrong",
                      DVT_EFORMAT);
        throw Error(std::string(kIndex) + ": says that tensor \"" + name + "\" is in " + shard + ", which does not have it; the shard is stale or damaged",
                    DVT_EFORMAT);
      }
    if (unlisted > 0)
      in_.host.log(DVT_LOG_WARN, "format/safetensors", std::to_string(unlisted) + " tensors are in the shards but not in the index, such as \"" +
                                                           unlisted_example + "\"; they are not used");
  }

  // Names that the host would refuse get the host's message, not "missing".
  static bool is_plain_path(std::string_view name) {
    return !name.starts_with("/") && name.find("..") == std::string_view::npos && name.find('\\') == std::string_view::npos &&
           name.find('\0') == std::string_view::npos;
  }

  FormatOpen in_;
  std::deque<Entry> entries_;  // own the strings that tensors_ names
  std::vector<dvt_tensor> tensors_;
};

}  // namespace dovetail::safetensors
DVT_EXPORT_FORMAT(dovetail::safetensors::Safetensors, "model.safetensors", "model.safetensors.index.json", "*.safetensors")
