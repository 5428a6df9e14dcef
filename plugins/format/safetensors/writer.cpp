#include "writer.hpp"

#include <dovetail/json_string.hpp>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "dtypes.hpp"

namespace dovetail::safetensors {
namespace {

constexpr uint64_t kAlign = 64;  // where the data begins

std::string json_string(std::string_view text) {
  std::string out;
  append_json_string(text, out);
  return out;
}

std::string shape_text(const dvt_tensor& t) {
  std::string out = "[";
  for (uint32_t i = 0; i < t.ndim; ++i) out += (i > 0 ? ", " : "") + std::to_string(t.shape[i]);
  return out + "]";
}

// Null for a block format.
const Dtype* plain_dtype(const dvt_tensor& t) {
  for (const Dtype& d : kDtypes)
    if (d.format == to_view(t.format)) return &d;
  return nullptr;
}

std::string metadata(std::span<const dvt_tensor> tensors) {
  std::string out = R"({"format":"pt")";  // what readers of such files expect
  for (const dvt_tensor& t : tensors)
    if (!plain_dtype(t))
      out += "," + json_string(std::string(kFormatKey) + std::string(to_view(t.name))) + ":" +
             json_string(std::string(to_view(t.format)) + " " + shape_text(t));
  return out + "}";
}

// The length and the header, filled up with spaces.
std::string head_of(std::span<const dvt_tensor> tensors) {
  std::string text = R"({"__metadata__":)" + metadata(tensors);
  uint64_t at = 0;
  for (const dvt_tensor& t : tensors) {
    const Dtype* dtype = plain_dtype(t);
    text += "," + json_string(to_view(t.name)) + R"(:{"dtype":")" +
            std::string(dtype ? dtype->stored : kBytes) + R"(","shape":)" +
            (dtype ? shape_text(t) : "[" + std::to_string(t.bytes) + "]") + R"(,"data_offsets":[)" +
            std::to_string(at) + "," + std::to_string(at + t.bytes) + "]}";
    at += t.bytes;
  }
  text += "}";
  std::string length(8, '\0');
  text.resize((length.size() + text.size() + kAlign - 1) / kAlign * kAlign - length.size(), ' ');
  for (size_t i = 0; i < length.size(); ++i)
    length[i] = static_cast<char>(text.size() >> (8 * i) & 0xff);
  return length + text;
}

// Where each file's tensors begin, and the end.
std::vector<size_t> cut_into_files(std::span<const dvt_tensor> tensors, uint64_t max_bytes) {
  std::vector<size_t> begins = {0};
  uint64_t bytes = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (i > begins.back() && tensors[i].bytes > max_bytes - std::min(bytes, max_bytes)) {
      begins.push_back(i);
      bytes = 0;
    }
    bytes += tensors[i].bytes;
  }
  begins.push_back(tensors.size());
  return begins;
}

std::string shard_name(size_t i, size_t n) {
  char name[64];
  std::snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", i + 1, n);
  return name;
}

}  // namespace

void lay_out(std::span<const dvt_tensor> tensors, uint64_t max_bytes, const FileSink& sink) {
  const std::vector<size_t> begins = cut_into_files(tensors, max_bytes);
  const size_t n_files = begins.size() - 1;
  if (n_files == 1) return sink.file("model.safetensors", head_of(tensors), 0, tensors.size());
  std::string map;
  uint64_t total = 0;
  for (size_t i = 0; i < n_files; ++i) {
    const std::span<const dvt_tensor> part = tensors.subspan(begins[i], begins[i + 1] - begins[i]);
    const std::string name = shard_name(i, n_files);
    sink.file(name, head_of(part), begins[i], part.size());
    for (const dvt_tensor& t : part) {
      map += (map.empty() ? "\n    " : ",\n    ") + json_string(to_view(t.name)) + ": \"" + name +
             "\"";
      total += t.bytes;
    }
  }
  const std::string index = "{\n  \"metadata\": {\n    \"total_size\": " + std::to_string(total) +
                            "\n  },\n  \"weight_map\": {" + map + "\n  }\n}\n";
  sink.file("model.safetensors.index.json", index, tensors.size(), 0);
}

}  // namespace dovetail::safetensors
