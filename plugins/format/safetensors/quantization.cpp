// What published configs say: transformers' FineGrainedFP8Config, GPTQConfig and AwqConfig, and the keys that
// AutoGPTQ, GPTQModel, AutoAWQ and compressed-tensors write.
#include "quantization.hpp"

#include <dovetail/quote.hpp>

#include <algorithm>
#include <string>

#include "header.hpp"

namespace dovetail::safetensors {
namespace {

[[noreturn]] void refuse(Doc at, const std::string& what, dvt_code code = DVT_EFORMAT) {
  throw Error(what, code, at.where());
}
std::string quoted(std::string_view key) {
  return "\"quantization_config." + std::string(key) + "\"";
}
std::string in_lower_case(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return out;
}

// The value under the first of the keys that is there.
Doc first_of(Doc q, std::string_view key, std::string_view other) {
  return q[key].is_null() ? q[other] : q[key];
}
std::string text_or(Doc q, std::string_view key, std::string_view fallback) {
  const Doc v = q[key];
  if (v.is_null()) return std::string(fallback);
  if (!v.is_string()) refuse(v, quoted(key) + " is " + describe(v) + ", expected a string");
  return in_lower_case(v.as_string());
}
bool flag_or(Doc q, std::string_view key, bool fallback) {
  const Doc v = q[key];
  if (v.is_null()) return fallback;
  if (!v.is_bool()) refuse(v, quoted(key) + " is " + describe(v) + ", expected true or false");
  return v.as_bool();
}

// Two whole numbers from 1 on.
void read_block(Doc v, std::string_view key, Quantization& out) {
  if (v.is_null()) return;
  const bool is_right = v.is_list() && v.size() == 2 && v.at(0).is_int() && v.at(1).is_int() &&
                        v.at(0).as_int() > 0 && v.at(1).as_int() > 0;
  if (!is_right)
    refuse(v, quoted(key) + " is " + describe(v) + ", expected two sizes such as [128, 128]");
  out.block_rows = v.at(0).as_int();
  out.block_len = v.at(1).as_int();
}

void read_group(Doc q, Doc v, Quantization& out) {
  if (v.is_null()) refuse(q, quoted("group_size") + " is missing, expected a whole number or -1");
  if (!v.is_int() || (v.as_int() != -1 && v.as_int() < 1))
    refuse(v, quoted("group_size") + " is " + describe(v) +
                  ", expected a whole number from 1 on, or -1 for one group a row");
  out.group_len = std::max<int64_t>(0, v.as_int());
}

void read_bits(Doc q, Doc v, std::string_view known, int64_t other, Quantization& out) {
  if (v.is_null()) refuse(q, quoted("bits") + " is missing, expected " + std::string(known));
  if (!v.is_int() || (v.as_int() != 4 && v.as_int() != other))
    refuse(v,
           quoted("bits") + " is " + describe(v) + ", this reader knows " + std::string(known) +
               "; use a model quantised so, or the original with backend.weights",
           v.is_int() ? DVT_EUNSUPPORTED : DVT_EFORMAT);
  out.bits = v.as_int();
}

Quantization read_fp8(Doc q) {
  Quantization out;
  out.method = Quantization::Method::kFp8;
  const std::string format = text_or(q, "fmt", "e4m3");
  if (format != "e4m3" && format != "float8_e4m3fn")
    refuse(q["fmt"], quoted("fmt") + " is " + quote(format) + ", this reader knows e4m3",
           DVT_EUNSUPPORTED);
  read_block(q["weight_block_size"], "weight_block_size", out);
  return out;
}

// Of the many schemes of compressed-tensors the one whose tensors are those of fp8.
Quantization read_compressed_tensors(Doc q) {
  Quantization out;
  out.method = Quantization::Method::kFp8;
  const std::string format = text_or(q, "format", "");
  if (format != "float-quantized")
    refuse(q["format"].is_null() ? q : q["format"],
           quoted("format") + " is " + quote(format) +
               ", of compressed-tensors this reader knows \"float-quantized\" (fp8)",
           DVT_EUNSUPPORTED);
  const Doc groups = q["config_groups"];
  for (uint64_t i = 0; i < groups.size(); ++i)
    read_block(groups.entry(i).second["weights"]["block_structure"],
               "config_groups.weights.block_structure", out);
  return out;
}

Quantization read_gptq(Doc q) {
  Quantization out;
  out.method = Quantization::Method::kGptq;
  read_bits(q, q["bits"], "4 and 8", 8, out);
  read_group(q, q["group_size"], out);
  out.is_reordered = flag_or(q, "desc_act", false);
  const std::string format = text_or(q, "checkpoint_format", "gptq");
  if ((format != "gptq" && format != "gptq_v2") || flag_or(q, "is_marlin_format", false))
    refuse(q["checkpoint_format"].is_null() ? q : q["checkpoint_format"],
           quoted("checkpoint_format") + " is " + quote(format == "gptq" ? "marlin" : format) +
               ", this reader knows gptq and gptq_v2",
           DVT_EUNSUPPORTED);
  out.zero_is_one_less = format == "gptq";
  if (const std::string type = text_or(q, "pack_dtype", "int32"); type != "int32")
    refuse(q["pack_dtype"],
           quoted("pack_dtype") + " is " + quote(type) + ", this reader knows int32",
           DVT_EUNSUPPORTED);
  const Doc dynamic = q["dynamic"];
  for (uint64_t i = 0; i < dynamic.size(); ++i)
    if (const auto [pattern, values] = dynamic.entry(i);
        !pattern.starts_with("-:") && values.size() > 0)
      refuse(values,
             quoted("dynamic") + " gives modules " + quote(pattern) +
                 " settings of their own, this reader knows one for all",
             DVT_EUNSUPPORTED);
  return out;
}

Quantization read_awq(Doc q) {
  Quantization out;
  out.method = Quantization::Method::kAwq;
  read_bits(q, first_of(q, "bits", "w_bit"), "4", 4, out);
  read_group(q, first_of(q, "group_size", "q_group_size"), out);
  if (const std::string version = text_or(q, "version", "gemm"); version != "gemm")
    refuse(q["version"], quoted("version") + " is " + quote(version) + ", this reader knows gemm",
           DVT_EUNSUPPORTED);
  return out;
}

}  // namespace

Quantization read_quantization(Doc config) {
  Doc q = config["quantization_config"];
  if (q.is_null()) q = config["text_config"]["quantization_config"];
  if (q.is_null()) return {};
  if (!q.is_map())
    refuse(q, "\"quantization_config\" is " + describe(q) + ", expected a map with quant_method");
  const std::string method = text_or(q, "quant_method", "");
  if (method == "fp8") return read_fp8(q);
  if (method == "gptq") return read_gptq(q);
  if (method == "awq") return read_awq(q);
  if (method == "compressed-tensors") return read_compressed_tensors(q);
  refuse(q["quant_method"].is_null() ? q : q["quant_method"],
         quoted("quant_method") + " is " +
             (method.empty() ? std::string("missing") : quote(method)) +
             ", this reader knows fp8, gptq, awq and the fp8 of compressed-tensors; use a model "
             "quantised so, or the original with backend.weights",
         DVT_EUNSUPPORTED);
}

}  // namespace dovetail::safetensors
