// The callbacks of the frame. The last failure recorded counts: what a plugin says after it dealt
// with an earlier one is nearer to the reason.
#include "core/plugin/call_frame.hpp"

#include <algorithm>
#include <bit>
#include <exception>
#include <new>
#include <utility>

#include "core/base/log.hpp"

namespace dovetail::core {
namespace {

constexpr size_t kBlockBytes = size_t{64} * 1024;
constexpr size_t kMostText = size_t{64} * 1024;  // of a message; a longer one is a mistake

std::string_view view(dvt_str s) {
  if (s.p == nullptr) return {};
  return {s.p, static_cast<size_t>(std::min<uint64_t>(s.n, kMostText))};
}

const char* code_name(Code code) {
  switch (code) {
    case Code::kOk:
      return "no error";
    case Code::kInvalid:
      return "wrong input";
    case Code::kUnsupported:
      return "not supported";
    case Code::kNoMemory:
      return "out of memory";
    case Code::kDevice:
      return "device error";
    case Code::kCancelled:
      return "cancelled";
    case Code::kIo:
      return "input or output error";
    case Code::kFormat:
      return "damaged file";
    case Code::kBusy:
      return "busy";
    case Code::kInternal:
      return "internal error";
    case Code::kVersion:
      return "wrong version";
    case Code::kTooSmall:
      return "buffer too small";
  }
  return "unknown error";
}

}  // namespace

Code code_of(dvt_code code) {
  return code >= DVT_OK && code <= DVT_ETOOSMALL ? static_cast<Code>(code) : Code::kInternal;
}

CallFrame::CallFrame(const uint32_t* cancel, ProgressFn progress)
    : call_{sizeof(dvt_call), 0, cancel, this, &CallFrame::fail, &CallFrame::scratch, nullptr},
      progress_(std::move(progress)) {
  if (progress_) call_.progress = &CallFrame::progress;
}

Status CallFrame::check(dvt_code code) {
  recycle();
  std::string message = std::exchange(message_, {});
  if (code == DVT_OK) return Status::ok();
  const Code kind = code_of(code);
  if (message.empty()) {
    message = kind == Code::kInternal
                  ? "failed with code " + std::to_string(code) + " and gave no reason"
                  : code_name(kind);
  }
  return {kind, std::move(message)};
}

void CallFrame::fail(dvt_call* call, dvt_code, dvt_str msg, dvt_str where) noexcept {
  CallFrame& self = *static_cast<CallFrame*>(call->host);
  try {
    const std::lock_guard lock(self.mutex_);
    self.message_ = printable(view(where));
    if (!self.message_.empty()) self.message_ += ": ";
    self.message_ += printable(view(msg), true);
  } catch (const std::exception&) {
    // No memory for the reason: the code still tells.
  }
}

void* CallFrame::scratch(dvt_call* call, uint64_t n, uint64_t align) noexcept {
  CallFrame& self = *static_cast<CallFrame*>(call->host);
  if (!std::has_single_bit(align) || n > SIZE_MAX / 2 || align > SIZE_MAX / 4) return nullptr;
  try {
    const std::lock_guard lock(self.mutex_);
    const auto take = [&](Block& block) -> void* {
      void* p = block.bytes.get() + self.used_;
      size_t space = block.size - self.used_;
      if (std::align(align, n, p, space) == nullptr) return nullptr;
      self.used_ = block.size - space + n;
      return p;
    };
    if (!self.blocks_.empty()) {
      if (void* p = take(self.blocks_.back())) return p;
    }
    const size_t size = std::max<size_t>(kBlockBytes, n + align);
    self.blocks_.push_back({std::unique_ptr<std::byte[]>(new std::byte[size]), size});
    self.used_ = 0;
    return take(self.blocks_.back());
  } catch (const std::exception&) {
    return nullptr;
  }
}

void CallFrame::progress(dvt_call* call, uint64_t done, uint64_t total, dvt_str what) noexcept {
  CallFrame& self = *static_cast<CallFrame*>(call->host);
  try {
    self.progress_(done, total, view(what));
  } catch (const std::exception&) {
    // A report that cannot be shown must not stop the work.
  }
}

void CallFrame::recycle() {
  if (blocks_.size() > 1) blocks_.erase(blocks_.begin(), blocks_.end() - 1);
  used_ = 0;
}

}  // namespace dovetail::core
