#include "core/model/checkpoint.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "core/base/log.hpp"

namespace dovetail::core {
namespace {

dvt_code find_tensor(void* self, dvt_str name, dvt_str* format, uint32_t* ndim,
                     int64_t* shape) noexcept {
  const TensorInfo* t = static_cast<const Checkpoint*>(self)->find(text_of(name));
  if (!t) return DVT_EINVAL;
  *format = abi_text(t->format);
  *ndim = static_cast<uint32_t>(t->shape.size());
  std::copy(t->shape.begin(), t->shape.end(), shape);
  return DVT_OK;
}
uint64_t count_tensors(void* self) noexcept {
  return static_cast<const Checkpoint*>(self)->tensors().size();
}

uint64_t element_bytes(std::string_view format) {
  if (format == "float64" || format == "i64" || format == "u64") return 8;
  if (format == "float32" || format == "i32" || format == "u32") return 4;
  if (format == "bf16" || format == "f16" || format == "i16" || format == "u16") return 2;
  if (format == "i8" || format == "u8" || format == "bool" || format == "f8_e4m3" ||
      format == "f8_e5m2")
    return 1;
  return 0;
}

Status bad_tensor(const TensorInfo& info, const std::string& what) {
  return bad_format(info.source->name() + ": tensor \"" + printable(info.name) + "\" " + what);
}

std::string past_the_end(uint64_t end, const File& file) {
  return "ends at byte " + std::to_string(end) + ", the file has " + std::to_string(file.size()) +
         "; download incomplete?";
}

// The parts of a matrix, checked against their files; and what rows() says that it makes of them.
Status read_parts(const dvt_tensor& t, const std::string& format_name, TensorInfo& info) {
  info.stored = text_of(t.stored);
  for (uint64_t i = 0; i < t.n_parts; ++i) {
    const dvt_tensor_part& part = t.parts[i];
    const File* file = HostScope::file_of(part.file);
    if (!file)
      return internal_error("format \"" + format_name + "\" gave tensor \"" + info.name +
                            "\" a part without a file");
    if (i == 0) info.source = file, info.offset = part.offset;
    if (part.offset > file->size() || part.bytes > file->size() - part.offset)
      return bad_tensor(info, past_the_end(part.offset + part.bytes, *file));
    DVT_TRY(const std::span<const std::byte> mapped, file->map());
    info.parts.push_back({mapped.subspan(part.offset, part.bytes), file, part.offset});
  }
  const std::optional<uint64_t> plain = plain_bytes("float32", info.shape);
  const bool is_right = info.shape.size() >= 2 && info.shape[0] > 0 && plain &&
                        info.n_bytes % static_cast<uint64_t>(info.shape[0]) == 0 &&
                        info.n_bytes <= *plain && t.paired_rows == 0;
  if (!is_right)
    return bad_tensor(info, "is in parts, and no matrix of whole rows of " + info.format);
  return Status::ok();
}

// A tensor as a format plugin gave it, checked against its file.
Result<TensorInfo> info_of(const dvt_tensor& t, const std::string& format_name) {
  TensorInfo info;
  info.name = text_of(t.name);
  info.format = text_of(t.format);
  info.n_bytes = t.bytes;
  if (t.ndim > DVT_MAX_DIMS)
    return bad_format(format_name + ": tensor \"" + info.name + "\" has " + std::to_string(t.ndim) +
                      " dimensions, at most 6 are possible");
  info.shape.assign(t.shape, t.shape + t.ndim);
  if (t.n_parts > 0) {
    DVT_TRY(read_parts(t, format_name, info));
    return info;
  }
  const File* file = HostScope::file_of(t.file);
  if (!file)
    return internal_error("format \"" + format_name + "\" gave tensor \"" + printable(info.name) +
                          "\" without a file");
  info.source = file;
  info.offset = t.offset;
  if (t.offset > file->size() || t.bytes > file->size() - t.offset)
    return bad_tensor(info, past_the_end(t.offset + t.bytes, *file));
  if (element_bytes(info.format) != 0) {
    const std::optional<uint64_t> need = plain_bytes(info.format, info.shape);
    if (!need || *need != t.bytes)
      return bad_tensor(
          info, "has " + std::to_string(t.bytes) + " bytes, its shape and format " + info.format +
                    " need " +
                    (need ? std::to_string(*need) : std::string("more than there can be")));
  }
  if (!plain_bytes("u8", info.shape))
    return bad_tensor(info, "has a shape whose size overflows 64 bits");
  info.paired_rows = t.paired_rows;
  const bool are_pairs =
      t.paired_rows == 0 ||
      (t.paired_rows > 0 && t.paired_rows % 2 == 0 && t.ndim > 0 && t.shape[0] > 0 &&
       t.shape[0] % t.paired_rows == 0 && t.bytes % static_cast<uint64_t>(t.shape[0]) == 0);
  if (!are_pairs)
    return bad_tensor(info,
                      "has rows in pairs within runs of " + std::to_string(t.paired_rows) +
                          ", expected runs of an even number that its rows are a multiple of");
  DVT_TRY(const std::span<const std::byte> mapped, file->map());
  info.bytes = mapped.subspan(t.offset, t.bytes);
  return info;
}

}  // namespace

std::optional<uint64_t> plain_bytes(std::string_view format, const std::vector<int64_t>& shape) {
  uint64_t n = element_bytes(format);
  if (n == 0) return std::nullopt;
  bool is_empty = false;
  for (int64_t d : shape) {
    is_empty |= d == 0;  // hides no overflow of the others
    if (d < 0 || __builtin_mul_overflow(n, static_cast<uint64_t>(std::max<int64_t>(d, 1)), &n))
      return std::nullopt;
  }
  return is_empty ? 0 : n;
}

void copy_rows(const TensorInfo& tensor, int64_t first, int64_t n, std::byte* out) {
  if (n == 0 || tensor.bytes.empty()) return;
  const uint64_t row_bytes = tensor.bytes.size() / static_cast<uint64_t>(tensor.shape[0]);
  const auto stored = [&](int64_t row) {
    return tensor.bytes.data() + static_cast<uint64_t>(row) * row_bytes;
  };
  if (tensor.paired_rows == 0) {
    std::memcpy(out, stored(first), static_cast<uint64_t>(n) * row_bytes);
    return;
  }
  const int64_t half = tensor.paired_rows / 2;
  for (int64_t row = first; row < first + n; ++row, out += row_bytes) {
    const int64_t in_run = row % tensor.paired_rows;
    const int64_t place = in_run < half ? 2 * in_run : 2 * (in_run - half) + 1;
    std::memcpy(out, stored(row - in_run + place), row_bytes);
  }
}

uint64_t TensorInfo::stored_bytes() const {
  uint64_t sum = bytes.size();
  for (const Part& p : parts) sum += p.bytes.size();
  return sum;
}

Status Checkpoint::read_rows(const TensorInfo& tensor, std::string_view format, int64_t first,
                             int64_t n, std::byte* out, const uint32_t* cancel) const {
  if (tensor.parts.empty()) {
    copy_rows(tensor, first, n, out);
    return Status::ok();
  }
  const dvt_format_v1* const table = format_;
  if (!DVT_HAS(table, rows))
    return unsupported("format plugin \"" + format_name_ + "\" gives tensor \"" + tensor.name +
                       "\" in parts, and cannot make rows of them");
  std::vector<dvt_bytes> parts;
  for (const TensorInfo::Part& p : tensor.parts) parts.push_back({p.bytes.data(), p.bytes.size()});
  CallFrame call(cancel);
  return call.check(table->rows(reader_, call, static_cast<uint64_t>(&tensor - tensors_.data()),
                                parts.data(), abi_text(format), first, n, out));
}

std::string samples(std::span<const std::byte> bytes) {
  std::string out;
  constexpr size_t kPlaces = 4, kBytes = 64;
  for (size_t i = 0; i < kPlaces; ++i) {
    const size_t at = bytes.size() <= kBytes ? 0 : (bytes.size() - kBytes) * i / (kPlaces - 1);
    const std::span<const std::byte> part = bytes.subspan(at, std::min(kBytes, bytes.size() - at));
    out.append(reinterpret_cast<const char*>(part.data()), part.size());
  }
  return out;
}

Checkpoint::Checkpoint() {
  catalogue_ = {sizeof catalogue_, 0, this, find_tensor, count_tensors};
}

Checkpoint::~Checkpoint() {
  if (reader_) format_->close(reader_);
}

std::unique_ptr<Checkpoint> Checkpoint::none() {
  return std::unique_ptr<Checkpoint>(new Checkpoint);
}

Result<std::unique_ptr<Checkpoint>> Checkpoint::open(const std::string& path,
                                                     const std::vector<std::string>& formats,
                                                     PluginRegistry& plugins) {
  namespace fs = std::filesystem;
  std::error_code error;
  const bool is_file = fs::is_regular_file(path, error);
  if (!is_file && !fs::is_directory(path, error))
    return io_error(
        "model.path \"" + path +
        "\" is neither a folder nor a file; for a model of a hub: dovetail pull ORG/NAME -o " +
        path);

  auto checkpoint = std::unique_ptr<Checkpoint>(new Checkpoint);
  checkpoint->path_ = path;
  const fs::path folder = is_file ? fs::path(path).parent_path() : fs::path(path);
  DVT_TRY(Folder opened, Folder::open(folder.empty() ? fs::path(".") : folder));
  checkpoint->scope_ = std::make_unique<HostScope>(std::move(opened));
  dvt_format_open in{};
  in.struct_size = sizeof in;
  in.dir = checkpoint->scope_->dir();
  std::string head;
  if (is_file) {
    DVT_TRY(const std::shared_ptr<File> file,
            checkpoint->scope_->folder()->open_file(fs::path(path).filename().string()));
    head.resize(std::min<uint64_t>(file->size(), 4096));
    DVT_TRY(file->read_at(0, head.data(), head.size()));
    in.file = checkpoint->scope_->keep(file);
  }

  std::string tried;
  const LoadedPlugin* best = nullptr;
  uint32_t best_score = 0;
  constexpr uint32_t kSure = 100;
  for (const std::string& name : formats) {
    if (best_score == kSure) break;  // so that nobody needs the plugins after it
    DVT_TRY(LoadedPlugin * plugin, plugins.load("format", name));
    const auto* format = plugin->interface<dvt_format_v1>("dovetail.format/1");
    if (!format)
      return unsupported("format plugin \"" + name + "\" has no interface dovetail.format/1");
    CallFrame call;
    uint32_t score = 0;
    DVT_TRY(call.check(
        format->probe(plugin->self, call.get(), &in, {head.data(), head.size()}, &score)));
    tried += (tried.empty() ? "" : ", ") + name;
    if (score > best_score)
      best = plugin, best_score = score, checkpoint->format_ = format,
      checkpoint->format_name_ = name;
  }
  if (!best) {
    const std::string what = "no checkpoint was found in \"" + path + "\"; tried " + tried;
    if (is_file) return unsupported(what);
    return io_error(what +
                    " (a folder needs model.safetensors, or model.safetensors.index.json with its "
                    "shards, or a .gguf file); download incomplete?");
  }
  CallFrame call;
  DVT_TRY(call.check(checkpoint->format_->open(best->self, call.get(), &in, &checkpoint->reader_)));
  DVT_TRY(checkpoint->read_tensors());
  return checkpoint;
}

Status Checkpoint::read_tensors() {
  CallFrame call;
  uint64_t n = 0;
  const dvt_code code = format_->tensors(reader_, call.get(), nullptr, 0, &n);
  if (code != DVT_OK && code != DVT_ETOOSMALL) return call.check(code);
  std::vector<dvt_tensor> raw(n);
  for (dvt_tensor& t : raw) t.struct_size = sizeof t;
  CallFrame again;
  DVT_TRY(again.check(format_->tensors(reader_, again.get(), raw.data(), raw.size(), &n)));
  raw.resize(std::min<size_t>(raw.size(), n));
  for (const dvt_tensor& t : raw) {
    DVT_TRY(TensorInfo info, info_of(t, format_name_));
    if (!by_name_.emplace(info.name, tensors_.size()).second)
      return bad_tensor(info, "is there twice");
    tensors_.push_back(std::move(info));
  }
  return Status::ok();
}

const TensorInfo* Checkpoint::find(std::string_view name) const {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : &tensors_[it->second];
}

Result<const Node*> Checkpoint::document(std::string_view which) {
  if (!reader_) return static_cast<const Node*>(nullptr);
  CallFrame call;
  dvt_doc out = 0;
  DVT_TRY(call.check(format_->document(reader_, call.get(), abi_text(which), &out)));
  return doc_node(out);
}

void Checkpoint::drop_document(std::string_view which) {
  const dvt_format_v1* const table = format_;
  if (reader_ && DVT_HAS(table, drop_document)) table->drop_document(reader_, abi_text(which));
}

}  // namespace dovetail::core
