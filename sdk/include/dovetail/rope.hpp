// Rotary position embedding: the frequency table that a model's config asks for.
//
// The op takes the table as an attribute, so that every scaling rule is SDK code and no backend
// knows one. Rules: default, linear, yarn (as transformers 5 computes it), llama3.
// Source: transformers' modeling_rope_utils, restated in the project's model specification.
#pragma once

#include <dovetail/config_reader.hpp>

#include <algorithm>
#include <numbers>
#include <vector>

namespace dovetail {

struct RopeTable {
  std::vector<double> inv_freq;   // [rotary_dim / 2], radians per position
  double attention_factor = 1.0;  // multiplies cos and sin
};

namespace rope_detail {

inline RopeTable plain(double theta, int64_t rotary_dim) {
  RopeTable table;
  for (int64_t i = 0; i < rotary_dim / 2; ++i)
    table.inv_freq.push_back(
        std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(rotary_dim)));
  return table;
}

// A number inside the rope dictionary; `fallback` when absent.
inline double value(ConfigReader& in, Doc dict, std::string_view key, double fallback) {
  const Doc v = dict[key];
  if (v.is_null()) return fallback;
  if (v.is_number()) return v.as_float();
  in.problem(v, ConfigReader::quoted(key) + " is " + v.kind_name() + ", expected a number");
  return fallback;
}
// One that divides.
inline double positive(ConfigReader& in, Doc dict, std::string_view key, double fallback) {
  const double v = value(in, dict, key, fallback);
  if (v > 0.0) return v;
  in.problem(dict[key], ConfigReader::quoted(key) + " is " + std::to_string(v) +
                            ", expected a positive number");
  return 1.0;
}

// Whether `b` says all that `a` says; the base may be elsewhere, the type has two names.
inline bool agrees(Doc a, Doc b) {
  for (uint64_t i = 0; i < a.size(); ++i) {
    const auto [key, value] = a.entry(i);
    Doc other = b[key];
    if (other.is_null() && key == "type") other = b["rope_type"];
    if (other.is_null() && key == "rope_type") other = b["type"];
    if (value.is_null() || (other.is_null() && key == "rope_theta")) continue;
    const bool is_same =
        value.is_number()   ? other.is_number() && value.as_float() == other.as_float()
        : value.is_string() ? other.is_string() && value.as_string() == other.as_string()
        : value.is_bool()   ? other.is_bool() && value.as_bool() == other.as_bool()
                            : value.kind() == other.kind();
    if (!is_same) return false;
  }
  return true;
}

// Keeps fast dimensions, divides slow ones by the factor, blends between (arXiv:2309.00071).
inline void yarn(ConfigReader& in, Doc dict, double theta, int64_t rotary_dim, RopeTable& table) {
  const double max_len = static_cast<double>(in.i64_or("max_position_embeddings", 2048));
  if (dict["original_max_position_embeddings"].is_null())
    in.note("yarn without \"original_max_position_embeddings\" takes \"max_position_embeddings\" " +
            std::to_string(static_cast<int64_t>(max_len)));
  const double original = positive(in, dict, "original_max_position_embeddings", max_len);
  const double factor = positive(in, dict, "factor", max_len / original);
  const double dim = static_cast<double>(rotary_dim);
  const auto correction = [&](double rotations) {
    return dim * std::log(original / (rotations * 2.0 * std::numbers::pi)) /
           (2.0 * std::log(theta));
  };
  double low = correction(value(in, dict, "beta_fast", 32.0));
  double high = correction(value(in, dict, "beta_slow", 1.0));
  const Doc truncate = dict["truncate"];
  if (truncate.is_null() || !truncate.is_bool() || truncate.as_bool()) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, dim - 1.0);
  if (high == low) high += 0.001;
  for (size_t i = 0; i < table.inv_freq.size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    table.inv_freq[i] *= (1.0 - ramp) + ramp / factor;
  }
  const auto scale = [factor](double m) {
    return factor > 1.0 ? 0.1 * m * std::log(factor) + 1.0 : 1.0;
  };
  const double mscale = value(in, dict, "mscale", 0.0);
  const double mscale_all = value(in, dict, "mscale_all_dim", 0.0);
  const double implied =
      mscale != 0.0 && mscale_all != 0.0 ? scale(mscale) / scale(mscale_all) : scale(1.0);
  table.attention_factor = value(in, dict, "attention_factor", implied);
}

inline void llama3(ConfigReader& in, Doc dict, RopeTable& table) {
  const double factor = positive(in, dict, "factor", 8.0);
  const double low = positive(in, dict, "low_freq_factor", 1.0);
  const double high = positive(in, dict, "high_freq_factor", 4.0);
  const double original = positive(in, dict, "original_max_position_embeddings", 8192.0);
  for (double& f : table.inv_freq) {
    const double wavelength = 2.0 * std::numbers::pi / f;
    if (wavelength < original / high) continue;
    if (wavelength > original / low) {
      f /= factor;
    } else {
      const double blend = (original / wavelength - low) / (high - low);
      f *= (1.0 - blend) / factor + blend;
    }
  }
}

}  // namespace rope_detail

/// The table for `rotary_dim` dimensions of base `theta`, as `dict` says ("rope_type" and what that type
/// needs; null = default). Problems are collected in `in`.
inline RopeTable make_rope(ConfigReader& in, Doc dict, double theta, int64_t rotary_dim) {
  constexpr int64_t kMostDims = 65536;  // of a damaged config, not of a model
  if (rotary_dim > kMostDims) {
    in.problem({}, "a rotary embedding of " + std::to_string(rotary_dim) +
                       " dimensions, expected at most " + std::to_string(kMostDims));
    return {};
  }
  RopeTable table = rope_detail::plain(theta, rotary_dim);
  if (dict.is_null()) return table;

  Doc type = dict["rope_type"];
  if (type.is_null()) type = dict["type"];
  const std::string name = type.is_string() ? std::string(type.as_string()) : "default";
  if (name == "linear") {
    const double factor = rope_detail::positive(in, dict, "factor", 1.0);
    for (double& f : table.inv_freq) f /= factor;
  } else if (name == "yarn") {
    rope_detail::yarn(in, dict, theta, rotary_dim, table);
  } else if (name == "llama3") {
    rope_detail::llama3(in, dict, table);
  } else if (name != "default") {
    in.problem(type,
               "rope type \"" + name + "\" is not known; known are default, linear, yarn, llama3");
  }
  return table;
}

/// The table for `rotary_dim` dimensions from rope_parameters (transformers >= 5), or from rope_theta
/// and rope_scaling; a file that has both must mean the same. Problems are collected in `in`.
inline RopeTable read_rope(ConfigReader& in, int64_t rotary_dim, double default_theta = 10000.0) {
  const char* key = in.has("rope_parameters") ? "rope_parameters" : "rope_scaling";
  Doc dict = in.find(key);
  if (!dict.is_null() && !dict.is_map()) {
    in.problem(dict, ConfigReader::quoted(key) + " is " + dict.kind_name() + ", expected a map");
    dict = {};
  }
  if (const Doc old = in.find("rope_scaling"); dict.is_map() && !rope_detail::agrees(old, dict))
    in.problem(old, "\"rope_scaling\" and \"rope_parameters\" say different things; remove one");
  double theta = in.f64_or("rope_theta", default_theta);
  const double inner = rope_detail::value(in, dict, "rope_theta", theta);
  if (in.find("rope_theta").is_number() && inner != theta)
    in.problem(dict["rope_theta"], "\"rope_theta\" is given twice with different values (" +
                                       std::to_string(theta) + " and " + std::to_string(inner) +
                                       "); remove one");
  theta = inner;
  if (!(theta > 0.0)) {
    in.problem(in.find("rope_theta"),
               "\"rope_theta\" is " + std::to_string(theta) + ", expected a positive number");
    theta = default_theta;
  }
  return make_rope(in, dict, theta, rotary_dim);
}

}  // namespace dovetail
