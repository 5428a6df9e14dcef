#include "core/cli/reply_printer.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "core/cli/command.hpp"

namespace dovetail::core {
namespace {

constexpr const char* kDim = "\x1b[2m";
constexpr const char* kPlain = "\x1b[0m";

bool may_style(int fd) {
  const char* no_color = std::getenv("NO_COLOR");  // https://no-color.org
  return isatty(fd) != 0 && (no_color == nullptr || *no_color == '\0');
}

}  // namespace

ReplyPrinter::ReplyPrinter()
    : reasoning_to_stdout_(isatty(STDOUT_FILENO) != 0),
      styled_(may_style(reasoning_to_stdout_ ? STDOUT_FILENO : STDERR_FILENO)) {}

Status ReplyPrinter::print_reasoning(std::string_view text) const {
  if (reasoning_to_stdout_) return print(text);
  std::fwrite(text.data(), 1, text.size(), stderr);
  return Status::ok();
}

Status ReplyPrinter::end_reasoning(bool content_follows) {
  if (last_ != Last::kReasoning) return Status::ok();
  const std::string gap = content_follows && reasoning_to_stdout_ ? "\n\n" : "\n";
  return print_reasoning((styled_ ? kPlain : "") + gap);
}

Status ReplyPrinter::show(const ReplyEvent& event) {
  switch (event.kind) {
    case ReplyEvent::Kind::kReasoning:
      if (styled_ && last_ != Last::kReasoning) DVT_TRY(print_reasoning(kDim));
      last_ = Last::kReasoning;
      return print_reasoning(event.text);
    case ReplyEvent::Kind::kContent:
      DVT_TRY(end_reasoning(true));
      last_ = Last::kContent;
      return print(event.text);
    case ReplyEvent::Kind::kCall:
      DVT_TRY(end_reasoning(true));
      if (last_ == Last::kContent) DVT_TRY(print("\n"));
      last_ = Last::kCall;
      return print("call " + event.call.name + " " + event.call.arguments + "\n");
  }
  return Status::ok();
}

Status ReplyPrinter::finish() {
  DVT_TRY(end_reasoning(false));
  const bool needs_end = last_ == Last::kContent || last_ == Last::kNothing ||
                         (last_ == Last::kReasoning && !reasoning_to_stdout_);
  last_ = Last::kNothing;
  return needs_end ? print("\n") : Status::ok();
}

}  // namespace dovetail::core
