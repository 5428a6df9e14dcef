// Inspection: everything that is checked about a plugin's file before a byte of it is loaded.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/elf.hpp"
#include "core/base/files.hpp"
#include "core/base/status.hpp"
#include "core/plugin/libraries.hpp"
#include "core/plugin/manifest.hpp"

namespace dovetail::core {

/// The steps of loading a plugin, in order. A candidate falls out at one of them.
enum class LoadStep : uint8_t {
  kFile,       // open it; ELF, machine, shared library, every offset inside
  kManifest,   // the note
  kInterface,  // built for this interface, and for a host like this one
  kLibraries,  // what it needs is here
  kSymbols,    // exports one symbol; nothing in it that could harm the process
  kPolicy,     // plugins.allow, plugins.deny
  kProbe,      // loads, starts and stops in a child process
  kLoad,       // dlopen, and the descriptor says what the manifest says
  kStart,
};
const char* step_name(LoadStep step);

struct Finding {
  LoadStep step;
  Status status;
};

struct Inspection {
  std::filesystem::path path;
  uint64_t size = 0;
  std::optional<ElfFile> elf;
  std::optional<Manifest> manifest;
  std::vector<Finding>
      findings;  // reasons not to load it, first ones first; none: it may be loaded

  bool is_good() const { return findings.empty(); }
  /// Whether it finds libraries by its own place ($ORIGIN), so that it cannot run from another alone.
  bool brings_libraries() const { return elf && elf->runpath.find("ORIGIN") != std::string::npos; }
};

/// Reads and checks a file; never fails, the findings say why it cannot be loaded.
/// `folder` is where the plugin lies, for $ORIGIN.
Inspection inspect_plugin(const std::filesystem::path& path, LibraryFinder& libraries);
Inspection inspect_plugin(const File& file, const std::filesystem::path& path,
                          LibraryFinder& libraries);

}  // namespace dovetail::core
