// The "config" document: what the metadata says, under the keys of Hugging Face's config.json.
#pragma once

#include <string>
#include <vector>

#include "header.hpp"

namespace dovetail::gguf {

/// What the config takes from the tensors.
struct TensorFacts {
  int64_t vocab_size = 0;  // rows of the embedding; 0 without one
  bool has_head = false;   // output.weight
  bool attention_bias = false, mlp_bias = false;
  std::vector<double> rope_factors;  // rope_freqs.weight: what each frequency is divided by
};

/// general.architecture.
/// errors   DVT_EFORMAT: it is not there.
std::string architecture_of(const Metadata& metadata);

/// One key says what Hugging Face's vocabulary has no word for, where it is true of the tensors:
///   "norm_weights_include_one": true    gemma3: the weights of norms are 1 + w of the original
/// errors   DVT_EFORMAT: a key that is missing or wrong. DVT_EUNSUPPORTED: rope factors of no known rule.
std::string config_json(const Metadata& metadata, const TensorFacts& facts);

}  // namespace dovetail::gguf
