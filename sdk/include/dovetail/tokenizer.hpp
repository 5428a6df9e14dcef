// Write a tokenizer: a class with encode, decode and a streaming decoder, exported in one line.
#pragma once

#include <dovetail/abi/tokenizer.h>
#include <dovetail/plugin.hpp>

#include <memory>
#include <vector>

namespace dovetail {

struct TokenizerOpen {
  Host host;
  Doc definition;  // tokenizer.json
  dvt_dir dir;     // 0 without a folder
  Doc options;     // the YAML's parameters
};

/// The class T needs:
///   explicit T(const TokenizerOpen&)
///   dvt_tokenizer_info info() const
///   void encode(std::string_view text, std::span<const dvt_range> literal, uint32_t flags, std::vector<dvt_tok>& out) const
///   std::string decode(std::span<const uint32_t> ids, uint32_t flags) const
///   std::string piece(uint32_t id, uint32_t& flags) const        throws Error for an unknown id
///   uint32_t find(std::string_view content) const                throws Error when there is none
///   std::array<uint8_t, 32> identity() const
///   class Stream { Stream(const T&, uint32_t flags); std::string step(uint32_t id); std::string flush(); }
template <class T>
struct TokenizerTable {
  static const T& self(void* t) { return *static_cast<const T*>(t); }
  struct StreamBox {
    const T& tokenizer;
    typename T::Stream stream;
  };

  static dvt_code open(void* plugin, dvt_call* call, const dvt_tokenizer_open* in,
                       void** out) noexcept {
    return guard(call, [&] {
      const Host& host = host_of(plugin);
      // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new): guard() catches it
      *out = new T(TokenizerOpen{host, host.doc(in->definition), in->dir, host.doc(in->options)});
    });
  }
  static void close(void* t) noexcept { delete static_cast<T*>(t); }
  static dvt_code info(void* t, dvt_call* call, dvt_tokenizer_info* out) noexcept {
    return guard(call, [&] {
      const uint32_t size = out->struct_size;
      dvt_tokenizer_info full = self(t).info();
      std::memcpy(static_cast<void*>(out), &full, std::min<size_t>(size, sizeof full));
      out->struct_size = size;
    });
  }
  static dvt_code encode(void* t, dvt_call* call, dvt_str text, const dvt_range* literal,
                         uint64_t n_literal, uint32_t flags, dvt_tok* out, uint64_t cap,
                         uint64_t* need) noexcept {
    return guard(call, [&] {
      std::vector<dvt_tok> tokens;
      self(t).encode(to_view(text), {literal, static_cast<size_t>(n_literal)}, flags, tokens);
      give(std::span<const dvt_tok>(tokens), out, cap, need);
    });
  }
  static dvt_code decode(void* t, dvt_call* call, const uint32_t* ids, uint64_t n, uint32_t flags,
                         char* out, uint64_t cap, uint64_t* need) noexcept {
    return guard(call, [&] {
      give(self(t).decode({ids, static_cast<size_t>(n)}, flags), out, cap, need);
    });
  }
  static dvt_code piece(void* t, dvt_call* call, uint32_t id, uint32_t* flags, char* out,
                        uint64_t cap, uint64_t* need) noexcept {
    return guard(call, [&] { give(self(t).piece(id, *flags), out, cap, need); });
  }
  static dvt_code find_id(void* t, dvt_call* call, dvt_str content, uint32_t* id) noexcept {
    return guard(call, [&] { *id = self(t).find(to_view(content)); });
  }
  static dvt_code stream_open(void* t, dvt_call* call, uint32_t flags, void** s) noexcept {
    // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new): guard() catches it
    return guard(call, [&] { *s = new StreamBox{self(t), typename T::Stream(self(t), flags)}; });
  }
  static void need_room(const StreamBox& box, uint64_t cap, uint64_t* need) {
    *need = box.tokenizer.info().max_step_bytes;
    if (cap < *need) throw Error("the caller's buffer is too small", DVT_ETOOSMALL);
  }
  static dvt_code stream_step(void* s, dvt_call* call, uint32_t id, char* out, uint64_t cap,
                              uint64_t* need) noexcept {
    return guard(call, [&] {
      auto& box = *static_cast<StreamBox*>(s);
      need_room(box, cap, need);
      give(box.stream.step(id), out, cap, need);
    });
  }
  static dvt_code stream_flush(void* s, dvt_call* call, char* out, uint64_t cap,
                               uint64_t* need) noexcept {
    return guard(call, [&] {
      auto& box = *static_cast<StreamBox*>(s);
      need_room(box, cap, need);
      give(box.stream.flush(), out, cap, need);
    });
  }
  static void stream_close(void* s) noexcept { delete static_cast<StreamBox*>(s); }
  static dvt_code identity(void* t, dvt_call* call, uint8_t sha256[32]) noexcept {
    return guard(call, [&] {
      const std::array<uint8_t, 32> digest = self(t).identity();
      std::memcpy(sha256, digest.data(), digest.size());
    });
  }

  static constexpr dvt_tokenizer_v1 table = {sizeof(dvt_tokenizer_v1),
                                             0,
                                             open,
                                             close,
                                             info,
                                             encode,
                                             decode,
                                             piece,
                                             find_id,
                                             stream_open,
                                             stream_step,
                                             stream_flush,
                                             stream_close,
                                             identity};
};

}  // namespace dovetail

/// find_fn: a function (std::string_view name) -> const void* that hands out TokenizerTable<Class>::table
/// as "dovetail.tokenizer/1" and further interfaces; keys: the file names it takes.
#define DVT_EXPORT_TOKENIZER(Class, interfaces, keys, find_fn) \
  DVT_DEFINE_PLUGIN("tokenizer", interfaces, keys, find_fn, ::dovetail::params_of<Class>())
