#include "core/model/quantize.hpp"

#include <algorithm>
#include <set>

#include "core/base/json.hpp"

namespace dovetail::core {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kPieceBytes = uint64_t{16} << 20;  // of the source, in hand at a time
constexpr uint64_t kBestAlign = 64;

// A weight as it is written.
struct Item {
  size_t weight;
  bool packs;
  dvt_tensor tensor;
};

// Tensors lie in a file without gaps. In this order each begins at a multiple of what its size is a
// multiple of, so that it can be read where it lies.
uint64_t alignment(uint64_t bytes) {
  return bytes == 0 ? kBestAlign : std::min(kBestAlign, bytes & (~bytes + 1));
}

std::vector<Item> list_items(const Weights& weights) {
  std::vector<Item> items;
  for (size_t i = 0; i < weights.n_tensors(); ++i) {
    const Weights::Planned w = weights.planned(i);
    const bool packs = w.plan.how == DVT_PLAN_PACK && w.plan.file_format.n > 0;
    dvt_tensor t{};
    t.struct_size = sizeof t;
    t.ndim = w.use.ndim;
    t.name = w.use.name;
    t.format = packs ? w.plan.file_format : w.use.stored;
    std::copy_n(w.use.shape, w.use.ndim, t.shape);
    t.bytes = packs ? w.plan.bytes : weights.source_bytes(i);
    items.push_back({i, packs, t});
  }
  std::stable_sort(items.begin(), items.end(), [](const Item& a, const Item& b) {
    return alignment(a.tensor.bytes) > alignment(b.tensor.bytes);
  });
  return items;
}

struct OutFile {
  std::string name, head;
  size_t first, n;
};

Result<std::vector<OutFile>> lay_out(const std::vector<Item>& items, const dvt_format_v1& writer,
                                     void* self, uint64_t max_bytes) {
  std::vector<dvt_tensor> tensors;
  tensors.reserve(items.size());
  for (const Item& i : items) tensors.push_back(i.tensor);
  std::vector<OutFile> files;
  dvt_file_sink sink{};
  sink.struct_size = sizeof sink;
  sink.self = &files;
  sink.file = [](void* to, dvt_call*, dvt_str name, dvt_bytes head, uint64_t first,
                 uint64_t n) noexcept -> dvt_code {
    try {
      static_cast<std::vector<OutFile>*>(to)->push_back(
          {std::string(text_of(name)), std::string(static_cast<const char*>(head.p), head.n),
           static_cast<size_t>(first), static_cast<size_t>(n)});
      return DVT_OK;
    } catch (const std::bad_alloc&) {
      return DVT_ENOMEM;
    }
  };
  CallFrame call;
  DVT_TRY(call.check(writer.lay_out(self, call, tensors.data(), tensors.size(), max_bytes, &sink)));
  size_t next = 0;
  for (const OutFile& f : files) {
    if (f.first != next || f.n > tensors.size() - next)
      return internal_error("the format laid out " + f.name + " with tensors out of order");
    next += f.n;
  }
  if (next != tensors.size()) return internal_error("the format left out tensors");
  return files;
}

// Writes items to files, with the progress of all of them.
class Writing {
 public:
  Writing(const Model& model, const QuantizeOptions& options, uint64_t total)
      : model_(model), options_(options), total_(total) {}

  Status file(const OutFile& f, const std::vector<Item>& items) {
    DVT_TRY(const std::unique_ptr<FileWriter> out, FileWriter::create(options_.folder / f.name));
    DVT_TRY(out->write(f.head));
    for (size_t i = f.first; i < f.first + f.n; ++i) {
      const uint64_t before = done_;
      DVT_TRY(items[i].packs ? packed(items[i], *out) : as_stored(items[i], *out));
      if (done_ - before != items[i].tensor.bytes)
        return internal_error("weight \"" + std::string(text_of(items[i].tensor.name)) +
                              "\" was packed in pieces of another size");
    }
    return out->commit();
  }

 private:
  Status packed(const Item& item, FileWriter& out) {
    const int64_t n_rows = item.tensor.shape[0];
    const int64_t row_bytes =
        std::max<int64_t>(1, static_cast<int64_t>(model_.weights().source_bytes(item.weight)) /
                                 std::max<int64_t>(1, n_rows));
    const int64_t most =
        std::max<int64_t>(1, static_cast<int64_t>(kPieceBytes) / row_bytes / DVT_FILE_ROWS) *
        DVT_FILE_ROWS;
    for (int64_t row = 0; row < n_rows; row += most) {
      DVT_TRY(model_.pack_rows(item.weight, row, std::min(most, n_rows - row), piece_));
      DVT_TRY(write(piece_, out));
    }
    return Status::ok();
  }
  Status as_stored(const Item& item, FileWriter& out) {
    const TensorInfo& source = model_.weights().planned(item.weight).source;
    const std::span<const std::byte> bytes = source.bytes;
    if (source.paired_rows > 0 || !source.parts.empty()) {  // nothing else says how they lie
      piece_.resize(item.tensor.bytes);
      DVT_TRY(model_.checkpoint().read_rows(source, text_of(item.tensor.format), 0, source.shape[0],
                                            piece_.data(), options_.cancel));
      return write(piece_, out);
    }
    for (size_t at = 0; at < bytes.size(); at += kPieceBytes)
      DVT_TRY(write(bytes.subspan(at, std::min<size_t>(kPieceBytes, bytes.size() - at)), out));
    return Status::ok();
  }
  Status write(std::span<const std::byte> bytes, FileWriter& out) {
    DVT_TRY(out.write(bytes));
    done_ += bytes.size();
    if (options_.progress) options_.progress(done_, total_, "quantising");
    if (options_.cancel && __atomic_load_n(options_.cancel, __ATOMIC_RELAXED))
      return {Code::kCancelled, "interrupted; nothing is left of what was written"};
    return Status::ok();
  }

  const Model& model_;
  const QuantizeOptions& options_;
  uint64_t total_, done_ = 0;
  std::vector<std::byte> piece_;
};

}  // namespace

Result<QuantizeReport> quantize(const Model& model, const dvt_format_v1& writer, void* writer_self,
                                const QuantizeOptions& options) {
  const std::vector<Item> items = list_items(model.weights());
  if (std::none_of(items.begin(), items.end(), [](const Item& i) { return i.packs; }))
    return unsupported(
        "there is nothing to quantise: backend \"" + model.backend_name() +
        "\" packs none of the weights as they are stored in a format that files can hold");
  QuantizeReport report;
  std::set<std::string_view> used;
  for (const Item& i : items) {
    QuantizeReport::Sum& sum = report.formats[std::string(text_of(i.tensor.format))];
    ++sum.n_tensors;
    sum.bytes += i.tensor.bytes;
    report.bytes += i.tensor.bytes;
    report.bytes_before += model.weights().planned(i.weight).source.stored_bytes();
    used.insert(text_of(i.tensor.name));
  }
  for (const TensorInfo& t : model.checkpoint().tensors())
    if (!used.contains(t.name)) report.left_out.push_back(t.name);

  DVT_TRY(const std::vector<OutFile> files,
          lay_out(items, writer, writer_self, options.max_file_bytes));
  Writing writing(model, options, report.bytes);
  for (const OutFile& f : files) {
    DVT_TRY(writing.file(f, items));
    if (f.n > 0) report.files.push_back(f.name);
  }
  return report;
}

Status write_documents(Model& model, const Settings& settings, const fs::path& folder) {
  static constexpr const char* kModelFiles[] = {"config.json",
                                                "generation_config.json",
                                                "chat_template.jinja",
                                                "chat_template.json",
                                                "LICENSE",
                                                "NOTICE"};
  static constexpr const char* kTokenizerFiles[] = {
      "tokenizer.json", "tokenizer_config.json",   "vocab.json",
      "merges.txt",     "special_tokens_map.json", "added_tokens.json"};
  static constexpr std::pair<const char*, const char*> kDocuments[] = {
      {"config", "config.json"},
      {"generation", "generation_config.json"},
      {"tokenizer", "tokenizer.json"},
      {"tokenizer_config", "tokenizer_config.json"}};
  const auto copy = [&folder](const Folder& from, const char* name) -> Status {
    if (!from.has(name)) return Status::ok();
    DVT_TRY(const std::string text, from.read(name));
    return write_file(folder / name, text);
  };
  const Folder& checkpoint = *model.checkpoint().folder();
  for (const char* name : kModelFiles) DVT_TRY(copy(checkpoint, name));
  const std::vector<ChatTemplates::Entry>& templates = model.chat_templates().all();
  if (checkpoint.has("chat_template.jinja") && templates.size() > 1) {
    std::error_code error;
    fs::create_directory(folder / "additional_chat_templates", error);
    for (const ChatTemplates::Entry& entry : templates)
      DVT_TRY(copy(checkpoint, ("additional_chat_templates/" + entry.name + ".jinja").c_str()));
  }
  if (settings.tokenizer.path.empty()) {
    for (const char* name : kTokenizerFiles) DVT_TRY(copy(checkpoint, name));
  } else {
    DVT_TRY(const Folder tokenizer, Folder::open(settings.tokenizer.path));
    for (const char* name : kTokenizerFiles) DVT_TRY(copy(tokenizer, name));
  }
  for (const auto& [which, name] : kDocuments) {
    if (fs::exists(folder / name)) continue;
    DVT_TRY(const Node* document, model.checkpoint().document(which));
    if (document) DVT_TRY(write_file(folder / name, to_json(*document, 2) + "\n"));
  }
  if (settings.chat.chat_template || !settings.chat.template_file.empty())
    DVT_TRY(write_file(folder / "chat_template.jinja", model.chat_templates().pick(false)->source));
  return Status::ok();
}

}  // namespace dovetail::core
