// What a step brings to the device: tokens, positions, page tables and the tiles that attention works in, sent
// in one copy.
#pragma once

#include <dovetail/host_program.hpp>

#include <compare>
#include <map>
#include <vector>

#include <kernels/cuda.hpp>

#include "device.hpp"

namespace dovetail::cuda {

/// The device's memory for states.
class DeviceStateMemory {
 public:
  using Block = DeviceBytes;
  explicit DeviceStateMemory(Device& device) : device_(&device) {}

  Block allocate(uint64_t n) const { return {*device_, n}; }
  void zero(uint8_t* p, uint64_t n) const { device_->zero(p, n); }
  void copy(uint8_t* to, const uint8_t* from, uint64_t n) const { device_->copy(to, from, n); }
  void copy_in(uint8_t* to, const uint8_t* host, uint64_t n) const {
    device_->copy_in(to, host, n);
  }
  void copy_out(uint8_t* host, const uint8_t* from, uint64_t n) const {
    device_->copy_out(host, from, n);
  }
  void wait() const { device_->wait(); }

 private:
  Device* device_;
};
using DeviceStates = States<DeviceStateMemory>;

/// What the launches of a step depend on besides what it sends: steps of the same shape take the same launches.
struct StepShape {
  int64_t n_tokens, n_rows, n_seqs;  // more than the batch has where it is filled up
  int64_t room;                      // beyond every position
  int64_t n_pages;                   // places of each group's page tables
  bool has_mask;

  auto operator<=>(const StepShape&) const = default;
};

/// A batch on the device.
class Step {
 public:
  /// tile_lens: of every attention of the graph; groups: of every paged state; max: of any step.
  Step(Device& device, std::vector<int64_t> tile_lens, std::vector<uint32_t> groups,
       const Sizes& max)
      : device_(device), tile_lens_(std::move(tile_lens)), groups_(std::move(groups)), max_(max) {}

  /// The shape of a batch as it is; or, where each of its sequences has one token and one row of logits, filled up
  /// to the next power of two of everything: of these there are few, and each comes again.
  StepShape shape(const dvt_batch& batch, bool has_mask) const;
  static bool has_few_shapes(const dvt_batch& batch);

  /// Sends a batch in that shape; what is missing in it is filled with copies of the token with the shortest
  /// context: they compute, and write to the cache, what that one does.
  ///
  /// `from`: per token, for take_tokens. `host` is where the batch is put together: it must stay until the queue is
  /// past this. Gives whether memory on the device had to be taken anew, which is where launches of earlier
  /// steps read.
  ///
  /// errors    throws Error where a group has no page tables.
  bool send(const dvt_batch& batch, const StepShape& shape, const std::vector<int32_t>& from,
            const uint32_t* mask, int64_t n_mask_words, HostBytes& host);

  const StepShape& shape() const { return shape_; }
  /// Null where the batch has none.
  int32_t* tokens() const { return has_tokens_ ? at<int32_t>(tokens_at_) : nullptr; }
  const int32_t* from() const { return at<int32_t>(from_at_); }
  const int32_t* positions() const { return at<int32_t>(positions_at_); }
  const int32_t* out_rows() const { return at<int32_t>(out_rows_at_); }
  /// Null where no mask was sent.
  const uint32_t* mask() const { return shape_.has_mask ? at<uint32_t>(mask_at_) : nullptr; }
  kernels::cuda::StepRows rows(uint32_t group) const;
  struct Tiles {
    const kernels::cuda::AttendTile* g_tiles;
    int64_t n;
  };
  Tiles tiles(int64_t tile_len) const;
  int64_t n_tokens() const { return shape_.n_tokens; }
  Device& device() const { return device_; }
  kernels::cuda::Stream stream() const { return device_.stream(); }

 private:
  template <class T>
  T* at(size_t offset) const {
    return reinterpret_cast<T*>(sent_.get() + offset);
  }
  /// Puts n elements behind the others, and room for more up to n_places; gives where.
  template <class T>
  size_t add(const T* values, size_t n, size_t n_places);
  template <class T>
  size_t add(const std::vector<T>& values) {
    return add(values.data(), values.size(), values.size());
  }
  void add_tables(const dvt_batch& batch, uint32_t group);
  void add_tiles(const dvt_batch& batch, int64_t tile_len);

  struct Tables {
    size_t page_begin_at, pages_at;
  };
  struct TileList {
    size_t at;
    int64_t n;
  };

  Device& device_;
  std::vector<int64_t> tile_lens_;
  std::vector<uint32_t> groups_;
  Sizes max_;
  StepShape shape_{};
  int64_t copied_ = 0;  // the token that a filled-up batch has more than once
  std::vector<uint8_t> staged_;
  std::vector<int32_t> values_;       // of the array at hand; kept for its memory
  std::vector<uint32_t> page_begin_;  // likewise
  std::vector<kernels::cuda::AttendTile> tile_list_;
  DeviceBytes sent_;  // grows with the longest page tables
  bool has_tokens_ = false;
  size_t tokens_at_ = 0, from_at_ = 0, positions_at_ = 0, out_rows_at_ = 0, mask_at_ = 0;
  std::map<uint32_t, Tables> tables_;
  std::map<int64_t, TileList> tiles_;
};

}  // namespace dovetail::cuda
