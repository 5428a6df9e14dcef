// Weights: every tensor that a graph uses, in the layout that the backend asked for.
//
// keep   the backend reads the mapped file: no copy, quick start
// pack   the backend's own layout, written once into memory that this object owns
// The backend answers per tensor (plan); packing reports progress and can be cancelled.
#pragma once

#include <dovetail/abi/backend.h>

#include <deque>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "core/base/pages.hpp"
#include "core/base/status.hpp"
#include "core/graph/graph.hpp"
#include "core/model/checkpoint.hpp"
#include "core/model/promotion.hpp"
#include "core/model/repack_cache.hpp"
#include "core/plugin/call_frame.hpp"

namespace dovetail::core {

/// Which format a tensor should have, by class ("default", "lm_head", "embed", ...); empty = as stored.
struct WeightFormats {
  std::string everywhere;
  std::vector<std::pair<std::string, std::string>> by_class;
};

class Weights {
 public:
  Weights() = default;
  Weights(const Weights&) = delete;
  Weights& operator=(const Weights&) = delete;

  /// Asks the backend for a plan of every weight of the graph. Pure: nothing is read.
  Status plan(const Graph& graph, const Checkpoint& checkpoint, const WeightFormats& formats,
              const dvt_backend_v1& backend, void* context);
  /// The packed weights of the plan, in its order, for the cache.
  std::vector<RepackCache::Item> packed_items() const;
  /// Does what was planned, with packed weights from the cache if it is open. Buffers live as long as this
  /// object, and so must the cache.
  Status load(const dvt_backend_v1& backend, void* context, const RepackCache& cache,
              const uint32_t* cancel, const ProgressFn& progress);
  /// What load() packed, in the order of packed_items().
  const std::vector<std::span<const std::byte>>& packed() const { return packed_; }

  /// One weight of the plan.
  struct Planned {
    const dvt_weight_use& use;
    const dvt_weight_plan& plan;
    const TensorInfo& source;
  };
  Planned planned(size_t i) const { return {uses_[i], plans_[i], *sources_[i]}; }
  /// Of weight i in the format that the backend was told it is stored in.
  uint64_t source_bytes(size_t i) const;
  /// Weight i's bytes in that format and in order: where they lie, or in `copy`.
  Result<std::span<const std::byte>> stored_bytes(size_t i, std::vector<std::byte>& copy,
                                                  const uint32_t* cancel) const;
  /// Rows [row0, row0 + n) of weight i, packed: a piece of what a file holds under plan.file_format. row0
  /// is a multiple of DVT_FILE_ROWS; n too, or up to the end. `out` is made as long as the piece.
  Status pack_rows(size_t i, int64_t row0, int64_t n, const dvt_backend_v1& backend, void* context,
                   const uint32_t* cancel, std::vector<std::byte>& out) const;
  /// The format of weight i's numbers while the model runs: the one it is packed in or quantised to, or as stored.
  std::string_view format_in_use(size_t i) const;
  /// How many weights have which format: "28 of int4.1, 1 of float32, 9 of awq int4, groups of 128 as float32". Those
  /// read where they lie, or the others.
  std::string formats_text(bool mapped) const;
  /// Of all matrices, in the order of the graph: their formats, as the model runs; "fp8 as bf16" of one in parts.
  std::vector<std::string> matrix_formats() const;
  /// Bits a number of the matrix with the fewest, with its blocks' scales, in the file or as the model runs if that
  /// is less; 32 without matrices.
  double least_bits() const;

  uint64_t mapped_bytes() const { return mapped_bytes_; }
  uint64_t packed_bytes() const { return packed_bytes_; }
  size_t n_tensors() const { return uses_.size(); }
  /// Whether a matrix in parts takes more than its parts do.
  bool expands() const;
  /// What load() takes beside the weights, at most, to bring one into order or to expand it before it is packed.
  uint64_t staging_bytes() const;
  /// Bytes that one token reads: every dense weight once, one row of those read by rows.
  uint64_t bytes_per_token() const;
  /// Parts of mapped files that every token reads whole, in order.
  /// What the cache gave counts when it is open.
  std::vector<Promotion::Range> streamed(const RepackCache& cache) const;
  /// Whether the dense weights are stored as float32 (or there are none).
  bool is_float32() const;

 private:
  struct AlignedFree {
    size_t align;
    void operator()(std::byte* p) const { ::operator delete[](p, std::align_val_t{align}); }
  };
  struct Buffer {
    std::unique_ptr<std::byte[], AlignedFree> small;
    Pages large;
    std::byte* get() const { return large ? large.data() : small.get(); }
  };
  /// The format of weight i for people, with what it is made from.
  std::string format_text(size_t i) const;
  Status check_kept(size_t i) const;
  /// Whether weight i is packed in pieces, so that it is never whole in the format it is packed from.
  bool packs_in_pieces(size_t i) const;
  int64_t piece_rows(size_t i) const;
  /// Packs weight i, alone in its group, to `out`, which is as long as its plan says.
  Status pack_pieces(size_t i, const dvt_backend_v1& backend, void* context, const uint32_t* cancel,
                     std::byte* out) const;
  /// One past the last weight of the plan group that begins at i: they stand together, in order.
  size_t group_end(size_t i) const;
  /// Packs the group of weights [i, end), whose plan says so, to the end of packed_.
  Status pack_group(size_t i, size_t end, const dvt_backend_v1& backend, void* context,
                    const uint32_t* cancel);
  void let_go_of_source(size_t i) const;
  static Result<Buffer> make_buffer(const dvt_weight_use& use, uint64_t bytes, uint64_t align);
  /// Whether the stored tensor can be read where it lies: its rows are in order, and it begins at a multiple of
  /// its elements' size; files need not keep to that.
  bool is_in_place(size_t i) const;
  /// The stored bytes, or a copy in `copies` that can be read so.
  Result<std::span<const std::byte>> ordered_source(size_t i, std::vector<Buffer>& copies,
                                                    const uint32_t* cancel) const;

  const Checkpoint* checkpoint_ = nullptr;
  std::vector<dvt_weight_use> uses_;
  std::vector<dvt_weight_plan> plans_;
  std::vector<const TensorInfo*> sources_;
  std::vector<Buffer> buffers_;
  std::vector<std::span<const std::byte>> packed_;
  std::deque<std::string> asked_;  // what uses_ name as stored and wanted
  uint64_t mapped_bytes_ = 0, packed_bytes_ = 0;
};

}  // namespace dovetail::core
