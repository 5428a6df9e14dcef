// BlockPool: which blocks (pages) of the KV cache are free, and who holds the others.
//
// A block is block_len rows of every state slot of one group. Blocks are counted, so that sequences
// can share a prefix; a shared block is copied before it is written (not yet used).
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/status.hpp"

namespace dovetail::core {

using BlockId = uint32_t;

class BlockPool {
 public:
  explicit BlockPool(uint32_t n_blocks);

  uint32_t n_blocks() const { return static_cast<uint32_t>(holders_.size()); }
  uint32_t n_free() const { return static_cast<uint32_t>(free_.size()); }
  /// Takes n blocks, appended to `table`; false and nothing taken if there are fewer.
  bool take(uint32_t n, std::vector<BlockId>& table);
  /// One more holder of a block.
  void share(BlockId block);
  /// One holder less for each block from index `from` on; those left without one are free again.
  void give_back(std::vector<BlockId>& table, size_t from = 0);

 private:
  std::vector<BlockId> free_;      // a stack: the last block given back is the first taken
  std::vector<uint32_t> holders_;  // by block
};

/// Blocks that n_rows need.
constexpr uint32_t blocks_for(uint64_t n_rows, uint32_t block_len) {
  return static_cast<uint32_t>((n_rows + block_len - 1) / block_len);
}

}  // namespace dovetail::core
