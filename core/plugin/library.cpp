// One call of boost::dll::shared_library, used in the one way that tells why it failed.
#include "core/plugin/library.hpp"

#define BOOST_DLL_USE_STD_FS  // NOLINT(readability-identifier-naming): the library's name
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <boost/dll/shared_library.hpp>

#include <cerrno>
#include <exception>
#include <system_error>
#include <utility>
#include <vector>

#include "core/base/log.hpp"

namespace dovetail::core {
namespace {

namespace fs = std::filesystem;

std::string linker_text(const fs::path& path) {
  const char* text = dlerror();
  std::string out = text != nullptr ? text : "the dynamic linker gives no reason";
  if (const std::string prefix = path.string() + ": "; out.starts_with(prefix))
    out.erase(0, prefix.size());
  return printable(out);
}

Status compare(const char* what, dvt_str descriptor, const std::string& manifest) {
  if (text_of(descriptor) == manifest) return Status::ok();
  return bad_format("its descriptor says " + std::string(what) + " \"" +
                    printable(text_of(descriptor)) + "\", its manifest \"" + printable(manifest) +
                    "\"; build it again");
}

Status check_descriptor(const dvt_plugin_v1* p, const Manifest& m) {
  if (p == nullptr) return unsupported("gives no descriptor for this program's interface");
  if (p->abi_major != DVT_ABI_MAJOR) {
    return {Code::kVersion, "its descriptor is of plugin interface " +
                                std::to_string(p->abi_major) + ", this program has " +
                                std::to_string(DVT_ABI_MAJOR)};
  }
  if (!DVT_HAS(p, get_interface) || p->start == nullptr || p->stop == nullptr) {
    return bad_format("its descriptor is too short (" + std::to_string(p->struct_size) +
                      " bytes) or lacks a function");
  }
  DVT_TRY(compare("interface draft", p->abi_hash, m.abi_hash));
  DVT_TRY(compare("id", p->id, m.id));
  DVT_TRY(compare("kind", p->kind, m.kind));
  DVT_TRY(compare("name", p->name, m.name));
  return compare("version", p->version, m.version);
}

}  // namespace

Result<SealedCopy> SealedCopy::make(const File& file) {
  if (file.size() > kMostBytes) {
    return unsupported("has " + bytes_text(file.size()) + ", more than the " +
                       bytes_text(kMostBytes) + " that are copied");
  }
  const int fd = memfd_create("dovetail-plugin", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return unsupported("no memory files: " + errno_text(errno));
  SealedCopy copy(fd);
  std::error_code error;
  if (!fs::exists(copy.path(), error))
    return unsupported("memory files cannot be opened by name: /proc is not mounted");
  std::vector<char> part(size_t{1} << 20);
  for (uint64_t at = 0; at < file.size();) {
    const uint64_t n = std::min<uint64_t>(part.size(), file.size() - at);
    DVT_TRY(file.read_at(at, part.data(), n));
    for (uint64_t done = 0; done < n;) {
      const ssize_t got = ::write(fd, part.data() + done, n - done);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return io_error("cannot be copied: " + errno_text(errno));
      done += static_cast<uint64_t>(got);
    }
    at += n;
  }
  if (fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return io_error("cannot be sealed: " + errno_text(errno));
  }
  return copy;
}

SealedCopy::~SealedCopy() {
  if (fd_ >= 0) ::close(fd_);
}

fs::path SealedCopy::path() const {
  return "/proc/self/fd/" + std::to_string(fd_);
}

Result<const dvt_plugin_v1*> load_library(const fs::path& path, const Manifest& manifest) {
  namespace dll = boost::dll;
  static auto& kept = *new std::vector<dll::shared_library>;  // never closed
  try {
    // Boost.DLL opens the program itself when it is given the program's path.
    std::error_code ignored;
    if (fs::equivalent(path, "/proc/self/exe", ignored))
      return bad_format("is this program itself");
    dll::shared_library library;
    std::error_code error;
    dlerror();
    library.load(path, error, dll::load_mode::rtld_now | dll::load_mode::rtld_local);
    if (error) return unsupported("cannot be loaded: " + linker_text(path));
    if (!library.has("dvt_plugin_query")) return bad_format("does not export dvt_plugin_query");
    const auto query = library.get<std::remove_pointer_t<dvt_plugin_query_fn>>("dvt_plugin_query");
    kept.push_back(std::move(library));
    const dvt_plugin_v1* descriptor = query(DVT_ABI_MAJOR, DVT_ABI_MINOR);
    DVT_TRY(check_descriptor(descriptor, manifest));
    return descriptor;
  } catch (const std::exception& e) {
    return internal_error(std::string("cannot be loaded: ") + e.what());
  }
}

Status check_interfaces(const dvt_plugin_v1& plugin, void* self, const Manifest& manifest) {
  for (const std::string& name : manifest.provides) {
    const void* table = plugin.get_interface(self, abi_text(name));
    if (table == nullptr)
      return bad_format("its manifest provides \"" + printable(name) +
                        "\", which it does not have");
    if (*static_cast<const uint32_t*>(table) < 2 * sizeof(uint32_t))  // struct_size and flags
      return bad_format("its interface \"" + printable(name) + "\" does not say its size");
  }
  return Status::ok();
}

}  // namespace dovetail::core
