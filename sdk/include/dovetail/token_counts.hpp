// TokenCounts: how often each id has occurred, for stages that penalise repetition. A base class of
// a stage's Request: gives it accept, rewind, save and load.
#pragma once

#include <dovetail/sampler.hpp>

#include <map>

namespace dovetail {

class TokenCounts {
 public:
  /// Ids of the prompt count too; they are never rewound.
  void start(std::span<const uint32_t> prompt) {
    for (uint32_t id : prompt) ++counts_[id];
  }
  void accept(uint32_t id) {
    accepted_.push_back(id);
    ++counts_[id];
  }
  void rewind(uint64_t n) {
    for (; n > 0 && !accepted_.empty(); --n) {
      const auto it = counts_.find(accepted_.back());
      if (--it->second == 0) counts_.erase(it);
      accepted_.pop_back();
    }
  }
  /// The accepted ids; the prompt is known again when the request begins again.
  std::vector<uint8_t> save() const {
    std::vector<uint8_t> bytes(accepted_.size() * sizeof(uint32_t));
    if (!bytes.empty()) std::memcpy(bytes.data(), accepted_.data(), bytes.size());
    return bytes;
  }
  void load(std::span<const uint8_t> bytes) {
    if (bytes.size() % sizeof(uint32_t) != 0) throw Error("saved state is damaged");
    rewind(accepted_.size());
    for (size_t i = 0; i < bytes.size(); i += sizeof(uint32_t)) {
      uint32_t id = 0;
      std::memcpy(&id, bytes.data() + i, sizeof id);
      accept(id);
    }
  }

 protected:
  const std::map<uint32_t, uint64_t>& counts() const { return counts_; }

 private:
  std::map<uint32_t, uint64_t> counts_;
  std::vector<uint32_t> accepted_;
};

}  // namespace dovetail
