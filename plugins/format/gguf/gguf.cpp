// format/gguf: one GGUF file, or the parts of one. Tensors get Hugging Face's names and row-major shapes; the
// documents are made of the metadata. docs/gguf.md says what is read and how it is turned.
// Source: the GGUF specification (github.com/ggml-org/ggml, docs/gguf.md).
#include <dovetail/format.hpp>

#include <algorithm>
#include <deque>
#include <map>
#include <set>

#include "config_document.hpp"
#include "parts.hpp"
#include "tensor_names.hpp"
#include "text_documents.hpp"
#include "tokenizer_document.hpp"

namespace dovetail::gguf {

constexpr std::string_view kRopeFactors = "rope_freqs.weight";

class Gguf {
 public:
  static uint32_t probe(const FormatOpen& in, std::span<const uint8_t> head, Call) {
    if (!in.file)
      return has_model(in.dir) ? 50 : 0;  // a folder that has safetensors too is read from those
    if (has_magic({reinterpret_cast<const char*>(head.data()), head.size()})) return 100;
    return in.file.name().ends_with(".gguf") ? 90 : 0;
  }

  Gguf(const FormatOpen& in, Call call) : in_(in) {
    const File file = in.file ? in.file : in.dir.open(call, find_model(in, call));
    parts_ = read_parts(in, file, call);
    for (const Header& part : parts_)
      for (const Entry& e : part.entries) add(part.metadata.file(), e, call);
  }
  ~Gguf() {
    while (!documents_.empty()) drop(documents_.begin());
  }
  Gguf(const Gguf&) = delete;
  Gguf& operator=(const Gguf&) = delete;

  const std::vector<dvt_tensor>& tensors() const { return tensors_; }

  void drop_document(std::string_view which) noexcept {
    if (const auto known = documents_.find(which); known != documents_.end()) drop(known);
  }
  Doc document(std::string_view which, Call call) {
    const auto known = documents_.find(which);
    if (known != documents_.end()) return known->second;
    std::string text;
    if (which == "config") text = config_json(metadata(), facts_);
    if (which == "tokenizer") text = tokenizer_json(metadata(), in_.host);
    if (which == "tokenizer_config") text = tokenizer_config_json(metadata());
    if (which == "generation") text = generation_json(metadata());
    if (text.empty()) return {};
    const std::string source = metadata().file().name() + " (" + std::string(which) + ")";
    const dvt_host_v1* host = in_.host.table();
    dvt_doc out = 0;
    call.check(host->parse_json(host->self, call.frame(), {text.data(), text.size()},
                                to_abi(source), &out));
    return documents_.emplace(which, Doc(host, out)).first->second;
  }

 private:
  const Metadata& metadata() const { return parts_[0].metadata; }
  std::string architecture() const {
    const auto name = metadata().string("general.architecture");
    return std::string(name.value_or(""));
  }

  void add(const File& file, const Entry& e, Call call) {
    if (e.name == kRopeFactors) return read_rope_factors(file, e, call);
    if (e.name == "output.weight") facts_.has_head = true;
    if (e.name == "token_embd.weight" && !e.shape.empty()) facts_.vocab_size = e.shape[0];
    if (e.name == "blk.0.attn_q.bias") facts_.attention_bias = true;
    if (e.name == "blk.0.ffn_gate.bias") facts_.mlp_bias = true;
    std::string name = hugging_face_name(e.name, architecture());
    if (!seen_.insert(name).second)
      refuse(file, "tensor " + quote(e.name) + " is " + quote(name) +
                       " of the model, which another tensor is too");
    dvt_tensor t{};
    t.struct_size = sizeof t;
    t.ndim = static_cast<uint32_t>(e.shape.size());
    t.name = to_abi(names_.emplace_back(std::move(name)));
    t.format = to_abi(e.type->format);
    std::copy(e.shape.begin(), e.shape.end(), t.shape);
    t.file = file.handle();
    t.offset = e.offset;
    t.bytes = e.bytes;
    t.paired_rows = paired_rows(file, e);
    tensors_.push_back(t);
  }

  int64_t paired_rows(const File& file, const Entry& e) const {
    const Heads heads = paired_heads(e.name, architecture());
    if (heads == Heads::kNone || e.shape.empty() || e.shape[0] == 0) return 0;
    const auto n_heads = metadata().integer("llama.attention.head_count");
    const auto n_kv_heads = metadata().integer("llama.attention.head_count_kv");
    const int64_t n = (heads == Heads::kQuery ? n_heads
                       : n_kv_heads           ? n_kv_heads
                                              : n_heads)
                          .value_or(0);
    if (n < 1 || e.shape[0] % n != 0 || e.shape[0] / n % 2 != 0)
      refuse(file, "tensor " + quote(e.name) + " has " + std::to_string(e.shape[0]) +
                       " rows, expected an even number for each of " + std::to_string(n) +
                       " heads");
    return e.shape[0] / n;
  }

  // Small, and part of the config.
  void read_rope_factors(const File& file, const Entry& e, Call call) {
    constexpr int64_t kMostFactors = 32768;
    const bool is_right = e.type->format == "float32" && e.shape.size() == 1 && e.shape[0] >= 1 &&
                          e.shape[0] <= kMostFactors;
    if (!is_right) refuse(file, "tensor \"rope_freqs.weight\" is no vector of F32");
    std::vector<float> factors(static_cast<size_t>(e.shape[0]));
    file.read(call, e.offset, factors.data(), e.bytes);
    facts_.rope_factors.assign(factors.begin(), factors.end());
  }

  FormatOpen in_;
  std::vector<Header> parts_;
  TensorFacts facts_;
  using Documents = std::map<std::string, Doc, std::less<>>;
  void drop(Documents::iterator document) noexcept {
    const dvt_host_v1* host = in_.host.table();
    host->doc_release(host->self, document->second.handle());
    documents_.erase(document);
  }
  Documents documents_;
  std::set<std::string> seen_;
  std::deque<std::string> names_;  // that tensors_ names
  std::vector<dvt_tensor> tensors_;
};

}  // namespace dovetail::gguf
DVT_EXPORT_FORMAT(dovetail::gguf::Gguf, "*.gguf")
