#include "pre_tokenizers.hpp"

namespace dovetail::gguf {
namespace {

constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen35 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kO200k =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kTekken =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kUpToThreeDigits = R"(\p{N}{1,3})";
constexpr std::string_view kHanAndKana = R"([一-龥぀-ゟ゠-ヿ]+)";
constexpr std::string_view kDeepseekV3 =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";

struct Family {
  std::string_view names;  // with a space before and after each
  PreTokenizer what;
};
constexpr Family kFamilies[] = {
    {" gpt-2 phi-2 mpt olmo jais exaone4 trillion granite-docling gigachat mellum modern-bert "
     "a.x-4.0 ",
     {.is_gpt2 = true}},
    {" smollm starcoder refact command-r codeshell exaone minerva-7b mellum2 ",
     {.splits_digits = true, .is_gpt2 = true}},
    {" llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 ",
     {.patterns = {kLlama3}, .ignores_merges = true, .adds_bos = true}},
    {" dbrx smaug-bpe glm4 chatglm-bpe ", {.patterns = {kLlama3}}},
    {" qwen2 deepseek-r1-qwen ", {.patterns = {kQwen2}, .nfc = true}},
    {" kormo f2llmv2 megrez stablelm2 hunyuan solar-open grok-2 ", {.patterns = {kQwen2}}},
    {" qwen35 ", {.patterns = {kQwen35}, .nfc = true}},
    {" gpt-4o llama4 kanana2 minimax-m2 ", {.patterns = {kO200k}}},
    {" tekken ", {.patterns = {kTekken}, .ignores_merges = true, .adds_bos = true}},
    {" deepseek-v3 hunyuan-dense joyai-llm hy_v4 ",
     {.patterns = {kUpToThreeDigits, kHanAndKana, kDeepseekV3}}},
};

}  // namespace

const PreTokenizer* find_pre_tokenizer(std::string_view name) {
  if (name.empty() || name.find(' ') != std::string_view::npos) return nullptr;
  for (const Family& f : kFamilies)
    for (size_t at = f.names.find(name); at != std::string_view::npos;
         at = f.names.find(name, at + 1))
      if (f.names[at - 1] == ' ' && f.names[at + name.size()] == ' ') return &f.what;
  return nullptr;
}

std::string_view known_pre_tokenizers() {
  return "gpt-2, smollm, llama-bpe, qwen2, qwen35, gpt-4o, tekken, deepseek-v3 or one that cuts "
         "like one of them";
}

}  // namespace dovetail::gguf
