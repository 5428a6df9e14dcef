// States: the bytes of sequence states, in host memory (HostStates) or in a device's.
//
// PAGED rows of two dimensions [G, E] lie as [page][G][row][E], so that one head's rows of a page are
// one run of memory; other rows as [page][row][..]. With DVT_I8_SCALED the bytes of a scaled row stand
// for [E]. FIXED blocks lie by sequence slot. Export and import speak the canonical layout [rows, dim...].
#pragma once

#include <dovetail/abi/op.h>
#include <dovetail/backend.hpp>

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <vector>

namespace dovetail {

inline uint64_t dtype_bytes(uint32_t dtype) {
  switch (dtype) {
    case DVT_F32:
    case DVT_I32:
    case DVT_U32:
      return 4;
    case DVT_BF16:
    case DVT_F16:
    case DVT_I16:
      return 2;
    case DVT_I8:
    case DVT_U8:
    case DVT_BOOL:
      return 1;
    case DVT_F64:
    case DVT_I64:
    case DVT_U64:
      return 8;
    default:
      throw Error("dtype " + std::to_string(dtype) + " has no fixed size", DVT_EUNSUPPORTED);
  }
}

/// Memory on a 64-byte line that frees itself; much of it lies in 2 MiB pages where the system has
/// them, which spares kernels that stride through it most of their page walks.
struct AlignedFree {
  void operator()(uint8_t* p) const { std::free(p); }
};
using AlignedBytes = std::unique_ptr<uint8_t[], AlignedFree>;
inline AlignedBytes aligned_bytes(uint64_t n) {
  constexpr uint64_t kLine = 64, kHugePage = 2 << 20;
  const uint64_t align = n >= kHugePage ? kHugePage : kLine;
  void* p = std::aligned_alloc(align, std::max<uint64_t>(align, (n + align - 1) / align * align));
  if (!p) throw std::bad_alloc();
  if (align == kHugePage) madvise(p, n, MADV_HUGEPAGE);  // a wish: a refusal changes nothing
  return AlignedBytes(static_cast<uint8_t*>(p));
}

/// The host's memory for states: how blocks are made, filled, and moved from and to host memory. Of copies in and
/// out, the host's side is done with when wait() has returned.
struct HostMemory {
  using Block = AlignedBytes;

  Block allocate(uint64_t n) const { return aligned_bytes(n); }
  void zero(uint8_t* p, uint64_t n) const { std::memset(p, 0, n); }
  void copy(uint8_t* to, const uint8_t* from, uint64_t n) const { std::memcpy(to, from, n); }
  void copy_in(uint8_t* to, const uint8_t* host, uint64_t n) const { std::memcpy(to, host, n); }
  void copy_out(uint8_t* host, const uint8_t* from, uint64_t n) const {
    std::memcpy(host, from, n);
  }
  void wait() const {}
};

/// States in memory of that kind, whose blocks say get().
template <class Memory>
class States {
 public:
  struct Slot {
    uint32_t kind = 0, dtype = 0, group = 0;
    uint64_t n_outer = 1,
             row_len = 1;  // a row's first dimension when there are two or more; elements for each
    // What kernels count strides in: single bytes where rows carry a scale.
    uint64_t element_bytes = 1;
    uint64_t row_bytes = 0, page_bytes = 0, outer_bytes = 0;
    uint8_t* data = nullptr;
  };

  static uint32_t stored_dtype(const dvt_state_spec& spec, uint32_t kv_dtype) {
    if (spec.dtype != DVT_ACTIVATION) return spec.dtype;
    return kv_dtype == DVT_I8_SCALED && spec.kind != DVT_STATE_PAGED ? uint32_t{DVT_F32} : kv_dtype;
  }
  /// Bytes of n elements that lie in one run, of their scale too.
  static uint64_t run_bytes(uint32_t dtype, uint64_t n) {
    return dtype == DVT_I8_SCALED ? (n + 3) / 4 * 4 + sizeof(float) : n * dtype_bytes(dtype);
  }
  /// Bytes of one page (PAGED) or one sequence (FIXED) of a slot.
  static uint64_t bytes_per_unit(const dvt_state_spec& spec, uint32_t kv_dtype, uint32_t page_len) {
    return slot_of(spec, kv_dtype, page_len).page_bytes;
  }
  /// Bytes of all states of a graph.
  static StateEstimate estimate(const GraphView& g, uint32_t kv_dtype, uint32_t page_len) {
    StateEstimate out;
    for (uint64_t i = 0; i < g.raw().n_states; ++i) {
      const dvt_state_spec& spec = g.state(i);
      const uint64_t bytes = bytes_per_unit(spec, kv_dtype, page_len);
      (spec.kind == DVT_STATE_PAGED ? out.bytes_per_page : out.bytes_per_slot) += bytes;
    }
    return out;
  }
  static bool supported(const dvt_state_spec& spec) {
    return (spec.kind == DVT_STATE_PAGED && spec.rate == 1) || spec.kind == DVT_STATE_FIXED;
  }

  explicit States(Memory memory = {}) : memory_(std::move(memory)) {}

  void alloc(std::span<const dvt_state_spec> specs, uint32_t kv_dtype, uint32_t page_len,
             uint32_t n_pages, uint32_t n_slots) {
    page_len_ = page_len;
    slots_.clear();
    std::vector<uint64_t>
        offsets;  // all states share one block of memory, each on a line of its own
    bytes_ = 0;
    for (const dvt_state_spec& spec : specs) {
      if (!supported(spec))
        throw Error("state \"" + std::string(to_view(spec.name)) + "\" is of kind " +
                        std::to_string(spec.kind) +
                        ", this backend has paged rows at rate 1 and fixed blocks",
                    DVT_EUNSUPPORTED);
      const Slot slot = slot_of(spec, kv_dtype, page_len);
      const uint64_t total = slot.page_bytes * (spec.kind == DVT_STATE_PAGED ? n_pages : n_slots);
      offsets.push_back(bytes_);
      bytes_ += (total + 63) / 64 * 64;
      slots_.push_back(slot);
    }
    block_ = memory_.allocate(bytes_);
    for (size_t i = 0; i < slots_.size(); ++i) {
      slots_[i].data = block_.get() + offsets[i];
      if (slots_[i].kind == DVT_STATE_FIXED)
        memory_.zero(slots_[i].data, slots_[i].page_bytes * n_slots);
    }
  }
  const Slot& slot(uint32_t i) const { return slots_[i]; }
  size_t size() const { return slots_.size(); }
  uint32_t page_len() const { return page_len_; }
  uint64_t bytes() const { return bytes_; }

  void reset(uint32_t sequence_slot) {
    for (Slot& s : slots_)
      if (s.kind == DVT_STATE_FIXED)
        memory_.zero(s.data + sequence_slot * s.page_bytes, s.page_bytes);
  }
  void copy_pages(uint32_t group, const uint32_t* src, const uint32_t* dst, uint64_t n) {
    for (Slot& s : slots_)
      if (s.kind == DVT_STATE_PAGED && s.group == group)
        for (uint64_t i = 0; i < n; ++i)
          memory_.copy(s.data + dst[i] * s.page_bytes, s.data + src[i] * s.page_bytes,
                       s.page_bytes);
  }
  void export_chunk(const dvt_chunk& c) const { transfer(c, false); }
  void import_chunk(const dvt_chunk& c) { transfer(c, true); }

 private:
  static Slot slot_of(const dvt_state_spec& spec, uint32_t kv_dtype, uint32_t page_len) {
    Slot slot;
    slot.kind = spec.kind;
    slot.dtype = stored_dtype(spec, kv_dtype);
    slot.group = spec.group;
    const bool paged = spec.kind == DVT_STATE_PAGED, has_outer = paged && spec.ndim >= 2;
    if (has_outer) slot.n_outer = static_cast<uint64_t>(spec.dim[0]);
    for (uint32_t i = has_outer ? 1 : 0; i < spec.ndim; ++i)
      slot.row_len *= static_cast<uint64_t>(spec.dim[i]);
    slot.element_bytes = slot.dtype == DVT_I8_SCALED ? 1 : dtype_bytes(slot.dtype);
    slot.row_bytes = run_bytes(slot.dtype, slot.row_len);
    slot.outer_bytes = slot.row_bytes * page_len;
    slot.page_bytes = slot.row_bytes * slot.n_outer * (paged ? page_len : 1);
    return slot;
  }

  // Rows of one page in a chunk.
  struct Part {
    uint8_t* page;       // of the slot
    uint64_t first, n;   // rows in it
    uint64_t row;        // of the chunk
    uint64_t staged_at;  // byte of the staging memory, where they lie as in the page
  };

  void transfer(const dvt_chunk& c, bool in) const {
    if (c.state >= slots_.size())
      throw Error("state " + std::to_string(c.state) + " does not exist");
    const Slot& s = slots_[c.state];
    auto* outside = static_cast<uint8_t*>(c.data);
    if (s.kind == DVT_STATE_FIXED) {
      if (c.bytes != s.page_bytes)
        throw Error("chunk is " + std::to_string(c.bytes) + " bytes, expected " +
                    std::to_string(s.page_bytes));
      uint8_t* const inside = s.data + c.slot * s.page_bytes;
      in ? memory_.copy_in(inside, outside, s.page_bytes)
         : memory_.copy_out(outside, inside, s.page_bytes);
      return memory_.wait();
    }
    if (c.bytes != c.rows * s.row_bytes * s.n_outer ||
        (c.row0 + c.rows + page_len_ - 1) / page_len_ > c.n_pages)
      throw Error("chunk of " + std::to_string(c.rows) +
                  " rows does not fit its buffer or page table");
    // Through memory beside, in the order of a page: a device is sent pages, not rows.
    const auto staged = std::make_unique_for_overwrite<uint8_t[]>(c.bytes);
    const std::vector<Part> parts = parts_of(c, s);
    if (in) {
      for (const Part& p : parts) {
        reorder(s, p, outside, staged.get(), true);
        copy_part(s, p, staged.get(), true);
      }
      return memory_.wait();
    }
    for (const Part& p : parts) copy_part(s, p, staged.get(), false);
    memory_.wait();
    for (const Part& p : parts) reorder(s, p, outside, staged.get(), false);
  }
  std::vector<Part> parts_of(const dvt_chunk& c, const Slot& s) const {
    std::vector<Part> parts;
    for (uint64_t row = 0; row < c.rows;) {
      const uint64_t at = c.row0 + row, first = at % page_len_;
      const uint64_t n = std::min<uint64_t>(page_len_ - first, c.rows - row);
      parts.push_back({s.data + c.pages[at / page_len_] * s.page_bytes, first, n, row,
                       row * s.row_bytes * s.n_outer});
      row += n;
    }
    return parts;
  }
  // Canonical rows to the order of a page, or back.
  static void reorder(const Slot& s, const Part& p, uint8_t* rows, uint8_t* staged, bool in) {
    for (uint64_t d = 0; d < s.n_outer; ++d)
      for (uint64_t r = 0; r < p.n; ++r) {
        uint8_t* const row = rows + ((p.row + r) * s.n_outer + d) * s.row_bytes;
        uint8_t* const run = staged + p.staged_at + (d * p.n + r) * s.row_bytes;
        std::memcpy(in ? run : row, in ? row : run, s.row_bytes);
      }
  }
  // A whole page at once, of another one each first index's rows.
  void copy_part(const Slot& s, const Part& p, uint8_t* staged, bool in) const {
    const bool is_whole = p.n == page_len_;
    const uint64_t n_runs = is_whole ? 1 : s.n_outer,
                   bytes = p.n * s.row_bytes * (is_whole ? s.n_outer : 1);
    for (uint64_t d = 0; d < n_runs; ++d) {
      uint8_t* const inside = p.page + d * s.outer_bytes + p.first * s.row_bytes;
      uint8_t* const beside = staged + p.staged_at + d * bytes;
      in ? memory_.copy_in(inside, beside, bytes) : memory_.copy_out(beside, inside, bytes);
    }
  }

  Memory memory_;
  typename Memory::Block block_;
  std::vector<Slot> slots_;  // in block_
  uint32_t page_len_ = 1;
  uint64_t bytes_ = 0;
};
using HostStates = States<HostMemory>;

}  // namespace dovetail
