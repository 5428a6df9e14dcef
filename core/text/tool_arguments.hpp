// The arguments of tool calls in the form that a template takes.
//
// The OpenAI API sends `function.arguments` as a JSON text; Transformers hands templates an object. Some
// templates take both, some join a text to others, some walk an object.
#pragma once

#include "core/base/node.hpp"
#include "core/base/status.hpp"
#include "core/text/template/chat_template.hpp"

namespace dovetail::core {

/// Rewrites tool_calls[].function.arguments of all messages: a text stays one where the template prints
/// it as it is, so that the model reads again exactly what it wrote; else it becomes the object that it
/// spells. An object becomes a text where the template takes nothing else. What the template takes is
/// found by rendering a call of each kind with `context`, the variables beside the messages.
///
/// errors   kInvalid, naming the message: a text that is no JSON object, for a template that wants one
Status fit_tool_arguments(Node& messages, const ChatTemplate& chat_template, const Node& context);

}  // namespace dovetail::core
