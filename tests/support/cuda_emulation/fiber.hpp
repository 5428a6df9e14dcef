// A stack of its own that can be left and come back to: one CUDA thread.
#pragma once

#include <cstddef>

namespace cuda_emulation {

/// Runs entry() on a stack of its own, by turns with whoever calls resume().
///
/// owner     the stack, with a page before it that faults; it is kept for the next start().
/// threads   one system thread at a time uses a fiber and those that it is resumed by.
class Fiber {
 public:
  using Entry = void (*)();  // must not throw

  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// The next resume() begins entry(). What ran on the stack before is forgotten, without destructors.
  void start(Entry entry);
  /// Runs the fiber until it leaves or entry() returns.
  void resume();
  /// From inside: goes back to resume().
  void leave();

 private:
  struct Context;
  static void begin();

  std::byte* mapping_;
  Context* context_;
  Entry entry_ = nullptr;
};

}  // namespace cuda_emulation
