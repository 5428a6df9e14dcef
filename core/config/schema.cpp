// The table of fixed keys. docs/config.md says the same for people; a test compares the two.
#include "core/config/schema.hpp"

#include <utility>

namespace dovetail::core {
namespace {

using Type = ParamSpec::Type;

ParamSpec key(std::string name, Type type, std::string help) {
  ParamSpec spec;
  spec.name = std::move(name);
  spec.type = type;
  spec.help = std::move(help);
  return spec;
}

ParamSpec in_forms(ParamSpec spec, int forms) {
  spec.forms = static_cast<uint8_t>(forms);
  return spec;
}

ParamSpec at_least(ParamSpec spec, double min) {
  spec.min = min;
  return spec;
}

ParamSpec one_of(ParamSpec spec, std::vector<std::string> choices) {
  spec.choices = std::move(choices);
  return spec;
}

Section top_level() {
  ParamSpec version = key("dovetail", Type::kInt, "version of the config language");
  version.required = true;
  version.min = version.max = static_cast<double>(kConfigVersion);
  return {
      "",
      "a Dovetail config",
      {version,
       in_forms(key("extends", Type::kString, "configs to start from, later ones win"),
                ParamSpec::kOne | ParamSpec::kList),
       at_least(key("context", Type::kInt, "tokens a sequence may have, prompt and answer"), 1)},
      "",
      ""};
}

Section model() {
  return {"model",
          "which model; further keys are parameters of the architecture",
          {key("path", Type::kPath, "folder or file of the checkpoint"),
           key("name", Type::kString, "name to show, default: the path's last part"),
           key("arch", Type::kString, "architecture plugin, default: what the checkpoint says"),
           in_forms(key("format", Type::kString, "checkpoint format plugins to try, in order"),
                    ParamSpec::kOne | ParamSpec::kList)},
          "arch",
          "arch"};
}

Section backend() {
  return {
      "backend",
      "what computes; further keys are parameters of the backend",
      {key("plugin", Type::kString, "backend plugin"),
       in_forms(key("weights", Type::kString, "weight format, or a map of tensor class to format"),
                ParamSpec::kOne | ParamSpec::kMap),
       at_least(key("threads", Type::kInt, "threads of the host's pool, default: all processors"),
                1),
       key("pin", Type::kBool, "keep each of these threads on one processor"),
       key("huge_pages", Type::kBool,
           "move mapped weights to 2 MiB pages in the background while memory allows"),
       at_least(
           key("weight_cache_gib", Type::kInt,
               "size of the folder that keeps packed weights for the next start; 0 keeps none"),
           0)},
      "backend",
      "plugin"};
}

Section kv_cache() {
  return {
      "kv_cache",
      "the cache of keys and values",
      {one_of(key("dtype", Type::kString, "auto: float32 for float32 weights, else bf16"),
              {"auto", "float32", "bf16", "int8"}),
       at_least(key("block_len", Type::kInt, "tokens per block, default: the backend's wish"), 1),
       at_least(key("max_tokens", Type::kInt,
                    "tokens in all sequences together, default: one context and a block for each "
                    "further one"),
                1)},
      "",
      ""};
}

Section scheduler() {
  return {
      "scheduler",
      "what runs in one step",
      {at_least(key("max_batch_tokens", Type::kInt, "tokens in one step"), 1),
       at_least(key("max_seqs", Type::kInt, "requests that run at once"), 1),
       at_least(key("prefill_chunk", Type::kInt, "prompt tokens of one request in one step"), 1)},
      "",
      ""};
}

Section generate() {
  return {
      "generate",
      "when an answer ends, and its randomness",
      {at_least(key("max_tokens", Type::kInt, "tokens of an answer"), 0),
       in_forms(key("stop", Type::kString, "texts that end the answer"),
                ParamSpec::kOne | ParamSpec::kList),
       in_forms(
           at_least(key("stop_ids", Type::kInt, "token ids that end it, beside the model's"), 0),
           ParamSpec::kOne | ParamSpec::kList),
       at_least(
           key("seed", Type::kInt, "of the random numbers, default: drawn, shown by run --json"),
           0),
       key("ignore_eos", Type::kBool, "run on past the model's end token")},
      "",
      ""};
}

Section tokenizer() {
  return {"tokenizer",
          "text to tokens; further keys are parameters of the tokenizer",
          {key("plugin", Type::kString, "tokenizer plugin"),
           key("path", Type::kPath, "folder or file, default: the checkpoint's")},
          "tokenizer",
          "plugin"};
}

Section chat() {
  return {
      "chat",
      "how messages become a prompt",
      {key("template", Type::kString, "Jinja text, default: the checkpoint's"),
       key("template_file", Type::kPath, "a file with it"),
       key("template_name", Type::kString, "which of the checkpoint's, if it has several"),
       key("system", Type::kString, "the first message"),
       key("enable_thinking", Type::kBool, "given to the template"),
       // The styles of core/text/reply/reply_format.cpp; a test holds the two together.
       one_of(key("reasoning", Type::kString, "how answers mark reasoning, auto: by the template"),
              {"auto", "none", "think", "mistral", "seed_oss", "apertus"}),
       one_of(key("tools", Type::kString, "how answers write tool calls, auto: by the template"),
              {"auto", "none", "qwen3_coder", "glm", "hermes", "seed_oss", "mistral", "apriel",
               "phi4_mini", "granite", "llama3_json"})},
      "",
      ""};
}

Section plugins() {
  const int list = ParamSpec::kOne | ParamSpec::kList;
  return {"plugins",
          "where plugins come from",
          {in_forms(key("path", Type::kPath, "folders to search first"), list),
           in_forms(key("allow", Type::kString,
                        "names, KIND/NAMEs or ids that may load, with * and ?, default: all"),
                    list),
           in_forms(key("deny", Type::kString, "the same of those that may not"), list)},
          "",
          ""};
}

Section log() {
  return {"log",
          "messages on standard error",
          {one_of(key("level", Type::kString, "the least serious that is shown"),
                  {"trace", "debug", "info", "warn", "error", "off"})},
          "",
          ""};
}

}  // namespace

const std::vector<Section>& config_sections() {
  static const std::vector<Section> sections = {top_level(), model(),    backend(),   kv_cache(),
                                                scheduler(), generate(), tokenizer(), chat(),
                                                plugins(),   log()};
  return sections;
}

const Section* find_section(std::string_view name) {
  for (const Section& section : config_sections()) {
    if (section.name == name) return &section;
  }
  return nullptr;
}

}  // namespace dovetail::core
