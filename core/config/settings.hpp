// The typed view of a checked config that the engine reads.
//
// No default is written here: what configs/defaults.yaml leaves out and the checkpoint or the
// backend decides is optional, what it must give is an error if missing.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/node.hpp"
#include "core/base/status.hpp"
#include "core/config/schema.hpp"

namespace dovetail::core {

/// A plugin that a config names, with the parameters it sets: check and complete them with
/// complete_params() once the plugin has declared its own.
struct PluginUse {
  std::string name;  // name or id; empty where the checkpoint decides
  Node params;       // a map; for a sampler stage also the shorthand's value, or null
  std::string path;  // its place in the config: "backend", "sampler.0.top_k"
};

struct Settings {
  struct Model {
    std::string path;                  // absolute; empty if the architecture needs no checkpoint
    std::string name;                  // to show to people
    PluginUse arch;                    // kind "arch"
    std::vector<std::string> formats;  // plugins to try, in order
  };
  struct Backend {
    PluginUse plugin;
    std::string weights;  // a format's name; empty: as stored
    std::map<std::string, std::string>
        class_weights;           // tensor class to format; wins over `weights`
    std::string weights_origin;  // "c.yaml:4:12: backend.weights", for messages
    std::optional<int32_t> n_threads;
    bool pin = false;              // the pool's threads stay on one processor each
    bool huge_pages = true;        // mapped weights move to 2 MiB pages
    int32_t weight_cache_gib = 0;  // bound of the cache of packed weights; 0: none
  };
  struct KvCache {
    std::string dtype;                 // "auto", "float32", "bf16", "int8"
    std::optional<int32_t> block_len;  // tokens per block
    std::optional<int64_t> max_tokens;
  };
  struct Scheduler {
    int32_t max_batch_tokens = 0;
    int32_t max_seqs = 0;
    int32_t prefill_chunk = 0;
  };
  struct Generate {
    int32_t max_tokens = 0;
    std::vector<std::string> stop;
    std::vector<int32_t> stop_ids;
    std::optional<int64_t> seed;
    bool ignore_eos = false;
  };
  struct Tokenizer {
    PluginUse plugin;
    std::string path;  // absolute; empty: the checkpoint's
  };
  struct Chat {
    std::optional<std::string> chat_template;
    std::string template_file;
    std::optional<std::string> system;
    std::optional<bool> enable_thinking;
    std::string template_name;     // empty: "default", "tool_use" with tools
    std::string reasoning, tools;  // "auto", "none" or a style's name
  };
  struct Plugins {
    std::vector<std::string> path, allow, deny;
  };

  Model model;
  Backend backend;
  KvCache kv_cache;
  Scheduler scheduler;
  std::vector<PluginUse> sampler;
  Generate generate;
  Tokenizer tokenizer;
  Chat chat;
  Plugins plugins;
  std::string log_level;
  std::optional<int32_t> max_seq_len;  // the key `context`
};

/// Reads a config that load_config() made.
/// errors   kInvalid: a key that has no default is missing, an integer is beyond 32 bits, both a
///          chat template and its file are given.
Result<Settings> read_settings(const Node& config);

}  // namespace dovetail::core
