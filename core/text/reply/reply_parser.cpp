#include "core/text/reply/reply_parser.hpp"

#include <algorithm>
#include <utility>

namespace dovetail::core {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

size_t first_word(std::string_view text) {
  return std::min(text.find_first_not_of(kBlanks), text.size());
}

// The length of the longest end of `text` that is a true beginning of `tag`.
size_t tail_of_tag(std::string_view text, std::string_view tag) {
  for (size_t n = std::min(text.size(), tag.size() - 1); n > 0; --n) {
    if (text.substr(text.size() - n) == tag.substr(0, n)) return n;
  }
  return 0;
}

// Splitmix64.
uint64_t mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

ReplyParser::ReplyParser(const ReplyFormat& format, const ReplyStart& start)
    : format_(format), tools_(start.tools), id_key_(start.id_key) {
  if (start.in_reasoning && format.reasoning != nullptr) state_ = State::kReasoning;
}

std::vector<ReplyEvent> ReplyParser::feed(std::string_view text) {
  held_ += text;
  run(false);
  return std::exchange(events_, {});
}

std::vector<ReplyEvent> ReplyParser::flush() {
  run(true);
  return std::exchange(events_, {});
}

void ReplyParser::run(bool is_end) {
  while (step(is_end)) {
  }
  if (!is_end) return;
  // White space at the end belongs to the content, if a call has not made it a separator.
  if (state_ != State::kReasoning && !after_call_) give(ReplyEvent::Kind::kContent, blanks_);
  blanks_.clear();
}

bool ReplyParser::step(bool is_end) {
  switch (state_) {
    case State::kBegin:
      return step_begin(is_end);
    case State::kReasoning:
      return step_reasoning(is_end);
    case State::kContent:
      return step_content(is_end);
    case State::kCall:
      return step_call(is_end);
    case State::kBetweenCalls:
      return step_between_calls(is_end);
  }
  return false;
}

bool ReplyParser::step_begin(bool is_end) {
  const size_t n_blanks = first_word(held_);
  const std::string_view word = std::string_view(held_).substr(n_blanks);
  const bool may_reason = format_.reasoning != nullptr && !after_reasoning_;
  if (may_reason && word.starts_with(format_.reasoning->open)) {
    held_.erase(0, n_blanks + format_.reasoning->open.size());
    state_ = State::kReasoning;
    return true;
  }
  if (begins_bare_call(word)) {
    if (word.starts_with(kPythonTag)) {
      held_.erase(0, n_blanks + kPythonTag.size());
      open_call(std::string(kPythonTag));
    } else {
      held_.erase(0, n_blanks);
      open_call("");
    }
    return true;
  }
  if (!is_end && ((may_reason && may_begin_with(word, format_.reasoning->open)) ||
                  may_begin_bare_call(word) || (after_reasoning_ && word.empty())))
    return false;
  // Line breaks behind the reasoning are not content.
  if (after_reasoning_) held_.erase(0, std::min(held_.find_first_not_of("\r\n"), held_.size()));
  state_ = State::kContent;
  return true;
}

bool ReplyParser::step_reasoning(bool is_end) {
  const std::string_view close = format_.reasoning->close;
  const size_t at = held_.find(close);
  const bool is_closed = at != held_.npos;
  size_t end = is_closed ? at : held_.size() - tail_of_tag(held_, close);
  if (is_end && !is_closed) end = held_.size();
  std::string_view text = std::string_view(held_).substr(0, end);
  if (!has_reasoning_) text.remove_prefix(std::min(text.find_first_not_of("\r\n"), text.size()));
  const size_t n_text = text.find_last_not_of("\r\n") + 1;  // 0 if there is none
  if (n_text > 0) {
    give(ReplyEvent::Kind::kReasoning,
         std::exchange(blanks_, {}) + std::string(text.substr(0, n_text)));
    has_reasoning_ = true;
  }
  if (has_reasoning_) blanks_ += text.substr(n_text);
  held_.erase(0, end + (is_closed ? close.size() : 0));
  if (!is_closed) return false;
  blanks_.clear();
  after_reasoning_ = true;
  state_ = State::kBegin;
  return true;
}

bool ReplyParser::step_content(bool is_end) {
  const std::string_view open = format_.tools == nullptr ? std::string_view() : format_.tools->open;
  if (open.empty()) {
    give_content(held_);
    held_.clear();
    return false;
  }
  const size_t at = held_.find(open);
  const bool is_open = at != held_.npos;
  size_t end = is_open ? at : held_.size() - tail_of_tag(held_, open);
  if (is_end && !is_open) end = held_.size();
  give_content(std::string_view(held_).substr(0, end));
  held_.erase(0, end + (is_open ? open.size() : 0));
  if (is_open) open_call(std::string(open));
  return is_open;
}

bool ReplyParser::step_call(bool is_end) {
  const CallScanner::State state = call_->scan(held_, is_end);
  if (state == CallScanner::State::kMore && !is_end) return false;
  if (state == CallScanner::State::kDone) {
    for (ToolCall& call : call_->calls()) give_call(std::move(call));
    held_.erase(0, call_->end());
    state_ = format_.tools->open.empty() ? State::kBetweenCalls : State::kContent;
    return true;
  }
  give_content(call_tag_);
  if (format_.tools->open.empty()) {  // the brace that began it would begin it again
    give_content(held_);
    held_.clear();
  }
  state_ = State::kContent;
  return true;
}

bool ReplyParser::step_between_calls(bool is_end) {
  const size_t n = std::min(held_.find_first_not_of(" \t\r\n;,"), held_.size());
  if (n == held_.size() && !is_end) return false;
  if (n < held_.size() && held_[n] == '{') {
    held_.erase(0, n);
    open_call("");
    return true;
  }
  if (n == held_.size()) held_.clear();
  state_ = State::kContent;
  return true;
}

bool ReplyParser::begins_bare_call(std::string_view text) const {
  return may_begin_bare_call(text) && (text.starts_with('{') || text.starts_with(kPythonTag));
}

// A style without tags is looked for only where functions were offered.
bool ReplyParser::may_begin_bare_call(std::string_view text) const {
  return format_.tools != nullptr && format_.tools->open.empty() && tools_.is_known() &&
         (text.empty() || text[0] == '{' || may_begin_with(text, kPythonTag));
}

void ReplyParser::open_call(std::string tag) {
  call_tag_ = std::move(tag);
  call_ = make_call_scanner(*format_.tools, tools_);
  state_ = State::kCall;
}

void ReplyParser::give(ReplyEvent::Kind kind, std::string_view text) {
  if (text.empty()) return;
  if (!events_.empty() && events_.back().kind == kind && kind != ReplyEvent::Kind::kCall)
    events_.back().text += text;
  else
    events_.push_back({kind, std::string(text), {}});
}

void ReplyParser::give_content(std::string_view text) {
  // White space in front of what may be a call is held.
  const size_t n_text = text.find_last_not_of(kBlanks) + 1;  // 0 if there is none
  if (n_text > 0) {
    if (has_content_ || !after_call_) give(ReplyEvent::Kind::kContent, blanks_);
    blanks_.clear();
    if (!has_content_ && after_call_) text.remove_prefix(first_word(text));
    const size_t n_left = text.find_last_not_of(kBlanks) + 1;
    give(ReplyEvent::Kind::kContent, text.substr(0, n_left));
    text.remove_prefix(n_left);
    has_content_ = true;
    after_call_ = false;
  }
  blanks_ += text;
}

void ReplyParser::give_call(ToolCall call) {
  if (call.id.empty()) call.id = next_id();
  events_.push_back({ReplyEvent::Kind::kCall, {}, std::move(call)});
  after_call_ = true;
}

// Nine letters and digits: what Mistral's templates ask for.
std::string ReplyParser::next_id() {
  constexpr std::string_view kDigits =
      "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  uint64_t bits = mixed(mixed(id_key_) + ++n_ids_);
  std::string id;
  for (int i = 0; i < 9; ++i, bits /= kDigits.size()) id += kDigits[bits % kDigits.size()];
  return id;
}

Reply parse_reply(const ReplyFormat& format, const ReplyStart& start, std::string_view text) {
  ReplyParser parser(format, start);
  Reply reply;
  for (const ReplyEvent& event : parser.feed(text)) reply.add(event);
  for (const ReplyEvent& event : parser.flush()) reply.add(event);
  return reply;
}

}  // namespace dovetail::core
