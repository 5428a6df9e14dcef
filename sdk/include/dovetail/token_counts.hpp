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
    if (n > accepted_.size())
      throw Error("got a rewind by " + std::to_string(n) + " tokens, but only " +
                  std::to_string(accepted_.size()) + " were accepted");
    for (; n > 0; --n) {
      const auto it = counts_.find(accepted_.back());
      if (--it->second == 0) counts_.erase(it);
      accepted_.pop_back();
    }
  }
  /// The accepted ids, four bytes each, lowest first; the prompt is known again when the request
  /// begins again.
  std::vector<uint8_t> save() const {
    std::vector<uint8_t> bytes;
    bytes.reserve(accepted_.size() * 4);
    for (uint32_t id : accepted_)
      for (int shift = 0; shift < 32; shift += 8)
        bytes.push_back(static_cast<uint8_t>(id >> shift));
    return bytes;
  }
  void load(std::span<const uint8_t> bytes) {
    if (bytes.size() % 4 != 0)
      throw Error(
          "got " + std::to_string(bytes.size()) + " bytes of saved state, expected a multiple of 4",
          DVT_EFORMAT);
    rewind(accepted_.size());
    for (size_t i = 0; i < bytes.size(); i += 4)
      accept(uint32_t{bytes[i]} | uint32_t{bytes[i + 1]} << 8 | uint32_t{bytes[i + 2]} << 16 |
             uint32_t{bytes[i + 3]} << 24);
  }

 protected:
  const std::map<uint32_t, uint64_t>& counts() const { return counts_; }

 private:
  std::map<uint32_t, uint64_t> counts_;
  std::vector<uint32_t> accepted_;
};

}  // namespace dovetail
