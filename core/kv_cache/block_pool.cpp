#include "core/kv_cache/block_pool.hpp"

#include "core/base/assert.hpp"

namespace dovetail::core {

BlockPool::BlockPool(uint32_t n_blocks) : holders_(n_blocks, 0) {
  free_.reserve(n_blocks);
  for (uint32_t b = n_blocks; b-- > 0;) free_.push_back(b);
}

bool BlockPool::take(uint32_t n, std::vector<BlockId>& table) {
  if (n > free_.size()) return false;
  for (uint32_t i = 0; i < n; ++i) {
    const BlockId block = free_.back();
    free_.pop_back();
    DVT_ASSERT(holders_[block] == 0);
    holders_[block] = 1;
    table.push_back(block);
  }
  return true;
}

void BlockPool::share(BlockId block) {
  DVT_ASSERT(block < holders_.size() && holders_[block] > 0);
  ++holders_[block];
}

void BlockPool::give_back(std::vector<BlockId>& table, size_t from) {
  while (table.size() > from) {
    const BlockId block = table.back();
    table.pop_back();
    DVT_ASSERT(block < holders_.size() && holders_[block] > 0);
    if (--holders_[block] == 0) free_.push_back(block);
  }
}

}  // namespace dovetail::core
