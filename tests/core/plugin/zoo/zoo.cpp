// One plugin, broken in the way that ZOO_* says; without any, it works.
#ifdef ZOO_ABI_HASH
#undef DVT_ABI_HASH
#define DVT_ABI_HASH ZOO_ABI_HASH
#endif

#include "zoo.hpp"

#include <dovetail/abi/backend.h>
#include <unistd.h>
#include <dovetail/plugin.hpp>

#include <array>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>

#ifndef ZOO_DESCRIPTOR_ID
#define ZOO_DESCRIPTOR_ID DVT_PLUGIN_ID
#endif
#ifndef ZOO_DESCRIPTOR_BYTES
#define ZOO_DESCRIPTOR_BYTES sizeof(dvt_plugin_v1)
#endif

#ifndef ZOO_NO_NOTE
DVT_NOTE(DVT_PLUGIN_ID, "zoo", DVT_PLUGIN_NAME, DVT_PLUGIN_VERSION, ("dovetail.zoo/1"),
         ("beast", DVT_PLUGIN_NAME));
#endif

#ifdef ZOO_CALLS_STUB
extern "C" int zoo_stub();
#endif
#ifdef ZOO_CALLS_UNDEFINED
extern "C" int zoo_nobody_has_this();
#endif
#ifdef ZOO_SECOND_SYMBOL
extern "C" DVT_EXPORT int zoo_second() {
  return 2;
}
#endif
#ifdef ZOO_CONSTRUCTOR_CRASHES
[[gnu::constructor]] static void crash() {
  __builtin_trap();
}
#endif

#ifdef ZOO_START_TERMINATES
[[gnu::noinline]] static void throw_out() {
  throw 1;
}
#endif

namespace dovetail::zoo {
namespace {

constexpr std::array kParams = {int_param("legs", "4", "how many legs it has", 0, 100),
                                bool_param("tame", "false", "whether it bites")};
constexpr ZooTable kTable = {sizeof(ZooTable), 42};

void trace(const Plugin& plugin, const char* event) {
  if (const auto* trace = plugin.host.get<ZooTrace>("zoo.trace/1")) {
    const std::string text = std::string(event) + " " + DVT_PLUGIN_NAME;
    trace->note(trace->self, to_abi(text));
  }
}

dvt_code start(dvt_call* call, const dvt_host_v1* host, void** self) noexcept {
#ifdef ZOO_START_TERMINATES
  throw_out();
#endif
  return guard(call, [&] {
#if defined(ZOO_START_THROWS)
    throw Error("no cage is large enough", DVT_EUNSUPPORTED);
#elif defined(ZOO_START_HANGS)
    for (;;) pause();
#elif defined(ZOO_START_EXITS)
    std::exit(3);
#elif defined(ZOO_START_SPAWNS)
    // A child that outlives the start and a thread that never ends; then what the test asks for.
    const pid_t child = fork();
    if (child == 0)
      for (;;) pause();
    if (const char* file = std::getenv("ZOO_CHILD")) std::ofstream(file) << child;
    std::thread([] {
      for (;;) pause();
    }).detach();
    const std::string then = std::getenv("ZOO_THEN") ? std::getenv("ZOO_THEN") : "";
    if (then == "crash") std::abort();
    if (then == "hang")
      for (;;) pause();
    if (then == "close and hang") {
      for (int fd = 3; fd < 256; ++fd) close(fd);
      for (;;) pause();
    }
#elif defined(ZOO_CALLS_STUB)
    if (zoo_stub() != 1) throw Error("the stub is wrong");
#elif defined(ZOO_CALLS_UNDEFINED)
    if (zoo_nobody_has_this() != 1) throw Error("somebody has it");
#endif
    auto* plugin = new Plugin{Host(host)};
    trace(*plugin, "start");
    *self = plugin;
  });
}

dvt_code drain(dvt_call*, void* self) noexcept {
  trace(*static_cast<Plugin*>(self), "drain");
  return DVT_OK;
}

void stop(void* self) noexcept {
  trace(*static_cast<Plugin*>(self), "stop");
  delete static_cast<Plugin*>(self);
}

const void* get_interface(void*, dvt_str name) noexcept {
#ifdef ZOO_BACKEND
  static const dvt_backend_v1 kBackend = [] {
    dvt_backend_v1 table{};
    table.struct_size = sizeof table;
    table.devices = [](void*, dvt_call* call, dvt_device*, uint64_t, uint64_t* need) noexcept {
      return guard(call, [&] {
        *need = 0;
        if (std::string_view(ZOO_BACKEND) == "refuses")
          throw Error("the driver is asleep", DVT_EDEVICE);
        if (std::string_view(ZOO_BACKEND) == "crashes") __builtin_trap();
        if (std::string_view(ZOO_BACKEND) == "boasts") *need = uint64_t{1} << 40;
      });
    };
    return table;
  }();
  if (to_view(name) == "dovetail.backend/1") return &kBackend;
#endif
#ifdef ZOO_NO_INTERFACE
  return nullptr;
#endif
  return to_view(name) == "dovetail.zoo/1" ? &kTable : nullptr;
}

}  // namespace
}  // namespace dovetail::zoo

extern "C" DVT_EXPORT const dvt_plugin_v1* dvt_plugin_query(uint32_t, uint32_t) {
  namespace zoo = dovetail::zoo;
  static constexpr dvt_plugin_v1 kPlugin = {ZOO_DESCRIPTOR_BYTES,
                                            DVT_ABI_MAJOR,
                                            DVT_ABI_MINOR,
                                            0,
                                            dovetail::literal(DVT_ABI_HASH),
                                            dovetail::literal(ZOO_DESCRIPTOR_ID),
                                            dovetail::literal("zoo"),
                                            dovetail::literal(DVT_PLUGIN_NAME),
                                            dovetail::literal(DVT_PLUGIN_VERSION),
                                            zoo::kParams.data(),
                                            zoo::kParams.size(),
                                            zoo::start,
                                            zoo::drain,
                                            zoo::stop,
                                            zoo::get_interface};
#ifdef ZOO_NO_DESCRIPTOR
  return kPlugin.flags == 0 ? nullptr : &kPlugin;
#else
  return &kPlugin;
#endif
}
