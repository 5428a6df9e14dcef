// The C++ side of every plugin: the edge where exceptions stop, the host, declared parameters and
// the macro that writes the one exported symbol and the manifest note.
//
// Include the header of your kind (arch.hpp, sampler.hpp, ...) rather than this one.
#pragma once

#include <dovetail/abi/plugin.h>
#include <dovetail/doc.hpp>
#include <dovetail/records.hpp>

#include <array>
#include <cstring>
#include <limits>
#include <new>
#include <span>
#include <string>
#include <string_view>

namespace dovetail {

/// What the host offers, as a value to keep.
class Host {
 public:
  Host() = default;
  explicit Host(const dvt_host_v1* table) : table_(table) {}
  const dvt_host_v1* table() const { return table_; }
  Doc doc(dvt_doc handle) const { return {table_, handle}; }
  void log(int32_t level, std::string_view area, std::string_view message) const {
    table_->log(table_->self, level, to_abi(area), to_abi(message));
  }
  template <class Interface>
  const Interface* get(std::string_view name) const {
    return static_cast<const Interface*>(table_->get_interface(table_->self, to_abi(name)));
  }

 private:
  const dvt_host_v1* table_ = nullptr;
};

/// The call being served: cancellation, progress, scratch memory.
class Call {
 public:
  explicit Call(dvt_call* frame) : frame_(frame) {}
  dvt_call* frame() const { return frame_; }
  bool cancelled() const {
    return frame_->cancel && __atomic_load_n(frame_->cancel, __ATOMIC_RELAXED) != 0;
  }
  void check_cancelled() const {
    if (cancelled()) throw Error("cancelled", DVT_ECANCELLED);
  }
  void progress(uint64_t done, uint64_t total, std::string_view what) const {
    if (DVT_HAS(frame_, progress)) frame_->progress(frame_, done, total, to_abi(what));
  }
  void* scratch(uint64_t n, uint64_t align = 16) const {
    void* p = frame_->scratch(frame_, n, align);
    if (!p) throw std::bad_alloc();
    return p;
  }
  /// Turns a host call's code into an exception; the host has recorded the reason in this frame.
  void check(dvt_code code) const {
    if (code != DVT_OK) throw Recorded{code};
  }
  /// A failure whose reason is in the frame already.
  struct Recorded {
    dvt_code code;
  };

 private:
  dvt_call* frame_;
};

/// Runs fn() and turns what it throws into a status with its reason. Nothing passes.
template <class Fn>
dvt_code guard(dvt_call* call, Fn&& fn) noexcept {
  const auto fail = [call](dvt_code code, std::string_view message,
                           std::string_view where) noexcept {
    if (call && call->fail) call->fail(call, code, to_abi(message), to_abi(where));
    return code;
  };
  try {
    fn();
    return DVT_OK;
  } catch (const Call::Recorded& e) {
    return e.code;
  } catch (const Error& e) {
    return fail(e.code(), e.what(), e.where());
  } catch (const std::bad_alloc&) {
    return fail(DVT_ENOMEM, "out of memory", "");
  } catch (const std::exception& e) {
    return fail(DVT_EINTERNAL, e.what(), "");
  } catch (...) {
    return fail(DVT_EINTERNAL, "unknown exception", "");
  }
}

/// Copies n elements into the caller's buffer under the "cap, need" rule; records by the length that its first one says.
template <class T>
void give(std::span<const T> from, T* out, uint64_t cap, uint64_t* need) {
  *need = from.size();
  if (from.size() > cap) throw Error("the caller's buffer is too small", DVT_ETOOSMALL);
  if (from.empty()) return;
  if constexpr (requires { out->struct_size; }) {
    if (out->struct_size != 0) {
      for (size_t i = 0; i < from.size(); ++i) write_record(out, i, from[i]);
      return;
    }
  }
  std::memcpy(static_cast<void*>(out), from.data(), from.size_bytes());
}
inline void give(std::string_view from, char* out, uint64_t cap, uint64_t* need) {
  give(std::span<const char>(from.data(), from.size()), out, cap, need);
}

// ---------------------------------------------------------------- declared parameters

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

constexpr dvt_str literal(std::string_view s) {
  return {s.data(), s.size()};
}

constexpr dvt_param param(uint32_t type, std::string_view name, std::string_view default_text,
                          std::string_view help, double min = -kNoLimit, double max = kNoLimit,
                          uint32_t flags = 0, std::string_view choices = {}) {
  return {sizeof(dvt_param),
          type,
          flags,
          0,
          literal(name),
          literal(default_text),
          literal(choices),
          min,
          max,
          literal(help)};
}
constexpr dvt_param number_param(std::string_view name, std::string_view default_text,
                                 std::string_view help, double min = -kNoLimit,
                                 double max = kNoLimit, uint32_t flags = 0) {
  return param(DVT_PARAM_FLOAT, name, default_text, help, min, max, flags);
}
constexpr dvt_param int_param(std::string_view name, std::string_view default_text,
                              std::string_view help, double min = -kNoLimit, double max = kNoLimit,
                              uint32_t flags = 0) {
  return param(DVT_PARAM_INT, name, default_text, help, min, max, flags);
}
constexpr dvt_param bool_param(std::string_view name, std::string_view default_text,
                               std::string_view help) {
  return param(DVT_PARAM_BOOL, name, default_text, help);
}
constexpr dvt_param string_param(std::string_view name, std::string_view default_text,
                                 std::string_view help, std::string_view choices = {},
                                 uint32_t flags = 0) {
  return param(DVT_PARAM_STR, name, default_text, help, -kNoLimit, kNoLimit, flags, choices);
}

/// The parameters of a class: its static `params` array, or none.
template <class T>
constexpr std::span<const dvt_param> params_of() {
  if constexpr (requires { T::params; }) {
    return T::params;
  } else {
    return {};
  }
}

// ---------------------------------------------------------------- the plugin object

/// What `start` makes: the host, for the objects that the plugin opens.
struct Plugin {
  Host host;
};
inline const Host& host_of(void* plugin) {
  return static_cast<Plugin*>(plugin)->host;
}

using InterfaceFn = const void* (*)(std::string_view name);

/// The descriptor of a plugin whose interfaces `kFind` hands out.
template <InterfaceFn kFind>
struct Descriptor {
  static dvt_code start(dvt_call* call, const dvt_host_v1* host, void** self) noexcept {
    // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new): guard() catches it
    return guard(call, [&] { *self = new Plugin{Host(host)}; });
  }
  static dvt_code drain(dvt_call*, void*) noexcept { return DVT_OK; }
  static void stop(void* self) noexcept { delete static_cast<Plugin*>(self); }
  static const void* get_interface(void*, dvt_str name) noexcept { return kFind(to_view(name)); }
};

}  // namespace dovetail

/// Writes the note, the descriptor and the exported symbol. DVT_PLUGIN_ID, DVT_PLUGIN_NAME and
/// DVT_PLUGIN_VERSION come from dovetail_add_plugin(); interfaces and keys are parenthesised lists.
#define DVT_DEFINE_PLUGIN(kind_literal, interfaces, keys, find_fn, params_span)                 \
  DVT_NOTE(DVT_PLUGIN_ID, kind_literal, DVT_PLUGIN_NAME, DVT_PLUGIN_VERSION, interfaces, keys); \
  extern "C" DVT_EXPORT const dvt_plugin_v1* dvt_plugin_query(uint32_t, uint32_t) {             \
    using D = ::dovetail::Descriptor<find_fn>;                                                  \
    static constexpr std::span<const dvt_param> kParams = params_span;                          \
    static constexpr dvt_plugin_v1 kPlugin = {sizeof(dvt_plugin_v1),                            \
                                              DVT_ABI_MAJOR,                                    \
                                              DVT_ABI_MINOR,                                    \
                                              0,                                                \
                                              ::dovetail::literal(DVT_ABI_HASH),                \
                                              ::dovetail::literal(DVT_PLUGIN_ID),               \
                                              ::dovetail::literal(kind_literal),                \
                                              ::dovetail::literal(DVT_PLUGIN_NAME),             \
                                              ::dovetail::literal(DVT_PLUGIN_VERSION),          \
                                              kParams.data(),                                   \
                                              kParams.size(),                                   \
                                              D::start,                                         \
                                              D::drain,                                         \
                                              D::stop,                                          \
                                              D::get_interface};                                \
    return &kPlugin;                                                                            \
  }
