// Which files of a model are pulled.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/base/status.hpp"
#include "core/hub/listing.hpp"

namespace dovetail::core {

/// What the user asks for. Without names and patterns to include: what Dovetail reads.
struct Wanted {
  std::vector<std::string> names;  // files; one part of a split GGUF stands for all
  std::vector<std::string>
      include;  // patterns of a shell, where * goes over "/" too; "onnx/" is all below it
  std::vector<std::string> exclude;
};

struct Selection {
  std::vector<HubFile> files;  // documents first, weights after them
  std::vector<std::string>
      refused;  // matched a pattern, but are pickles: those can run code when loaded
};

/// By default the config, the tokenizer, the chat template and the weights that a folder is read from:
/// model.safetensors, else the shards of model.safetensors.index.json, else the one GGUF model there is.
/// `read` gives the text of the index.
/// errors  kInvalid: names and patterns without a file, several GGUF models, names that lead out of a folder.
///         kUnsupported: no weights that Dovetail reads. What `read` says.
Result<Selection> select_files(const HubListing& listing, const Wanted& wanted,
                               const std::function<Result<std::string>(const HubFile&)>& read);

}  // namespace dovetail::core
