// Budget: what one rendering may still use. Templates come with model files from strangers.
//
// Everything that can grow asks first: each evaluation is a step, each value that is made charges
// its bytes. The sum of all bytes ever made is an upper bound of what is alive.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "core/text/template/fault.hpp"

namespace dovetail::core {

/// What one rendering may use; beyond it rendering fails with a message that names the limit.
struct RenderLimits {
  size_t max_depth = 1500;             // nested expressions, statements and macro calls together
  size_t max_string_bytes = 64 << 20;  // of the output, and of any string on the way to it
  size_t max_value_bytes = size_t{1} << 30;  // of all values made, together
  uint64_t max_steps = 10'000'000;           // expressions and statements evaluated, items compared
  double max_seconds = 10;
};

namespace jinja {

/// Nested lists and dicts; also keeps recursion over values (printing, destruction) shallow.
inline constexpr uint32_t kMaxValueDepth = 200;

class Budget {
 public:
  explicit Budget(const RenderLimits& limits)
      : limits_(limits), start_(std::chrono::steady_clock::now()) {}

  void step(uint64_t n = 1) {
    n_steps_ += n;
    if (n_steps_ < next_check_) return;
    check_steps();
  }

  /// Before making a value of `n` bytes.
  void charge(size_t n) {
    if (n > limits_.max_value_bytes || (value_bytes_ += n) > limits_.max_value_bytes) {
      fail("the template makes values of more than " + std::to_string(limits_.max_value_bytes) +
           " bytes in all");
    }
  }

  /// Before making a list of `n` items.
  void charge_items(size_t n) {
    constexpr size_t kItemBytes = 32;  // of a Value
    charge(n > SIZE_MAX / kItemBytes ? SIZE_MAX : n * kItemBytes);
    step(n);
  }

  /// Before a string grows to `n` bytes.
  void check_string(size_t n) const {
    if (n > limits_.max_string_bytes) {
      fail("the template makes a text of more than " + std::to_string(limits_.max_string_bytes) +
           " bytes");
    }
  }

  void check_value_depth(uint32_t depth) const {
    if (depth > kMaxValueDepth) {
      fail("the template nests lists or dicts deeper than " + std::to_string(kMaxValueDepth));
    }
  }

  /// One level of recursion in the evaluator, for as long as it lives.
  class Level {
   public:
    explicit Level(Budget& budget) : budget_(budget) {
      if (++budget_.depth_ > budget_.limits_.max_depth) {
        --budget_.depth_;
        fail("the template recurses deeper than " + std::to_string(budget_.limits_.max_depth) +
             " levels");
      }
    }
    ~Level() { --budget_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Budget& budget_;
  };

 private:
  void check_steps() {
    constexpr uint64_t kStepsBetweenClocks = 4096;
    if (n_steps_ > limits_.max_steps) {
      fail("the template takes more than " + std::to_string(limits_.max_steps) + " steps");
    }
    const std::chrono::duration<double> used = std::chrono::steady_clock::now() - start_;
    if (used.count() > limits_.max_seconds) {
      fail("the template takes longer than " + std::to_string(limits_.max_seconds) + " seconds");
    }
    next_check_ = n_steps_ + kStepsBetweenClocks;
    if (next_check_ > limits_.max_steps) next_check_ = limits_.max_steps + 1;
  }

  RenderLimits limits_;
  std::chrono::steady_clock::time_point start_;
  uint64_t n_steps_ = 0;
  uint64_t next_check_ = 0;
  size_t value_bytes_ = 0;
  size_t depth_ = 0;
};

}  // namespace jinja
}  // namespace dovetail::core
