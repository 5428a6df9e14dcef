// The reader works the way down: header, program headers, then the tables that the dynamic section
// points to, each by its address in memory.
#include "core/base/elf.hpp"

#include <elf.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>

#include "core/base/log.hpp"

static_assert(std::endian::native == std::endian::little,
              "plugins are little-endian files read as they lie");

namespace dovetail::core {
namespace {

constexpr uint64_t kMostAddresses = uint64_t{1} << 32;  // of all segments together
constexpr size_t kMostSymbols = 1'000'000;
constexpr size_t kMostVersions = 10'000;
constexpr size_t kMostName = 4096;
constexpr size_t kMostNameBytes = size_t{64} << 20;

class ElfReader {
 public:
  explicit ElfReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  Result<ElfFile> read() {
    DVT_TRY(read_header());
    DVT_TRY(read_segments());
    DVT_TRY(read_dynamic());
    DVT_TRY(read_needs());
    DVT_TRY(read_symbols());
    DVT_TRY(read_relocations());
    return std::move(elf_);
  }

 private:
  struct Dynamic {
    uint64_t strtab = 0, strsz = 0, symtab = 0, hash = 0, gnu_hash = 0;
    uint64_t verneed = 0, n_verneed = 0, verdef = 0, n_verdef = 0;
    uint64_t rela = 0, rela_bytes = 0, jmprel = 0, jmprel_bytes = 0, plt_kind = DT_RELA;
    uint64_t init_array = 0, init_array_bytes = 0, fini_array = 0, fini_array_bytes = 0;
    uint64_t rel = 0;
    uint64_t sym_entry = sizeof(Elf64_Sym), rela_entry = sizeof(Elf64_Rela);
    std::vector<uint64_t> needed;
    std::optional<uint64_t> soname, runpath;
  };

  // ---- bytes at file offsets and at memory addresses

  bool inside(uint64_t offset, uint64_t n) const {
    return offset <= bytes_.size() && n <= bytes_.size() - offset;
  }

  template <class T>
  std::optional<T> at(uint64_t offset) const {
    if (!inside(offset, sizeof(T))) return std::nullopt;
    T value;
    std::memcpy(&value, bytes_.data() + offset, sizeof(T));
    return value;
  }

  /// The file offset of n bytes at an address, if they come from the file.
  std::optional<uint64_t> offset_of(uint64_t address, uint64_t n) const {
    for (const Elf64_Phdr& p : loads_) {
      if (address >= p.p_vaddr && address - p.p_vaddr <= p.p_filesz &&
          n <= p.p_filesz - (address - p.p_vaddr)) {
        return p.p_offset + (address - p.p_vaddr);
      }
    }
    return std::nullopt;
  }

  template <class T>
  std::optional<T> at_address(uint64_t address) const {
    const std::optional<uint64_t> offset = offset_of(address, sizeof(T));
    return offset ? at<T>(*offset) : std::nullopt;
  }

  bool in_segment(uint64_t address, uint64_t n, uint32_t flags) const {
    return std::any_of(loads_.begin(), loads_.end(), [&](const Elf64_Phdr& p) {
      return (p.p_flags & flags) == flags && address >= p.p_vaddr &&
             address - p.p_vaddr <= p.p_memsz && n <= p.p_memsz - (address - p.p_vaddr);
    });
  }

  /// The hash table of a library that exports nothing does not tell how many symbols it needs.
  bool has_symbol(uint64_t index) const {
    return index < n_symbols_ || index == 0 ||
           (elf_.exported.empty() &&
            at_address<Elf64_Sym>(dynamic_.symtab + index * sizeof(Elf64_Sym)));
  }

  /// A string of the string table.
  Result<std::string> name(uint64_t index) {
    if (index < dynamic_.strsz) {
      const std::optional<uint64_t> offset = offset_of(dynamic_.strtab + index, 1);
      if (offset) {
        const char* p = reinterpret_cast<const char*>(bytes_.data()) + *offset;
        const size_t most =
            std::min<size_t>({kMostName, bytes_.size() - *offset, dynamic_.strsz - index});
        const void* end = std::memchr(p, 0, most);
        if (end != nullptr) {
          std::string text(p, static_cast<const char*>(end));
          n_name_bytes_ += text.size();
          if (n_name_bytes_ > kMostNameBytes)
            return damaged("its names never end");  // many symbols share long ones
          return text;
        }
      }
    }
    return damaged("a name lies outside the string table");
  }

  static Status damaged(const std::string& what) {
    return bad_format("the file is damaged: " + what);
  }

  // ---- the parts

  Status read_header() {
    const auto ident = at<std::array<unsigned char, EI_NIDENT>>(0);
    if (!ident || std::memcmp(ident->data(), ELFMAG, SELFMAG) != 0)
      return bad_format("is not an ELF file (a Linux shared library)");
    if ((*ident)[EI_CLASS] != ELFCLASS64) return bad_format("is not for 64-bit machines");
    if ((*ident)[EI_DATA] != ELFDATA2LSB) return bad_format("is not for little-endian machines");
    const auto header = at<Elf64_Ehdr>(0);
    if (!header)
      return damaged("it ends inside its header, after " + std::to_string(bytes_.size()) +
                     " bytes");
    elf_.machine = header->e_machine;
    if (header->e_machine != own_machine()) return Status::ok();  // the caller says so first
    if (header->e_version != EV_CURRENT || (*ident)[EI_VERSION] != EV_CURRENT)
      return damaged("its format version is unknown");
    if (header->e_type != ET_DYN) return bad_format("is not a shared library");
    if (header->e_phentsize != sizeof(Elf64_Phdr) || header->e_phnum == 0 ||
        header->e_phnum > 128) {
      return damaged("its program headers make no sense");
    }
    for (uint32_t i = 0; i < header->e_phnum; ++i) {
      if (header->e_phoff > bytes_.size()) return damaged("its program headers lie outside");
      const auto p = at<Elf64_Phdr>(header->e_phoff + uint64_t{i} * sizeof(Elf64_Phdr));
      if (!p) return damaged("its program headers lie outside");
      headers_.push_back(*p);
    }
    return Status::ok();
  }

  Status read_segments() {
    elf_.executable_stack = !headers_.empty();
    for (const Elf64_Phdr& p : headers_) {
      if (p.p_type == PT_GNU_STACK) elf_.executable_stack = (p.p_flags & PF_X) != 0;
      if (p.p_type == PT_GNU_RELRO) elf_.relro = true;
      if (p.p_type == PT_INTERP) elf_.is_program = true;
      if (p.p_type == PT_LOAD) DVT_TRY(read_load(p));
    }
    for (const Elf64_Phdr& p : headers_) {
      DVT_TRY(check_part(p));
      if (p.p_type == PT_NOTE) DVT_TRY(read_notes(p));
    }
    return Status::ok();
  }

  Status read_load(const Elf64_Phdr& p) {
    if (!inside(p.p_offset, p.p_filesz)) {
      return bad_format("the file is cut short: it has " + std::to_string(bytes_.size()) +
                        " bytes, its segments need " + std::to_string(p.p_offset + p.p_filesz));
    }
    const uint64_t end = loads_.empty() ? 0 : loads_.back().p_vaddr + loads_.back().p_memsz;
    if (p.p_memsz < p.p_filesz || p.p_vaddr < end || p.p_vaddr > kMostAddresses ||
        p.p_memsz > kMostAddresses ||
        (p.p_align > 1 &&
         (!std::has_single_bit(p.p_align) || (p.p_vaddr - p.p_offset) % p.p_align != 0))) {
      return damaged("its segments make no sense");
    }
    if ((p.p_flags & PF_W) != 0 && (p.p_flags & PF_X) != 0) elf_.writable_code = true;
    loads_.push_back(p);
    return Status::ok();
  }

  /// What the header of a part of the loaded segments says of it.
  Status check_part(const Elf64_Phdr& p) const {
    const bool is_part = p.p_type == PT_TLS || p.p_type == PT_GNU_RELRO || p.p_type == PT_DYNAMIC;
    if (is_part && p.p_memsz > 0 &&
        (p.p_filesz > p.p_memsz || !in_segment(p.p_vaddr, p.p_filesz, PF_R))) {
      return damaged("a part that its headers describe lies outside its segments");
    }
    if (p.p_type == PT_TLS &&
        (p.p_memsz > kMostAddresses ||
         (p.p_align > 1 && (!std::has_single_bit(p.p_align) || p.p_align > 4096)))) {
      return damaged("its thread-local segment makes no sense");
    }
    return Status::ok();
  }

  Status read_notes(const Elf64_Phdr& p) {
    if (!inside(p.p_offset, p.p_filesz)) return damaged("its notes lie outside");
    const uint64_t end = p.p_offset + p.p_filesz;
    const auto padded = [align = p.p_align == 8 ? 8u : 4u](uint64_t n) {
      return (n + align - 1) / align * align;
    };
    for (uint64_t at_note = p.p_offset; at_note + sizeof(Elf64_Nhdr) <= end;) {
      const auto head = at<Elf64_Nhdr>(at_note);
      const uint64_t name_at = at_note + sizeof(Elf64_Nhdr);
      const uint64_t content_at = at_note + padded(sizeof(Elf64_Nhdr) + uint64_t{head->n_namesz});
      if (content_at > end || head->n_descsz > end - content_at)
        return damaged("a note is longer than its segment");
      const char* base = reinterpret_cast<const char*>(bytes_.data());
      ElfNote note;
      note.owner.assign(base + name_at, head->n_namesz);
      if (const size_t nul = note.owner.find('\0'); nul != std::string::npos)
        note.owner.resize(nul);
      note.type = head->n_type;
      note.content.assign(base + content_at, head->n_descsz);
      elf_.notes.push_back(std::move(note));
      at_note += padded(content_at - at_note + head->n_descsz);
    }
    return Status::ok();
  }

  Status read_dynamic() {
    if (headers_.empty()) return Status::ok();  // of another machine
    const auto it = std::find_if(headers_.begin(), headers_.end(),
                                 [](const Elf64_Phdr& p) { return p.p_type == PT_DYNAMIC; });
    if (it == headers_.end())
      return bad_format("is not a shared library: it has no dynamic section");
    const uint64_t n = it->p_filesz / sizeof(Elf64_Dyn);
    const std::optional<uint64_t> begin = offset_of(it->p_vaddr, it->p_filesz);
    if (!begin || *begin != it->p_offset)
      return damaged("its dynamic section lies outside its segments");
    bool ended = false;
    for (uint64_t i = 0; i < n && !ended; ++i) {
      const auto d = at<Elf64_Dyn>(*begin + i * sizeof(Elf64_Dyn));
      if (!d) return damaged("its dynamic section lies outside");
      ended = d->d_tag == DT_NULL;
      take(*d);
    }
    if (!ended) return damaged("its dynamic section has no end");
    if (dynamic_.strtab == 0 || !offset_of(dynamic_.strtab, dynamic_.strsz))
      return damaged("its string table lies outside");
    if (dynamic_.symtab == 0 || dynamic_.sym_entry != sizeof(Elf64_Sym))
      return damaged("it has no symbol table");
    if (dynamic_.rel != 0 || dynamic_.plt_kind != DT_RELA ||
        dynamic_.rela_entry != sizeof(Elf64_Rela)) {
      return damaged("its relocations are of an unknown kind");
    }
    return Status::ok();
  }

  void take(const Elf64_Dyn& d) {
    const uint64_t v = d.d_un.d_val;
    switch (d.d_tag) {
      // clang-format off
      case DT_NEEDED: dynamic_.needed.push_back(v); break;
      case DT_SONAME: dynamic_.soname = v; break;
      case DT_RPATH: if (!dynamic_.runpath) dynamic_.runpath = v; break;
      case DT_RUNPATH: dynamic_.runpath = v; break;
      case DT_STRTAB: dynamic_.strtab = v; break;
      case DT_STRSZ: dynamic_.strsz = v; break;
      case DT_SYMTAB: dynamic_.symtab = v; break;
      case DT_SYMENT: dynamic_.sym_entry = v; break;
      case DT_HASH: dynamic_.hash = v; break;
      case DT_GNU_HASH: dynamic_.gnu_hash = v; break;
      case DT_VERNEED: dynamic_.verneed = v; break;
      case DT_VERNEEDNUM: dynamic_.n_verneed = v; break;
      case DT_VERDEF: dynamic_.verdef = v; break;
      case DT_VERDEFNUM: dynamic_.n_verdef = v; break;
      case DT_RELA: dynamic_.rela = v; break;
      case DT_RELASZ: dynamic_.rela_bytes = v; break;
      case DT_RELAENT: dynamic_.rela_entry = v; break;
      case DT_REL: dynamic_.rel = v; break;
      case DT_JMPREL: dynamic_.jmprel = v; break;
      case DT_PLTRELSZ: dynamic_.jmprel_bytes = v; break;
      case DT_PLTREL: dynamic_.plt_kind = v; break;
      case DT_INIT_ARRAY: dynamic_.init_array = v; break;
      case DT_INIT_ARRAYSZ: dynamic_.init_array_bytes = v; break;
      case DT_FINI_ARRAY: dynamic_.fini_array = v; break;
      case DT_FINI_ARRAYSZ: dynamic_.fini_array_bytes = v; break;
      case DT_TEXTREL: elf_.text_relocations = true; break;
      case DT_BIND_NOW: elf_.bind_now = true; break;
      case DT_FLAGS:
        elf_.text_relocations |= (v & DF_TEXTREL) != 0;
        elf_.static_tls |= (v & DF_STATIC_TLS) != 0;
        elf_.bind_now |= (v & DF_BIND_NOW) != 0;
        break;
      case DT_FLAGS_1: elf_.bind_now |= (v & DF_1_NOW) != 0; break;
      default: break;
        // clang-format on
    }
  }

  Status read_needs() {
    if (headers_.empty()) return Status::ok();
    for (const uint64_t index : dynamic_.needed) {
      DVT_TRY(std::string library, name(index));
      elf_.needed.push_back(std::move(library));
    }
    if (dynamic_.soname) {
      DVT_TRY(elf_.soname, name(*dynamic_.soname));
    }
    if (dynamic_.runpath) {
      DVT_TRY(elf_.runpath, name(*dynamic_.runpath));
    }
    DVT_TRY(read_needed_versions());
    return read_defined_versions();
  }

  Status read_needed_versions() {
    uint64_t address = dynamic_.verneed;
    for (uint64_t i = 0; i < dynamic_.n_verneed; ++i) {
      const auto need = at_address<Elf64_Verneed>(address);
      if (!need) return damaged("its symbol versions make no sense");
      DVT_TRY(const std::string library, name(need->vn_file));
      uint64_t entry = address + need->vn_aux;
      for (uint32_t k = 0; k < need->vn_cnt; ++k) {
        const auto aux = at_address<Elf64_Vernaux>(entry);
        if (!aux || elf_.needed_versions.size() > kMostVersions)
          return damaged("its symbol versions make no sense");
        DVT_TRY(std::string version, name(aux->vna_name));
        elf_.needed_versions.push_back(
            {library, std::move(version), (aux->vna_flags & VER_FLG_WEAK) != 0});
        if (aux->vna_next == 0) break;
        entry += aux->vna_next;
      }
      if (need->vn_next == 0) break;
      address += need->vn_next;
    }
    return Status::ok();
  }

  Status read_defined_versions() {
    uint64_t address = dynamic_.verdef;
    for (uint64_t i = 0; i < dynamic_.n_verdef; ++i) {
      const auto def = at_address<Elf64_Verdef>(address);
      const auto aux = def ? at_address<Elf64_Verdaux>(address + def->vd_aux) : std::nullopt;
      if (!aux || elf_.defined_versions.size() > kMostVersions)
        return damaged("its symbol versions make no sense");
      DVT_TRY(std::string version, name(aux->vda_name));
      elf_.defined_versions.push_back(std::move(version));
      if (def->vd_next == 0) break;
      address += def->vd_next;
    }
    return Status::ok();
  }

  /// One more than the index of the last symbol that the dynamic linker can find.
  Result<uint64_t> count_symbols() const {
    if (dynamic_.gnu_hash == 0) {
      const auto n_chain =
          dynamic_.hash == 0 ? std::nullopt : at_address<uint32_t>(dynamic_.hash + 4);
      if (!n_chain) return damaged("it has no table to find symbols with");
      return uint64_t{*n_chain};
    }
    const auto head = at_address<std::array<uint32_t, 4>>(
        dynamic_.gnu_hash);  // buckets, first, bloom words, shift
    if (!head || (*head)[0] == 0 || (*head)[0] > kMostSymbols || (*head)[2] > kMostSymbols ||
        !std::has_single_bit((*head)[2]) || (*head)[1] > kMostSymbols) {
      return damaged("its symbol hash table makes no sense");
    }
    const uint64_t buckets = dynamic_.gnu_hash + 16 + uint64_t{(*head)[2]} * 8;
    const uint64_t chains = buckets + uint64_t{(*head)[0]} * 4;
    uint64_t last = 0;
    for (uint64_t i = 0; i < (*head)[0]; ++i) {
      const auto first = at_address<uint32_t>(buckets + i * 4);
      if (!first || (*first != 0 && *first < (*head)[1]))
        return damaged("its symbol hash table makes no sense");
      last = std::max<uint64_t>(last, *first);
    }
    if (last == 0) return uint64_t{(*head)[1]};
    for (;; ++last) {
      const auto hash = at_address<uint32_t>(chains + (last - (*head)[1]) * 4);
      if (!hash || last > kMostSymbols) return damaged("its symbol hash table makes no sense");
      if ((*hash & 1) != 0) return last + 1;
    }
  }

  Status read_symbols() {
    if (headers_.empty()) return Status::ok();
    DVT_TRY(n_symbols_, count_symbols());
    if (n_symbols_ > kMostSymbols || !offset_of(dynamic_.symtab, n_symbols_ * sizeof(Elf64_Sym))) {
      return damaged("its symbol table lies outside");
    }
    for (uint64_t i = 1; i < n_symbols_; ++i) {
      const auto symbol = at_address<Elf64_Sym>(dynamic_.symtab + i * sizeof(Elf64_Sym));
      if (!symbol) return damaged("its symbol table lies outside");
      const unsigned bind = ELF64_ST_BIND(symbol->st_info);
      const unsigned visibility = ELF64_ST_VISIBILITY(symbol->st_other);
      DVT_TRY(std::string symbol_name, name(symbol->st_name));
      if (bind == STB_GNU_UNIQUE) ++elf_.n_unique_symbols;
      if (symbol->st_shndx == SHN_UNDEF || bind == STB_LOCAL) continue;
      if (visibility == STV_HIDDEN || visibility == STV_INTERNAL) continue;
      if (symbol->st_shndx == SHN_ABS &&
          std::find(elf_.defined_versions.begin(), elf_.defined_versions.end(), symbol_name) !=
              elf_.defined_versions.end()) {
        continue;  // the name of a version
      }
      if (ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && !in_segment(symbol->st_value, 1, PF_X)) {
        return damaged("its function \"" + printable(symbol_name) + "\" lies outside its code");
      }
      elf_.exported.push_back(std::move(symbol_name));
    }
    return Status::ok();
  }

  // The dynamic linker trusts these: a wrong one writes anywhere or calls anything before the first
  // line of the plugin runs.
  Status read_relocations() {
    if (headers_.empty()) return Status::ok();
    const uint32_t must_write = elf_.text_relocations ? PF_R : PF_W;
    for (const auto& [table, n_bytes] : {std::pair(dynamic_.rela, dynamic_.rela_bytes),
                                         std::pair(dynamic_.jmprel, dynamic_.jmprel_bytes)}) {
      if (n_bytes % sizeof(Elf64_Rela) != 0 || (n_bytes > 0 && !offset_of(table, n_bytes))) {
        return damaged("its relocations lie outside");
      }
      for (uint64_t at_entry = 0; at_entry < n_bytes; at_entry += sizeof(Elf64_Rela)) {
        const auto r = at_address<Elf64_Rela>(table + at_entry);
        if (!r || !has_symbol(ELF64_R_SYM(r->r_info)) || !in_segment(r->r_offset, 8, must_write)) {
          return damaged("a relocation makes no sense");
        }
      }
    }
    for (const auto& [table, n_bytes] :
         {std::pair(dynamic_.init_array, dynamic_.init_array_bytes),
          std::pair(dynamic_.fini_array, dynamic_.fini_array_bytes)}) {
      if (n_bytes % 8 != 0 || (n_bytes > 0 && !in_segment(table, n_bytes, PF_R)))
        return damaged("its list of constructors lies outside");
    }
    return Status::ok();
  }

  std::span<const std::byte> bytes_;
  ElfFile elf_;
  std::vector<Elf64_Phdr> headers_, loads_;
  Dynamic dynamic_;
  uint64_t n_symbols_ = 0;
  size_t n_name_bytes_ = 0;
};

}  // namespace

Result<ElfFile> read_elf(std::span<const std::byte> bytes) {
  return ElfReader(bytes).read();
}

std::string machine_name(uint16_t machine) {
  switch (machine) {
    case EM_X86_64:
      return "x86_64";
    case EM_AARCH64:
      return "aarch64";
    case EM_RISCV:
      return "riscv";
    case EM_PPC64:
      return "ppc64";
    case EM_386:
      return "x86 (32 bit)";
    case EM_ARM:
      return "arm (32 bit)";
    default:
      return "machine " + std::to_string(machine);
  }
}

uint16_t own_machine() {
#if defined(__x86_64__)
  return EM_X86_64;
#elif defined(__aarch64__)
  return EM_AARCH64;
#elif defined(__riscv)
  return EM_RISCV;
#elif defined(__powerpc64__)
  return EM_PPC64;
#else
#error "plugins are not described for this machine"
#endif
}

}  // namespace dovetail::core
