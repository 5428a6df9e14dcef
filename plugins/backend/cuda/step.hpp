// What a step brings to the device: tokens, positions, page tables and the tiles that attention works in, sent
// in one copy.
#pragma once

#include <dovetail/host_program.hpp>

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

/// A batch on the device.
class Step {
 public:
  /// tile_lens: of every attention of the graph; groups: of every paged state.
  Step(Device& device, std::vector<int64_t> tile_lens, std::vector<uint32_t> groups)
      : device_(device), tile_lens_(std::move(tile_lens)), groups_(std::move(groups)) {}

  /// Checks the batch's tables and sends them.
  ///
  /// errors    throws Error where a group has no page tables.
  void send(const dvt_batch& batch, const int32_t* tokens, const uint32_t* mask,
            int64_t n_mask_words);

  const int32_t* tokens() const { return at<int32_t>(tokens_at_); }
  const int32_t* positions() const { return at<int32_t>(positions_at_); }
  const int32_t* out_rows() const { return at<int32_t>(out_rows_at_); }
  /// Null where no mask was sent.
  const uint32_t* mask() const { return has_mask_ ? at<uint32_t>(mask_at_) : nullptr; }
  kernels::cuda::StepRows rows(uint32_t group) const;
  struct Tiles {
    const kernels::cuda::AttendTile* g_tiles;
    int64_t n;
  };
  Tiles tiles(int64_t tile_len) const;
  int64_t n_tokens() const { return n_tokens_; }
  /// The greatest position of the step.
  int64_t last_pos() const { return last_pos_; }
  Device& device() const { return device_; }
  kernels::cuda::Stream stream() const { return device_.stream(); }

 private:
  template <class T>
  const T* at(size_t offset) const {
    return reinterpret_cast<const T*>(sent_.get() + offset);
  }
  /// Puts n elements behind the others; gives where.
  template <class T>
  size_t add(const T* values, size_t n);
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
  std::vector<uint8_t> staged_;
  std::vector<uint32_t> page_begin_;  // of the group at hand; kept for its memory
  std::vector<kernels::cuda::AttendTile> tile_list_;
  DeviceBytes sent_;  // grows with the longest page tables
  size_t tokens_at_ = 0, positions_at_ = 0, out_rows_at_ = 0, mask_at_ = 0;
  bool has_mask_ = false;
  std::map<uint32_t, Tables> tables_;
  std::map<int64_t, TileList> tiles_;
  int64_t n_tokens_ = 0, last_pos_ = 0;
};

}  // namespace dovetail::cuda
