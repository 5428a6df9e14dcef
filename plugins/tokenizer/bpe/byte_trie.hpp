// ByteTrie: a set of strings with a value each, walked byte by byte.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "vocabulary.hpp"

namespace dovetail::bpe {

class ByteTrie {
 public:
  static constexpr uint32_t kRoot = 0;
  static constexpr uint32_t kNoNode = UINT32_MAX;

  ByteTrie() = default;
  /// Of every token of a vocabulary that a text can be (the last id of a content given twice).
  explicit ByteTrie(const Vocabulary& vocabulary);

  /// The node after one more byte, or kNoNode.
  uint32_t child(uint32_t node, uint8_t byte) const {
    if (node == kRoot) return root_children_[byte];
    const Node& n = nodes_[node];
    for (uint32_t i = n.first_child; i < n.first_child + n.n_children; ++i) {
      if (labels_[i] >= byte) return labels_[i] == byte ? i : kNoNode;
    }
    return kNoNode;
  }
  /// The node after all bytes of `text`, or kNoNode.
  uint32_t walk(uint32_t node, std::string_view text) const {
    for (size_t i = 0; i < text.size() && node != kNoNode; ++i) {
      node = child(node, static_cast<uint8_t>(text[i]));
    }
    return node;
  }
  /// The id of the string that ends here, or kNoId.
  uint32_t id_at(uint32_t node) const { return nodes_[node].id; }

 private:
  struct Node {
    uint32_t id = kNoId;
    uint32_t first_child = 0, n_children = 0;  // next to each other, by rising label
  };
  std::vector<Node> nodes_{1};
  std::vector<uint8_t> labels_{0};  // by node: the byte that leads to it
  std::vector<uint32_t> root_children_ = std::vector<uint32_t>(256, kNoNode);
};

}  // namespace dovetail::bpe
