// A safetensors file, or with '{' as its first byte the index of a folder of two shards. The last byte decides what
// config.json says of quantisation.
#include "tests/fuzz/read_checkpoint.hpp"

namespace {

// One float32 tensor of two elements.
std::string shard(const std::string& tensor) {
  std::string header = "{\"" + tensor + R"(":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string out(8, '\0');
  out[0] = static_cast<char>(header.size());
  return out + header + std::string(8, '\x3f');
}

constexpr const char* kConfigs[] = {
    R"({"model_type": "any"})",
    R"({"quantization_config": {"quant_method": "fp8", "weight_block_size": [2, 3]}})",
    R"({"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 32}})",
    R"({"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 4}})"};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dovetail::core::fuzz;
  static const InputFolder folder;
  static const bool is_made = [] {
    folder.write("model-00001-of-00002.safetensors", shard("a"));
    folder.write("model-00002-of-00002.safetensors", shard("b"));
    return true;
  }();
  (void)is_made;
  static size_t config = std::size(kConfigs);  // that is written
  if (const size_t wanted = size > 0 ? data[size - 1] % std::size(kConfigs) : 0; wanted != config)
    folder.write("config.json", kConfigs[config = wanted]);
  const bool is_index = size > 0 && data[0] == '{';
  const std::string name = is_index ? "model.safetensors.index.json" : "model.safetensors";
  folder.write(name, {reinterpret_cast<const char*>(data), size});
  read_checkpoint(folder.path(), "safetensors");
  folder.remove(name);
  return 0;
}
