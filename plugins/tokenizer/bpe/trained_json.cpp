// Writing what the trainer learnt as a tokenizer.json.
#include <dovetail/json_string.hpp>

#include "trainer.hpp"

namespace dovetail::bpe {
namespace {

std::string quote(std::string_view s) {
  std::string out;
  append_json_string(s, out);
  return out;
}

std::string byte_level(bool trim_offsets, bool use_regex) {
  const auto text = [](bool v) { return v ? "true" : "false"; };
  return std::string("{\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": ") +
         text(trim_offsets) + ", \"use_regex\": " + text(use_regex) + "}";
}

std::string pre_tokenizer(const TrainOptions& options) {
  if (options.pattern == "gpt2") return byte_level(true, true);
  const std::string_view pattern = options.pattern == "qwen2" ? kQwen2Pattern : options.pattern;
  return "{\n    \"type\": \"Sequence\",\n    \"pretokenizers\": [\n      {\"type\": \"Split\", "
         "\"pattern\": "
         "{\"Regex\": " +
         quote(pattern) + "}, \"behavior\": \"Isolated\", \"invert\": false},\n      " +
         byte_level(false, false) + "\n    ]\n  }";
}

}  // namespace

std::string to_tokenizer_json(const TrainedBpe& trained, const TrainOptions& options) {
  std::string out =
      "{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null,\n  "
      "\"added_tokens\": [";
  for (size_t i = 0; i < options.special_tokens.size(); ++i) {
    out += (i == 0 ? "\n    {\"id\": " : ",\n    {\"id\": ") + std::to_string(i) +
           ", \"content\": " + quote(options.special_tokens[i]) +
           ", \"single_word\": false, \"lstrip\": false, \"rstrip\": false, \"normalized\": false, "
           "\"special\": true}";
  }
  out += options.special_tokens.empty() ? "],\n" : "\n  ],\n";
  out += std::string("  \"normalizer\": ") + (options.nfc ? "{\"type\": \"NFC\"}" : "null") + ",\n";
  out += "  \"pre_tokenizer\": " + pre_tokenizer(options) + ",\n";
  out += "  \"post_processor\": " + byte_level(false, false) + ",\n";
  out += "  \"decoder\": " + byte_level(false, false) + ",\n";
  out +=
      "  \"model\": {\n    \"type\": \"BPE\",\n    \"dropout\": null,\n    \"unk_token\": null,\n"
      "    \"continuing_subword_prefix\": null,\n    \"end_of_word_suffix\": null,\n"
      "    \"fuse_unk\": false,\n    \"byte_fallback\": false,\n    \"ignore_merges\": false,\n"
      "    \"vocab\": {";
  for (size_t id = 0; id < trained.vocab.size(); ++id) {
    out +=
        (id == 0 ? "\n      " : ",\n      ") + quote(trained.vocab[id]) + ": " + std::to_string(id);
  }
  out += "\n    },\n    \"merges\": [";
  for (size_t i = 0; i < trained.merges.size(); ++i) {
    const auto [left, right] = trained.merges[i];
    out += (i == 0 ? "\n      [" : ",\n      [") + quote(trained.vocab[left]) + ", " +
           quote(trained.vocab[right]) + "]";
  }
  out += trained.merges.empty() ? "]\n  }\n}\n" : "\n    ]\n  }\n}\n";
  return out;
}

}  // namespace dovetail::bpe
