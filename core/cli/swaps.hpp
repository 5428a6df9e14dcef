// Swaps: what `run --swap TOKENS:BACKEND` asks for, done while the answer comes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/node.hpp"
#include "core/cli/session.hpp"

namespace dovetail::core {

class Swaps {
 public:
  /// errors   kInvalid: not TOKENS:BACKEND
  static Result<Swaps> parse(const std::vector<std::string>& texts);

  bool empty() const { return waiting_.empty(); }
  /// Does those whose number of tokens is reached. One that fails is an error message, and the answer stays where it is.
  /// errors   what Engine::settle() reports
  Status before_step(size_t n_tokens, Session& session, Engine& engine);
  /// Warns of those that were not reached; gives what was done, for people, a line each.
  std::string finish() const;
  /// What was tried, in order: a list of maps.
  const Node& node() const { return done_; }

 private:
  struct Swap {
    uint32_t after = 0;  // tokens generated
    std::string backend;
  };
  std::vector<Swap> waiting_;  // by `after`
  size_t next_ = 0;
  Node done_ = Node::make_list();
  std::string said_;
};

}  // namespace dovetail::core
