#include "parts.hpp"

#include <dovetail/quote.hpp>

#include <map>
#include <set>
#include <string_view>

#include "fp8.hpp"
#include "grouped_ints.hpp"

namespace dovetail::safetensors {
namespace {

using Method = Quantization::Method;

constexpr std::string_view kLevels = ".qweight", kWeight = ".weight";

class Gatherer {
 public:
  Gatherer(const Quantization& q, const std::deque<Stored>& tensors, Call call)
      : q_(q), tensors_(tensors), call_(call) {
    for (const Stored& t : tensors) by_name_.emplace(t.entry.name, &t);
  }

  Gathered run() {
    Gathered out;
    for (const Stored& t : tensors_) {
      const std::string_view name = t.entry.name;
      if (name.ends_with(kLevels))
        out.matrices.push_back(ints(t, std::string(name.substr(0, name.size() - kLevels.size()))));
      else if (t.entry.format == "f8_e4m3" && name.ends_with(kWeight) && t.entry.shape.size() == 2)
        if (auto matrix = floats(t, std::string(name.substr(0, name.size() - kWeight.size()))))
          out.matrices.push_back(std::move(matrix));
    }
    for (const Stored& t : tensors_)
      if (!used_.contains(&t) && !is_of_activations(t.entry.name)) out.others.push_back(&t);
    return out;
  }

 private:
  // Scales of static activations, which modules of fp8 have beside their weight.
  bool is_of_activations(std::string_view name) const {
    return q_.method == Method::kFp8 &&
           (name.ends_with(".input_scale") || name.ends_with(".activation_scale"));
  }
  const Stored* find(const std::string& name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->second;
  }
  const Stored& need(const Stored& beside, const std::string& name, const std::string& other = {}) {
    const Stored* found = find(name);
    if (!found && !other.empty()) found = find(other);
    if (!found)
      refuse(beside.file, beside.entry.name,
             "has no " + quote(name) + " beside it, which its numbers need; download incomplete?");
    used_.insert(found);
    return *found;
  }

  std::unique_ptr<Matrix> ints(const Stored& levels, const std::string& module) {
    if (q_.method != Method::kGptq && q_.method != Method::kAwq)
      refuse(levels.file, levels.entry.name,
             std::string("is of a quantised matrix, but config.json ") +
                 (q_.method == Method::kNone ? "has no \"quantization_config\""
                                             : "says quant_method \"fp8\"") +
                 ", expected one of gptq or awq");
    used_.insert(&levels);
    IntParts parts{&levels, &need(levels, module + ".qzeros"), &need(levels, module + ".scales"),
                   nullptr};
    if (q_.method == Method::kGptq) parts.groups = find(module + ".g_idx");
    if (parts.groups) used_.insert(parts.groups);
    if (q_.is_reordered) parts.groups = &need(levels, module + ".g_idx");
    return int_matrix(q_, module + std::string(kWeight), parts, call_);
  }

  // Null where nothing says that the numbers have a scale.
  std::unique_ptr<Matrix> floats(const Stored& weight, const std::string& module) {
    const std::string inverse = module + ".weight_scale_inv", plain = module + ".weight_scale";
    if (q_.method != Method::kFp8) {
      if (!find(inverse) && !find(plain)) return nullptr;
      refuse(weight.file, weight.entry.name,
             "is of 8-bit floats with scales beside it, but config.json has no "
             "\"quantization_config\" of quant_method \"fp8\"");
    }
    const Stored& scale =
        q_.block_rows > 0 ? need(weight, inverse, plain) : need(weight, plain, inverse);
    used_.insert(&weight);
    return fp8_matrix(q_, weight, scale);
  }

  const Quantization& q_;
  const std::deque<Stored>& tensors_;
  Call call_;
  std::map<std::string, const Stored*, std::less<>> by_name_;
  std::set<const Stored*> used_;
};

}  // namespace

Gathered gather(const Quantization& q, const std::deque<Stored>& tensors, Call call) {
  return Gatherer(q, tensors, call).run();
}

}  // namespace dovetail::safetensors
