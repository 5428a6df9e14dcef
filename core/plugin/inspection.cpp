// The checks, in the order of LoadStep. Later ones go on as far as they can, for `plugins inspect`.
#include "core/plugin/inspection.hpp"

#include <dovetail/abi/plugin.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "core/base/log.hpp"

namespace dovetail::core {
namespace {

constexpr std::string_view kEntry = "dvt_plugin_query";
// Some linkers export these of their own accord.
constexpr std::array<std::string_view, 5> kLinkerMarks = {"_init", "_fini", "_edata", "_end",
                                                          "__bss_start"};

class Checks {
 public:
  explicit Checks(Inspection& in) : in_(in) {}

  void refuse(LoadStep step, Status status) { in_.findings.push_back({step, std::move(status)}); }

  void interface(const Manifest& m) {
    if (m.abi_major != DVT_ABI_MAJOR) {
      refuse(LoadStep::kInterface,
             {Code::kVersion, "was built for plugin interface " + std::to_string(m.abi_major) +
                                  ", this program has " + std::to_string(DVT_ABI_MAJOR) +
                                  "; get a build of the plugin for it"});
    } else if (m.abi_hash != DVT_ABI_HASH) {
      refuse(LoadStep::kInterface,
             {Code::kVersion, "was built for draft \"" + printable(m.abi_hash) +
                                  "\" of the plugin interface, this program has \"" DVT_ABI_HASH
                                  "\"; build it again with this program's SDK"});
    }
    if (m.sanitizer != "none" && m.sanitizer != DVT_SANITIZER_NAME) {
      refuse(LoadStep::kInterface,
             unsupported("was built with the " + printable(m.sanitizer) +
                         " sanitizer, which would end this program (built with " +
                         (std::string_view(DVT_SANITIZER_NAME) == "none" ? "none"
                                                                         : "the " DVT_SANITIZER_NAME
                                                                           " sanitizer") +
                         "); build it without"));
    }
    if (m.provides.empty())
      refuse(LoadStep::kInterface, bad_format("its manifest provides no interface"));
  }

  void symbols(const ElfFile& elf) {
    std::string others;
    bool has_entry = false;
    size_t n_others = 0;
    for (const std::string& name : elf.exported) {
      if (name == kEntry) {
        has_entry = true;
      } else if (std::find(kLinkerMarks.begin(), kLinkerMarks.end(), name) == kLinkerMarks.end() &&
                 ++n_others <= 3) {
        others += (n_others > 1 ? ", " : "") + printable(name);
      }
    }
    if (!has_entry)
      refuse(LoadStep::kSymbols,
             bad_format("does not export dvt_plugin_query; link it with dovetail_add_plugin()"));
    if (n_others > 0) {
      refuse(LoadStep::kSymbols,
             bad_format(
                 "exports " + std::to_string(n_others) + (n_others == 1 ? " symbol" : " symbols") +
                 " besides dvt_plugin_query (" + others + (n_others > 3 ? ", ..." : "") +
                 "), which could clash with other plugins; link it with dovetail_add_plugin()"));
    }
    if (elf.is_program)
      refuse(LoadStep::kSymbols, bad_format("is a program, not a library to load"));
    if (elf.text_relocations)
      refuse(
          LoadStep::kSymbols,
          bad_format(
              "has text relocations (its code is changed when it is loaded); build it with -fPIC"));
    if (elf.executable_stack)
      refuse(LoadStep::kSymbols,
             bad_format("asks for an executable stack; link it with -z noexecstack"));
    if (elf.writable_code)
      refuse(LoadStep::kSymbols, bad_format("has code that can be written to"));
    if (elf.static_tls)
      refuse(LoadStep::kSymbols, bad_format("needs static thread-local storage, which runs out; "
                                            "build it without -ftls-model=initial-exec"));
  }

 private:
  Inspection& in_;
};

}  // namespace

const char* step_name(LoadStep step) {
  switch (step) {
    case LoadStep::kFile:
      return "file";
    case LoadStep::kManifest:
      return "manifest";
    case LoadStep::kInterface:
      return "interface";
    case LoadStep::kLibraries:
      return "libraries";
    case LoadStep::kSymbols:
      return "symbols";
    case LoadStep::kPolicy:
      return "policy";
    case LoadStep::kProbe:
      return "probe";
    case LoadStep::kLoad:
      return "load";
    case LoadStep::kStart:
      return "start";
  }
  return "unknown";
}

Inspection inspect_plugin(const std::filesystem::path& path, LibraryFinder& libraries) {
  const Result<std::shared_ptr<File>> file = File::open(path);
  if (file) return inspect_plugin(**file, path, libraries);
  Inspection out;
  out.path = path;
  // The finding does not name the file again.
  std::string why = file.status().message();
  if (const std::string prefix = path.string() + ": "; why.starts_with(prefix))
    why.erase(0, prefix.size());
  out.findings.push_back({LoadStep::kFile, {file.status().code(), why}});
  return out;
}

Inspection inspect_plugin(const File& file, const std::filesystem::path& path,
                          LibraryFinder& libraries) {
  Inspection out;
  out.path = path;
  out.size = file.size();
  Checks checks(out);
  const auto bytes = file.map();
  if (!bytes) {
    checks.refuse(LoadStep::kFile, bytes.status());
    return out;
  }
  Result<ElfFile> elf = read_elf(*bytes);
  if (!elf) {
    checks.refuse(LoadStep::kFile, elf.status());
    return out;
  }
  out.elf = std::move(*elf);
  if (out.elf->machine != own_machine()) {
    checks.refuse(LoadStep::kFile, unsupported("was built for " + machine_name(out.elf->machine) +
                                               ", this machine is " + machine_name(own_machine())));
    return out;
  }
  Result<Manifest> manifest = read_manifest(*out.elf);
  if (manifest) {
    out.manifest = std::move(*manifest);
    checks.interface(*out.manifest);
  } else {
    checks.refuse(LoadStep::kManifest, manifest.status());
  }
  for (std::string& line : libraries.missing(*out.elf, path.parent_path()))
    checks.refuse(LoadStep::kLibraries, unsupported(std::move(line)));
  checks.symbols(*out.elf);
  return out;
}

}  // namespace dovetail::core
