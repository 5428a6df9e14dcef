// Names come from weight_map as they are: no pattern is guessed, and the host refuses those that
// lead out of the folder.
#include "index.hpp"

#include <dovetail/quote.hpp>

#include "header.hpp"

namespace dovetail::safetensors {
namespace {

// A call whose failure is kept here, to be told with its place in the index.
class OwnCall {
 public:
  explicit OwnCall(Call call) : frame_(*call.frame()) {
    frame_.host = this;
    frame_.fail = [](dvt_call* frame, dvt_code, dvt_str msg, dvt_str) noexcept {
      try {
        static_cast<OwnCall*>(frame->host)->message_ = to_view(msg);
      } catch (const std::exception&) {
        // No memory for the reason: the code still tells.
      }
    };
    frame_.scratch = [](dvt_call*, uint64_t, uint64_t) noexcept -> void* { return nullptr; };
    frame_.progress = nullptr;
  }
  OwnCall(const OwnCall&) = delete;
  OwnCall& operator=(const OwnCall&) = delete;
  dvt_call* frame() { return &frame_; }
  const std::string& message() const { return message_; }

 private:
  dvt_call frame_;
  std::string message_;
};

// A file's name as it is, or in quotes if there is anything odd about it.
std::string shown(const std::string& name) {
  std::string quoted = quote(name);
  return quoted.substr(1, quoted.size() - 2) == name ? name : quoted;
}

// The shard, or an empty File if it is not there.
File open_shard(const FormatOpen& in, std::string_view tensor, Doc shard, Call call) {
  const dvt_host_v1* host = in.host.table();
  dvt_file handle = 0;
  OwnCall own(call);
  const dvt_code code =
      host->dir_open(host->self, own.frame(), in.dir.handle(), to_abi(shard.as_string()), &handle);
  if (code == DVT_EIO && !in.dir.has(shard.as_string())) return {};
  if (code != DVT_OK)
    throw Error("shard of tensor " + quote(tensor) + ": " + own.message(),
                code == DVT_EINVAL ? DVT_EFORMAT : code,  // the index is at fault, not the request
                shard.where());
  return {in.host, handle};
}

}  // namespace

Index read_index(const FormatOpen& in, std::string_view name, Call call) {
  Doc root = in.dir.json(call, name);
  const struct Release {
    const dvt_host_v1* host;
    dvt_doc root;
    ~Release() { host->doc_release(host->self, root); }
  } release{in.host.table(), root.handle()};
  Index index;
  index.file = in.dir.open(call, name).name();
  const Doc map = root["weight_map"];
  if (!map.is_map())
    throw Error("has weight_map " + describe(map) + ", expected a map of tensor to file",
                DVT_EFORMAT, root.where());

  std::map<std::string_view, size_t> known;  // shard -> position; its names live in the document
  std::string missing;
  size_t n_missing = 0;
  for (uint64_t i = 0; i < map.size(); ++i) {
    const auto [tensor, shard] = map.entry(i);
    if (!shard.is_string())
      throw Error(
          "tensor " + quote(tensor) + " is in " + describe(shard) + ", expected a file name",
          DVT_EFORMAT, shard.where());
    const auto [at, is_new] = known.emplace(shard.as_string(), index.shards.size());
    if (is_new) {
      index.shards.push_back({std::string(at->first), open_shard(in, tensor, shard, call), {}});
      if (!index.shards.back().file && n_missing++ < 5)
        missing += (n_missing > 1 ? ", " : "") + shown(index.shards.back().name);
    }
    index.shards[at->second].tensors.emplace_back(tensor);
    index.shard_of.emplace(tensor, at->first);
  }
  if (n_missing > 5) missing += " and " + std::to_string(n_missing - 5) + " more";
  if (n_missing > 0)
    throw Error(index.file + ": lists " + std::to_string(index.shards.size()) +
                    " shards, not there: " + missing + "; download incomplete?",
                DVT_EIO);
  return index;
}

}  // namespace dovetail::safetensors
