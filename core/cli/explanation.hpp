// What `run --explain` says: where the ops of a model's graph run, one line for each op and reason.
#pragma once

#include <string>

#include "core/base/node.hpp"
#include "core/model/model.hpp"

namespace dovetail::core {

std::string explanation_text(const Model& model);
Node explanation_node(const Model& model);

/// Scopes in few words: those that differ by a number are one, with its ranges: "layers.0-3,5.attn, head".
std::string scopes_text(const std::vector<std::string>& scopes);

}  // namespace dovetail::core
