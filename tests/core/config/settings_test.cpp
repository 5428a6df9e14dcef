#include "core/config/settings.hpp"

#include <gtest/gtest.h>

#include <string>

#include "core/config/load.hpp"
#include "tests/core/config/nodes.hpp"

namespace dovetail::core {
namespace {

Result<Settings> settings_of(const std::string& text) {
  LoadOptions options;
  options.defaults_path = "configs/defaults.yaml";
  options.environment = [](const std::string&) { return std::nullopt; };
  DVT_TRY(const Node config, load_config_text("dovetail: 1\n" + text, "/etc/x.yaml", options));
  return read_settings(config);
}

std::string fault_in(const std::string& text) {
  const Result<Settings> settings = settings_of(text);
  return settings ? "" : settings.status().message();
}

TEST(Settings, HoldWhatTheConfigSays) {
  const Result<Settings> read = settings_of(
      "context: 2048\nmodel: {path: m/Tiny, arch: hash, vocab_size: 64, format: gguf}\n"
      "backend: {plugin: cpu, weights: {default: int4, lm_head: int8}, threads: 3, pin: true, isa: "
      "avx2}\n"
      "kv_cache: {dtype: bf16, block_len: 32, max_tokens: 5000000000}\n"
      "scheduler: {max_batch_tokens: 8, max_seqs: 2, prefill_chunk: 4}\n"
      "sampler: [greedy, top_k: 20, top_p: {p: 0.5}]\n"
      "generate: {max_tokens: 0, stop: a, stop_ids: [1, 2], seed: 0, ignore_eos: true}\n"
      "tokenizer: {path: /t, cache: 5}\nchat: {template: x, system: \"\", enable_thinking: false}\n"
      "plugins: {path: p, allow: [a], deny: b}\nlog: {level: trace}\n");
  ASSERT_TRUE(read.is_ok()) << read.status().message();
  const Settings& s = *read;
  EXPECT_EQ(s.max_seq_len, 2048);
  EXPECT_EQ(s.model.path, "/etc/m/Tiny");
  EXPECT_EQ(s.model.name, "Tiny");
  EXPECT_EQ(s.model.arch.name, "hash");
  EXPECT_TRUE(same_values(s.model.arch.params, parsed("{vocab_size: 64}")));
  EXPECT_EQ(s.model.formats, std::vector<std::string>{"gguf"});
  EXPECT_EQ(s.backend.plugin.name, "cpu");
  EXPECT_EQ(s.backend.plugin.path, "backend");
  EXPECT_TRUE(same_values(s.backend.plugin.params, parsed("{isa: avx2}")));
  EXPECT_EQ(s.backend.weights, "int4");
  EXPECT_EQ(s.backend.class_weights, (std::map<std::string, std::string>{{"lm_head", "int8"}}));
  EXPECT_EQ(s.backend.n_threads, 3);
  EXPECT_TRUE(s.backend.pin);
  EXPECT_EQ(s.kv_cache.dtype, "bf16");
  EXPECT_EQ(s.kv_cache.block_len, 32);
  EXPECT_EQ(s.kv_cache.max_tokens, 5000000000);
  EXPECT_EQ(s.scheduler.max_batch_tokens, 8);
  EXPECT_EQ(s.scheduler.max_seqs, 2);
  EXPECT_EQ(s.scheduler.prefill_chunk, 4);
  ASSERT_EQ(s.sampler.size(), 3u);
  EXPECT_EQ(s.sampler[0].name, "greedy");
  EXPECT_TRUE(s.sampler[0].params.is_null());
  EXPECT_EQ(s.sampler[1].path, "sampler.1.top_k");
  EXPECT_EQ(s.sampler[1].params.as_int(), 20);
  EXPECT_TRUE(same_values(s.sampler[2].params, parsed("{p: 0.5}")));
  EXPECT_EQ(s.generate.max_tokens, 0);
  EXPECT_EQ(s.generate.stop, std::vector<std::string>{"a"});
  EXPECT_EQ(s.generate.stop_ids, (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(s.generate.seed, 0);
  EXPECT_TRUE(s.generate.ignore_eos);
  EXPECT_EQ(s.tokenizer.plugin.name, "bpe");
  EXPECT_EQ(s.tokenizer.path, "/t");
  EXPECT_TRUE(same_values(s.tokenizer.plugin.params, parsed("{cache: 5}")));
  EXPECT_EQ(s.chat.chat_template, "x");
  EXPECT_EQ(s.chat.system, "");
  EXPECT_EQ(s.chat.enable_thinking, false);
  EXPECT_EQ(s.plugins.path, std::vector<std::string>{"/etc/p"});
  EXPECT_EQ(s.plugins.allow, std::vector<std::string>{"a"});
  EXPECT_EQ(s.plugins.deny, std::vector<std::string>{"b"});
  EXPECT_EQ(s.log_level, "trace");
}

TEST(Settings, TakeTheRestFromTheDefaults) {
  const Result<Settings> read = settings_of("model: {path: m/}\n");
  ASSERT_TRUE(read.is_ok()) << read.status().message();
  EXPECT_EQ(read->model.name, "m");
  EXPECT_EQ(read->model.arch.name, "");
  EXPECT_EQ(read->backend.plugin.name, "cpu");
  EXPECT_EQ(read->kv_cache.dtype, "auto");
  EXPECT_TRUE(read->sampler.empty());
  EXPECT_FALSE(read->generate.ignore_eos);
  EXPECT_GT(read->generate.max_tokens, 0);
  EXPECT_FALSE(read->generate.seed.has_value());
  EXPECT_FALSE(read->max_seq_len.has_value());
  EXPECT_FALSE(read->chat.enable_thinking.has_value());
}

TEST(Settings, SayWhatIsMissing) {
  EXPECT_NE(fault_in("").find("model.path: not set; give the folder of a checkpoint"),
            std::string::npos);
  EXPECT_NE(fault_in("model: {path: \"\"}").find("/etc/x.yaml:2:9: model.path: is empty"),
            std::string::npos);
  EXPECT_EQ(fault_in("model: {arch: hash}"), "");
  const Result<Settings> bare = read_settings(parsed("model: {path: x}"));
  ASSERT_FALSE(bare.is_ok());
  EXPECT_EQ(bare.status().message(), "backend.plugin: not set, and no defaults.yaml gives a value");
}

TEST(Settings, RefuseWhatDoesNotFit) {
  EXPECT_NE(fault_in("model: {path: x}\ncontext: 3000000000")
                .find("/etc/x.yaml:3:1: context: got 3000000000, expected at most 2147483647"),
            std::string::npos);
  EXPECT_NE(fault_in("model: {path: x}\ngenerate: {stop_ids: [1, 3000000000]}")
                .find("generate.stop_ids: got 3000000000"),
            std::string::npos);
  EXPECT_NE(fault_in("model: {path: x}\nchat: {template: a, template_file: b}")
                .find("expected one of them"),
            std::string::npos);
}

TEST(Settings, NeverTrustTheTypes) {
  const Result<Settings> read =
      read_settings(parsed("model: {path: [1], arch: {a: b}, format: 5}\nbackend: cpu\nkv_cache: "
                           "[x]\nsampler: {a: 1}\ngenerate: {stop: [1]}\n"));
  ASSERT_FALSE(read.is_ok());
  EXPECT_EQ(read.status().message(), "x.yaml:1:9: model.path: got a list, expected a string");
  EXPECT_FALSE(read_settings(Node()).is_ok());
}

}  // namespace
}  // namespace dovetail::core
