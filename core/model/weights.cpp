#include "core/model/weights.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "core/base/assert.hpp"
#include "core/base/nearest.hpp"
#include "core/plugin/host.hpp"

namespace dovetail::core {
namespace {

bool is_matrix(const dvt_weight_use& use) {
  return use.ndim >= 2;
}

// The first class of backend.weights that is part of the tensor's name ("q_proj", "embed") decides, else
// "default". Norm vectors and biases keep their format.
std::string wanted_format(const dvt_weight_use& use, const WeightFormats& formats) {
  if (!is_matrix(use)) return {};
  const std::string_view name = text_of(use.name);
  for (const auto& [pattern, format] : formats.by_class)
    if (pattern != "default" && name.find(pattern) != std::string_view::npos) return format;
  for (const auto& [pattern, format] : formats.by_class)
    if (pattern == "default") return format;
  return formats.everywhere;
}

// A block format's name may end in the version of its layout: "int4.1" holds int4.
std::string_view without_version(std::string_view format) {
  return format.substr(0, format.rfind('.'));
}

// The last name of "model.layers.0.self_attn.q_proj.weight" that says which: "q_proj".
std::string_view class_of(std::string_view name) {
  if (name.ends_with(".weight")) name.remove_suffix(7);
  return name.substr(name.rfind('.') + 1);
}

// Always a class: a config for several models may name it, also where the head is the embedding.
constexpr std::string_view kHead = "lm_head";

// A class that no matrix has would change nothing.
Status check_classes(const std::vector<dvt_weight_use>& uses, const WeightFormats& formats) {
  std::set<std::string> classes;
  for (const dvt_weight_use& use : uses)
    if (is_matrix(use)) classes.emplace(class_of(text_of(use.name)));
  for (const auto& entry : formats.by_class) {
    const std::string& pattern = entry.first;
    const bool is_used = std::any_of(uses.begin(), uses.end(), [&](const dvt_weight_use& use) {
      return is_matrix(use) && text_of(use.name).find(pattern) != std::string_view::npos;
    });
    if (is_used || pattern == "default" || pattern == kHead) continue;
    std::string known;
    for (const std::string& c : classes) known += (known.empty() ? "" : ", ") + c;
    return invalid("no matrix of this model has a name with \"" + pattern + "\"" +
                   did_you_mean(pattern, {classes.begin(), classes.end()}) +
                   "; there are default, " + known);
  }
  return Status::ok();
}

// What the backend is told: the format that it gets, and the one that it is asked for.
struct Formats {
  std::string stored, wanted;
};

// A matrix in parts comes in the format that is asked for, or as float32 to be packed.
Formats formats_of_parts(const TensorInfo& tensor, const std::string& wanted) {
  if (wanted.empty() || wanted == tensor.format) return {tensor.format, ""};
  if (wanted == "float32" || wanted == "bf16") return {wanted, ""};
  return {"float32", wanted};
}

// A file's block format stays or is expanded: going from it to another would lose twice. Beside matrices in parts or in
// block formats a plain format is asked of these alone.
Result<Formats> formats_of(const TensorInfo& tensor, const std::string& wanted, bool has_blocks) {
  if (!tensor.parts.empty()) return formats_of_parts(tensor, wanted);
  const bool is_plain = plain_bytes(tensor.format, {1}).has_value();
  if (is_plain && has_blocks && plain_bytes(wanted, {1})) return Formats{tensor.format, ""};
  if (wanted.empty() || wanted == "float32" || is_plain) return Formats{tensor.format, wanted};
  if (wanted == without_version(tensor.format)) return Formats{tensor.format, ""};
  return invalid("weight \"" + tensor.name + "\" is stored as " + tensor.format +
                 ", backend.weights asks for " + wanted +
                 "; leave it out, or quantise the original weights (or those of this file as they "
                 "are, written once as float32: dovetail quantize --weights float32)");
}

constexpr int64_t kPieceBytes = int64_t{16} << 20;  // packed at a time, of what comes in parts

}  // namespace

Status Weights::plan(const Graph& graph, const Checkpoint& checkpoint, const WeightFormats& formats,
                     const dvt_backend_v1& backend, void* context) {
  checkpoint_ = &checkpoint;
  const std::vector<TensorInfo>& all = checkpoint.tensors();
  const bool has_blocks = std::any_of(all.begin(), all.end(), [](const TensorInfo& t) {
    return !t.parts.empty() || !plain_bytes(t.format, {1});
  });
  for (const dvt_weight_ref& ref : graph.weights()) {
    const TensorInfo* tensor = checkpoint.find(graph.str(ref.name));
    if (!tensor)
      return internal_error("weight \"" + std::string(graph.str(ref.name)) +
                            "\" vanished from the checkpoint");
    dvt_weight_use use{};
    use.struct_size = sizeof use;
    use.access = ref.access;
    use.name = abi_text(tensor->name);
    use.ndim = static_cast<uint32_t>(tensor->shape.size());
    std::copy(tensor->shape.begin(), tensor->shape.end(), use.shape);
    DVT_TRY(Formats asked, formats_of(*tensor, wanted_format(use, formats), has_blocks));
    use.stored = abi_text(asked_.emplace_back(std::move(asked.stored)));
    use.wanted = abi_text(asked_.emplace_back(std::move(asked.wanted)));
    uses_.push_back(use);
    sources_.push_back(tensor);
  }
  DVT_TRY(check_classes(uses_, formats));
  plans_.resize(uses_.size());
  for (dvt_weight_plan& p : plans_) p.struct_size = sizeof p;
  CallFrame call;
  DVT_TRY(call.check(backend.plan(context, call, uses_.data(), plans_.data(), uses_.size())));
  for (size_t i = 0; i < plans_.size(); ++i) {
    if (plans_[i].how == DVT_PLAN_KEEP) {
      DVT_TRY(check_kept(i));
      (is_in_place(i) ? mapped_bytes_ : packed_bytes_) += source_bytes(i);
    } else if (i == 0 || plans_[i].group != plans_[i - 1].group || plans_[i].how == DVT_PLAN_PUT) {
      packed_bytes_ += plans_[i].bytes;
    }
  }
  return Status::ok();
}

// The checkpoint knows how many bytes plain formats take; of block formats only the backend does.
Status Weights::check_kept(size_t i) const {
  const TensorInfo& t = *sources_[i];
  if (plans_[i].bytes == source_bytes(i)) return Status::ok();
  return bad_format(t.source->name() + ": tensor \"" + t.name + "\" has " +
                    std::to_string(source_bytes(i)) + " bytes, its shape and format " + t.format +
                    " need " + std::to_string(plans_[i].bytes));
}

uint64_t Weights::source_bytes(size_t i) const {
  const std::string_view format = text_of(uses_[i].stored);
  return format == sources_[i]->format ? sources_[i]->n_bytes
                                       : plain_bytes(format, sources_[i]->shape).value_or(0);
}

bool Weights::packs_in_pieces(size_t i) const {
  return !sources_[i]->parts.empty() && plans_[i].how == DVT_PLAN_PACK &&
         plans_[i].file_format.n > 0;
}

bool Weights::expands() const {
  for (size_t i = 0; i < uses_.size(); ++i)
    if (!sources_[i]->parts.empty() && plans_[i].bytes > sources_[i]->stored_bytes() * 3 / 2)
      return true;
  return false;
}

int64_t Weights::piece_rows(size_t i) const {
  const int64_t row_bytes = static_cast<int64_t>(source_bytes(i)) / uses_[i].shape[0];
  return std::max<int64_t>(1, kPieceBytes / row_bytes / DVT_FILE_ROWS) * DVT_FILE_ROWS;
}

uint64_t Weights::staging_bytes() const {
  uint64_t most = 0;
  for (size_t i = 0; i < uses_.size(); ++i) {
    if (plans_[i].how == DVT_PLAN_KEEP || is_in_place(i)) continue;
    const uint64_t whole = source_bytes(i);
    most = std::max(most, packs_in_pieces(i)
                              ? std::min(whole, whole / static_cast<uint64_t>(uses_[i].shape[0]) *
                                                    static_cast<uint64_t>(piece_rows(i)))
                              : whole);
  }
  return most;
}

size_t Weights::group_end(size_t i) const {
  size_t end = i + 1;
  while (end < uses_.size() && plans_[end].group == plans_[i].group) ++end;
  return end;
}

std::vector<RepackCache::Item> Weights::packed_items() const {
  std::vector<RepackCache::Item> out;
  for (size_t i = 0; i < uses_.size(); i = group_end(i)) {
    if (plans_[i].how != DVT_PLAN_PACK) continue;
    const auto first = sources_.begin() + static_cast<std::ptrdiff_t>(i);
    out.push_back({std::string(text_of(uses_[i].name)),
                   {first, first + static_cast<std::ptrdiff_t>(group_end(i) - i)},
                   plans_[i].layout_hash,
                   plans_[i].bytes});
  }
  return out;
}

Status Weights::pack_group(size_t i, size_t end, const dvt_backend_v1& backend, void* context,
                           const uint32_t* cancel) {
  const dvt_weight_plan& plan = plans_[i];
  DVT_TRY(Buffer buffer, make_buffer(uses_[i], plan.bytes, plan.align));
  if (packs_in_pieces(i)) {
    DVT_TRY(pack_pieces(i, backend, context, cancel, buffer.get()));
  } else {
    std::vector<dvt_bytes> bytes;
    std::vector<Buffer> copies;
    for (size_t k = i; k < end; ++k) {
      DVT_TRY(const std::span<const std::byte> source, ordered_source(k, copies, cancel));
      bytes.push_back({source.data(), source.size()});
    }
    CallFrame call(cancel);
    DVT_TRY(call.check(backend.pack(context, call, &uses_[i], bytes.data(), bytes.size(),
                                    buffer.get(), plan.bytes))
                .in(std::string(text_of(uses_[i].name))));
  }
  packed_.emplace_back(buffer.get(), plan.bytes);
  buffers_.push_back(std::move(buffer));
  return Status::ok();
}

Status Weights::pack_pieces(size_t i, const dvt_backend_v1& backend, void* context,
                            const uint32_t* cancel, std::byte* out) const {
  const int64_t n_rows = uses_[i].shape[0];
  std::vector<std::byte> piece;
  uint64_t at = 0;
  for (int64_t row = 0; row < n_rows; row += piece_rows(i)) {
    DVT_TRY(
        pack_rows(i, row, std::min(piece_rows(i), n_rows - row), backend, context, cancel, piece));
    if (piece.size() > plans_[i].bytes - at)
      return internal_error("weight \"" + sources_[i]->name +
                            "\" was packed in pieces that are longer than the whole");
    std::copy(piece.begin(), piece.end(), out + at);
    at += piece.size();
  }
  return Status::ok();
}

// What a weight was made of is not read again: it need not be there twice.
void Weights::let_go_of_source(size_t i) const {
  const TensorInfo& t = *sources_[i];
  if (t.parts.empty()) t.source->let_go(t.offset, t.bytes.size());
  for (const TensorInfo::Part& p : t.parts) p.source->let_go(p.offset, p.bytes.size());
}

Status Weights::load(const dvt_backend_v1& backend, void* context, const RepackCache& cache,
                     const uint32_t* cancel, const ProgressFn& progress) {
  uint64_t done = 0;
  const uint64_t total = mapped_bytes_ + packed_bytes_;
  CallFrame call(cancel);
  const dvt_backend_v1* const table = &backend;  // DVT_HAS asks a pointer
  for (size_t i = 0; i < uses_.size();) {
    const size_t end = group_end(i);
    const dvt_weight_plan& plan = plans_[i];
    const std::string name(text_of(uses_[i].name));
    if (plan.how == DVT_PLAN_KEEP) {
      DVT_TRY(const std::span<const std::byte> bytes, ordered_source(i, buffers_, cancel));
      DVT_TRY(call.check(backend.bind(context, call, &uses_[i], end - i, &plan, bytes.data()))
                  .in(name));
      if (!is_in_place(i)) let_go_of_source(i);
      done += source_bytes(i);
    } else if (plan.how == DVT_PLAN_PACK) {
      if (cache.is_open()) {
        packed_.push_back(cache.find(packed_.size()));
      } else {
        DVT_TRY(pack_group(i, end, backend, context, cancel));
      }
      for (size_t k = i; k < end; ++k) let_go_of_source(k);  // the cache's key reads some of it
      DVT_TRY(
          call.check(backend.bind(context, call, &uses_[i], end - i, &plan, packed_.back().data()))
              .in(name));
      done += plan.bytes;
    } else if (plan.how == DVT_PLAN_PUT && DVT_HAS(table, put)) {
      for (size_t k = i; k < end; ++k) {
        std::vector<Buffer> copies;
        DVT_TRY(const std::span<const std::byte> source, ordered_source(k, copies, cancel));
        DVT_TRY(call.check(backend.put(context, call, uses_[k].name, 0,
                                       {source.data(), source.size()}, 1))
                    .in(name));
      }
      done += plan.bytes;
    } else {
      return unsupported("weight \"" + name + "\": the backend plans it in way " +
                         std::to_string(plan.how) + ", which this core does not know");
    }
    if (cancel && __atomic_load_n(cancel, __ATOMIC_RELAXED))
      return {Code::kCancelled, "cancelled while loading weights"};
    if (progress) progress(done, total, "loading weights");
    i = end;
  }
  return Status::ok();
}

Result<std::span<const std::byte>> Weights::stored_bytes(size_t i, std::vector<std::byte>& copy,
                                                         const uint32_t* cancel) const {
  const TensorInfo& source = *sources_[i];
  if (source.parts.empty() && (source.paired_rows == 0 || source.shape.empty()))
    return source.bytes;
  copy.resize(source_bytes(i));
  DVT_TRY(checkpoint_->read_rows(source, text_of(uses_[i].stored), 0, source.shape[0], copy.data(),
                                 cancel));
  return std::span<const std::byte>(copy);
}

Status Weights::pack_rows(size_t i, int64_t row0, int64_t n, const dvt_backend_v1& backend,
                          void* context, const uint32_t* cancel,
                          std::vector<std::byte>& out) const {
  DVT_ASSERT(row0 % DVT_FILE_ROWS == 0 && row0 + n <= uses_[i].shape[0]);
  const uint64_t row_bytes = source_bytes(i) / static_cast<uint64_t>(uses_[i].shape[0]);
  const uint64_t begin = static_cast<uint64_t>(row0) * row_bytes,
                 size = static_cast<uint64_t>(n) * row_bytes;
  std::span<const std::byte> rows;
  Buffer copy;
  if (is_in_place(i)) {
    rows = sources_[i]->bytes.subspan(begin, size);
  } else {
    DVT_TRY(copy, make_buffer(uses_[i], size, 64));
    DVT_TRY(checkpoint_->read_rows(*sources_[i], text_of(uses_[i].stored), row0, n, copy.get(),
                                   cancel));
    rows = {copy.get(), size};
  }
  dvt_weight_use use = uses_[i];
  use.shape[0] = n;
  dvt_weight_plan plan{};
  plan.struct_size = sizeof plan;
  CallFrame call(cancel);
  DVT_TRY(call.check(backend.plan(context, call, &use, &plan, 1)));
  out.resize(plan.bytes);
  const dvt_bytes source{rows.data(), rows.size()};
  return call.check(backend.pack(context, call, &use, &source, 1, out.data(), plan.bytes))
      .in(std::string(text_of(use.name)));
}

std::string_view Weights::format_in_use(size_t i) const {
  for (const dvt_str name : {plans_[i].file_format, plans_[i].numbers_format})
    if (name.n > 0) return text_of(name);
  return text_of(uses_[i].stored);
}

std::string Weights::format_text(size_t i) const {
  const std::string in_use(format_in_use(i));
  return sources_[i]->parts.empty() ? in_use : sources_[i]->stored + " as " + in_use;
}

std::string Weights::formats_text(bool mapped) const {
  std::map<std::string, size_t> counts;
  for (size_t i = 0; i < uses_.size(); ++i)
    if ((plans_[i].how == DVT_PLAN_KEEP && is_in_place(i)) == mapped) ++counts[format_text(i)];
  std::string out;
  for (const auto& [format, n] : counts)
    out += (out.empty() ? "" : ", ") + std::to_string(n) + " of " + format;
  return out;
}

std::vector<std::string> Weights::matrix_formats() const {
  std::vector<std::string> out;
  for (size_t i = 0; i < uses_.size(); ++i)
    if (is_matrix(uses_[i])) out.push_back(format_text(i));
  return out;
}

double Weights::least_bits() const {
  double least = 32;
  for (size_t i = 0, end = 0; i < uses_.size(); i = end) {
    end = group_end(i);
    double n = 0;
    uint64_t bytes = 0;
    for (size_t k = i; k < end; ++k) {
      double n_numbers = is_matrix(uses_[k]) ? 1 : 0;
      for (uint32_t d = 0; d < uses_[k].ndim; ++d)
        n_numbers *= static_cast<double>(uses_[k].shape[d]);
      n += n_numbers;
      bytes += sources_[k]->stored_bytes();
    }
    const dvt_weight_plan& plan = plans_[i];
    if (plan.how == DVT_PLAN_PACK)
      bytes = std::min(bytes, plan.numbers_bytes > 0 ? plan.numbers_bytes : plan.bytes);
    if (n > 0) least = std::min(least, 8 * static_cast<double>(bytes) / n);
  }
  return least;
}

Result<Weights::Buffer> Weights::make_buffer(const dvt_weight_use& use, uint64_t bytes,
                                             uint64_t align) {
  Buffer buffer;
  if (bytes >= kHugePage && align <= kHugePage) {
    buffer.large = Pages(bytes);
  } else {
    align = std::max<uint64_t>(64, align);
    buffer.small = {static_cast<std::byte*>(::operator new[](
                        std::max<uint64_t>(1, bytes), std::align_val_t{align}, std::nothrow)),
                    AlignedFree{align}};
  }
  if (!buffer.get())
    return Status(Code::kNoMemory, "weight \"" + std::string(text_of(use.name)) +
                                       "\": no memory for " + bytes_text(bytes) +
                                       " in the backend's layout");
  return buffer;
}

bool Weights::is_in_place(size_t i) const {
  const uint64_t align =
      std::max<uint64_t>({1, plans_[i].how == DVT_PLAN_KEEP ? plans_[i].align : 1,
                          plain_bytes(text_of(uses_[i].stored), {1}).value_or(1)});
  return sources_[i]->parts.empty() && sources_[i]->paired_rows == 0 &&
         reinterpret_cast<uintptr_t>(sources_[i]->bytes.data()) % align == 0;
}

Result<std::span<const std::byte>> Weights::ordered_source(size_t i, std::vector<Buffer>& copies,
                                                           const uint32_t* cancel) const {
  const TensorInfo& source = *sources_[i];
  if (is_in_place(i)) return source.bytes;
  const uint64_t n_bytes = source_bytes(i);
  DVT_TRY(Buffer copy, make_buffer(uses_[i], n_bytes, plans_[i].align));
  if (source.shape.empty())
    std::copy(source.bytes.begin(), source.bytes.end(), copy.get());
  else
    DVT_TRY(checkpoint_->read_rows(source, text_of(uses_[i].stored), 0, source.shape[0], copy.get(),
                                   cancel));
  copies.push_back(std::move(copy));
  return std::span<const std::byte>(copies.back().get(), n_bytes);
}

uint64_t Weights::bytes_per_token() const {
  uint64_t sum = 0;
  for (size_t i = 0; i < uses_.size(); ++i) {
    const uint64_t bytes = plans_[i].bytes;
    if (uses_[i].access & DVT_ACCESS_DENSE)
      sum += bytes;
    else if (uses_[i].ndim > 0 && uses_[i].shape[0] > 0)
      sum += bytes / static_cast<uint64_t>(uses_[i].shape[0]);
  }
  return sum;
}

std::vector<Promotion::Range> Weights::streamed(const RepackCache& cache) const {
  std::vector<Promotion::Range> ranges;
  for (size_t i = 0, n_packed = 0; cache.is_open() && i < uses_.size(); i = group_end(i))
    if (plans_[i].how == DVT_PLAN_PACK) {
      if (uses_[i].access & DVT_ACCESS_DENSE)
        ranges.push_back({cache.file(), cache.offset(n_packed), plans_[i].bytes});
      ++n_packed;
    }
  for (size_t i = 0; i < uses_.size(); ++i)
    if (plans_[i].how == DVT_PLAN_KEEP && is_in_place(i) && (uses_[i].access & DVT_ACCESS_DENSE))
      ranges.push_back({sources_[i]->source, sources_[i]->offset, sources_[i]->bytes.size()});
  std::sort(ranges.begin(), ranges.end(), [](const auto& a, const auto& b) {
    return std::pair(a.file, a.offset) < std::pair(b.file, b.offset);
  });
  std::vector<Promotion::Range> out;  // neighbours joined; a gap of less than a page moves along
  for (const Promotion::Range& r : ranges) {
    const bool joins = !out.empty() && out.back().file == r.file &&
                       r.offset <= out.back().offset + out.back().bytes + kHugePage;
    if (joins)
      out.back().bytes = std::max(out.back().bytes, r.offset + r.bytes - out.back().offset);
    else
      out.push_back(r);
  }
  return out;
}

bool Weights::is_float32() const {
  for (size_t i = 0; i < uses_.size(); ++i)
    if (is_matrix(uses_[i])) return sources_[i]->parts.empty() && format_in_use(i) == "float32";
  return true;
}

}  // namespace dovetail::core
