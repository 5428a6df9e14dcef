// The config document: metadata under Hugging Face's keys, for each architecture that is known.
#include <cmath>

#include "reader_rig.hpp"

namespace dovetail::core {
namespace {

TEST_F(GgufTest, Qwen3ConfigHasTheOriginalsNumbers) {
  GgufFile f = model_of("qwen3");
  f.u32("qwen3.attention.key_length", 32).u32("qwen3.attention.value_length", 32);
  f.u32("tokenizer.ggml.bos_token_id", 1).u32("tokenizer.ggml.eos_token_id", 2);
  f.tensor("token_embd.weight", {1, 160}, 0, std::string(640, 'e'));
  EXPECT_EQ(
      json_of(f, "config"),
      R"({"model_type":"qwen3","hidden_size":64,"num_hidden_layers":2,"intermediate_size":96,)"
      R"("num_attention_heads":4,"num_key_value_heads":2,"head_dim":32,"vocab_size":160,"rms_norm_eps":1e-06,)"
      R"("max_position_embeddings":512,"tie_word_embeddings":true,"rope_theta":1e+06,"hidden_act":"silu",)"
      R"("bos_token_id":1,"eos_token_id":2})");
}

TEST_F(GgufTest, AHeadOfItsOwnIsNotTied) {
  GgufFile f = model_of("qwen2");
  f.tensor("output.weight", {1, 4}, 0, std::string(16, 'o'))
      .tensor("blk.0.attn_q.bias", {4}, 0, std::string(16, 'b'));
  const std::string config = json_of(f, "config");
  EXPECT_TRUE(has(config, R"("model_type":"qwen2")"));
  EXPECT_TRUE(has(config, R"("tie_word_embeddings":false)"));
  EXPECT_TRUE(has(config, R"("head_dim":16)"))
      << "where the file does not say, the width over the heads";
  EXPECT_FALSE(has(config, "attention_bias")) << "qwen2 always has them";
  EXPECT_TRUE(tensors_.contains("lm_head.weight"));
  EXPECT_TRUE(tensors_.contains("model.layers.0.self_attn.q_proj.bias"));
}

TEST_F(GgufTest, NamesOfTensorsAreHuggingFaces) {
  const std::vector<std::pair<const char*, const char*>> names = {
      {"blk.0.attn_norm.weight", "model.layers.0.input_layernorm.weight"},
      {"blk.12.attn_k.weight", "model.layers.12.self_attn.k_proj.weight"},
      {"blk.0.attn_v.bias", "model.layers.0.self_attn.v_proj.bias"},
      {"blk.0.attn_output.weight", "model.layers.0.self_attn.o_proj.weight"},
      {"blk.0.attn_q_norm.weight", "model.layers.0.self_attn.q_norm.weight"},
      {"blk.0.attn_k_norm.weight", "model.layers.0.self_attn.k_norm.weight"},
      {"blk.0.ffn_norm.weight", "model.layers.0.post_attention_layernorm.weight"},
      {"blk.0.ffn_gate.weight", "model.layers.0.mlp.gate_proj.weight"},
      {"blk.0.ffn_up.weight", "model.layers.0.mlp.up_proj.weight"},
      {"blk.0.ffn_down.weight", "model.layers.0.mlp.down_proj.weight"},
      {"blk.x.ffn_down.weight", "blk.x.ffn_down.weight"},
      {"blk..ffn_down.weight", "blk..ffn_down.weight"},
      {"blk.0.ffn_down", "blk.0.ffn_down"},
      {"token_embd.weight", "model.embed_tokens.weight"}};
  GgufFile f = model_of("qwen3");
  for (const auto& [from, to] : names) f.tensor(from, {1}, 0, "1234");
  EXPECT_EQ(refusal(f), "");
  for (const auto& [from, to] : names) EXPECT_TRUE(tensors_.contains(to)) << from;
  EXPECT_EQ(tensors_.size(), names.size());

  f = model_of("gemma3");
  for (const char* name : {"post_attention_norm", "ffn_norm", "post_ffw_norm"})
    f.tensor("blk.3." + std::string(name) + ".weight", {1}, 0, "1234");
  EXPECT_EQ(refusal(f), "");
  for (const char* name :
       {"post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm"})
    EXPECT_TRUE(tensors_.contains("model.layers.3." + std::string(name) + ".weight")) << name;
}

TEST_F(GgufTest, RowsOfLlamaHeadsAreToldToBeInPairs) {
  for (const char* arch : {"llama", "qwen2"}) {
    GgufFile f = model_of(arch);  // 4 heads and 2
    f.tensor("blk.0.attn_q.weight", {1, 16}, 0, std::string(64, 'q'))
        .tensor("blk.0.attn_q.bias", {16}, 0, std::string(64, 'q'));
    f.tensor("blk.0.attn_k.weight", {1, 8}, 0, std::string(32, 'k'))
        .tensor("blk.0.attn_v.weight", {1, 8}, 0, std::string(32, 'v'));
    EXPECT_EQ(refusal(f), "");
    const std::string at = "model.layers.0.self_attn.";
    const bool is_llama = std::string(arch) == "llama";
    EXPECT_EQ(tensors_[at + "q_proj.weight"].paired_rows, is_llama ? 4 : 0);
    EXPECT_EQ(tensors_[at + "q_proj.bias"].paired_rows, is_llama ? 4 : 0);
    EXPECT_EQ(tensors_[at + "k_proj.weight"].paired_rows, is_llama ? 4 : 0);
    EXPECT_EQ(tensors_[at + "v_proj.weight"].paired_rows, 0);
  }
  GgufFile odd = model_of("llama");
  odd.tensor("blk.0.attn_q.weight", {1, 12}, 0, std::string(48, 'q'));
  EXPECT_TRUE(has(
      refusal(odd),
      "tensor \"blk.0.attn_q.weight\" has 12 rows, expected an even number for each of 4 heads"));
}

TEST_F(GgufTest, RopeScalingIsTransformersRule) {
  GgufFile f = model_of("qwen3");
  f.string("qwen3.rope.scaling.type", "yarn")
      .f32("qwen3.rope.scaling.factor", 4)
      .u32("qwen3.rope.scaling.original_context_length", 128);
  EXPECT_TRUE(has(
      json_of(f, "config"),
      R"("rope_scaling":{"rope_type":"yarn","factor":4.0,"original_max_position_embeddings":128})"));
  f.f32("qwen3.rope.scaling.attn_factor", 2);
  EXPECT_TRUE(has(json_of(f, "config"), R"("attention_factor":2.27725)")) << "2 * (0.1 ln 4 + 1)";
  f = model_of("qwen3");
  f.string("qwen3.rope.scaling.type", "linear").f32("qwen3.rope.scaling.factor", 8);
  EXPECT_TRUE(has(json_of(f, "config"), R"("rope_scaling":{"rope_type":"linear","factor":8.0})"));
  f = model_of("llama");
  f.f32("llama.rope.scale_linear", 2);
  EXPECT_TRUE(has(json_of(f, "config"), R"("rope_scaling":{"rope_type":"linear","factor":2.0})"));
  for (const char* none : {"none", "linear"}) {
    f = model_of("qwen3");
    EXPECT_FALSE(has(json_of(f.string("qwen3.rope.scaling.type", none), "config"), "rope_scaling"));
  }
}

// Converters write Llama 3's rule out as a divisor of each frequency.
TEST_F(GgufTest, Llama3ScalingIsFoundFromItsFactors) {
  constexpr double kPi = 3.14159265358979323846, kTheta = 1e6, kFactor = 32, kOriginal = 8192;
  const auto file = [&](double change) {
    std::string factors;
    for (int i = 0; i < 32; ++i) {
      const double wavelength = 2 * kPi * std::pow(kTheta, i / 32.0);
      double factor = kFactor;
      if (wavelength < kOriginal / 4) {
        factor = 1;
      } else if (wavelength <= kOriginal) {
        const double smooth = (kOriginal / wavelength - 1) / 3;
        factor = 1 / ((1 - smooth) / kFactor + smooth);
      }
      factors += raw(static_cast<float>(i == 20 ? factor * change : factor));
    }
    GgufFile f = model_of("llama");
    return f.tensor("rope_freqs.weight", {32}, 0, factors);
  };
  EXPECT_TRUE(has(
      json_of(file(1), "config"),
      R"("rope_scaling":{"rope_type":"llama3","factor":32.0,"low_freq_factor":1.0,"high_freq_factor":4.0,)"
      R"("original_max_position_embeddings":8192})"));
  EXPECT_TRUE(tensors_.empty()) << "no architecture takes it";
  EXPECT_TRUE(has(json_of(file(1.1), "config"),
                  "\"rope_freqs.weight\" scales the rotary embedding by a rule that is not known"));
  GgufFile f = model_of("llama");
  std::string ones;
  for (int i = 0; i < 8; ++i) ones += raw(1.0f);
  EXPECT_FALSE(has(json_of(f.tensor("rope_freqs.weight", {8}, 0, ones), "config"), "rope_scaling"));
  f = model_of("llama");
  EXPECT_TRUE(has(refusal(f.tensor("rope_freqs.weight", {2}, 1, "1234")),
                  "\"rope_freqs.weight\" is no vector of F32"));
}

TEST_F(GgufTest, Gemma3SaysWhatItsTensorsHold) {
  GgufFile f = model_of("gemma3");
  f.u32("gemma3.attention.sliding_window", 512)
      .u32("gemma3.attention.key_length", 256)
      .u32("gemma3.attention.value_length", 256);
  const std::string config = json_of(f, "config");
  EXPECT_TRUE(has(config, R"("model_type":"gemma3_text")"));
  EXPECT_TRUE(has(
      config,
      R"("hidden_activation":"gelu_pytorch_tanh","query_pre_attn_scalar":256,"rope_local_base_freq":10000.0,)"
      R"("sliding_window":512,"sliding_window_pattern":6,"norm_weights_include_one":true)"));
}

TEST_F(GgufTest, AnArchitectureThatIsNotKnownKeepsItsNameAndTheCommonKeys) {
  const std::string config = json_of(model_of("starling"), "config");
  EXPECT_TRUE(has(config, R"("model_type":"starling","hidden_size":64)"));
  GgufFile f = model_of("llama");
  EXPECT_TRUE(has(json_of(f.u32("llama.expert_count", 8), "config"), R"("model_type":"mixtral")"));
}

TEST_F(GgufTest, KeysThatAreMissingOrWrongAreNamed) {
  GgufFile f;
  f.string("general.architecture", "qwen3");
  EXPECT_TRUE(has(json_of(f, "config"), "m.gguf: has no key \"qwen3.embedding_length\""));
  f.string("qwen3.embedding_length", "wide");
  EXPECT_TRUE(has(json_of(f, "config"),
                  "key \"qwen3.embedding_length\" is \"wide\", expected a whole number"));
  f = {};
  EXPECT_TRUE(has(json_of(f.u32("general.architecture", 3), "config"),
                  "key \"general.architecture\" is 3, expected a string"));
  f = GgufFile();
  f.string("general.architecture", "qwen3").u32("qwen3.embedding_length", 0);
  EXPECT_TRUE(has(json_of(f, "config"),
                  "key \"qwen3.embedding_length\" is 0, expected a whole number from 1 on"));
  f = model_of("qwen3");
  f.u32("qwen3.attention.key_length", 64).u32("qwen3.attention.value_length", 32);
  EXPECT_TRUE(has(json_of(f, "config"),
                  "has heads of 64 for keys and of 32 for values, which is not supported"));
  f = model_of("qwen3");
  f.f32("qwen3.rope.scaling.factor", std::nanf(""));
  EXPECT_TRUE(has(json_of(f, "config"),
                  "\"qwen3.rope.scaling.factor\" is FLOAT32, expected a finite number"));
}

TEST_F(GgufTest, ANumberOfEachLayerIsOneIfAllAreAlike) {
  GgufFile f;
  f.string("general.architecture", "qwen3")
      .u32("qwen3.embedding_length", 64)
      .u32("qwen3.block_count", 2);
  GgufFile alike = f, different = f;
  EXPECT_TRUE(
      has(json_of(alike.numbers<int32_t>("qwen3.attention.head_count", 5, {4, 4}), "config"),
          R"("num_attention_heads":4)"));
  EXPECT_TRUE(
      has(json_of(different.numbers<int32_t>("qwen3.attention.head_count", 5, {4, 8}), "config"),
          "\"qwen3.attention.head_count\" is an array of 2 INT32, expected one whole number, or "
          "the same for every layer"));
}

}  // namespace
}  // namespace dovetail::core
