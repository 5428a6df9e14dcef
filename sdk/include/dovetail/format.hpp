// Write a checkpoint reader: a class that lists tensors and documents, exported in one line.
#pragma once

#include <dovetail/abi/format.h>
#include <dovetail/plugin.hpp>

#include <vector>

namespace dovetail {

/// A file that the host opened.
class File {
 public:
  File() = default;
  File(Host host, dvt_file handle) : host_(host), handle_(handle) {}
  dvt_file handle() const { return handle_; }
  explicit operator bool() const { return handle_ != 0; }
  std::string name() const {
    dvt_str out{};
    const dvt_host_v1* h = host_.table();
    return h->file_name(h->self, handle_, &out) == DVT_OK ? std::string(to_view(out))
                                                          : std::string();
  }
  uint64_t size() const {
    uint64_t out = 0;
    const dvt_host_v1* h = host_.table();
    if (h->file_size(h->self, handle_, &out) != DVT_OK)
      throw Error("cannot tell the size of " + name(), DVT_EIO);
    return out;
  }
  void read(Call call, uint64_t offset, void* dst, uint64_t n) const {
    const dvt_host_v1* h = host_.table();
    call.check(h->file_read(h->self, call.frame(), handle_, offset, dst, n));
  }

 private:
  Host host_;
  dvt_file handle_ = 0;
};

/// The folder of the checkpoint.
class Folder {
 public:
  Folder() = default;
  Folder(Host host, dvt_dir handle) : host_(host), handle_(handle) {}
  dvt_dir handle() const { return handle_; }
  explicit operator bool() const { return handle_ != 0; }
  bool has(std::string_view name) const {
    uint32_t yes = 0;
    const dvt_host_v1* h = host_.table();
    return handle_ != 0 && h->dir_has(h->self, handle_, to_abi(name), &yes) == DVT_OK && yes != 0;
  }
  /// Of the files right in it, sorted.
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    const dvt_host_v1* h = host_.table();
    for (dvt_str name{};
         handle_ != 0 && h->dir_file(h->self, handle_, out.size(), &name) == DVT_OK;)
      out.emplace_back(to_view(name));
    return out;
  }
  File open(Call call, std::string_view name) const {
    dvt_file out = 0;
    const dvt_host_v1* h = host_.table();
    call.check(h->dir_open(h->self, call.frame(), handle_, to_abi(name), &out));
    return {host_, out};
  }
  /// Parses a JSON file of the folder; null when it is absent.
  Doc json(Call call, std::string_view name) const {
    if (!has(name)) return {};
    const File file = open(call, name);
    std::string text(file.size(), '\0');
    file.read(call, 0, text.data(), text.size());
    dvt_doc out = 0;
    const dvt_host_v1* h = host_.table();
    call.check(h->parse_json(h->self, call.frame(), {text.data(), text.size()}, to_abi(file.name()),
                             &out));
    return host_.doc(out);
  }

 private:
  Host host_;
  dvt_dir handle_ = 0;
};

struct FormatOpen {
  Host host;
  Folder dir;
  File file;  // empty when a folder was named
};

/// Where files of a checkpoint go that is written: see dvt_file_sink.
class FileSink {
 public:
  FileSink(const dvt_file_sink* sink, Call call) : sink_(sink), call_(call) {}
  void file(std::string_view name, std::string_view head, uint64_t first, uint64_t n) const {
    call_.check(sink_->file(sink_->self, call_.frame(), to_abi(name), {head.data(), head.size()},
                            first, n));
  }

 private:
  const dvt_file_sink* sink_;
  Call call_;
};

/// The class T needs:
///   static uint32_t probe(const FormatOpen&, std::span<const uint8_t> head, Call)      0 .. 100
///   T(const FormatOpen&, Call)
///   const std::vector<dvt_tensor>& tensors() const         strings owned by T
///   Doc document(std::string_view which, Call)             see dvt_format_v1.document
/// and, if it keeps documents that it can make again (dvt_format_v1.drop_document):
///   void drop_document(std::string_view which) noexcept
/// and, if it can write (dvt_format_v1.lay_out):
///   static void lay_out(std::span<const dvt_tensor>, uint64_t max_bytes, const FileSink&)
/// and, if it has matrices in parts (dvt_format_v1.rows):
///   void rows(uint64_t i, const dvt_bytes* parts, std::string_view format, int64_t row0, int64_t n,
///             void* out, Call) const
template <class T>
struct FormatTable {
  static FormatOpen opened(void* plugin, const dvt_format_open* in) {
    const Host& host = host_of(plugin);
    return {host, Folder(host, in->dir), File(host, in->file)};
  }
  static dvt_code probe(void* plugin, dvt_call* call, const dvt_format_open* in, dvt_bytes head,
                        uint32_t* score) noexcept {
    return guard(call, [&] {
      *score =
          T::probe(opened(plugin, in),
                   {static_cast<const uint8_t*>(head.p), static_cast<size_t>(head.n)}, Call(call));
    });
  }
  static dvt_code open(void* plugin, dvt_call* call, const dvt_format_open* in,
                       void** reader) noexcept {
    // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new): guard() catches it
    return guard(call, [&] { *reader = new T(opened(plugin, in), Call(call)); });
  }
  static void close(void* reader) noexcept { delete static_cast<T*>(reader); }
  static dvt_code tensors(void* reader, dvt_call* call, dvt_tensor* out, uint64_t cap,
                          uint64_t* need) noexcept {
    return guard(call, [&] {
      give(std::span<const dvt_tensor>(static_cast<const T*>(reader)->tensors()), out, cap, need);
    });
  }
  static dvt_code document(void* reader, dvt_call* call, dvt_str which, dvt_doc* out) noexcept {
    return guard(call, [&] {
      *out = static_cast<T*>(reader)->document(to_view(which), Call(call)).handle();
    });
  }
  static dvt_code lay_out(void*, dvt_call* call, const dvt_tensor* tensors, uint64_t n,
                          uint64_t max_bytes, const dvt_file_sink* sink) noexcept {
    return guard(call, [&] {
      if constexpr (kWrites)
        T::lay_out(read_records(tensors, n), max_bytes, FileSink(sink, Call(call)));
    });
  }
  static dvt_code rows(void* reader, dvt_call* call, uint64_t i, const dvt_bytes* parts,
                       dvt_str format, int64_t row0, int64_t n, void* out) noexcept {
    return guard(call, [&] {
      if constexpr (kHasParts)
        static_cast<const T*>(reader)->rows(i, parts, to_view(format), row0, n, out, Call(call));
    });
  }
  static void drop_document(void* reader, dvt_str which) noexcept {
    if constexpr (kDrops) static_cast<T*>(reader)->drop_document(to_view(which));
  }
  static constexpr bool kDrops = requires { &T::drop_document; };
  static constexpr bool kWrites = requires { &T::lay_out; };
  static constexpr bool kHasParts = requires { &T::rows; };
  static constexpr dvt_format_v1 table = {sizeof(dvt_format_v1),
                                          0,
                                          probe,
                                          open,
                                          close,
                                          tensors,
                                          document,
                                          kWrites ? lay_out : nullptr,
                                          kHasParts ? rows : nullptr,
                                          kDrops ? drop_document : nullptr};
  static const void* find(std::string_view name) {
    return name == "dovetail.format/1" ? &table : nullptr;
  }
};

}  // namespace dovetail

/// Keys: what the reader answers to, e.g. "model.safetensors", "*.safetensors".
#define DVT_EXPORT_FORMAT(Class, ...)                               \
  DVT_DEFINE_PLUGIN("format", ("dovetail.format/1"), (__VA_ARGS__), \
                    ::dovetail::FormatTable<Class>::find, ::dovetail::params_of<Class>())
