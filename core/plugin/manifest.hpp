// Manifest: what a plugin says about itself in the ELF note DOVETAIL, before any of it is loaded.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/elf.hpp"
#include "core/base/status.hpp"

namespace dovetail::core {

struct Manifest {
  std::string id;       // reverse DNS: "org.dovetail.arch.qwen3"
  std::string kind;     // "arch"
  std::string name;     // "qwen3", as YAML writes it
  std::string version;  // of the plugin
  std::string abi_hash;
  int64_t abi_major = 0, abi_minor = 0;
  std::string sanitizer;  // "none", "address", "thread"
  std::string compiler;
  std::vector<std::string> provides;  // interfaces: "dovetail.arch/1"
  std::vector<std::string> keys;      // what it answers to: model_types, file names, device kinds
};

/// Reads the manifest out of a file's notes: strict JSON of at most 16 KiB; members that are not
/// listed here are left alone.
/// errors  kFormat: no note, two, or one that says not what it must.
Result<Manifest> read_manifest(const ElfFile& file);

}  // namespace dovetail::core
