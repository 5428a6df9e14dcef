// ReplyParser: a model's text, as it is streamed, taken apart into reasoning, content and tool calls.
//
// No event ever holds a part of a tag, nothing that was given out has to be taken back, and the events
// joined are the same whatever the pieces are. What could still become a tag, and a call until it is
// whole, is held.
//
// Reasoning is what stands before the closing tag, if the prompt or the answer has opened it: once, at
// the begin. Line breaks next to its tags are not part of either side.
//
// A call that is not finished, not JSON or not a call at all stays content, its tags included: nothing
// that the model said is lost. White space next to a call is dropped, unless content stands on both
// sides of it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/reply/call_scanner.hpp"
#include "core/text/reply/reply.hpp"
#include "core/text/reply/reply_format.hpp"

namespace dovetail::core {

struct ReplyStart {
  bool in_reasoning = false;    // the prompt's end has opened it
  const Node* tools = nullptr;  // the functions that the request offers; outlives the parser
  uint64_t id_key = 0;          // the ids of calls follow from it: another for each reply
};

class ReplyParser {
 public:
  ReplyParser(const ReplyFormat& format, const ReplyStart& start);

  std::vector<ReplyEvent> feed(std::string_view text);
  /// The end of the text. The parser is then used up.
  std::vector<ReplyEvent> flush();
  bool in_reasoning() const { return state_ == State::kReasoning; }

 private:
  enum class State : uint8_t {
    kBegin,      // nothing yet but white space
    kReasoning,  // until its closing tag
    kContent,
    kCall,         // behind the opening tag of a call
    kBetweenCalls  // of a style without tags: another may follow
  };

  void run(bool is_end);
  // One step on held_; false if more text is needed.
  bool step(bool is_end);
  bool step_begin(bool is_end);
  bool step_reasoning(bool is_end);
  bool step_content(bool is_end);
  bool step_call(bool is_end);
  bool step_between_calls(bool is_end);
  bool begins_bare_call(std::string_view text) const;
  bool may_begin_bare_call(std::string_view text) const;
  void open_call(std::string tag);
  void give(ReplyEvent::Kind kind, std::string_view text);
  void give_content(std::string_view text);
  void give_call(ToolCall call);
  std::string next_id();

  const ReplyFormat format_;
  const ToolSet tools_;
  uint64_t id_key_, n_ids_ = 0;
  State state_ = State::kBegin;
  std::string held_;      // not given out yet
  std::string blanks_;    // of the reasoning or the content, held until more of it comes
  std::string call_tag_;  // the opening tag of the call that is read
  std::unique_ptr<CallScanner> call_;
  bool after_reasoning_ = false, after_call_ = false;
  bool has_reasoning_ = false, has_content_ = false;
  std::vector<ReplyEvent> events_;
};

/// A whole text at once.
Reply parse_reply(const ReplyFormat& format, const ReplyStart& start, std::string_view text);

}  // namespace dovetail::core
