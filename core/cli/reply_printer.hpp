// ReplyPrinter: a reply on its way to the user: reasoning apart from the answer, calls a line each.
#pragma once

#include "core/base/status.hpp"
#include "core/text/reply/reply.hpp"

namespace dovetail::core {

/// Reasoning is dim where standard output is a terminal. Elsewhere it goes to standard error, so that
/// standard output has the answer alone. A call is the line `call NAME ARGUMENTS`.
class ReplyPrinter {
 public:
  ReplyPrinter();
  Status show(const ReplyEvent& event);
  /// Ends the line.
  Status finish();

 private:
  enum class Last : uint8_t { kNothing, kReasoning, kContent, kCall };
  Status end_reasoning(bool content_follows);
  Status print_reasoning(std::string_view text) const;

  const bool reasoning_to_stdout_, styled_;
  Last last_ = Last::kNothing;
};

}  // namespace dovetail::core
