// format/safetensors: a folder with model.safetensors, or with model.safetensors.index.json and its
// shards, or one file of either kind; the documents are the Hugging Face files beside them.
// Matrices that a quantiser has put into several tensors become one each: docs/safetensors.md.
// Source: the safetensors format description (github.com/huggingface/safetensors).
#include <dovetail/format.hpp>
#include <dovetail/quote.hpp>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <set>

#include "header.hpp"
#include "index.hpp"
#include "parts.hpp"
#include "quantization.hpp"
#include "writer.hpp"

namespace dovetail::safetensors {

constexpr std::string_view kSingle = "model.safetensors";
constexpr std::string_view kIndex = "model.safetensors.index.json";
constexpr std::string_view kSuffix = ".safetensors";
constexpr std::string_view kIndexSuffix = ".safetensors.index.json";

class Safetensors {
 public:
  static uint32_t probe(const FormatOpen& in, std::span<const uint8_t> head, Call) {
    if (!in.file) return in.dir.has(kSingle) || in.dir.has(kIndex) ? 100 : 0;
    const std::string name = in.file.name();
    if (name.ends_with(kSuffix) || name.ends_with(kIndexSuffix)) return 100;
    // The length of a header, which is under 2^32, and the header's "{".
    const bool looks_right = head.size() > 8 &&
                             std::all_of(&head[4], &head[8], [](uint8_t b) { return b == 0; }) &&
                             head[8] == '{';
    return looks_right ? 60 : 0;
  }

  // A folder that has both gives the single file, as in transformers.
  Safetensors(const FormatOpen& in, Call call) : in_(in) {
    const std::string named = in.file ? in.file.name() : std::string();
    if (named.ends_with(kIndexSuffix)) {
      add_shards(std::string_view(named).substr(named.rfind('/') + 1), call);
    } else if (in.file) {
      add_file(in.file, call);
    } else if (in.dir.has(kSingle)) {
      add_file(in.dir.open(call, kSingle), call);
    } else {
      add_shards(kIndex, call);
    }
    list_tensors(call);
  }
  ~Safetensors() {
    while (!documents_.empty()) drop(documents_.begin());
  }
  Safetensors(const Safetensors&) = delete;
  Safetensors& operator=(const Safetensors&) = delete;

  const std::vector<dvt_tensor>& tensors() const { return tensors_; }

  Doc document(std::string_view which, Call call) {
    const std::string_view file = file_of(which);
    return file.empty() ? Doc() : read_document(file, call);
  }
  void drop_document(std::string_view which) noexcept {
    if (const auto known = documents_.find(file_of(which)); known != documents_.end()) drop(known);
  }

  void rows(uint64_t i, const dvt_bytes* parts, std::string_view format, int64_t row0, int64_t n,
            void* out, Call call) const {
    matrices_.at(i)->rows(in_.host, parts, format, row0, n, out, call);
  }

  static void lay_out(std::span<const dvt_tensor> tensors, uint64_t max_bytes,
                      const FileSink& sink) {
    safetensors::lay_out(tensors, max_bytes, sink);
  }

 private:
  using Documents = std::map<std::string, Doc, std::less<>>;  // by file

  static std::string_view file_of(std::string_view document) {
    if (document == "config") return "config.json";
    if (document == "generation") return "generation_config.json";
    if (document == "tokenizer") return "tokenizer.json";
    if (document == "tokenizer_config") return "tokenizer_config.json";
    return {};
  }
  void drop(Documents::iterator document) noexcept {
    const dvt_host_v1* host = in_.host.table();
    host->doc_release(host->self, document->second.handle());
    documents_.erase(document);
  }
  Doc read_document(std::string_view file, Call call) {
    const auto known = documents_.find(file);
    if (known != documents_.end()) return known->second;
    const Doc doc = in_.dir.json(call, file);
    if (doc.handle() != 0) documents_.emplace(file, doc);
    return doc;
  }

  // The matrices in parts first: their place in the list is that in matrices_.
  void list_tensors(Call call) {
    const Quantization quantization = read_quantization(read_document("config.json", call));
    Gathered gathered = gather(quantization, stored_, call);
    matrices_ = std::move(gathered.matrices);
    for (const std::unique_ptr<Matrix>& m : matrices_) add(*m);
    for (const Stored* t : gathered.others) add(*t);
  }

  void add(const Matrix& m) {
    std::vector<dvt_tensor_part>& parts = parts_.emplace_back();
    for (const Stored* p : m.parts)
      parts.push_back({p->file.handle(), p->entry.begin, p->entry.end - p->entry.begin});
    dvt_tensor t{};
    t.struct_size = sizeof t;
    t.ndim = 2;
    t.name = to_abi(m.name);
    t.format = to_abi(m.format);
    t.shape[0] = m.n_rows;
    t.shape[1] = m.k_len;
    t.bytes = static_cast<uint64_t>(m.n_rows) * static_cast<uint64_t>(m.row_bytes(m.format));
    t.parts = parts.data();
    t.n_parts = parts.size();
    t.stored = to_abi(m.stored);
    tensors_.push_back(t);
  }

  void add(const Stored& stored) {
    const Entry& e = stored.entry;
    dvt_tensor t{};
    t.struct_size = sizeof t;
    t.ndim = static_cast<uint32_t>(e.shape.size());
    t.name = to_abi(e.name);
    t.format = to_abi(e.format);
    std::copy(e.shape.begin(), e.shape.end(), t.shape);
    t.file = stored.file.handle();
    t.offset = e.begin;
    t.bytes = e.end - e.begin;
    tensors_.push_back(t);
  }

  void add_file(const File& file, Call call) {
    for (Entry& e : read_header(in_, file, call)) stored_.push_back({file, std::move(e)});
  }

  // The index decides which shard a tensor is in; each shard must hold what the index says.
  void add_shards(std::string_view index_name, Call call) {
    const Index index = read_index(in_, index_name, call);
    std::map<std::string, std::string, std::less<>>
        elsewhere;  // tensor -> a shard it should not be in
    std::set<std::string, std::less<>> found;
    std::string unlisted;
    size_t n_unlisted = 0, n_done = 0;
    for (const Shard& shard : index.shards) {
      for (Entry& e : read_header(in_, shard.file, call)) {
        const auto home = index.shard_of.find(e.name);
        if (home == index.shard_of.end()) {
          if (n_unlisted++ == 0) unlisted = e.name;
        } else if (home->second == shard.name) {
          found.emplace(e.name);
          stored_.push_back({shard.file, std::move(e)});
        } else {
          elsewhere.emplace(e.name, shard.name);
        }
      }
      call.progress(++n_done, index.shards.size(), "reading shard headers");
    }
    for (const auto& [tensor, shard] : index.shard_of)
      if (!found.contains(tensor)) refuse_absent(index.file, tensor, shard, elsewhere);
    if (n_unlisted > 0)
      in_.host.log(DVT_LOG_WARN, "",
                   std::to_string(n_unlisted) + (n_unlisted == 1 ? " tensor is" : " tensors are") +
                       " in the shards but not in " + index.file + ", such as " + quote(unlisted) +
                       "; they are not used");
  }

  [[noreturn]] static void refuse_absent(
      const std::string& index, const std::string& tensor, const std::string& shard,
      const std::map<std::string, std::string, std::less<>>& elsewhere) {
    const std::string says =
        index + ": says that tensor " + quote(tensor) + " is in " + quote(shard) + ", but ";
    const auto other = elsewhere.find(tensor);
    if (other != elsewhere.end())
      throw Error(says + "it is in " + quote(other->second) +
                      "; the mapping is wrong: download the index again",
                  DVT_EFORMAT);
    throw Error(
        says + "no shard has it; " + quote(shard) + " is stale or damaged: download it again",
        DVT_EFORMAT);
  }

  FormatOpen in_;
  Documents documents_;
  // What tensors_ points into.
  std::deque<Stored> stored_;
  std::vector<std::unique_ptr<Matrix>> matrices_;
  std::deque<std::vector<dvt_tensor_part>> parts_;
  std::vector<dvt_tensor> tensors_;
};

}  // namespace dovetail::safetensors
DVT_EXPORT_FORMAT(dovetail::safetensors::Safetensors, "model.safetensors",
                  "model.safetensors.index.json", "*.safetensors")
