// CallFrame: what the core hands into every call of a plugin, and what it learns from it.
//
//   CallFrame call(cancel_flag);
//   DVT_TRY(call.check(format->open(self, call, ...)));
#pragma once

#include <dovetail/abi/base.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.hpp"

namespace dovetail::core {

/// done of total (0 = unknown), in units that `what` names.
using ProgressFn = std::function<void(uint64_t done, uint64_t total, std::string_view what)>;

/// One call at a time; the same frame may serve many, one after the other, and keeps its memory.
class CallFrame {
 public:
  /// `cancel` is read as a relaxed atomic; null: the call cannot be cancelled. `progress` is called
  /// on the thread that makes the call.
  explicit CallFrame(const uint32_t* cancel = nullptr, ProgressFn progress = {});
  CallFrame(const CallFrame&) = delete;
  CallFrame& operator=(const CallFrame&) = delete;

  dvt_call* get() { return &call_; }
  operator dvt_call*() { return &call_; }  // NOLINT(google-explicit-constructor)

  /// The Status of a call that returned `code`: "where: message" as the plugin gave it. Ends the
  /// call: the recorded failure and the scratch memory are gone.
  Status check(dvt_code code);

 private:
  struct Block {
    std::unique_ptr<std::byte[]> bytes;
    size_t size = 0;
  };
  static void fail(dvt_call* call, dvt_code code, dvt_str msg, dvt_str where) noexcept;
  static void* scratch(dvt_call* call, uint64_t n, uint64_t align) noexcept;
  static void progress(dvt_call* call, uint64_t done, uint64_t total, dvt_str what) noexcept;
  void recycle();

  dvt_call call_;
  ProgressFn progress_;
  std::mutex mutex_;  // a plugin may fail on several lanes at once
  std::string message_;
  std::vector<Block> blocks_;
  size_t used_ = 0;  // of the last block
};

/// How plugins' codes read here; those that no list has are kInternal.
Code code_of(dvt_code code);

}  // namespace dovetail::core
