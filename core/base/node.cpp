// Node's accessors, and the hash index that keeps lookups in huge maps (a vocabulary) constant time.
#include "core/base/node.hpp"

#include <functional>

#include "core/base/assert.hpp"

namespace dovetail::core {
namespace {

constexpr size_t kLinearEntries = 16;  // up to here a scan beats hashing

size_t hash_of(std::string_view key) {
  return std::hash<std::string_view>{}(key);
}

}  // namespace

std::string Origin::str() const {
  if (source == nullptr) return "an unknown place";
  if (line <= 0) return *source;
  return *source + ":" + std::to_string(line) + ":" + std::to_string(column);
}

// Open addressing over positions in entries_. It holds no pointers into the map, so a copy or move
// of the node may share it.
struct Node::Index {
  static constexpr uint32_t kEmpty = UINT32_MAX;

  size_t n_entries = 0;
  size_t mask = 0;
  std::vector<uint32_t> slots;
  uint32_t duplicate = kEmpty;  // the first entry whose key an earlier one has

  explicit Index(const std::vector<Entry>& entries) : n_entries(entries.size()) {
    size_t n_slots = 64;
    while (n_slots < 2 * n_entries) n_slots *= 2;
    mask = n_slots - 1;
    slots.assign(n_slots, kEmpty);
    for (uint32_t i = 0; i < n_entries; ++i) {
      uint32_t& slot = slots[slot_of(entries, entries[i].first)];
      if (slot == kEmpty) {
        slot = i;
      } else if (duplicate == kEmpty) {
        duplicate = i;
      }
    }
  }

  size_t slot_of(const std::vector<Entry>& entries, std::string_view key) const {
    size_t s = hash_of(key) & mask;
    while (slots[s] != kEmpty && entries[slots[s]].first != key) s = (s + 1) & mask;
    return s;
  }
};

Node Node::make_bool(bool v) {
  Node n;
  n.kind_ = Kind::kBool;
  n.bool_ = v;
  return n;
}

Node Node::make_int(int64_t v) {
  Node n;
  n.kind_ = Kind::kInt;
  n.int_ = v;
  return n;
}

Node Node::make_float(double v) {
  Node n;
  n.kind_ = Kind::kFloat;
  n.float_ = v;
  return n;
}

Node Node::make_string(std::string v) {
  Node n;
  n.kind_ = Kind::kString;
  n.text_ = std::move(v);
  return n;
}

Node Node::make_list() {
  Node n;
  n.kind_ = Kind::kList;
  return n;
}

Node Node::make_map() {
  Node n;
  n.kind_ = Kind::kMap;
  return n;
}

const char* Node::kind_name() const {
  switch (kind_) {
    case Kind::kNull:
      return "null";
    case Kind::kBool:
      return "a boolean";
    case Kind::kInt:
      return "an integer";
    case Kind::kFloat:
      return "a number";
    case Kind::kString:
      return "a string";
    case Kind::kList:
      return "a list";
    case Kind::kMap:
      return "a map";
  }
  return "unknown";
}

bool Node::as_bool() const {
  DVT_ASSERT(kind_ == Kind::kBool);
  return bool_;
}

int64_t Node::as_int() const {
  DVT_ASSERT(kind_ == Kind::kInt);
  return int_;
}

double Node::as_float() const {
  DVT_ASSERT(is_number());
  return kind_ == Kind::kInt ? static_cast<double>(int_) : float_;
}

const std::string& Node::as_string() const {
  DVT_ASSERT(kind_ == Kind::kString);
  return text_;
}

const std::vector<Node>& Node::items() const {
  DVT_ASSERT(kind_ == Kind::kList);
  return items_;
}

std::vector<Node>& Node::items() {
  DVT_ASSERT(kind_ == Kind::kList);
  return items_;
}

const std::vector<Node::Entry>& Node::entries() const {
  DVT_ASSERT(kind_ == Kind::kMap);
  return entries_;
}

std::vector<Node::Entry>& Node::entries() {
  DVT_ASSERT(kind_ == Kind::kMap);
  index_.reset();  // the caller may rename or move entries
  return entries_;
}

const Node::Index& Node::index() const {
  if (index_ == nullptr || index_->n_entries != entries_.size()) {
    index_ = std::make_shared<Index>(entries_);
  }
  return *index_;
}

const Node* Node::find(std::string_view key) const {
  if (kind_ != Kind::kMap) return nullptr;
  if (entries_.size() <= kLinearEntries) {
    for (const Entry& e : entries_) {
      if (e.first == key) return &e.second;
    }
    return nullptr;
  }
  const Index& index = this->index();
  const uint32_t at = index.slots[index.slot_of(entries_, key)];
  return at == Index::kEmpty ? nullptr : &entries_[at].second;
}

Node* Node::find(std::string_view key) {
  return const_cast<Node*>(static_cast<const Node*>(this)->find(key));
}

Node& Node::set(std::string_view key, Node value) {
  DVT_ASSERT(kind_ == Kind::kMap);
  if (Node* old = find(key)) {
    *old = std::move(value);
    return *old;
  }
  // A large map that is filled by set() would rebuild its index every time: take over the old one
  // only while it fits, and let it grow by doubling.
  std::shared_ptr<const Index> shared = std::move(index_);
  entries_.emplace_back(std::string(key), std::move(value));
  if (shared != nullptr && entries_.size() * 2 <= shared->slots.size()) {
    auto grown = shared.use_count() == 1 ? std::const_pointer_cast<Index>(shared)
                                         : std::make_shared<Index>(*shared);
    shared.reset();
    const size_t slot = grown->slot_of(entries_, key);
    grown->slots[slot] = static_cast<uint32_t>(entries_.size() - 1);
    grown->n_entries = entries_.size();
    index_ = std::move(grown);
  }
  return entries_.back().second;
}

const Node::Entry* Node::find_duplicate() const {
  if (kind_ != Kind::kMap) return nullptr;
  if (entries_.size() <= kLinearEntries) {
    for (size_t i = 1; i < entries_.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (entries_[i].first == entries_[j].first) return &entries_[i];
      }
    }
    return nullptr;
  }
  const uint32_t at = index().duplicate;
  return at == Index::kEmpty ? nullptr : &entries_[at];
}

void Node::build_index() const {
  for (const Node& item : items_) item.build_index();
  for (const Entry& entry : entries_) entry.second.build_index();
  if (entries_.size() > kLinearEntries) index();
}

const std::string& Node::empty_text() {
  static const std::string empty;
  return empty;
}

}  // namespace dovetail::core
