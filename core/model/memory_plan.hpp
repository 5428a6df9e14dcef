// MemoryPlan: what a model will take, item by item, known before anything is loaded.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/node.hpp"
#include "core/base/status.hpp"

namespace dovetail::core {

struct MemoryPlan {
  struct Item {
    std::string name;  // "weights, mapped"
    uint64_t bytes = 0;
    std::string detail;      // "310 tensors, read from the file where they lie"
    bool is_private = true;  // counts against free memory; mapped files do not
  };
  std::vector<Item> items;
  uint64_t bytes_per_token = 0;  // of the KV cache
  uint64_t n_tokens = 0;         // that the cache holds
  uint64_t available = 0;        // memory that this process may still take
  uint64_t max_context = 0;      // tokens that would fit
  bool weights_expand = false;   // some take more than in their file, and could be packed instead
  uint64_t promoted_bytes = 0;  // of the mapped ones, that move to 2 MiB pages while the model runs

  uint64_t private_bytes() const;
  uint64_t mapped_bytes() const;
  /// Says what does not fit and what would, or ok.
  Status check() const;
  /// A table for people.
  std::string text() const;
  Node node() const;
};

/// Memory that this process may still take: what the system has available, cut by the control group.
uint64_t available_memory();

}  // namespace dovetail::core
