// What a checkpoint's generation_config.json says of sampling, as a layer of the config.
#pragma once

#include "core/base/node.hpp"
#include "core/base/status.hpp"

namespace dovetail::core {

/// A map with `sampler` and `generate.max_tokens`, as far as the document has them; each value keeps its place in it.
///   repetition_penalty, temperature, top_k, top_p, min_p, typical_p   stages of that name, in this order
///   do_sample false                                                   temperature 0, without the last four
///   max_new_tokens                                                    generate.max_tokens
/// Ids are the model's matter (Model::eos_ids); other keys say nothing here.
/// errors   kFormat: no map, a value of the wrong type. Ranges are those of the stages, checked with the config.
/// source   transformers' GenerationConfig, and the order of its logits processors.
Result<Node> defaults_of_generation(const Node& generation);

}  // namespace dovetail::core
