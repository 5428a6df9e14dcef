// What a shared library says about itself in its file, read without loading it.
//
// Only program headers and what they lead to are used, as the dynamic linker does; section headers
// may be stripped. Every offset in the file is checked, so that a damaged or hostile file gives an
// error and never a crash.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.hpp"

namespace dovetail::core {

struct ElfNote {
  std::string owner;
  uint32_t type = 0;
  std::string content;
};

/// A version of a library's symbols that the file needs: "libstdc++.so.6", "GLIBCXX_3.4.32".
struct ElfVersionNeed {
  std::string library, version;
  bool weak = false;
};

struct ElfFile {
  uint16_t machine = 0;  // EM_*
  std::string soname;
  std::string runpath;              // or rpath, as written
  std::vector<std::string> needed;  // libraries, in order
  std::vector<ElfVersionNeed> needed_versions;
  std::vector<std::string> defined_versions;  // that this library offers
  std::vector<std::string> exported;          // defined, visible symbols
  std::vector<ElfNote> notes;
  bool is_program = false;  // names the dynamic linker that starts it
  bool text_relocations = false;
  bool executable_stack = false;  // asked for, or not declined
  bool writable_code = false;     // a segment that can be written and executed
  bool static_tls = false;
  bool relro = false;
  bool bind_now = false;
  uint32_t n_unique_symbols = 0;  // STB_GNU_UNIQUE: the library can never be unloaded
};

/// Reads a shared library for little-endian 64-bit Linux.
/// errors  kFormat: not an ELF file, of another class or byte order, not a shared library, cut
///         short, or with a table that lies outside the file. The message does not name the file.
Result<ElfFile> read_elf(std::span<const std::byte> bytes);

/// "x86_64", "aarch64", "machine 42".
std::string machine_name(uint16_t machine);
/// EM_* of the program that runs.
uint16_t own_machine();

}  // namespace dovetail::core
