#include "core/text/tool_arguments.hpp"

#include <string>

#include "core/base/json.hpp"

namespace dovetail::core {
namespace {

constexpr const char* kProbe = R"({"dovetail_probe":1})";

Node* arguments_of(Node& call) {
  Node* function = call.find("function");
  return (function != nullptr && function->is_map() ? function : &call)->find("arguments");
}

// A conversation with one call, as every template with tools takes it.
Node probe_messages(Node arguments) {
  Result<Node> messages = parse_json(
      R"([{"role": "user", "content": "x"},
          {"role": "assistant", "content": "", "tool_calls": [{"id": "abcdefghi", "type": "function",
           "function": {"name": "f", "arguments": null}}]},
          {"role": "tool", "name": "f", "tool_call_id": "abcdefghi", "content": "y"}])",
      "probe");
  *arguments_of(messages->items()[1].find("tool_calls")->items()[0]) = std::move(arguments);
  return std::move(*messages);
}

bool renders(const ChatTemplate& chat_template, Node context, Node arguments, const char* as) {
  context.set("messages", probe_messages(std::move(arguments)));
  const Result<Rendered> out = chat_template.render(context);
  return out && out->text.find(as) != std::string::npos;
}

enum class Takes { kUnknown, kYes, kNo };

// What a template takes; asked when it matters.
class Forms {
 public:
  Forms(const ChatTemplate& chat_template, const Node& context)
      : template_(chat_template), context_(context) {}

  bool takes_text() {
    if (text_ == Takes::kUnknown)
      text_ = known(renders(template_, context_, Node::make_string(kProbe), kProbe));
    return text_ == Takes::kYes;
  }
  bool takes_object() {
    if (object_ == Takes::kUnknown)
      object_ = known(renders(template_, context_, *parse_json(kProbe, "probe"), "dovetail_probe"));
    return object_ == Takes::kYes;
  }

 private:
  static Takes known(bool yes) { return yes ? Takes::kYes : Takes::kNo; }

  const ChatTemplate& template_;
  const Node& context_;
  Takes text_ = Takes::kUnknown;
  Takes object_ = Takes::kUnknown;
};

Status fit(Node& arguments, Forms& forms, const std::string& where) {
  if (arguments.is_map()) {
    if (!forms.takes_object() && forms.takes_text())
      arguments = Node::make_string(to_json(arguments));
    return Status::ok();
  }
  if (!arguments.is_string() || forms.takes_text()) return Status::ok();
  const std::string& text = arguments.as_string();
  Result<Node> parsed = parse_json(text.empty() ? "{}" : text, where);
  if (!parsed)
    return invalid(parsed.status().message() + "; the chat template wants a JSON object");
  if (!parsed->is_map())
    return invalid(where + " is " + parsed->kind_name() +
                   ", expected a JSON object, which the chat template wants");
  arguments = std::move(*parsed);
  return Status::ok();
}

}  // namespace

Status fit_tool_arguments(Node& messages, const ChatTemplate& chat_template, const Node& context) {
  if (!messages.is_list()) return Status::ok();
  Forms forms(chat_template, context);
  for (size_t m = 0; m < messages.items().size(); ++m) {
    Node* calls = messages.items()[m].find("tool_calls");
    if (calls == nullptr || !calls->is_list()) continue;
    for (size_t c = 0; c < calls->items().size(); ++c) {
      Node* arguments = arguments_of(calls->items()[c]);
      if (arguments == nullptr) continue;
      DVT_TRY(fit(*arguments, forms,
                  "messages[" + std::to_string(m) + "].tool_calls[" + std::to_string(c) +
                      "].function.arguments"));
    }
  }
  return Status::ok();
}

}  // namespace dovetail::core
