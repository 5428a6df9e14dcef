// Switches are a few instructions on x86-64 and swapcontext elsewhere. The sanitizers are told of each:
// they keep a shadow of the stack that runs.
#include "fiber.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <new>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define EMULATION_ASAN 1
#elif __has_feature(thread_sanitizer)
#define EMULATION_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define EMULATION_ASAN 1
#elif defined(__SANITIZE_THREAD__)
#define EMULATION_TSAN 1
#endif

#if defined(EMULATION_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#elif defined(EMULATION_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

#if defined(__x86_64__)
// Saves what a callee must keep, swaps the stacks, restores the other's.
asm(R"(
  .text
  .hidden cuda_emulation_switch
  .globl cuda_emulation_switch
  .type cuda_emulation_switch, @function
cuda_emulation_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size cuda_emulation_switch, .-cuda_emulation_switch
)");
extern "C" void cuda_emulation_switch(void** leave, void* enter);
#endif

namespace cuda_emulation {
namespace {

#if defined(EMULATION_ASAN) || defined(EMULATION_TSAN)
constexpr size_t kStackBytes = 256 << 10;  // the sanitizers' frames are larger
#else
constexpr size_t kStackBytes = 64 << 10;
#endif

const auto kPageBytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));

Fiber* g_running = nullptr;  // what begin() finds

}  // namespace

struct Fiber::Context {
#if defined(__x86_64__)
  void *inside = nullptr, *outside = nullptr;  // stack pointers
#else
  ucontext_t inside, outside;
#endif
#if defined(EMULATION_ASAN)
  void *fake_inside = nullptr, *fake_outside = nullptr;
  const void* outer_stack = nullptr;
  size_t outer_bytes = 0;
#elif defined(EMULATION_TSAN)
  void *inside_id = nullptr, *outside_id = nullptr;
#endif
};

Fiber::Fiber() : context_(new Context) {
  void* p = mmap(nullptr, kPageBytes + kStackBytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED || mprotect(p, kPageBytes, PROT_NONE) != 0) throw std::bad_alloc();
  mapping_ = static_cast<std::byte*>(p);
#if defined(EMULATION_TSAN)
  context_->inside_id = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
#if defined(EMULATION_TSAN)
  __tsan_destroy_fiber(context_->inside_id);
#endif
  munmap(mapping_, kPageBytes + kStackBytes);
  delete context_;
}

void Fiber::start(Entry entry) {
  entry_ = entry;
  std::byte* const stack = mapping_ + kPageBytes;
#if defined(EMULATION_ASAN)
  __asan_unpoison_memory_region(stack, kStackBytes);
  context_->fake_inside = nullptr;
#endif
#if defined(__x86_64__)
  // Six registers, where `ret` goes, and a word that keeps the stack as if begin() had been called. Stacks
  // begin at different places of their pages: else they would all compete for the same few cache lines.
  const size_t colour = reinterpret_cast<uintptr_t>(mapping_) / kStackBytes % 32 * 128;
  auto* top = reinterpret_cast<void**>(stack + kStackBytes - colour);
  *--top = nullptr;
  *--top = reinterpret_cast<void*>(&Fiber::begin);
  for (int i = 0; i < 6; ++i) *--top = nullptr;
  context_->inside = top;
#else
  getcontext(&context_->inside);
  context_->inside.uc_stack.ss_sp = stack;
  context_->inside.uc_stack.ss_size = kStackBytes;
  context_->inside.uc_link = nullptr;
  makecontext(&context_->inside, &Fiber::begin, 0);
#endif
}

void Fiber::resume() {
  g_running = this;
#if defined(EMULATION_ASAN)
  __sanitizer_start_switch_fiber(&context_->fake_outside, mapping_ + kPageBytes, kStackBytes);
#elif defined(EMULATION_TSAN)
  context_->outside_id = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(context_->inside_id, 0);
#endif
#if defined(__x86_64__)
  cuda_emulation_switch(&context_->outside, context_->inside);
#else
  swapcontext(&context_->outside, &context_->inside);
#endif
#if defined(EMULATION_ASAN)
  __sanitizer_finish_switch_fiber(context_->fake_outside, nullptr, nullptr);
#endif
}

void Fiber::leave() {
#if defined(EMULATION_ASAN)
  __sanitizer_start_switch_fiber(&context_->fake_inside, context_->outer_stack,
                                 context_->outer_bytes);
#elif defined(EMULATION_TSAN)
  __tsan_switch_to_fiber(context_->outside_id, 0);
#endif
#if defined(__x86_64__)
  cuda_emulation_switch(&context_->inside, context_->outside);
#else
  swapcontext(&context_->inside, &context_->outside);
#endif
#if defined(EMULATION_ASAN)
  __sanitizer_finish_switch_fiber(context_->fake_inside, &context_->outer_stack,
                                  &context_->outer_bytes);
#endif
}

void Fiber::begin() {
  Fiber& self = *g_running;
#if defined(EMULATION_ASAN)
  __sanitizer_finish_switch_fiber(nullptr, &self.context_->outer_stack,
                                  &self.context_->outer_bytes);
#endif
  self.entry_();
  self.leave();
  std::abort();  // a fiber that has returned is not resumed
}

}  // namespace cuda_emulation
