#include "byte_trie.hpp"

#include <algorithm>

namespace dovetail::bpe {

ByteTrie::ByteTrie(const Vocabulary& vocabulary) {
  using Entry = std::pair<std::string_view, uint32_t>;
  std::vector<Entry> entries;
  for (uint32_t id = 0; id < vocabulary.n_ids(); ++id) {
    const auto content = vocabulary.content(id);
    if (content && !content->empty() && vocabulary.find(*content) == id) {
      entries.emplace_back(*content, id);
    }
  }
  std::sort(entries.begin(), entries.end());

  // Breadth first, so that the children of a node are neighbours.
  struct Open {
    size_t begin, end;  // entries below the node
    size_t depth;
  };
  std::vector<Open> open{{0, entries.size(), 0}};
  for (uint32_t node = 0; node < open.size(); ++node) {
    Open o = open[node];
    if (o.begin < o.end && entries[o.begin].first.size() == o.depth) {
      nodes_[node].id = entries[o.begin++].second;
    }
    nodes_[node].first_child = static_cast<uint32_t>(open.size());
    while (o.begin < o.end) {
      const char label = entries[o.begin].first[o.depth];
      size_t end = o.begin + 1;
      while (end < o.end && entries[end].first[o.depth] == label) ++end;
      if (node == kRoot) {
        root_children_[static_cast<uint8_t>(label)] = static_cast<uint32_t>(open.size());
      }
      open.push_back({o.begin, end, o.depth + 1});
      nodes_.emplace_back();
      labels_.push_back(static_cast<uint8_t>(label));
      o.begin = end;
    }
    nodes_[node].n_children = static_cast<uint32_t>(open.size()) - nodes_[node].first_child;
  }
}

}  // namespace dovetail::bpe
