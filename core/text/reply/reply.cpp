#include "core/text/reply/reply.hpp"

namespace dovetail::core {

void Reply::add(const ReplyEvent& event) {
  switch (event.kind) {
    case ReplyEvent::Kind::kReasoning:
      reasoning += event.text;
      return;
    case ReplyEvent::Kind::kContent:
      content += event.text;
      return;
    case ReplyEvent::Kind::kCall:
      calls.push_back(event.call);
  }
}

void Reply::write_to(Node& message) const {
  message.set("content", Node::make_string(content));
  if (!reasoning.empty()) message.set("reasoning_content", Node::make_string(reasoning));
  if (calls.empty()) return;
  Node list = Node::make_list();
  for (const ToolCall& call : calls) {
    Node function = Node::make_map();
    function.set("name", Node::make_string(call.name));
    function.set("arguments", Node::make_string(call.arguments));
    Node entry = Node::make_map();
    entry.set("id", Node::make_string(call.id));
    entry.set("type", Node::make_string("function"));
    entry.set("function", std::move(function));
    list.items().push_back(std::move(entry));
  }
  message.set("tool_calls", std::move(list));
}

}  // namespace dovetail::core
